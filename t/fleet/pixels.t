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

my $cap    = long() ? 3000 : 60;
my $cents  = long() ? 2000 : 40;
my @models = qw(cpm vcpm cpc);
my %groups = (7 => {});
my %name;
for my $i (0 .. 2) {
    $groups{ 1 + $i } = { model => $models[$i], cap => $cap, cap_on => 'impression' };
    $groups{ 4 + $i } = { model => $models[$i], cents => $cents };
    $name{ 1 + $i }   = "cap on impressions, $models[$i]";
    $name{ 4 + $i }   = "budget, $models[$i]";
}
my $fleet = AdsTest::Fleet->new(nodes => 2, source => 'postgres', state => 'dedupe=8m', groups => \%groups)->start;
my $pg    = $fleet->pg;

# Of each limit, in its unit.
sub billed {
    my %of = map { $_ => 0 } 1 .. 7;
    for my $row ($pg->query(q{SELECT ad_group_id, count(*) FILTER (WHERE type = 'impression'), sum(price_micro) / 1000000 FROM ads.ad_events
                              WHERE invalid IS NULL GROUP BY 1})) {
        my ($group, $impressions, $cents) = @$row;
        $of{$group} = $group >= 4 && $group <= 6 ? $cents : $impressions;
    }
    return \%of;
}
sub missing {
    my ($part) = @_;
    my $billed = billed();
    return grep { $billed->{$_} < $part * ($_ < 4 ? $cap : $cents) } 1 .. 6;
}

# One pixel alone.
my $res = $fleet->node(0)->get('/spot/serve?placement=p7');
my ($pixel) = $res->{body} =~ m{"impression_url":"([^"]+)"};
$pixel =~ s/\\u0026/&/g;
is $fleet->node(1)->get($pixel)->{status}, 200, 'another node takes the pixel';
ok wait_until(sub { billed()->{7} == 1 }, 60), 'which is stored';
ok wait_until(sub { $fleet->fleet_status(0)->{verdicts}{confirmed} == 1 }, 60), 'and the node that has served is told';
is $fleet->fleet_status(1)->{verdicts}{confirmed}, 0, 'the other one is not';
is $fleet->node(0)->get($pixel)->{status}, 200, 'the same pixel again, to the node that has served';
ok wait_until(sub { $fleet->fleet_status(0)->{verdicts}{duplicate} == 1 }, 60), 'is a duplicate';
is billed()->{7}, 1, 'and counts once';

# Under load, 8 % of the pixels lost. PostgreSQL is away for longer than a reservation.
$fleet->load($_, groups => [ 1 .. 6 ], pixels_to => 1 - $_, pause => 0.005, viewable => 0.9, click => 0.9) for 0, 1;
if (long()) {
    ok wait_until(sub { !missing(0.5) }, 600 * slow()), 'half of each is billed';
    $pg->sigstop;
    sleep 45;
    $pg->sigcont;
}
ok wait_until(sub { !missing(0.999) }, (long() ? 900 : 240) * slow()), 'the caps and budgets are reached' or diag explain billed();
$fleet->stop_loads;
ok wait_until(sub { !grep { AdsTest::Load::status($_)->{spool}{segments} } $fleet->nodes }, 120), 'all is stored';
my $billed = billed();
for my $group (1 .. 6) {
    my $limit = $group < 4 ? $cap : $cents;
    note sprintf '%s: %d of %d', $name{$group}, $billed->{$group}, $limit;
    cmp_ok $billed->{$group}, '<=', $limit,         "$name{$group}: no more is billed";
    cmp_ok $billed->{$group}, '>=', 0.999 * $limit, "$name{$group}: nor less than 99.9 %";
}
my ($late, $impressions) = $pg->row(q{SELECT count(*) FILTER (WHERE invalid = 'late'), count(*) FROM ads.ad_events WHERE type = 'impression'});
note "$late late of $impressions impressions";
cmp_ok $late, '<=', 0.001 * $impressions + 1, 'hardly any is late';
$fleet->within_limits('pixels elsewhere');
for my $ngx ($fleet->nodes) {
    is $ngx->stop, 'QUIT', 'it stops';
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
}
done_testing;
