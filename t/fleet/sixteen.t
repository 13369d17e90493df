# ADS_TEST_LONG: sixteen nodes under load without faults, three times: caps and budgets at once are
# used to the unit, and never exceeded. With fewer nodes: t/fleet/nodes.t.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(time);
use AdsTest::Fleet;
use AdsTest::Load;
use AdsTest::Nginx qw(wait_until);
use AdsTest::Process qw(slow);

plan skip_all => 'only with ADS_TEST_LONG' unless long();

my $Nodes  = $ENV{ADS_FLEET_NODES} // 16;
my %limits = (1 => [ serve => 7 ], 2 => [ serve => 100 ], 3 => [ serve => 1000 ], 4 => [ serve => 10_000 ], 5 => [ money => 800 ], 6 => [ impression => 400 ]);

sub used {
    my ($pg) = @_;
    my %of = map { $_ => 0 } keys %limits;
    for my $row ($pg->query('SELECT ad_group_id, type, count(*), sum(price_micro) / 1000000 FROM ads.ad_events WHERE invalid IS NULL GROUP BY 1, 2')) {
        my ($group, $type, $events, $cents) = @$row;
        my $what = $limits{$group}[0];
        $of{$group} += $what eq 'money' ? $cents : $what eq $type ? $events : 0;
    }
    return \%of;
}

for my $storm (1 .. 3) {
    my $fleet = AdsTest::Fleet->new(
        nodes => $Nodes, source => 'postgres', state => 'dedupe=8m',
        groups => {
            map { $_ => $limits{$_}[0] eq 'money' ? { cents => $limits{$_}[1] } : { cap => $limits{$_}[1], cap_on => $limits{$_}[0] } } keys %limits
        },
    )->start;
    my $pg    = $fleet->pg;
    my $begun = time;
    $fleet->load($_, groups => [ 4, 4, 1 .. 6 ], pixels_to => 'any', seed => $storm * 100 + $_) for 0 .. $Nodes - 1;
    ok wait_until(
        sub {
            my $of = used($pg);
            return !grep { $of->{$_} < $limits{$_}[1] } keys %limits;
        },
        900 * slow()
    ), "storm $storm: all of it is used";
    my $took  = time - $begun;
    my $count = $fleet->stop_loads;
    ok wait_until(sub { !grep { AdsTest::Load::status($_)->{spool}{segments} } $fleet->nodes }, 120), 'all is stored';
    note sprintf '%d nodes, %.0f s, %d requests (%.0f a second), %d served, %d without an ad', $Nodes, $took, $count->{requests},
        $count->{requests} / $took, @$count{qw(served empty)};
    my $of = used($pg);
    is $of->{$_} + 0, $limits{$_}[1], "storm $storm: $limits{$_}[0] $limits{$_}[1], to the unit" for sort keys %limits;
    $fleet->within_limits("storm $storm");
    for my $ngx ($fleet->nodes) {
        is $ngx->stop, 'QUIT', 'it stops';
        is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
    }
}
done_testing;
