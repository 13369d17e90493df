# Strategies as seen from outside, their status, live edits of limits, and the directive
# ads_reservation.
use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use AdsTest::Clock;
use AdsTest::Load;
use AdsTest::Visitors;

sub finish {
    my ($ngx, @allow) = @_;
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [ qr/\[warn\].*delivery alert/, @allow ]) ], [], 'clean log and exit';
    return;
}

# The part of its amount that a limit should have used by now.
sub ideal {
    my ($ngx, $n) = @_;
    my $limit = row($ngx, $n)->{limits}[0] // budget_of($ngx, $n);
    return $limit->{ideal} / $limit->{amount};
}

# Sets the clock and waits until all groups are paced for it; they are paced by UTC. Returns what
# was served meanwhile.
sub to {
    my ($ngx, $time, @groups) = @_;
    go_to($ngx, $time);
    my $share = at($time) / 1000 % 86_400 / 86_400;
    my %got;
    for my $n (@groups) {
        $got{$n} = 0;
        wait_until { $got{$n} += ask($ngx, $n); abs(ideal($ngx, $n) - $share) < 0.01 } 10, "the pace of $n at $time";
    }
    return \%got;
}

# A new campaign serves its first request; so does the first request after midnight.
subtest 'the first ad comes at once' => sub {
    my @limits = (
        (map { limit($_, cap => 1000, strategy => 'default', timezone => 'UTC') } 1 .. 4),
        (map { limit($_, budget => 1000, strategy => 'default', timezone => 'UTC') } 5 .. 8),
        (map { limit($_, goal => { impressions => 10_000 }, strategy => 'default', timezone => 'UTC') } 9 .. 12),
        limit(13, click_cap => 10, strategy => 'default', timezone => 'UTC'),
    );
    my $ngx = limited_nginx(workers => 2, limits => \@limits)->start;
    is scalar(ask($ngx, $_)), 1, "group $_, the first request" for 1 .. 13;
    edited($ngx, @limits, map { limit($_, budget => 1000, strategy => 'default', timezone => 'UTC') } 21 .. 28);
    is scalar(ask($ngx, $_)), 1, "group $_, new in a live edit" for 21 .. 28;
    # Late in a day without traffic everything is served; early in a day it is not.
    go_to($ngx, '2027-03-16T01:00:00Z');
    ask($ngx, 1, 50);
    wait_until { row($ngx, 1)->{pace}{probability} < 1 } 10, 'the pace of what was asked for';
    my @more = ask($ngx, 1, 50);
    cmp_ok scalar @more, '<', 50, 'and then it is paced';
    go_to($ngx, '2027-03-16T23:59:30Z');
    ask($ngx, $_, 5) for 1 .. 13;
    go_to($ngx, '2027-03-17T00:00:05Z');
    is scalar(ask($ngx, $_)), 1, "group $_, after midnight" for 1 .. 13;
    finish($ngx);
};

