# nginx-ads simulate: whole days with the decision, counters, billing and pacing code of nginx. The
# goals of `adaptive`, with more seeds in the long form.

use strict;
use warnings;
use lib 't/lib';

use JSON::PP ();
use Test::More;

use AdsTest::Command;

my $dir = in_folder();

my @seeds = 1 .. ($ENV{ADS_TEST_LONG} ? 8 : 2);

sub group {
    my ($id, $pacing, %more) = @_;
    return {id => $id, pacing => $pacing, %more,
        creatives => [{id => $id + 1000, type => 'native', content => {t => 'x'}, click_url => 'https://a.example/'}]};
}

sub campaign {
    my ($id, $groups, %more) = @_;
    return {id => $id, ad_groups => $groups, %more};
}

sub catalog_of {
    my ($name, @campaigns) = @_;
    write_file($name, {placements => [{id => 'p'}], campaigns => \@campaigns});
}

# The lines of a run, by campaign and ad group.
sub lines_of {
    my ($run) = @_;
    return {map { (($_->{ad_group} ? "group $_->{ad_group}" : "campaign $_->{campaign}") => $_) } @{$run->{lines}}};
}

my @day = ('--at', '2026-11-16T12:00:00Z');

sub simulate {
    my ($catalog, @more) = @_;
    run('simulate', '--catalog', $catalog, @day, '--json', @more);
    is $exit, 0, "simulate $catalog @more" or diag $err;
    return JSON::PP->new->utf8->decode($out);
}

catalog_of("cap-$_.json", campaign(1, [group(10, {daily_impression_cap => $_})])) for 1, 7, 100, 100_000, 833_333;
catalog_of('billed.json', campaign(1, [group(10, {daily_impression_cap => 100_000, cap_on => 'impression'})]));

sub at_most  { my ($value, $most, $what) = @_; ok $value <= $most,   $what or diag "$value, not at most $most" }
sub at_least { my ($value, $least, $what) = @_; ok $value >= $least, $what or diag "$value, not at least $least" }

# --- the command ---------------------------------------------------------------

subtest 'its output' => sub {
    run('simulate', '--help');
    is $exit, 0, '--help';
    like $out, qr/^Example:\n  nginx-ads simulate\b/m, 'with an example';
    like $out, qr/frequency caps do not apply/, 'and it lists what is not simulated';
    my @short = ('--catalog', 'cap-100000.json', @day, '--days', 1, '--requests', '200k');
    run('simulate', @short, '--plot', 'day.svg');
    is $exit, 0, 'a day';
    is $err, '', 'without a complaint, and no progress in a file';
    like $out, qr/^2026-11-16, the last of 1 day; bursty traffic, [\d,]+ requests in total;\s8\s%\sof\sthe\spixels\slost;\sseed\s1$/m, 'says what was simulated';
    like $out, qr/^ +aim +delivered +billed +over +RMSE +worst min +dark +done\n10 +100,000 +100\.000% +9\d\.\d\d% +0 /m, 'a table';
    like $out, qr/^10, adaptive, 100,000 impressions: \* delivered \. target\n +100% \|.*\*\n/m, 'a chart';
    like $out, qr/^ +12am +6am +12pm +6pm +12am$/m, 'with its hours';
    is((grep { length > 80 } split /\n/, $out), 0, 'no line is longer than 80');
    my $first = $out;
    run('simulate', @short);
    is $out, $first, 'the same seed, the same day';
    run('simulate', @short, '--seed', 2);
    isnt $out, $first, 'another seed, another day';
    my $svg = read_file('day.svg');
    like $svg, qr/\A<svg xmlns=.*<polyline .*<title>adaptive<\/title>.*<\/svg>\n\z/s, 'a picture';
    my %open;
    $open{$2} += $1 ? -1 : 1 while $svg =~ m{<(/?)(svg|g|title|desc|text|polyline)\b[^>]*(?<!/)>}g;
    is_deeply [grep { $_ } values %open], [], 'with all its ends';
};

