# ads_anonymous_cap in a fleet: one number for the visitors without a session of all nodes.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Fleet;
use AdsTest::Load;
use AdsTest::Nginx qw(wait_until);

my $fleet = AdsTest::Fleet->new(
    nodes  => 3,
    groups => { 1 => { frequency => [ { count => 3, per => 'day' } ] }, 2 => {} },
    http   => 'ads_anonymous_cap 20;',
)->start;

is $fleet->serve_up_to(20, 1, 0 .. 2), 20, 'three nodes serve the cap to the unit';
my $sum = 0;
$sum += AdsTest::Load::group($fleet->node($_), 1)->{anonymous} for 0 .. 2;
is $sum, 20, 'ads_status has the part of each';
ok $fleet->serve(0, 2), 'what has no frequency caps is served';
$fleet->within_limits('visitors without a session');
for my $ngx ($fleet->nodes) {
    is $ngx->stop, 'QUIT', 'it stops';
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
}
done_testing;
