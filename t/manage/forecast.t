# nginx-ads forecast and report, from roll-ups on a real PostgreSQL.

use strict;
use warnings;
use lib 't/lib';

use JSON::PP ();
use Test::More;

use AdsTest::Command;
use AdsTest::Postgres;

my $pg  = AdsTest::Postgres->new;
my $dir = in_folder();

sub json { return JSON::PP->new->utf8->decode(shift) }

$pg->migrate;
$ENV{ADS_DATABASE} = $pg->conninfo;
$pg->run(<<'SQL');
CREATE OR REPLACE FUNCTION ads.now() RETURNS timestamptz STABLE LANGUAGE sql AS $$ SELECT '2026-11-16T12:00:00Z'::timestamptz $$;
INSERT INTO ads.campaigns (id, name, timezone, budget_type, budget_micro, hard_cap, starts_at, ends_at) VALUES
    (1, 'Autumn', 'America/New_York', 'lifetime', 100000000000, 1.2, '2026-11-01Z', '2026-12-31Z'),   -- 1000.00
    (2, 'Daily', 'UTC', 'daily', 2000000000, 1.2, '2026-11-01Z', '2026-11-26T12:00:00Z'),             -- 20.00
    (3, 'Quiet', 'UTC', 'lifetime', 100000000000, 1.2, NULL, NULL),
    (4, 'House', 'UTC', NULL, NULL, NULL, NULL, NULL),
    (5, 'New', 'UTC', 'lifetime', 100000000000, 1.2, '2026-11-14T12:00:00Z', NULL),
    (6, 'Fast', 'UTC', 'lifetime', 100000000, 1.2, '2026-11-01Z', '2026-12-31Z');
INSERT INTO ads.ad_groups (id, campaign_id, name) VALUES (12, 1, 'Readers');
INSERT INTO ads.creatives (id, ad_group_id, type, name, content, click_url) VALUES
    (31, 12, 'html', 'A "good", one', '{"markup": "a"}', 'https://a.example/'), (32, 12, 'html', '=1+1', '{"markup": "a"}', 'https://a.example/');
-- 10.00 a day for ten days of campaign 1, half as much of 2, 5.00 in one hour of 5.
INSERT INTO ads.event_hours (hour, campaign_id, ad_group_id, creative_id, placement, country, device, type, invalid, events, price_micro)
SELECT timestamptz '2026-11-16T10:00:00Z' - d * interval '1 day', c, 12, 31, 'home-top', 'US', 'mobile', 'impression', '', 1000, 1000000000 / c
FROM generate_series(0, 9) d, generate_series(1, 2) c;
INSERT INTO ads.event_hours VALUES
    ('2026-11-16T10:00:00Z', 5, 12, 31, 'home-top', 'US', 'mobile', 'impression', '', 10, 500000000),
    ('2026-11-16T10:00:00Z', 6, 12, 31, 'home-top', 'US', 'mobile', 'impression', '', 10, 70000000),
    ('2026-11-16T10:00:00Z', 1, 12, 31, 'home-top', 'US', 'mobile', 'impression', 'ignored', 7, 999),
    ('2026-11-16T10:00:00Z', 1, 12, 31, 'home-top', 'US', 'mobile', 'click', '', 20, 0),
    ('2026-11-16T03:00:00Z', 1, 12, 32, 'side', 'DE', '', 'serve', '', 50, 0),
    ('2026-11-16T03:00:00Z', 1, 12, 32, 'side', 'DE', '', 'conversion', '', 3, 0);
INSERT INTO ads.daily_spend (campaign_id, day, ad_group_id, spend_micro) VALUES
    (1, '2026-11-10', 12, 10000000000), (2, '2026-11-10', 12, 5000000000), (5, '2026-11-16', 12, 500000000), (6, '2026-11-16', 12, 70000000);
SQL

# ---- forecast -----------------------------------------------------------------------------

sub forecast {
    my ($campaign) = @_;
    is run('forecast', 'campaign', $campaign, '--json'), 0, "forecast of campaign $campaign" or diag $err;
    return json($out);
}
my @fields = qw(average_daily_spend days_remaining exhaustion_date projected_total_spend will_exhaust_early);

sub is_forecast {
    my ($campaign, @expected) = @_;
    my $got = forecast($campaign);
    $got->{will_exhaust_early} = $got->{will_exhaust_early} ? 1 : 0;
    is_deeply [ map { defined && /^[\d.]+$/ ? $_ + 0 : $_ } @$got{@fields} ], \@expected, "campaign $campaign" or diag $out;
    return $got;
}

