# Local midnights: a daily limit is available once per local day, in every time zone, on days of 23
# and 25 hours, over stops, steps of the clock and suspends. Limits of the whole flight are not
# renewed.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Clock;
use AdsTest::Load;
use AdsTest::Visitors;

my %zones = (1 => 'America/New_York', 2 => 'Asia/Kolkata', 3 => 'Pacific/Auckland', 4 => 'America/New_York');
my @daily = ((map { limit($_, cap => 5, timezone => $zones{$_}) } 1 .. 3), limit(4, budget => 1, timezone => $zones{4}));
# For the whole flight: eight impressions, and seven.
my @whole = (
    limit(5, lifetime => 2, price => 250, timezone => $zones{1}),
    limit(6, goal => { impressions => 7 }, timezone => $zones{2}),
    limit(7, goal => { impressions => 7 }, cap => 5, timezone => $zones{1}),
);

sub ideal {
    my ($ngx, $n) = @_;
    my $row = row($ngx, $n);
    my $limit = $row->{limits}[0] // budget_of($ngx, $n);
    return $limit->{ideal} / ($limit->{amount} || 1);
}

# The number of ads of each group after the clock was set. The serve probability may still be the
# former one for a moment: requests continue until the pace is that of the new time, and then for
# more than the limit allows.
sub gives {
    my ($ngx, $time, @groups) = @_;
    my %before = map { $_ => ideal($ngx, $_) } @groups;
    go_to($ngx, $time);
    my %got = map { $_ => 0 } @groups;
    my $get = sub {
        my ($n, $times) = @_;
        for my $ad (ask($ngx, $n, $times)) {
            hit($ngx, $ad->{impression_url});
            $got{$n}++;
        }
    };
    for my $n (@groups) {
        # Used up for good: nothing changes any more.
        wait_until { $get->($n, 1); abs(ideal($ngx, $n) - $before{$n}) > 5 / 86_400 || $n > 4 } 5, "the pace of $n at $time";
    }
    $get->($_, 9) for @groups;
    return join ' ', map { "$_:$got{$_}" } @groups;
}

sub finish {
    my ($ngx) = @_;
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'clean log and exit';
    return;
}

# A server starts with the machine's time.
sub begin {
    my ($ngx) = @_;
    $ngx->start;
    delete $ngx->{ads_day};
    return $ngx;
}

subtest 'three zones, and a day of 23 hours' => sub {
    my $ngx = begin(limited_nginx(workers => 2, limits => [ @daily, @whole ]));
    is gives($ngx, '2027-03-13T12:00Z', 1 .. 7), '1:5 2:5 3:5 4:4 5:8 6:7 7:5', 'the first day';
    my @table = (
        '2027-03-13T18:29:45Z' => '1:0 2:0 3:0 4:0',
        '2027-03-13T18:30:01Z' => '1:0 2:5 3:0 4:0',
        '2027-03-14T04:59:45Z' => '1:0 2:0 3:0 4:0',
        '2027-03-14T05:00:01Z' => '1:5 2:0 3:0 4:4',
        '2027-03-14T10:59:45Z' => '1:0 2:0 3:0 4:0',
        '2027-03-14T11:00:01Z' => '1:0 2:0 3:5 4:0',
        '2027-03-14T18:30:01Z' => '1:0 2:5 3:0 4:0',
        '2027-03-15T03:59:45Z' => '1:0 2:0 3:0 4:0',    # 23:59:45 EDT
        '2027-03-15T04:00:01Z' => '1:5 2:0 3:0 4:4',
        '2027-03-15T11:00:01Z' => '1:0 2:0 3:5 4:0',
    );
    while (my ($time, $expected) = splice @table, 0, 2) {
        is gives($ngx, $time, 1 .. 4), $expected, $time;
    }
    is gives($ngx, '2027-03-15T12:00Z', 5 .. 7), '5:0 6:0 7:2', 'two midnights later the rest of a goal, and nothing of what was used up';
    is gives($ngx, '2027-03-16T12:00Z', 5 .. 7), '5:0 6:0 7:0', 'and then nothing';
    is row($ngx, 1)->{day}, '2027-03-16', 'the day';
    finish($ngx);
};

subtest 'a day of 25 hours' => sub {
    my $ngx = begin(limited_nginx(workers => 2, limits => \@daily));
    my @table = (
        '2027-11-06T12:00Z'    => '1:5 4:4',
        '2027-11-07T03:59:45Z' => '1:0 4:0',
        '2027-11-07T04:00:01Z' => '1:5 4:4',
        '2027-11-07T05:30:00Z' => '1:0 4:0',    # 01:30 EDT
        '2027-11-07T06:30:00Z' => '1:0 4:0',    # 01:30 EST
        '2027-11-08T04:00:01Z' => '1:0 4:0',    # 23:00:01
        '2027-11-08T05:00:01Z' => '1:5 4:4',
    );
    while (my ($time, $expected) = splice @table, 0, 2) {
        is gives($ngx, $time, 1, 4), $expected, $time;
    }
    finish($ngx);
};