subtest 'errors' => sub {
    my @wrong = (
        [2, qr/--requests: must be a number of requests such as 1M or 250k, not "0"/, '--requests', '0'],
        [2, qr/--requests: must be a number of requests/, '--requests', '5x'],
        [2, qr/--pixel-loss: must be a share such as 8% or 0\.08, not "2"/, '--pixel-loss', '2'],
        [2, qr/--strategy: must be one of probabilistic, asap, even, pid, adaptive, not "fast"/, '--strategy', 'fast'],
        [2, qr/--outage-at: must be a time of day such as 19:00, not "24:00"/, '--traffic', 'outage', '--outage-at', '24:00'],
        [2, qr/--outage-at requires --traffic outage/, '--outage-at', '19:00'],
        [2, qr/--compare excludes --strategy: it runs all strategies/, '--strategy', 'even', '--compare'],
        [2, qr/--traffic must be flat, diurnal, bursty, outage or a file such as day\.csv, not "burst": did you mean "bursty"\?/, '--traffic', 'burst'],
        [2, qr/--at must be 6 days after 2026-02-01 or later/, '--at', '2026-01-05T00:00:00Z'],
        [3, qr/cannot read none\.csv/, '--traffic', 'none.csv'],
        [1, qr/bad\.csv: line 3 must be TIME,REQUESTS_PER_MINUTE such as "09:30,120", later than the previous line, not "08:00,5"/, '--traffic', 'bad.csv'],
        [1, qr/zero\.csv: no requests found/, '--traffic', 'zero.csv'],
        [1, qr/there is no placement "q"/, '--request', 'request.json'],
    );
    write_file('bad.csv', "time,requests\n09:00,5\n08:00,5\n");
    write_file('zero.csv', "09:00,0\n");
    write_file('request.json', {placements => ['q']});
    for my $wrong (@wrong) {
        my ($code, $message, @arguments) = @$wrong;
        run('simulate', '--catalog', 'cap-100.json', @arguments);
        is $exit, $code, "@arguments";
        like $err, $message, 'and why';
        is $out, '', 'and nothing else';
    }
    write_file('broken.json', {placements => [{id => 'p'}], campaigns => [{id => 0}]});
    run('simulate', '--catalog', 'broken.json');
    is $exit, 1, 'a broken catalog';
    like $err, qr/^broken\.json: \$\.campaigns\[0\]\.id: /m, 'with the path of its fault';
    write_file('nowhere.json', {placements => [], campaigns => []});
    run('simulate', '--catalog', 'nowhere.json');
    is $exit, 1, 'nothing to ask for';
};

subtest 'traffic from a file' => sub {
    write_file('day.csv', "time,requests per minute\n# nobody at night\n00:00,0\n08:00:30,200\n20:00,0\n");
    my $run  = simulate('cap-100000.json', '--traffic', 'day.csv', '--days', 2)->{runs}[0];
    my $line = lines_of($run)->{'group 10'};
    ok $run->{requests} > 283_000 && $run->{requests} < 291_000, '200 a minute for twelve hours, twice' or diag $run->{requests};
    at_least $line->{delivered}, 0.997, 'everything was served before the night, which is skipped';
    is $line->{over}, 0, 'and no more';
    at_most $line->{rmse}, 0.01, 'along the curve of the day before';
};

# --- the goals --------------------------------------------------------------------

subtest 'ten times the supply' => sub {
    for my $seed (@seeds) {
        my $line = lines_of(simulate('cap-100000.json', '--seed', $seed)->{runs}[0])->{'group 10'};
        is $line->{over}, 0, 'over 0';
        at_least $line->{delivered}, 0.9999, 'delivered';
        at_most $line->{rmse}, 0.005, 'RMSE';
        at_most $line->{worst_minute}, 4, 'worst minute';
        at_most $line->{dark}, 0.001, 'dark';
    }
};

subtest 'an outage' => sub {
    for my $seed (@seeds) {
        my $said = simulate('cap-100000.json', '--traffic', 'outage', '--seed', $seed);
        is_deeply $said->{outage}, ['2026-11-16T14:00:00Z', '2026-11-16T14:45:00Z'], '45 minutes';
        my $line = lines_of($said->{runs}[0])->{'group 10'};
        is $line->{over}, 0, 'over 0';
        at_least $line->{delivered}, 0.9999, 'delivered';
        at_most $line->{rmse}, 0.01, 'RMSE';
        at_most $line->{worst_minute}, 4, 'worst minute';
        at_most $line->{worst_minute_after_outage}, 5, 'in the hour after it';
        at_most $line->{caught_up_minutes}, 65, 'caught up';
        at_most $line->{dark}, 0.001, 'dark';
    }
};

subtest 'an outage at the peak' => sub {
    my $said = simulate('cap-100000.json', '--traffic', 'outage', '--outage-at', '19:00', '--days', 2);
    is_deeply $said->{outage}, ['2026-11-16T19:00:00Z', '2026-11-16T19:45:00Z'], 'at the hour that was asked for';
    my $line = lines_of($said->{runs}[0])->{'group 10'};
    is $line->{over}, 0, 'over 0';
    at_least $line->{delivered}, 0.9999, 'delivered';
};

subtest 'scarce supply' => sub {
    for my $seed (@seeds) {
        my $line = lines_of(simulate('cap-833333.json', '--seed', $seed)->{runs}[0])->{'group 10'};
        is $line->{over}, 0, 'over 0';
        at_least $line->{delivered}, 0.999, 'delivered';
        at_most $line->{rmse}, 0.015, 'RMSE';
        at_most $line->{worst_minute}, 4, 'worst minute';
        $line = lines_of(simulate('cap-833333.json', '--seed', $seed, '--days', 1)->{runs}[0])->{'group 10'};
        is $line->{over}, 0, 'over 0 on the first day';
        at_least $line->{delivered}, 0.97, 'delivered, without a curve';
    }
};