# 1000.00 less 100.00 at 10.00 a day: 90 days, which is after the end of the year; 44.5 days to go.
my $got = is_forecast(1, 1000, 90, '2027-02-14', 54500, 0);
is scalar(@{ $got->{days} }), 7, 'the last 168 hours by day';
is_deeply $got->{days}[0], { day => '2026-11-10', spend_cents => 1000 }, 'oldest first';
$got = is_forecast(2, 500, undef, undef, 10000, 0);
is $got->{delivery}, 0.25, 'of a daily budget: a quarter is delivered';
is_forecast(3, 0, undef, undef, 0, 0);
is_forecast(4, 0, undef, undef, 0, 0);
is_forecast(5, 250, 398, '2027-12-19', 100000, 0);
is_forecast(6, 10, 3, '2026-11-19', 100, 1);

# The answer is in the first line.
sub summary { my ($campaign) = @_; run('forecast', 'campaign', $campaign); return (split /\n/, $out)[0] }

is summary(1), 'Will deliver 54 % of its budget by 30 Dec.', 'how much by when';
like $out, qr/^Campaign 1 Autumn, active, lifetime budget 1000\.00$/m, 'for people';
like $out, qr/^  2026-11-16 +10\.00  #{32}$/m, 'a bar for each day';
like $out, qr/^  the budget lasts 90\.0 days, until 2027-02-14$/m, 'how long it lasts';
like $out, qr/^  projected total: 545\.00$/m, 'and the sum';
is summary('Autumn'), 'Will deliver 54 % of its budget by 30 Dec.', 'a campaign by its name';
is run('forecast', 'campaign', 'Autum'), 1, 'an unknown one';
is $err, qq(nginx-ads: there is no campaign "Autum": did you mean "Autumn"?\n), 'is named';
is summary(6), 'Will deliver 100 % of its budget by 19 Nov, before the flight ends on 30 Dec.', 'early is early';
is summary(2), "Will deliver 25 % of each day's budget until 26 Nov.", 'a daily budget is not used up';
is summary(3), 'Will deliver 0 % of its budget: nothing was spent in the last 7 days.', 'nothing spent';
is summary(4), 'No budget, no goal, and no spend in the last 7 days.', 'nothing to deliver';
is summary(5), 'Will deliver 100 % of its budget by 19 Dec 2027.', 'in another year';
$pg->run('UPDATE ads.campaigns SET budget_micro = 100 * budget_micro WHERE id = 5');
like summary(5), qr/^Will deliver 100 % of its budget in about \d+ years at this rate\.\z/, 'a day in many years is none';
$pg->run('UPDATE ads.campaigns SET budget_micro = budget_micro / 100 WHERE id = 5');
is forecast(1)->{summary}, 'Will deliver 54 % of its budget by 30 Dec.', 'also for programs';
is forecast(1)->{deliver_by}, '2026-12-30', 'with the day';

# Goals of ad groups, without a budget: one goal cannot make up for another.
$pg->run(<<'SQL');
INSERT INTO ads.campaigns (id, name, timezone, starts_at, ends_at, status) VALUES
    (8, 'Goals', 'UTC', '2026-11-06T12:00:00Z', '2026-11-26T12:00:00Z', 'active'),
    (9, 'Ahead', 'UTC', '2027-01-01Z', '2027-02-01Z', 'scheduled'),
    (10, 'Over', 'UTC', '2026-10-01Z', '2026-11-01Z', 'completed');
UPDATE ads.campaigns SET budget_type = 'lifetime', budget_micro = 400000000, hard_cap = 1.2 WHERE id = 10;
INSERT INTO ads.ad_groups (id, campaign_id, name, goal_on, goal_count, cap_on) VALUES
    (81, 8, 'Behind', 'impressions', 3000, 'impression'), (82, 8, 'Ahead', 'clicks', 10, 'serve');
INSERT INTO ads.daily_spend (campaign_id, day, ad_group_id, impressions, clicks, spend_micro) VALUES
    (8, '2026-11-16', 81, 1000, 0, 0), (8, '2026-11-16', 82, 0, 500, 0), (10, '2026-10-10', 12, 0, 0, 100000000);