subtest 'strategies over a day' => sub {
    my $ngx = limited_nginx(workers => 2, limits => [
        limit(1, cap => 240, strategy => 'even', timezone => 'UTC'),
        limit(2, budget => 60, strategy => 'even', timezone => 'UTC'),
        limit(3, cap => 2400, strategy => 'default', timezone => 'UTC'),
        limit(4, cap => 240, strategy => 'probabilistic', timezone => 'UTC'),
        limit(5, cap => 240, strategy => 'pid', timezone => 'UTC'),
        limit(6, budget => 60, strategy => 'probabilistic', hard_cap => 1.5, timezone => 'UTC'),
        limit(7, budget => 600, strategy => 'default', timezone => 'UTC'),
    ])->start;
    my %got = map { $_ => 0 } 1 .. 7;
    my $more = sub {
        my ($n, $times) = @_;
        my @ads = ask($ngx, $n, $times);
        $got{$n} += @ads;
        hit($ngx, $_->{impression_url}) for @ads;
    };
    for my $hour (1, 6, 12, 18) {
        my $meanwhile = to($ngx, sprintf('2027-03-16T%02d:00:00Z', $hour), 1 .. 7);
        $got{$_} += $meanwhile->{$_} for 1 .. 7;
        $more->($_, 150) for 1, 2, 3, 7;
        my $even = 10 * $hour;
        cmp_ok $got{1}, '<=', $even + 1, "$hour:00: even, not more than by now";
        cmp_ok $got{1}, '>=', $even - 1, "$hour:00: and not less";
        # Pixels of serves on the way are lost: only the money counts.
        cmp_ok row($ngx, 2)->{spend_cents}, '<=', ($even + 1) / 4, "$hour:00: a budget, not more than by now";
        cmp_ok row($ngx, 2)->{spend_cents}, '>=', ($even - 10) / 4, "$hour:00: and about that";
        if ($hour == 1) {
            # After a jump of months the first request tells pacing that there is almost no traffic.
            wait_until { $more->(3, 1); $more->(7, 1); !grep { row($ngx, $_)->{pace}{probability} > 0.2 } 3, 7 } 10, 'the rate to be known';
            # Enough requests for nearly all of the 2,400.
            $more->($_, 2000) for 3, 7;
            note "adaptive, of 2,150 requests: $got{3} and $got{7}";
            cmp_ok $got{$_}, '<', 2400 * 0.25, "adaptive, a cold start ($_): far from everything" for 3, 7;
            cmp_ok $got{$_}, '>', 0, "but something ($_)" for 3, 7;
        }
        if ($hour == 12) {
            # Each round of requests is followed by a tick.
            for (1 .. 4) {
                $more->($_, 100) for 4, 5, 6;
                to($ngx, '2027-03-16T12:00:00Z', 4, 5, 6);
            }
            cmp_ok $got{$_}, '>', 50, "$_ serves" for 4, 5, 6;
        }
    }
    for my $round (1 .. 8) {
        $more->(6, 100);
        $more->(4, 100);
    }
    cmp_ok row($ngx, 4)->{serves}, '<=', 240, 'probabilistic: a cap is a wall';
    cmp_ok row($ngx, 6)->{spend_cents}, '<=', 90, 'a budget may go to hard_cap times itself';
    cmp_ok row($ngx, $_)->{serves}, '<=', 240, "$_ is within its cap" for 1, 5;
    my %strategy = map { ($_->{id} => $_->{pace}{strategy}) } @{ status($ngx)->{ad_groups} };
    is_deeply \%strategy, { 1 => 'even', 2 => 'even', 3 => 'adaptive', 4 => 'probabilistic', 5 => 'pid', 6 => 'probabilistic', 7 => 'adaptive' }, 'the status names them';
    finish($ngx);
};

# Earlier traffic is unknown, which is not a shortage. Without the test clock.
subtest 'adaptive, a first start at noon' => sub {
    my $ngx = limited_nginx(workers => 1, limits => [ limit(1, cap => 2400, strategy => 'default') ])->start;
    my $given = ask($ngx, 1, 2000);
    note "$given of 2,000 requests";
    cmp_ok $given, '>', 0, 'something is served';
    cmp_ok $given, '<', 2400 * 0.25, 'but far from everything';
    finish($ngx);
};