subtest 'billed impressions and small caps' => sub {
    for my $seed (@seeds) {
        my $line = lines_of(simulate('billed.json', '--seed', $seed)->{runs}[0])->{'group 10'};
        is $line->{over}, 0, 'over 0';
        at_least $line->{billed}, 0.999, 'billed, with 8 % of the pixels lost';
        at_most $line->{billed}, 1, 'and no more';
        at_least $line->{serves}, 107_000, 'more are served, by the lost part';
        at_most $line->{rmse}, 0.005, 'RMSE';
        for my $cap (1, 7, 100) {
            $line = lines_of(simulate("cap-$cap.json", '--seed', $seed, '--days', 2, '--requests', '100k')->{runs}[0])->{'group 10'};
            is $line->{serves}, $cap, "a small cap, $cap";
        }
    }
};

subtest 'only in its hours' => sub {
    catalog_of('hours.json', campaign(1, [group(10, {daily_impression_cap => 20_000},
        targeting => {schedule => [{from => '09:00', to => '12:00'}, {from => '13:00', to => '17:00'}]})]));
    catalog_of('evening.json', campaign(1, [group(10, {daily_impression_cap => 20_000}, start => '2026-11-16T15:00:00Z')]));
    for my $seed (@seeds) {
        my $line = lines_of(simulate('hours.json', '--seed', $seed)->{runs}[0])->{'group 10'};
        at_most $line->{serves}, 20_000, 'not more';
        at_least $line->{serves}, 19_990, 'all of it, in seven hours';
        at_most $line->{rmse}, 0.005, 'RMSE';
        $line = lines_of(simulate('evening.json', '--seed', $seed, '--days', 1)->{runs}[0])->{'group 10'};
        is $line->{serves}, 20_000, 'a flight that begins in the afternoon of its only day';
    }
};

# The same daily spend by each price model: a tenth of the supply suffices.
subtest 'every price model' => sub {
    my %price = (cpm => 500, vcpm => 714, cpc => 10, cpa => 100);
    for my $model ($ENV{ADS_TEST_LONG} ? sort keys %price : 'cpc') {
        catalog_of("$model.json", campaign(1, [group(10, {}, price => {model => $model, amount_cents => $price{$model}})],
            budget => {type => 'daily', amount_cents => 50_000}));
        for my $loss ($ENV{ADS_TEST_LONG} ? ('8%', '30%') : '8%') {
            my $line = lines_of(simulate("$model.json", '--days', 2, '--pixel-loss', $loss,
                '--click-rate', '5%', '--conversion-rate', '10%')->{runs}[0])->{'campaign 1'};
            is $line->{over}, 0, "$model, $loss lost: over 0";
            at_least $line->{billed}, 0.98, 'billed';
            # 5,000 clicks or 500 conversions are lumps of the money.
            at_most $line->{rmse}, {cpm => 0.005, vcpm => 0.005, cpc => 0.005, cpa => 0.01}->{$model}, 'along its target';
        }
    }
};

subtest 'goals of several weeks' => sub {
    catalog_of('goal.json', campaign(1, [group(10, {goal => {impressions => 100_000}}, start => '2026-11-02T00:00:00Z',
        end => '2026-11-16T00:00:00Z')]));
    my $said = simulate('goal.json', '--days', 16, '--requests', '20k', '--weekend', '40%');
    my $line = lines_of($said->{runs}[0])->{'group 10'};
    # Ten weekdays, the day before and the day after; two weekends at 40 % and one day of a third.
    my $expected = 20_000 * (12 + 0.4 * 4);
    ok abs($said->{runs}[0]{requests} / $expected - 1) < 0.05, 'fewer requests on weekends' or diag $said->{runs}[0]{requests};
    is $line->{total_amount}, 100_000, 'the goal';
    at_most $line->{total_used}, 100_000, 'not more';
    at_least $line->{total_used}, 97_000, 'nearly all of it';
    is scalar(@{$line->{days}}), 16, 'day by day';
    my $sum = 0;
    $sum += $_->{used} for @{$line->{days}};
    is $sum, $line->{total_used}, 'which is the sum';
    is $line->{days}[0]{used}, 0, 'nothing before the flight';
    run('simulate', '--catalog', 'goal.json', @day, '--days', 2, '--requests', '20k');
    like $out, qr/^10: [\d,]+ of 100,000 impressions on all days, [\d.]+%$/m, 'in words';
};

