# Schedules and flights in local time: over midnight, over both changes of the
# clock, and over the days for which openings are known in advance.

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::Local qw(timegm);

use AdsTest::Clock;
use AdsTest::Nginx;
use AdsTest::Ads;

sub group {
    my ($id, %o) = @_;
    my $schedule = delete $o{schedule};
    return {
        id        => $id,
        creatives => [ { id => $id, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/' } ],
        $schedule ? (targeting => { schedule => $schedule }) : (), %o,
    };
}

my $catalog = catalog({
    placements => [ { id => 'top' } ],
    campaigns  => [
        {   id => 1, timezone => 'America/New_York', ad_groups => [
                group(1, schedule => [ { days => ['sun'], from => '01:30', to => '03:30' } ]),
                group(2, schedule => [ { days => ['sat'], from => '22:00', to => '06:00' } ]),
                group(3, schedule => [ { from => '09:00', to => '17:00' } ]),
                group(4, schedule => [ { from => '23:00', to => '01:00' } ]),
                group(5, schedule => [ { days => ['mon'] } ]),
                group(6, schedule => [ { days => ['sat'], from => '09:00', to => '09:00' } ]),
                group(7, schedule => [ { days => ['sun'], from => '12:00', to => '13:00' }, { days => [qw(sun mon)], from => '12:30', to => '14:00' } ]),
            ] },
        {   id => 2, timezone => 'Asia/Kolkata', ad_groups => [
                group(11, schedule => [ { days => ['mon'], from => '00:00', to => '00:30' } ]),
            ] },
        {   id => 3, start => '2027-03-14T06:59:59Z', end => '2027-03-20T00:00:00Z', ad_groups => [
                group(21), group(22, start => '2027-03-14T07:00:01Z', end => '2027-03-14T07:00:03Z'),
                group(23, start => '2027-03-18T00:00:00Z', schedule => [ { from => '10:00', to => '11:00' } ]),
            ] },
    ],
});

my $ngx = AdsTest::Nginx->new(
    http   => http_conf(state => 'logs/state', catalog => write_temp('schedule.json', $catalog)),
    server => locations(),
)->start;

sub jump {
    my ($text) = @_;
    my ($year, $month, $date, $hour, $minute, $second) = $text =~ /^(\d+)-(\d+)-(\d+)T(\d+):(\d+)(?::(\d+))?Z$/ or die $text;
    my $time = timegm($second // 0, $minute, $hour, $date, $month - 1, $year);
    $ngx->get("/clock?hold=${time}000");
    return $time;
}

# On another day the catalog is compiled again: openings are computed some days ahead.
my $day = 0;
sub go_to {
    my ($text) = @_;
    my $before = status_of($ngx)->{catalog}{generation};
    my $today  = int jump($text) / 86_400;
    wait_until { status_of($ngx)->{catalog}{generation} > $before } 30, "the catalog of $text" if $today != $day;
    $day = $today;
    return;
}

sub served {
    my @ids = map { $_->{creative} } fetch_ads($ngx, 'placement=' . join ',', ('top') x 12);
    return join ' ', sort { $a <=> $b } @ids;
}

# Each entry: a time, and the groups of campaigns 1 and 2 that are open then.
sub open_at {
    my @table = @_;
    while (my ($time, $expected) = splice @table, 0, 2) {
        go_to($time);
        is join(' ', grep { $_ < 20 } split / /, served()), $expected, $time;
    }
    return;
}

subtest 'a week before the change' => sub {
    open_at(
        '2027-03-06T13:59:59Z' => '',     # Saturday 08:59:59
        '2027-03-06T14:00Z'    => '3 6',
        '2027-03-06T21:59:59Z' => '3 6',
        '2027-03-06T22:00Z'    => '6',
        '2027-03-07T02:59:59Z' => '6',
        '2027-03-07T03:00Z'    => '2 6',
        '2027-03-07T04:00Z'    => '2 4 6',      # 23:00
        '2027-03-07T05:59:59Z' => '2 4 6',
        '2027-03-07T06:00Z'    => '2 6',        # Sunday 01:00
        '2027-03-07T06:30Z'    => '1 2 6',
        '2027-03-07T08:29:59Z' => '1 2 6',
        '2027-03-07T08:30Z'    => '2 6',
        '2027-03-07T10:59:59Z' => '2 6',
        '2027-03-07T11:00Z'    => '6',
        '2027-03-07T13:59:59Z' => '6',
        '2027-03-07T14:00Z'    => '3',
        '2027-03-07T17:00Z'    => '3 7',        # 12:00
        '2027-03-07T18:29Z'    => '3 7',
        '2027-03-07T18:30Z'    => '3 7 11',     # in India it is Monday 00:00
        '2027-03-07T18:59:59Z' => '3 7 11',
        '2027-03-07T19:00Z'    => '3',          # 14:00
    );
};

subtest 'the clock goes forward: an hour is not there' => sub {
    open_at(
        '2027-03-13T14:00Z'    => '3 6',
        '2027-03-14T06:29:59Z' => '2 6',
        '2027-03-14T06:30Z'    => '1 2 6',      # 01:30 EST
        '2027-03-14T06:59:59Z' => '1 2 6',
        '2027-03-14T07:00Z'    => '1 2 6',      # 03:00 EDT
        '2027-03-14T07:29:59Z' => '1 2 6',
        '2027-03-14T07:30Z'    => '2 6',
        '2027-03-14T09:59:59Z' => '2 6',
        '2027-03-14T10:00Z'    => '6',          # 06:00 EDT, an hour earlier than the week before
        '2027-03-14T12:59:59Z' => '6',
        '2027-03-14T13:00Z'    => '3',          # 09:00 EDT
        '2027-03-14T20:59:59Z' => '3',
        '2027-03-14T21:00Z'    => '',
        '2027-03-15T03:59:59Z' => '4',
        '2027-03-15T04:00Z'    => '4 5',        # Monday
        '2027-03-16T03:59:59Z' => '4 5',
        '2027-03-16T04:00Z'    => '4',
    );
};

subtest 'the clock goes back: an hour comes twice' => sub {
    open_at(
        '2027-11-07T01:59:59Z' => '6',
        '2027-11-07T02:00Z'    => '2 6',        # Saturday 22:00 EDT
        '2027-11-07T05:29:59Z' => '2 6',
        '2027-11-07T05:30Z'    => '1 2 6',      # 01:30 EDT
        '2027-11-07T05:59:59Z' => '1 2 6',
        '2027-11-07T06:00Z'    => '2 6',        # 01:00 EST
        '2027-11-07T06:30Z'    => '1 2 6',      # 01:30 EST
        '2027-11-07T08:29:59Z' => '1 2 6',
        '2027-11-07T08:30Z'    => '2 6',
        '2027-11-07T10:59:59Z' => '2 6',
        '2027-11-07T11:00Z'    => '6',          # 06:00 EST
        '2027-11-07T14:00Z'    => '3',
    );
};

subtest 'flights, to the second' => sub {
    my @table = (
        '2027-03-14T06:59:58Z' => '',
        '2027-03-14T06:59:59Z' => '21',
        '2027-03-14T07:00:00Z' => '21',
        '2027-03-14T07:00:01Z' => '21 22',
        '2027-03-14T07:00:03Z' => '21',
        '2027-03-17T10:30:00Z' => '21',
        '2027-03-18T09:59:59Z' => '21',
        '2027-03-18T10:00:00Z' => '21 23',
        '2027-03-18T11:00:00Z' => '21',
        '2027-03-19T23:59:59Z' => '21',
        '2027-03-20T00:00:00Z' => '',
    );
    while (my ($time, $expected) = splice @table, 0, 2) {
        go_to($time);
        is join(' ', grep { $_ > 20 } split / /, served()), $expected, $time;
    }
};

subtest 'openings that are days ahead are known' => sub {
    go_to('2027-03-08T12:00Z');
    # Usually faster than a new catalog, which is checked for every 0.4 s.
    for my $pair ([ '2027-03-14T06:29:59Z', '2 6' ], [ '2027-03-14T06:30:00Z', '1 2 6' ], [ '2027-03-14T07:30:00Z', '2 6 21' ]) {
        jump($pair->[0]);
        is join(' ', grep { $_ != 22 } split / /, served()), $pair->[1], $pair->[0];
    }
};

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';
done_testing;