subtest 'status' => sub {
    my $ngx = limited_nginx(workers => 2, limits => [ limit(1, cap => 100, timezone => 'UTC'), limit(2, budget => 50, click_cap => 7, timezone => 'UTC'), limit(3) ])->start;
    to($ngx, '2027-03-16T12:00:00Z', 1, 2);
    my @ads = (ask($ngx, 1, 60), ask($ngx, 2, 60));
    hit($ngx, $_->{impression_url}) for @ads;
    hit($ngx, $ads[-1]{click_url});
    my $row;
    ok wait_until(sub { $row = row($ngx, 1); abs($row->{pace}{utilization} - $row->{serves} / 50) < 0.02 }, 60), 'utilization';
    is $row->{pace}{strategy}, 'asap', 'strategy';
    like $row->{pace}{status}, qr/^(?:on|over)_pace$/, 'status';
    is $row->{pace}{probability}, 1, 'probability';
    my $limit = limit_of($ngx, 1, 'serves');
    is_deeply [ $limit->{amount}, $limit->{used}, $limit->{in_flight} ], [ 100, $row->{serves}, 0 ], 'a limit';
    cmp_ok abs($limit->{ideal} - 50), '<', 1, 'and what would be ideal';
    is_deeply [ map { $_->{of} } @{ row($ngx, 2)->{limits} } ], ['clicks'], 'a limit of clicks';
    is limit_of($ngx, 2, 'clicks')->{used}, 1, 'its use';
    is_deeply row($ngx, 3)->{limits}, [], 'no limits';
    is row($ngx, 3)->{pace}{status}, undef, 'no pace';
    my $status = status($ngx);
    is_deeply [ map { $_->{id} } @{ $status->{campaigns} } ], [2], 'campaigns with a budget';
    my $campaign = $status->{campaigns}[0];
    is "$campaign->{day} $campaign->{day_seconds}", '2027-03-16 86400', 'its day';
    my $budget = $campaign->{budget};
    is "$budget->{type} $budget->{cents} $budget->{amount}", 'daily 50 50', 'its budget';
    is $budget->{used}, row($ngx, 2)->{spend_cents}, 'what was billed';
    is_deeply [ sort map { $_->{placement} // '' } @{ $status->{curves} } ], [ '', 'p1', 'p2', 'p3' ], 'curves of the site and of placements';
    wait_until { status($ngx)->{curves}[0]{requests} >= @ads } 10, 'the requests to be counted';
    is scalar @{ $status->{curves}[0]{hours} }, 24, 'by the hour';
    ok exists $status->{health}{$_}, "health: $_" for qw(serves_per_impression pixel_delay_s limits_passed);
    my $metrics = $ngx->get('/metrics?format=prometheus')->{body};
    my $known   = status($ngx)->{health};
    for ([ serves_per_impression => 'ads_serves_per_impression' ], [ pixel_delay_s => 'ads_pixel_delay_seconds' ], [ limits_passed => 'ads_limits_passed' ]) {
        my ($name, $metric) = @$_;
        my $has = $metrics =~ /^\Q$metric\E [\d.]+$/m ? 1 : 0;
        is $has, defined $known->{$name}{value} ? 1 : 0, "$metric is there when it is known";
    }
    for my $block (split /^(?=# HELP)/m, $metrics) {
        my ($name) = $block =~ /^# HELP (\S+)/ or next;
        like $block, qr/\A# HELP \Q$name\E .+\n# TYPE \Q$name\E \w+\n/, "$name has a type" if $name =~ /pixel|per_imp|passed/;
    }
    finish($ngx);
};

subtest 'live edits' => sub {
    my $ngx = limited_nginx(workers => 2, limits => [ limit(1, cap => 20), limit(2, budget => 5), limit(3, cap => 1000) ])->start;
    my $used = sub { my ($n) = @_; my @ads = ask($ngx, $n, 60); hit($ngx, $_->{impression_url}) for @ads; return scalar @ads };
    is $used->(1), 20, 'a cap';
    is $used->(2), 20, 'a budget';
    is $used->(3), 60, 'a large cap';
    wait_until { row($ngx, 1)->{pace}{exhausted} && row($ngx, 2)->{pace}{exhausted} } 10, 'the coins to know';
    edited($ngx, limit(1, cap => 30), limit(2, budget => 10), limit(3, cap => 50));
    my %more = (1 => 0, 2 => 0);
    for my $n (1, 2) {
        ok wait_until(sub { $more{$n} += $used->($n); $more{$n} > 0 }, 60), "$n goes on";
        $more{$n} += $used->($n);
    }
    is_deeply \%more, { 1 => 10, 2 => 20 }, 'up to what was added';
    is $used->(3), 0, 'a cap below what was served stops it';
    wait_until { status($ngx)->{health}{limits_passed}{value} == 1 } 5, 'the alarm';
    is status($ngx)->{health}{limits_passed}{status}, 'alert', 'the server says that more is used than there is';
    edited($ngx, limit(1, cap => 30), limit(2, budget => 10), limit(3, cap => 70));
    my $third = 0;
    wait_until { $third += $used->(3); $third > 0 } 5;
    is $third + $used->(3), 10, 'raised again: the rest';
    ok wait_until(sub { status($ngx)->{health}{limits_passed}{value} == 0 }, 60), 'the alarm is over';

    edited($ngx, limit(1, cap => 30), limit(2, budget => 10), limit(3, cap => 20));
    wait_until { status($ngx)->{health}{limits_passed}{value} == 1 } 5, 'the alarm again';
    edited($ngx, limit(1, cap => 30), limit(2, budget => 10));
    ok wait_until(sub { status($ngx)->{health}{limits_passed}{value} == 0 }, 60), 'a group that is gone has no alarm';
    finish($ngx);
};

subtest 'an alarm, and a restart with another catalog' => sub {
    my $ngx = limited_nginx(workers => 2, limits => [ limit(1, cap => 50) ])->start;
    ask($ngx, 1, 50);
    edited($ngx, limit(1, cap => 10));
    wait_until { status($ngx)->{health}{limits_passed}{value} == 1 } 5, 'the alarm';
    $ngx->stop;
    $ngx->write_file('catalog.json', limited_catalog(limit(1, cap => 100)));
    $ngx->start;
    ok wait_until(sub { ask($ngx, 1); status($ngx)->{health}{limits_passed}{value} == 0 }, 60), 'is over with its reason';
    finish($ngx);
};

# When the process that ticks the pacing is stopped, another one takes over.
subtest 'a worker that stands still' => sub {
    my $ngx = limited_nginx(workers => 2, limits => [ limit(1, cap => 100, strategy => 'even', timezone => 'UTC') ])->start;
    to($ngx, '2027-03-16T01:00:00Z', 1);
    # Requests that a stopped worker accepted get no response.
    my $get = sub {
        my ($path) = @_;
        my $res;
        wait_until { $res = eval { my $conn = $ngx->connection(timeout => 0.5); $conn->request('GET', $path) } } 20, $path;
        return $res;
    };
    my $ideal = sub { return JSON::PP::decode_json($get->('/console/status')->{body})->{ad_groups}[0]{limits}[0]{ideal} };
    for my $pid ($ngx->worker_pids) {
        my $before = $ideal->();
        kill STOP => $pid;
        $get->('/clock?advance=7200');
        ok wait_until(sub { $get->('/spot/serve?placement=p1'); $ideal->() > $before + 4 }, 60), "pacing goes on without $pid";
        kill CONT => $pid;
        wait_until { $get->('/spot/serve?placement=p1'); $ideal->() > $before + 4 } 10, 'both';
    }
    finish($ngx);
};

subtest 'ads_reservation' => sub {
    my %bad = (
        'ads_reservation 14s;'    => qr/\[emerg\].*ads: invalid value "14s" in "ads_reservation": must be a time from 15s to 1h/,
        'ads_reservation 61m;'    => qr/ads: invalid value "61m" in "ads_reservation"/,
        'ads_reservation soon;'   => qr/ads: invalid value "soon" in "ads_reservation"/,
        'ads_reservation 0;'      => qr/ads: invalid value "0" in "ads_reservation"/,
        'ads_reservation -5s;'    => qr/ads: invalid value "-5s" in "ads_reservation"/,
        'ads_reservation 500ms;'  => qr/ads: invalid value "500ms" in "ads_reservation"/,
        'ads_reservation;'        => qr/invalid number of arguments in "ads_reservation" directive/,
        'ads_reservation 1m 2m;'  => qr/invalid number of arguments in "ads_reservation" directive/,
        'ads_reservation 1m; ads_reservation 1m;' => qr/"ads_reservation" directive is duplicate/,
    );
    for my $text (sort keys %bad) {
        my $ngx    = limited_nginx(limits => [ limit(1) ], http => $text);
        my $result = $ngx->launch;
        ok !$result->{ready}, "$text is refused";
        like $result->{stderr} . $ngx->error_log, $bad{$text}, 'with a message';
        $ngx->kill_all;
    }
    for my $text ('15s', '1h', '2m', '90') {
        my $ngx = limited_nginx(limits => [ limit(1) ], http => "ads_reservation $text;")->start;
        is scalar(ask($ngx, 1, 1)), 1, "$text is fine";
        finish($ngx);
    }
    my $ngx = limited_nginx(limits => [ limit(1) ], server => 'ads_reservation 60s;');
    my $result = $ngx->launch;
    ok !$result->{ready}, 'it is for the http block';
    like $result->{stderr} . $ngx->error_log, qr/"ads_reservation" directive is not allowed here/, 'with a message';
    $ngx->kill_all;
};

done_testing;