subtest 'a group that wins a tenth of its draws' => sub {
    # Nine in ten draws go to another group, which always serves.
    catalog_of('tenth.json', campaign(1, [group(10, {daily_impression_cap => 90_000}, weight => 1), group(11, {}, weight => 9)]));
    my $lines = lines_of(simulate('tenth.json')->{runs}[0]);
    is $lines->{'group 10'}{over}, 0, 'over 0';
    at_least $lines->{'group 10'}{delivered}, 0.99, 'delivered';
    ok $lines->{'group 11'}{serves} > 850_000, 'the other has the rest';
};

# Budgets, goals, prices, schedules and time zones, on a day of 25 hours in New York.
subtest 'limits of every kind' => sub {
    catalog_of('all.json',
        campaign(1, [group(10, {goal => {impressions => 300_000}}, end => '2026-11-11T00:00:00Z'), group(11, {daily_click_cap => 200})]),
        campaign(2, [group(20, {}, price => {model => 'cpm', amount_cents => 250})],
            timezone => 'America/New_York', budget => {type => 'daily', amount_cents => 10_000}),
        campaign(3, [group(30, {}, price => {model => 'vcpm', amount_cents => 300},
                targeting => {schedule => [{from => '09:00', to => '17:00'}]})],
            timezone => 'America/New_York', budget => {type => 'lifetime', amount_cents => 60_000}),
        campaign(4, [group(40, {}, price => {model => 'cpc', amount_cents => 10})],
            timezone => 'Europe/Berlin', budget => {type => 'daily', amount_cents => 2_000}),
        campaign(5, [group(50, {}, price => {model => 'flat', amount_cents => 1})],
            timezone => 'Asia/Kolkata', budget => {type => 'daily', amount_cents => 20_000}),
        campaign(6, [group(60, {}, priority => 'house')]));
    run('simulate', '--catalog', 'all.json', '--at', '2026-11-01T00:00:00Z', '--json');
    is $exit, 0, 'a catalog of all kinds' or diag $err;
    my $lines = lines_of(JSON::PP->new->utf8->decode($out)->{runs}[0]);
    for my $name ('group 10', 'group 11', map { "campaign $_" } 2 .. 5) {
        my $line = $lines->{$name};
        is $line->{over}, 0, "$name: over 0";
        at_least $line->{billed}, $name eq 'group 10' ? 0.9 : 0.99, 'billed';
        at_most $line->{billed}, 1.0001, 'of its amount';
        at_most $line->{rmse}, 0.03, 'along its target';
    }
    is $lines->{'campaign 2'}{amount}, 10_000, "a day's budget, in cents";
    at_most abs($lines->{'campaign 2'}{spend_cents} - $lines->{'campaign 2'}{used}), 0.01, 'the used amount is the billed amount';
    is $lines->{'group 20'}{limit}, undef, 'a group without a limit of its own';
    # From 18:30 of the 26th, when the first day begins in Kolkata, to the 10th: by active time.
    at_most abs($lines->{'group 10'}{amount} - 300_000 / (15 + 5.5 / 24)), 1, "a day's share of the goal";
};

subtest 'every strategy' => sub {
    my $said = simulate('cap-100000.json', '--compare', '--days', 2, '--plot', 'all.svg');
    my %line = map { ($_->{strategy} => $_) } map { @{$_->{lines}} } @{$said->{runs}};
    is_deeply [sort keys %line], [qw(adaptive asap even pid probabilistic)], 'all of them';
    is $line{$_}{over}, 0, "$_ stays within the cap" for sort keys %line;
    is $said->{runs}[0]{requests}, $said->{runs}[4]{requests}, 'the same requests for each';
    at_least $line{asap}{rmse}, 0.4, 'asap is done in the morning';
    at_most $line{even}{rmse}, 0.005, 'even is even';
    at_least $line{pid}{serves}, 98_500, 'pid delivers';
    at_most $line{pid}{rmse}, 0.02, 'near its target';
    at_least $line{probabilistic}{rmse}, 0.2, '1/ratio cannot hold a pace';
    like read_file('all.svg'), qr/<title>asap<\/title>.*<title>adaptive<\/title>/s, 'a picture of all';
    catalog_of('budget.json', campaign(1, [group(10, {}, price => {model => 'cpm', amount_cents => 250})],
        budget => {type => 'daily', amount_cents => 5_000}));
    run('simulate', '--catalog', 'budget.json', @day, '--compare', '--days', 1);
    like $out, qr/^probabilistic +50\.00 +1(?:19\.99\d|20\.000)% +\S+ +10\.00 /m, 'only probabilistic uses the hard cap';
    like $out, qr/^$_ +50\.00 +\S+ +\S+ +0\.00 /m, "$_ does not" for qw(asap even pid adaptive);
};

done_testing();