subtest 'stops, sleep, and a clock that goes back' => sub {
    my $ngx = begin(limited_nginx(workers => 2, limits => [ @daily, @whole ]));
    is gives($ngx, '2027-03-16T12:00Z', 1 .. 7), '1:5 2:5 3:5 4:4 5:8 6:7 7:5', 'the first day';
    $ngx->stop;
    begin($ngx);
    is gives($ngx, '2027-03-16T12:01Z', 1 .. 7), '1:0 2:0 3:0 4:0 5:0 6:0 7:0', 'a stop on the same day';
    $ngx->stop;
    begin($ngx);
    is gives($ngx, '2027-03-17T12:00Z', 1 .. 7), '1:5 2:5 3:5 4:4 5:0 6:0 7:2', 'a stop over midnight';
    is gives($ngx, '2027-03-17T15:00Z', 1 .. 7), '1:0 2:0 3:0 4:0 5:0 6:0 7:0', 'once';

    is gives($ngx, '2027-03-17T03:50Z', 1 .. 4), '1:0 2:0 3:0 4:0', 'back over midnight of one zone: that day was used up as well';
    is gives($ngx, '2027-03-17T15:00Z', 1 .. 4), '1:0 2:0 3:0 4:0', 'and forth';
    is gives($ngx, '2027-03-16T14:00Z', 1 .. 4), '1:0 2:0 3:0 4:0', 'back by a day';
    is gives($ngx, '2027-03-17T16:00Z', 1 .. 4), '1:0 2:0 3:0 4:0', 'and forth';
    $ngx->stop;
    begin($ngx);
    is gives($ngx, '2027-03-16T16:00Z', 1 .. 4), '1:0 2:0 3:0 4:0', 'also over a stop';
    is gives($ngx, '2027-03-17T17:00Z', 1 .. 4), '1:0 2:0 3:0 4:0', 'and forth';

    is gives($ngx, '2027-03-24T12:00Z', 1 .. 7), '1:5 2:5 3:5 4:4 5:0 6:0 7:0', 'a week of sleep: one new day';
    is gives($ngx, '2027-03-24T12:10Z', 1 .. 7), '1:0 2:0 3:0 4:0 5:0 6:0 7:0', 'once';
    finish($ngx);
};

# PACING.md: "a stored day never goes back".
subtest 'a clock that goes back by two days, and returns' => sub {
    my $ngx = begin(limited_nginx(workers => 1, limits => \@daily));
    is gives($ngx, '2027-03-18T12:00Z', 1, 4), '1:5 4:4', 'a day is used up';
    gives($ngx, '2027-03-16T13:00Z', 1, 4);
    is gives($ngx, '2027-03-18T15:00Z', 1, 4), '1:0 4:0', 'and stays so';
    finish($ngx);
};

# The clock passes midnight between two ticks: the allowance at the end of a day must not hold at
# the beginning of the next.
subtest 'even, in the first second of a day' => sub {
    my $ngx = begin(limited_nginx(workers => 1, limits => [ limit(1, cap => 100, strategy => 'even', timezone => 'UTC') ]));
    go_to($ngx, '2027-03-18T12:00Z');
    clock($ngx, '2027-03-18T23:59:50Z');
    my $given = 0;
    wait_until { $given += ask($ngx, 1, 10); ideal($ngx, 1) > 0.999 } 5, 'the end of the day';
    $given += ask($ngx, 1, 100);
    is $given, 100, 'all of the day';
    clock($ngx, '2027-03-19T00:00:01Z');
    my $first = ask($ngx, 1, 50);
    cmp_ok $first, '<=', 2, 'about nothing of the next';
    finish($ngx);
};

# A pixel that arrives before its reservation expires confirms it, whatever the day.
subtest 'in flight over midnight' => sub {
    my $ngx = begin(limited_nginx(
        workers => 1,
        limits  => [
            limit(1, cap => 5, cap_on => 'impression', timezone => 'UTC'),
            limit(2, budget => 1, timezone => 'UTC'),
            limit(5, lifetime => 2, timezone => 'UTC'),
            limit(6, goal => { impressions => 7 }, cap_on => 'impression', timezone => 'UTC'),
        ],
    ));
    go_to($ngx, '2027-03-18T12:00Z');
    clock($ngx, '2027-03-18T23:59:50Z');
    my %ads;
    for my $n (1, 2, 5, 6) {
        wait_until { push @{ $ads{$n} }, ask($ngx, $n); @{ $ads{$n} // [] } } 5, "the first of $n";
        push @{ $ads{$n} }, ask($ngx, $n, 20);
    }
    is join(' ', map { scalar @{ $ads{$_} } } 1, 2, 5, 6), '5 4 8 7', 'served before midnight';
    my $new = gives($ngx, '2027-03-19T00:00:05Z', 1, 2);
    is $new, '1:5 2:4', 'those of a day are there again';
    is join(' ', map { scalar(() = ask($ngx, $_, 20)) } 5, 6), '0 0', 'those for life are still in flight';
    hit($ngx, $_->{impression_url}) for map { @$_ } values %ads;
    my %bad;
    $bad{ $_->{ad_group} }++ for grep { $_->{invalid} } events_of($ngx);
    is_deeply \%bad, {}, 'each pixel of 15 seconds ago is billed';
    is_deeply counted($ngx, 'impression'), { p1 => 10, p2 => 8, p5 => 8, p6 => 7 }, 'to the day of its serve';
    is row($ngx, 1)->{impressions}, 5, 'today has its own';
    finish($ngx);
};

done_testing;
