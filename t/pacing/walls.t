# Walls are exact: as many serves as a limit allows, however many workers serve at once, over
# reloads, upgrades and restarts. The death of a worker may lose some, but never adds any.
use strict;
use warnings;

use lib 't/lib';
use AdsTest::Clock;
use Test::More;
use AdsTest::Load;
use AdsTest::Visitors;

my $rounds      = long() ? 20 : 3;
my $connections = 32;

# 250 cents a thousand: a quarter of a cent each.
my @limits = (
    limit(1, cap => 7),
    limit(2, cap => 1000),
    limit(3, budget => 125),
    limit(4, cap => 300, cap_on => 'impression'),
    limit(5, lifetime => 50),
    limit(6, goal => { impressions => 60 }),
);
my %exact = (p1 => 7, p2 => 1000, p3 => 500, p4 => 300, p5 => 200, p6 => 60);
my %asked = (p1 => 100, p2 => 1300, p3 => 700, p4 => 450, p5 => 300, p6 => 100);

sub hammer {
    my ($ngx, %o) = @_;
    my $result = AdsTest::Load->start($ngx, connections => $connections, keepalive => 1, visitors($ngx, %asked, %o))->wait_end;
    is scalar @{ $result->{failed} }, 0, 'no request failed' or diag explain $result->{failed}[0];
    return $result;
}

sub serves_counted {
    my ($ngx) = @_;
    return { map { ("p$_->{id}" => $_->{serves}) } @{ status($ngx)->{ad_groups} } };
}

# Compares what visitors saw with the spool and the counters.
sub all_exact {
    my ($ngx, $what) = @_;
    is_deeply ads_seen($ngx),           \%exact, "$what: ads in the answers";
    is_deeply counted($ngx, 'serve'),   \%exact, "$what: serves in the spool";
    is_deeply serves_counted($ngx),     \%exact, "$what: serves in the counters";
    return;
}

sub finish {
    my ($ngx, @allow) = @_;
    is status($ngx)->{health}{limits_passed}{value}, 0, 'no limit is passed, says the server';
    return stop_clean($ngx, @allow);
}

sub stop_clean {
    my ($ngx, @allow) = @_;
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => \@allow) ], [], 'clean log and exit';
    return;
}

for my $workers (2, 8) {
    subtest "$workers workers, all pixels come" => sub {
        for my $round (1 .. $rounds) {
            my $ngx = limited_nginx(workers => $workers, limits => \@limits)->start;
            hammer($ngx);
            all_exact($ngx, "round $round");
            is_deeply counted($ngx, 'impression'), \%exact, "round $round: and all were billed";
            is budget_of($ngx, 3)->{used}, 125, 'the budget is spent';
            is budget_of($ngx, 5)->{whole_cents}, 50, 'so is the one for life';
            is row($ngx, 3)->{spend_cents}, 125, 'spend says the same';
            finish($ngx);
        }
    };
}

# Without pixels, reservations fill the walls: as much is served, nothing is billed.
subtest 'no pixel comes' => sub {
    my $ngx = limited_nginx(workers => 8, limits => \@limits)->start;
    hammer($ngx, what => sub { return });
    all_exact($ngx, 'served');
    is row($ngx, 3)->{spend_cents}, 0, 'nothing is billed';
    is budget_of($ngx, 3)->{in_flight}, 125, 'all of the budget is in flight';
    is limit_of($ngx, 4, 'impressions')->{in_flight}, 300, 'so is the cap on impressions';
    finish($ngx);
};