INSERT INTO ads.event_hours VALUES ('2026-11-16T10:00:00Z', 8, 81, 31, 'home-top', 'US', 'mobile', 'impression', '', 700, 0);
SQL
is summary(8), 'Will deliver 66 % of its goal by 26 Nov.', 'by its goals';
like $out, qr/^  goals of its ad groups: 1,500 of 3,010, projected total 2,010$/m, 'in figures';
is summary(9), 'Starts on 1 Jan 2027: no data for a forecast yet.', 'not begun';
is summary(10), 'Delivered 25 % of its budget by 31 Oct.', 'over';
# The dates of an ad group: 1000 and 7 days of 100 a day until its end, which is the end of the
# flight if the campaign has none.
$pg->run(q{UPDATE ads.campaigns SET starts_at = NULL, ends_at = NULL WHERE id = 8; DELETE FROM ads.ad_groups WHERE id = 82;
    UPDATE ads.ad_groups SET starts_at = '2026-11-01Z', ends_at = '2026-11-23T12:00:00Z' WHERE id = 81});
is summary(8), 'Will deliver 56 % of its goal by 23 Nov.', 'by the end of its ad group';
is_deeply [ @{ forecast(8) }{qw(goal_projected goal_daily ends_on)} ], [ 1700, 100, '2026-11-23' ], 'which is the flight';
$pg->run(q{UPDATE ads.ad_groups SET ends_at = NULL WHERE id = 81});
is summary(8), 'No end date for a goal: 1,000 of 3,000 delivered, 100 per day.', 'without an end it has no percentage';
$pg->run(q{INSERT INTO ads.campaigns (id, name, budget_type, budget_micro, hard_cap) VALUES (7, 'Own', 'lifetime', 100000000000, 1.2);
    INSERT INTO ads.ad_groups (id, campaign_id, name, starts_at, ends_at) VALUES (71, 7, 'G', '2026-11-14T12:00:00Z', '2026-11-26T12:00:00Z');
    INSERT INTO ads.event_hours VALUES ('2026-11-16T10:00:00Z', 7, 71, 31, 'home-top', 'US', 'mobile', 'impression', '', 10, 2000000000)});
is summary(7), 'Will deliver 10 % of its budget by 26 Nov.', 'a budget is spent until the ad groups end';
$pg->run('DELETE FROM ads.event_hours WHERE campaign_id = 7');
$pg->run('DELETE FROM ads.ad_groups WHERE id > 12; DELETE FROM ads.campaigns WHERE id > 6; DELETE FROM ads.event_hours WHERE campaign_id = 8');
$pg->run(q{UPDATE ads.campaigns SET status = 'paused' WHERE id = 1});
like summary(1), qr/by 30 Dec; it is paused now\.$/, 'a forecast for what does not run says so';
$pg->run(q{UPDATE ads.campaigns SET status = 'active' WHERE id = 1});

# ---- report --------------------------------------------------------------------------------

sub rows {
    is run('report', '--format', 'json', @_), 0, "report @_" or diag $err;
    return @{ json($out)->{rows} };
}

my @rows = rows();
is_deeply [ map { $_->{key} } @rows ], [ 1, 2, 5, 6 ], 'by campaign, the largest first';
is_deeply [ @{ $rows[0] }{ qw(name serves impressions clicks conversions invalid spend_cents ctr) } ],
    [ 'Autumn', 50, 10000, 20, 3, 7, 10000, 0.002 ], 'with all figures';
is_deeply [ map { "$_->{key}:$_->{impressions}" } rows('--by', 'placement', '--campaign', 1) ], [ 'home-top:10000', 'side:0' ], 'by placement';
is_deeply [ map { "$_->{key}:$_->{name}" } rows('--by', 'ad-group') ], ['12:Readers'], 'by ad group';
is_deeply [ map { "$_->{key}:$_->{serves}" } rows('--by', 'day', '--campaign', 1, '--from', '2026-11-15T00:00:00Z', '--timezone', 'America/New_York') ],
    [ '2026-11-15:50', '2026-11-16:0' ], 'by day, in a time zone';
is_deeply [ map { $_->{key} } rows('--by', 'hour', '--from', '2026-11-16T00:00:00Z') ], [ '2026-11-16T03:00', '2026-11-16T10:00' ], 'by hour';
is_deeply [ map { $_->{key} } rows('--by', 'country') ], [ 'US', 'DE' ], 'by country';
is_deeply [ map { $_->{key} } rows('--by', 'device', '--limit', 1) ], ['mobile'], 'by device, at most one';

