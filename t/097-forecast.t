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

run('forecast', 'campaign', 1);
like $out, qr/^Campaign 1 Autumn  active, lifetime budget 1000\.00$/m, 'for people';
like $out, qr/^  2026-11-16 +10\.00  #{32}$/m, 'a bar for each day';
like $out, qr/^  the budget lasts 90\.0 days, until 2027-02-14$/m, 'how long it lasts';
run('forecast', 'campaign', 6);
like $out, qr/until 2026-11-19: before the flight ends$/m, 'early is early';
run('forecast', 'campaign', 2);
like $out, qr/^  25\.0 % of each day's budget$/m, 'a daily budget is not used up';
run('forecast', 'campaign', 3);
like $out, qr/^  nothing was spent in the last 7 days$/m, 'nothing spent';

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
creative,name,serves,impressions,viewables,clicks,conversions,invalid,spend_cents,ctr
31,"A ""good"", one",0,10000,0,20,0,7,10000,0.002000
32,'=1+1,50,0,0,0,3,0,0,0.000000
CSV
run('report', '--by', 'creative', '--campaign', 1);
like $out, qr/^creative +name +serves +impressions +clicks +CTR +conv\. +invalid +spend$/m, 'a table';
like $out, qr/^31 +A "good", one +0 +10,000 +20 +0\.20% +0 +7 +100\.00$/m, 'for people';
run('report', '--campaign', 99);
like $out, qr/^no events in that time$/m, 'nothing there';

$pg->run('CREATE ROLE report LOGIN IN ROLE ads_report');
is run('report', '--database', $pg->conninfo(user => 'report')), 0, 'ads_report may ask' or diag $err;
is run('forecast', 'campaign', 1, '--database', $pg->conninfo(user => 'report')), 0, 'for forecasts, too' or diag $err;

for my $case (
    [ 1, qr/there is no campaign 99\./,                  'forecast', 'campaign', 99 ],
    [ 2, qr/must be a whole number/,                     'forecast', 'campaign', 'x' ],
    [ 2, qr/needs one of the commands/,                  'forecast' ],
    [ 2, qr/--by/,                                       'report', '--by', 'week' ],
    [ 2, qr/must be a moment like/,                      'report', '--from', 'yesterday' ],
    [ 1, qr/--from 2026-11-17T00:00:00Z is not before/,  'report', '--from', '2026-11-17T00:00:00Z' ],
    [ 1, qr/there is no time zone "Nowhere"/,            'report', '--timezone', 'Nowhere' ],
    [ 3, qr/cannot reach PostgreSQL/,                    'report', '--database', 'host=/nowhere' ],
    )
{
    my ($code, $message, @arguments) = @$case;
    is run(@arguments), $code, "exit code $code: @arguments";
    like $err, $message, 'with a sentence';
}

done_testing;