subtest 'while it is reloaded' => sub {
    my $ngx = limited_nginx(workers => 2, limits => \@limits)->start;
    my $load = AdsTest::Load->start($ngx, connections => 16, visitors($ngx, %asked, endless => 1));
    for my $round (1 .. (long() ? 20 : 5)) {
        $ngx->write_file('catalog.json', limited_catalog(@limits, limit(100 + $round))) if $round % 2;
        $ngx->reload(wait_old => 1);
        $load->wait_for(100);
    }
    $load->wait_for(100);
    is scalar @{ $load->stop->{failed} }, 0, 'no request failed';
    $ngx->write_file('catalog.json', limited_catalog(@limits));
    $ngx->reload(wait_old => 1);
    hammer($ngx);
    all_exact($ngx, 'over reloads');
    finish($ngx);
};

subtest 'while workers are killed' => sub {
    my $ngx = limited_nginx(workers => 4, limits => \@limits)->start;
    my $load = AdsTest::Load->start($ngx, connections => 16, visitors($ngx, %asked, endless => 1));
    my @killed;
    for (1 .. (long() ? 25 : 5)) {
        $load->wait_for(20 + int rand 150);
        my @workers = $ngx->worker_pids;
        push @killed, $ngx->kill_worker(pid => $workers[ rand @workers ]);
    }
    $load->stop;
    await_recovery($ngx, @killed);
    hammer($ngx);
    my ($seen, $spool, $counters) = (ads_seen($ngx), counted($ngx, 'serve'), serves_counted($ngx));
    my $slack = 16 * @killed;
    for my $p (sort keys %exact) {
        cmp_ok $seen->{$p}, '<=', $exact{$p}, "$p: no more than there is";
        cmp_ok $spool->{$p}, '<=', $exact{$p}, "$p: in the spool neither";
        cmp_ok $seen->{$p}, '>=', $exact{$p} - $slack, "$p: a kill costs its turn at most";
        cmp_ok $counters->{$p}, '>=', $spool->{$p}, "$p: what was served is counted";
        cmp_ok $counters->{$p}, '<=', $exact{$p}, "$p: and no more";
    }
    cmp_ok row($ngx, 3)->{spend_cents}, '<=', 125, 'spend is within the budget';
    note explain { seen => $seen, spool => $spool, counters => $counters };
    finish($ngx, qr/exited on signal 9/);
};

subtest 'upgrades, and stops' => sub {
    my $ngx = limited_nginx(workers => 2, daemon => 1, limits => \@limits)->start;
    my $load = AdsTest::Load->start($ngx, connections => 16, visitors($ngx, %asked, endless => 1));
    $load->wait_for(60);
    $ngx->upgrade_start;
    $load->wait_for(150);
    $ngx->upgrade_finish;
    $load->wait_for(60);
    $ngx->upgrade_start;
    $load->wait_for(150);
    $ngx->upgrade_rollback;
    $load->wait_for(60);
    is scalar @{ $load->stop->{failed} }, 0, 'no request failed';
    $ngx->stop;

    $ngx->start;
    AdsTest::Load->start($ngx, connections => 16, keepalive => 1, visitors($ngx, p1 => 20, p2 => 200, p3 => 100, p4 => 80, p5 => 60, p6 => 30))->wait_end;
    $ngx->stop;
    $ngx->start;
    hammer($ngx);
    all_exact($ngx, 'over two upgrades and two stops');
    $ngx->stop;

    $ngx->start;
    hammer($ngx);
    all_exact($ngx, 'after another stop there is nothing left');
    finish($ngx);
};

# The wall must hold from the first request of any worker.
subtest 'a crash of all processes' => sub {
    my $ngx = limited_nginx(workers => 2, limits => \@limits)->start;
    my $load = AdsTest::Load->start($ngx, connections => 16, visitors($ngx, %asked, endless => 1));
    $load->wait_for(400);
    my @workers = $ngx->worker_pids;
    $ngx->kill_all;
    $load->stop;
    $ngx->start;
    await_recovery($ngx, @workers);
    hammer($ngx);
    my ($seen, $spool) = (ads_seen($ngx), counted($ngx, 'serve'));
    for my $p (sort keys %exact) {
        cmp_ok $spool->{$p}, '<=', $exact{$p}, "$p: no more than there is";
        cmp_ok $seen->{$p}, '>=', $exact{$p} - 16, "$p: the turns that were killed are lost at most";
    }
    finish($ngx, qr/exited on signal 9/);
};