run('report', '--by', 'creative', '--campaign', 1, '--format', 'csv');
is $out, <<'CSV', 'CSV that no spreadsheet takes for a formula';
creative,name,requests,unfilled,fill_rate,serves,impressions,viewables,viewable_rate,clicks,ctr,conversions,invalid,spend_cents,ecpm_cents,viewable_share,viewable_seconds
31,"A ""good"", one",,,,0,10000,0,0,20,0.002,0,7,10000,1000,,
32,'=1+1,,,,50,0,0,,0,,3,0,0,,,
CSV
run('report', '--by', 'creative', '--campaign', 'Autumn');
like $out, qr/^CREATIVE +NAME +SERVES +IMPRESSIONS +VIEWABLE +CLICKS +CTR +CONVERSIONS +INVALID +SPEND +ECPM$/m, 'a table';
like $out, qr/^ *31 +A "good", one +0 +10,000 +0\.0% +20 +0\.20% +0 +7 +100\.00 +10\.00$/m, 'for people';
like $out, qr/^total +50 +10,000 +0\.0% +20 +0\.20% +3 +7 +100\.00 +10\.00$/m, 'with a total';
run('report', '--campaign', 99);
like $out, qr/^no events from 2026-10-17T12:00:00Z to 2026-11-16T12:00:00Z$/m, 'nothing there';

# ---- two dimensions, totals, days as people say them -------------------------------------------

sub report { is run('report', '--json', @_), 0, "report --json @_" or diag $err; return json($out) }

my $report = report('--by', 'campaign,day', '--from', '2026-11-15', '--to', 'today');
is_deeply [ @$report{qw(by from to)} ], [ 'campaign,day', '2026-11-15T00:00:00Z', '2026-11-17T00:00:00Z' ], 'the last day is included';
is_deeply [ map { "$_->{key} $_->{key2} $_->{impressions}" } @{ $report->{rows} } ],
    [ '1 2026-11-15 1000', '1 2026-11-16 1000', '2 2026-11-15 1000', '2 2026-11-16 1000', '5 2026-11-16 10', '6 2026-11-16 10' ],
    'the largest campaign first, its days in order';
is_deeply [ @{ $report->{total} }{qw(impressions spend_cents ecpm_cents)} ], [ 4020, 3570, 888.0597 ], 'and a total';
is_deeply [ @{ report('--from', 'yesterday', '--to', 'yesterday', '--timezone', 'Europe/Berlin') }{qw(from to)} ],
    [ '2026-11-14T23:00:00Z', '2026-11-15T23:00:00Z' ], 'days are local';
is_deeply [ @{ report('--from', '2026-10-25', '--to', '2026-10-25', '--timezone', 'Europe/Berlin') }{qw(from to)} ],
    [ '2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z' ], 'and may have 25 hours';
is report('--limit', 1)->{total}{impressions}, 20020, 'the total is of all rows';

$pg->run(q{INSERT INTO ads.advertisers VALUES ('acme'); UPDATE ads.campaigns SET advertiser = 'acme' WHERE id IN (1, 5)});
is_deeply [ map { "$_->{key}:$_->{spend_cents}" } @{ report('--by', 'advertiser')->{rows} } ], [ 'acme:10500', ':5070' ], 'by advertiser';
is_deeply [ map { $_->{key} } @{ report('--advertiser', 'acme')->{rows} } ], [ 1, 5 ], 'of one advertiser';
is_deeply [ map { "$_->{key}:$_->{serves}" } @{ report('--placement', 'side')->{rows} } ], ['1:50'], 'of one placement';

# ---- the period before ---------------------------------------------------------------------------

$report = report('--from', '2026-11-15', '--to', 'today', '--previous');
is_deeply $report->{previous}, { from => '2026-11-13T00:00:00Z', to => '2026-11-14T12:00:00Z' }, 'as much of its last day as of this one';
is_deeply [ map { "$_->{key}:$_->{impressions}:$_->{previous}{impressions}" } @{ $report->{rows} } ],
    [ '1:2000:2000', '2:2000:2000', '5:10:0', '6:10:0' ], 'figures of both';
is $report->{total}{previous}{spend_cents}, 3000, 'also of the total';
is_deeply [ map { "$_->{key}:$_->{impressions}:$_->{previous}{impressions}" } @{ report('--by', 'day', '--campaign', 2, '--from', '2026-11-08', '--to', '2026-11-09', '--previous')->{rows} } ],
    [ '2026-11-08:1000:0', '2026-11-09:1000:1000' ], 'days are compared with those that they follow';
