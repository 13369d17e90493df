# nginx-ads fleet drain: what a stopped node holds is free for the others.

use strict;
use warnings;

use lib 't/lib';
use IPC::Open3 qw(open3);
use Test::More;

use AdsTest::Fleet;
use AdsTest::Nginx qw(wait_until);

my $fleet = AdsTest::Fleet->new(nodes => 2, groups => { 1 => { cap => 100 } })->start;
my $pg    = $fleet->pg;
my ($state, $run) = map { $fleet->node(0)->prefix . "/$_" } qw(state run);
my $held = sub { return $pg->value('SELECT coalesce(sum(greatest(0, got - gave - billed)), 0) FROM ads.fleet_accounts WHERE node = '
    . $fleet->{first}) };

# Returns the exit code; the text is in $said.
my $said = '';
sub drain {
    my $pid = open3(my $in, my $out, undef, $ENV{ADS_COMMAND} || 'build/nginx-ads', 'fleet', 'drain', '--name', 'node0', '--state', $state,
        '--run', $run, '--database', $pg->conninfo, @_);
    $said = do { local $/; <$out> } // '';
    waitpid $pid, 0;
    return $? >> 8;
}

$fleet->{first} = $fleet->fleet_status(0)->{node};
ok wait_until(sub { $fleet->serve(0, 1) }, 30), 'a node serves';
ok wait_until(sub { $held->() > 1 }, 30), 'and holds more than that';
is drain(), 3, 'a node that runs';
like $said, qr/is in use: stop nginx first/, 'is not drained';
$fleet->node(0)->stop;
cmp_ok $held->(), '>', 1, 'one that is stopped keeps what it holds';
is drain(), 0, 'until it is drained';
is $said, "node0 has returned its rights.\n", 'which is said';
cmp_ok $held->(), '<=', 1, 'all but what was served is returned';
is drain(), 0, 'once more does no harm';
my $served = $fleet->serve_up_to(99, 1, 1);
is $served, 99, 'the other node serves the rest';

done_testing;