# A group and its campaign: a unit that the second wall refuses is returned to the first.
subtest 'two walls' => sub {
    my $two = limit(1, cap => 400, budget => 25);
    my $second = { %{ limit(2, cap => 30)->{ad_groups}[0] } };
    push @{ $two->{ad_groups} }, $second;
    my $ngx = limited_nginx(workers => 8, limits => [ $two, limit(2, groups => []) ])->start;
    my $result = AdsTest::Load->start($ngx, connections => $connections, keepalive => 1, visitors($ngx, p1 => 400, p2 => 200))->wait_end;
    is scalar @{ $result->{failed} }, 0, 'no request failed';
    my $seen = ads_seen($ngx);
    is $seen->{p1} + $seen->{p2}, 100, 'the budget of both is kept exactly';
    cmp_ok $seen->{p2}, '<=', 30, 'so is the cap of one';
    is limit_of($ngx, 1, 'serves')->{used}, $seen->{p1}, 'what the budget refused was given back to the cap';
    is limit_of($ngx, 2, 'serves')->{used}, $seen->{p2}, 'of both';
    finish($ngx);
};

# A group that served without a limit today does not start from zero when it gets one.
subtest 'a limit that comes later' => sub {
    my $ngx = limited_nginx(workers => 2, limits => [ limit(1), limit(2) ])->start;
    ask($ngx, 1, 50);
    hit($ngx, $_->{impression_url}) for ask($ngx, 2, 10);
    is row($ngx, 2)->{spend_cents}, 2.5, 'spent without a budget';
    edited($ngx, limit(1, cap => 60), limit(2, budget => 3));
    my $given = 0;
    wait_until { $given += ask($ngx, 1) } 10, 'the limit to be paced';
    $given += ask($ngx, 1, 100);
    is $given, 10, 'a cap of 60 after 50 serves leaves 10';
    $given = ask($ngx, 2, 100);
    is $given, 2, 'a budget of 3 cents after 2.5 leaves two impressions';

    edited($ngx, limit(1), limit(2));
    ask($ngx, 1, 100);
    edited($ngx, limit(1, cap => 100), limit(2, budget => 3));
    is scalar(ask($ngx, 1, 50)), 0, 'serves while there was no cap count as well';
    is row($ngx, 1)->{serves}, 160, 'it was counted';
    ok wait_until(sub { status($ngx)->{health}{limits_passed}{value} == 1 }, 20), 'the cap is passed, says the server';
    stop_clean($ngx);
};

# A clock that is wrong by decades makes no limit unlimited: its day is a day like any other, or one
# on which nothing is taken.
subtest 'a clock far ahead' => sub {
    my $ngx = limited_nginx(workers => 2, limits => [ limit(1, cap => 40, timezone => 'UTC'), limit(2, budget => 10, timezone => 'UTC') ])->start;
    for my $case ([ '2037-03-19T12:00:00Z', 40 ], [ '2060-01-01T12:00:00Z', 40 ], [ '2075-01-01T12:00:00Z', 0 ]) {
        my ($time, $most) = @$case;
        go_to($ngx, $time);
        # The serve probability is that of the day before for a moment.
        my @got = (0, 0);
        for my $n (1, 2) {
            wait_until { $got[ $n - 1 ] += ask($ngx, $n); $got[ $n - 1 ] || !$most } 10, "an ad at $time";
            $got[ $n - 1 ] += ask($ngx, $n, 60);
        }
        is "@got", "$most $most", "$time: of 60 requests";
    }
    go_to($ngx, '2027-03-16T12:00:00Z');
    is scalar ask($ngx, 1, 60), 40, 'and when it is right again, a day is a day';
    finish($ngx);
};

done_testing;