is_deeply [ map { "$_->{key}:$_->{impressions}:$_->{previous}{impressions}" } @{ report('--from', '2026-11-17', '--to', '2026-11-18', '--previous')->{rows} } ],
    [], 'nothing in a time that is to come';
run('report', '--from', '2026-11-15', '--to', 'today', '--previous');
like $out, qr/^ *1 +Autumn +50 +2,000 +2,000 +\+0% .*20\.00 +20\.00 +\+0% +10\.00$/m, 'for people' or diag $out;

# ---- fill ----------------------------------------------------------------------------------------

$pg->run(<<'SQL');
INSERT INTO ads.placement_hours VALUES ('2026-11-16T03:00:00Z', 'side', '', 60), ('2026-11-16T03:00:00Z', 'side', 'frequency', 15),
    ('2026-11-16T10:00:00Z', 'home-top', '', 30), ('2026-11-15T10:00:00Z', 'footer', 'targeting', 7);
SQL
is_deeply [ map { join ' ', $_->{key}, $_->{requests}, $_->{unfilled}, $_->{fill_rate}, $_->{impressions} } @{ report('--by', 'placement')->{rows} } ],
    [ 'home-top 30 0 1 20020', 'side 75 15 0.8 0', 'footer 7 7 0 0' ], 'fill by placement, also of one without an ad';
is_deeply [ map { join ' ', $_->{key}, $_->{key2}, $_->{requests} } @{ report('--by', 'day,placement', '--from', '2026-11-15')->{rows} } ],
    [ '2026-11-15 home-top 0', '2026-11-15 footer 7', '2026-11-16 home-top 30', '2026-11-16 side 75' ], 'by day and placement';
is report()->{rows}[0]{requests}, undef, 'a request belongs to no campaign';
is report('--by', 'placement', '--campaign', 1)->{rows}[0]{fill_rate}, undef, 'nor does one of a placement';
is report()->{total}{fill_rate}, 0.803571, 'but the total has them';
run('report', '--by', 'placement');
like $out, qr/^PLACEMENT +NAME +REQUESTS +FILL +SERVES/m, 'a column for people';
like $out, qr/^side +75 +80\.0% +50 /m, 'with the rate';

# ---- what makes an ad viewable -------------------------------------------------------------------

