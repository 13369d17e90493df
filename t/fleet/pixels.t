# Behind a balancer the pixel of a serve comes to another node than the one that served. What is
# billed is the cap or the budget to the unit, and no impression is late.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(time sleep);
use AdsTest::Fleet;
use AdsTest::Load;
use AdsTest::Nginx qw(wait_until);
use AdsTest::Process qw(slow);

my $cap   = long() ? 3000 : 150;
my $cents = long() ? 2000 : 100;
my $fleet = AdsTest::Fleet->new(
    nodes  => 2,
    groups => { 1 => { cap => $cap, cap_on => 'impression' }, 2 => { cents => $cents }, 3 => {} },
)->start;
my $pg = $fleet->pg;

sub billed {
    my ($group, $invalid) = @_;
    $invalid //= 'IS NULL';
    return $pg->value("SELECT count(*) FROM ads.ad_events WHERE ad_group_id = $group AND type = 'impression' AND invalid $invalid");
}

# One pixel alone.
my $res = $fleet->node(0)->get('/spot/serve?placement=p3');
my ($pixel) = $res->{body} =~ m{"impression_url":"([^"]+)"};
$pixel =~ s/\\u0026/&/g;
is $fleet->node(1)->get($pixel)->{status}, 200, 'another node takes the pixel';
ok wait_until(sub { billed(3) == 1 }, 60), 'which is stored';
ok wait_until(sub { $fleet->fleet_status(0)->{verdicts}{confirmed} == 1 }, 60), 'and the node that has served is told';
is $fleet->fleet_status(1)->{verdicts}{confirmed}, 0, 'the other one is not';
is $fleet->node(0)->get($pixel)->{status}, 200, 'the same pixel again, to the node that has served';
ok wait_until(sub { $fleet->fleet_status(0)->{verdicts}{duplicate} == 1 }, 60), 'is a duplicate';
is billed(3), 1, 'and counts once';

# Under load, 8 % of the pixels lost.
$fleet->load($_, groups => [ 1, 2 ], pixels_to => 1 - $_, pause => 0.005) for 0, 1;
ok wait_until(sub { billed(1) >= $cap && billed(2) >= $cents }, (long() ? 900 : 240) * slow()), 'the cap and the budget are reached'
    or diag sprintf '%d of %d, %d of %d', billed(1), $cap, billed(2), $cents;
if (long()) {    # for longer than a reservation
    $pg->sigstop;
    sleep 40;
    $pg->sigcont;
}
sleep 2;
$fleet->stop_loads;
ok wait_until(sub { !grep { AdsTest::Load::status($_)->{spool}{segments} } $fleet->nodes }, 120), 'all is stored';
is billed(1), $cap,   'no more than the cap is billed';
is billed(2), $cents, 'nor than the budget';
my $late = $pg->value("SELECT count(*) FROM ads.ad_events WHERE invalid = 'late'");
note "$late late of " . $pg->value("SELECT count(*) FROM ads.ad_events WHERE type = 'impression'") . ' impressions';
cmp_ok $late, '<=', 0.001 * ($cap + $cents) + 1, 'hardly any is late';
$fleet->within_limits('pixels elsewhere');
for my $ngx ($fleet->nodes) {
    is $ngx->stop, 'QUIT', 'it stops';
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
}
done_testing;