$pg->run(q{INSERT INTO ads.placements (id, width, height) VALUES ('home-top', 728, 90), ('footer', 970, 250)});
is_deeply [ map { join ' ', $_->{key}, $_->{viewable_share} // 'none', $_->{viewable_seconds} // 'none' } @{ report('--by', 'placement')->{rows} } ],
    [ 'home-top 0.5 1', 'side none none', 'footer 0.3 1' ], 'by the size of the placement; unknown of one that has left the catalog';
$pg->run(q{UPDATE ads.placements SET viewable_share = 0.75, viewable_seconds = 2 WHERE id = 'home-top'});
$pg->run(q{INSERT INTO ads.event_hours VALUES ('2026-11-16T10:00:00Z', 1, 12, 31, 'home-top', 'US', 'mobile', 'viewable', '', 5005, 0)});
is_deeply [ map { join ' ', map { $_ // 'none' } @$_{qw(key key2 viewable_share viewable_seconds)} } @{ report('--by', 'day,placement', '--from', '2026-11-16')->{rows} } ],
    [ '2026-11-16 home-top 0.75 2', '2026-11-16 side none none' ], 'in two dimensions';
run('report', '--by', 'placement');
like $out, qr/^PLACEMENT +NAME .* VIEWABLE +THRESHOLD +CLICKS/m, 'a column for people';
like $out, qr/^home-top .* 25\.0% +75% 2s /m, 'beside the rate';
like $out, qr/^side .* - +- /m, 'which may be none';
is report('--by', 'country', '--placement', 'home-top')->{rows}[0]{viewable_share}, 0.75, 'of one placement';
run('report', '--by', 'campaign');
unlike $out, qr/THRESHOLD/, 'and nothing where there is none';
$pg->run(q{DELETE FROM ads.placements; DELETE FROM ads.event_hours WHERE type = 'viewable'});

# ---- delivery in lists ---------------------------------------------------------------------------

sub list { my ($kind, @rest) = @_; is run($kind, 'list', @rest), 0, "$kind list @rest" or diag $err; return $out }

my $list = list('campaign');
like $list, qr/^ID  NAME +ADVERTISER +STATUS +START +END +BUDGET +DELIVERED +AIM +GROUPS$/m, 'columns';
like $list, qr{^ 1  Autumn +acme +active +2026-10-31 +2026-12-30 +1000\.00/total +10% +26% +1$}m, 'of the flight: a tenth, where a quarter was to be';
like $list, qr{^ 2  Daily +active +2026-11-01 +2026-11-26 +20\.00/day +0% +50% +0$}m, 'of the day';
like $list, qr{^ 4  House +active +- +- +- +0$}m, 'nothing to deliver';
is_deeply json(list('campaign', '--search', 'fast', '--json'))->[0]{delivery},
    { of => 'flight', spent_cents => 70, budget_cents => 100, delivered => 0.7, aim => 0.2583, active_ad_groups => 0 }, 'for programs';

$pg->run(<<'SQL');
UPDATE ads.ad_groups SET goal_on = 'clicks', goal_count = 80 WHERE id = 12;
INSERT INTO ads.ad_groups (id, campaign_id, name, daily_impression_cap, cap_on) VALUES (13, 2, 'Capped', 2000, 'impression');
INSERT INTO ads.daily_spend (campaign_id, day, ad_group_id, impressions, clicks) VALUES (1, '2026-11-16', 12, 0, 20), (2, '2026-11-16', 13, 500, 0)
    ON CONFLICT (campaign_id, day, ad_group_id) DO UPDATE SET clicks = excluded.clicks;
SQL
$list = list('ad-group');
like $list, qr{^12 +1 +Readers +.* +80 clicks/total +25% +26% +2$}m, 'of a goal';
like $list, qr{^13 +2 +Capped +.* +2,000 impressions/day +25% +50% +0$}m, 'of a daily cap';
like list('creative'), qr{^31 +12 +A "good", one +html +active +1 +- +14,020 +0\.14% }m, 'a creative in 7 days';
$pg->run(q{INSERT INTO ads.placements (id, name) VALUES ('side', 'The side')});
like list('placement'), qr{^side +The side +active +- +.*weight +0\.00 +75 +80\.0%$}m, 'a placement in 24 hours';

# A narrow terminal, and a wide one.
my %lines;
for my $width (60, 100) {
    my $text = qx{script -qec 'stty cols $width; $command campaign list' /dev/null};
    s/\r//g, s/\e\[[0-9;]*m//g for $text;
    $lines{$width} = $text;
    is_deeply [ grep { length > $width } split /\n/, $text ], [], "$width columns: no longer line";
}
like $lines{100}, qr/START +END/, 'room for all';
unlike $lines{60}, qr/START|GROUPS/, 'the least important are left out';
like $lines{60}, qr{^ 1  Autumn .*1000\.00\S* +10% +26%$}m, 'the others are there';

$pg->run('CREATE ROLE report LOGIN IN ROLE ads_report');
is run('report', '--database', $pg->conninfo(user => 'report')), 0, 'ads_report may ask' or diag $err;
is run('forecast', 'campaign', 1, '--database', $pg->conninfo(user => 'report')), 0, 'also for forecasts' or diag $err;

for my $case (
    [ 1, qr/there is no campaign 99\./,                  'forecast', 'campaign', 99 ],
    [ 1, qr/there is no campaign "x"\./,                 'forecast', 'campaign', 'x' ],
    [ 2, qr/requires one of the commands/,                  'forecast' ],
    [ 2, qr/--by/,                                       'report', '--by', 'week' ],
    [ 2, qr/must be one or two of campaign/,             'report', '--by', 'campaign,day,hour' ],
    [ 2, qr/must be one or two of campaign/,             'report', '--by', 'day,day' ],
    [ 2, qr/must be a day such as/,                         'report', '--from', 'tomorrow' ],
    [ 2, qr/must be a day such as/,                         'report', '--from', '2026-02-30' ],
    [ 1, qr/--from 2026-11-17T00:00:00Z is in the future/,     'report', '--from', '2026-11-17T00:00:00Z' ],
    [ 1, qr/there is no time zone "Nowhere"/,            'report', '--timezone', 'Nowhere' ],
    [ 3, qr/cannot reach PostgreSQL/,                    'report', '--database', 'host=/nowhere' ],
    )
{
    my ($code, $message, @arguments) = @$case;
    is run(@arguments), $code, "exit code $code: @arguments";
    like $err, $message, 'with a sentence';
}

done_testing;
