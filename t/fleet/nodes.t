# Nodes that share caps and budgets: what all of them serve is the limit, to the unit, wherever the
# traffic comes; a node that stops, is killed, loses its state or has a copy of another one's, and
# PostgreSQL stopped or hung.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(time sleep);
use AdsTest::Fleet;
use AdsTest::Load;
use AdsTest::Nginx qw(wait_until);

my %groups = (map { $_ => { cap => 1 } } 1 .. 4);
$groups{5} = { cap => 100 };
$groups{6} = { cents => 20 };                        # 20 serves of one cent
$groups{7} = { cap => 60 };
$groups{8} = { cap => 40 };
$groups{9} = {};
my $fleet = AdsTest::Fleet->new(nodes => 4, groups => \%groups)->start;
my $pg    = $fleet->pg;

sub node_of { return $fleet->fleet_status($_[0])->{node} }

# --- a cap of 1 ---------------------------------------------------------------

my %ids = map { node_of($_) => 1 } 0 .. 3;
is scalar keys %ids, 4, 'four nodes have four ids';
ok wait_until(sub { !grep { ($fleet->fleet_status($_)->{active_nodes} // 0) != 4 } 0 .. 3 }, 30), 'each knows of four';

my $slowest = 0;
for my $group (1 .. 4) {
    # Whoever has it, it goes to the one that has traffic.
    ok wait_until(sub { grep { $fleet->rights($_, $group)->{held} } 0 .. 3 }, 30), "a node holds the cap of group $group";
    my ($to) = grep { !$fleet->rights($_, $group)->{held} } 0 .. 3;
    my $took = $fleet->serve_until($to, $group, 30);
    ok defined $took, "group $group is served by node $to, which did not hold it";
    $slowest = $took if ($took // 0) > $slowest;
    is $fleet->serve_up_to(0, $group, 0 .. 3), 0, "group $group: that was all";
}
note sprintf 'a cap of 1 moved within %.2f s', $slowest;
cmp_ok $slowest, '<', 10 * AdsTest::Process::slow(), 'within seconds';
$fleet->within_limits('caps of 1');

# --- a cap and a budget to the unit -----------------------------------------------

is $fleet->serve_up_to(100, 5, 0 .. 3), 100, 'a cap of 100 is served to the unit by four nodes';
is $fleet->serve_up_to(20, 6, 0 .. 3), 20, 'and so is a budget';
ok $fleet->serve(0, 9), 'what has no limit is served as always';
my $status = AdsTest::Load::group($fleet->node(0), 5);
cmp_ok $status->{refused}{rights} // 0, '>', 0, 'refusals for want of rights have a reason' or diag explain $status;
$fleet->within_limits('a cap of 100');

# --- stopped, killed, and started again --------------------------------------------------

my $served = 0;
$served += $fleet->serve($_ % 4, 7) for 1 .. 20;
my $node = node_of(1);
is $fleet->node(1)->stop, 'QUIT', 'a node stops';
my $kept = $pg->value("SELECT sum(got - gave) FROM ads.fleet_accounts WHERE node = $node AND kind = 1 AND id = 7");
cmp_ok $kept, '>', 0, "it keeps its rights: $kept";
$fleet->node(1)->start;
is $fleet->fleet_status(1)->{exactness}, 'exact', 'and goes on at once in the same boot';
is node_of(1), $node, 'as the same node';
$fleet->node(1)->kill_all;
$fleet->start(1);
is node_of(1), $node, 'killed and started it is the same node';
$served += $fleet->serve_up_to(60 - $served, 7, 0 .. 3);
is $served, 60, 'a cap of 60 is served to the unit all the same';

# --- the state lost ----------------------------------------------------------------------

$served = 0;
$served += $fleet->serve($_ % 4, 8) for 1 .. 8;
ok wait_until(sub { !grep { AdsTest::Load::status($_)->{spool}{segments} } $fleet->nodes }, 60), 'all is stored';
$node = node_of(2);
$fleet->node(2)->stop;
unlink $fleet->node(2)->path('state/state') or die "$!";
$fleet->start(2);
isnt node_of(2), $node, 'without its state it is another node';
my $stranded = $pg->value("SELECT sum(got - gave) FROM ads.fleet_accounts WHERE node = $node AND kind = 1 AND id = 8")
    - $pg->value("SELECT count(*) FROM ads.ad_events WHERE node = $node AND ad_group_id = 8 AND type = 'serve'");
$served += $fleet->serve_up_to(40 - $stranded - $served, 8, 0 .. 3);
is $served, 40 - $stranded, "what the old one held is stranded: $stranded";
$fleet->within_limits('a lost state');

# --- a copy of a state ---------------------------------------------------------------------

my $copy = $fleet->add_node;
$node = node_of(3);
is $fleet->node(3)->stop, 'QUIT', 'the fourth node stops';
mkdir $fleet->node($copy)->path('state') or die "$!";
system('cp', '-a', map { $fleet->node($_)->path('state/state') } 3, $copy) == 0 or die 'cp';
$fleet->start($copy);
is node_of($copy), $node, 'a copy of its state is accepted while the original does not run';
$fleet->node(3)->start;
$fleet->wait_mode(3, 'fenced');
ok !$fleet->serve(3, 5), 'the original is refused from its first call on';
is $fleet->node(3)->stop, 'QUIT', 'it stops';
$fleet->start(3);
isnt node_of(3), $node, 'and comes back with a new id';
$fleet->within_limits('a copy');

# --- PostgreSQL away ---------------------------------------------------------------------------

$fleet->node($_)->stop for 0 .. 4;
my $away = AdsTest::Fleet->new(nodes => 2, groups => { 1 => { cap => 400 }, 2 => { cap => 30 } })->start;
ok wait_until(sub { !grep { $away->rights($_, 1)->{idle} < 50 } 0, 1 }, 30), 'half of its share is fetched ahead';

# At rest. A backend tells its counts once a second.
$away->pg->run("ALTER SYSTEM SET track_functions = 'all'");
$away->pg->run('SELECT pg_reload_conf()');
my $calls = sub {
    return $away->pg->row(q{SELECT coalesce(sum(calls), 0), extract(epoch FROM clock_timestamp()) FROM pg_stat_user_functions
                            WHERE funcname IN ('rights', 'verdicts')});
};
my ($begin, $since, $calls_now, $now);
wait_until { ($begin, $since) = $calls->(); $begin > 0 } 30, 'calls to be counted';
wait_until { ($calls_now, $now) = $calls->(); $calls_now >= $begin + 24 } 60, 'more calls';
note sprintf '%.2f calls a second and node at rest', ($calls_now - $begin) / ($now - $since) / 2;
cmp_ok $calls_now - $begin, '<=', 2 * 2 * ($now - $since + 2), 'at most two calls a second and node at rest';

$away->pg->sigstop;
my $without = 0;
for my $i (0, 1) {
    my $idle = $away->rights($i, 1)->{idle};
    my $got  = $away->drain_cap($i, 1);
    is $got, $idle, "PostgreSQL hangs: node $i serves the $idle that it holds";
    $without += $got;
}
ok wait_until(sub { $away->fleet_status(0)->{error} }, 60), 'ads_status says why no call is answered';
$away->pg->sigcont;
for my $i (0, 1) {
    ok defined $away->serve_until($i, 1, 60), "node $i goes on when it is back";
}
$without += 2;
$without += $away->serve_up_to(400 - $without, 1, 0, 1);
is $without, 400, 'to the unit';
$away->within_limits('PostgreSQL hung');

$away->pg->stop;
ok wait_until(sub { $away->fleet_status(1)->{error} }, 60), 'PostgreSQL is stopped';
my $alone = $away->drain_cap(0, 2) + $away->drain_cap(1, 2);
cmp_ok $alone, '<=', 30, "stopped: $alone of 30 are served";
$away->node(0)->stop;
unlink $away->node(0)->path('run/' . (map { m{/([^/]+)\z} } glob $away->node(0)->path('run/*'))[0]) or die "$!";
$away->node(0)->start;
is $away->fleet_status(0)->{exactness}, 'sealed', 'started after a boot without PostgreSQL it is sealed';
ok !$away->serve(0, 2), 'and serves nothing that is limited';
$away->pg->start;
$away->wait_mode(0, 'exact', 60);
$alone += $away->serve_up_to(30 - $alone, 2, 0, 1);
is $alone, 30, 'when it is back, all of it is served';
$away->within_limits('PostgreSQL stopped');

# --- on_error=share ------------------------------------------------------------------------------

my $share = AdsTest::Fleet->new(nodes => 2, groups => { 1 => { cap => 100 } }, on_error => 'share')->start;
ok wait_until(sub { !grep { $share->rights($_, 1)->{idle} < 20 } 0, 1 }, 30), 'both nodes have rights';
$share->pg->stop;
my $held = $share->rights(0, 1)->{idle};
$share->wait_mode(0, 'share', 60);
my $more = $share->drain_cap(0, 1);
note "node 0 held $held and served $more";
cmp_ok $more, '>', $held, 'on_error=share goes on with a part of what was free';
cmp_ok $more, '<=', $held + 50, 'and no more';
$share->pg->start;
$share->wait_mode(0, 'exact', 60);
$more += $share->serve_up_to(100 - $more, 1, 0, 1);
cmp_ok $more, '>=', 100, 'all is served when PostgreSQL is back';
note $more - 100 . ' more than the cap';
for my $ngx ($share->nodes) {
    is $ngx->stop, 'QUIT', 'it stops';
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
}

# --- docs/metrics.md ----------------------------------------------------------------------------

my $docs = do { local (@ARGV, $/) = 'docs/metrics.md'; <> };
my ($section) = $docs =~ /^## Fleet\n(.*?)(?=^## |\z)/ms or die 'no Fleet in docs/metrics.md';
my %documented = map { $_ => 1 } $section =~ /^\| `(ads_\w+)`/mg;
my %metrics = map { $_ => 1 } grep { /^ads_(?:fleet|rights)_/ } $away->node(0)->get('/console/status?format=prometheus')->{body} =~ /^# TYPE (\w+)/mg;
is_deeply [ sort keys %metrics ], [ sort keys %documented ], 'docs/metrics.md has each metric of a fleet';
my %fields = map { $_ => 1 } grep { !/^verdicts$/ } keys %{ $away->fleet_status(0) };
$fields{"verdicts.$_"} = 1 for keys %{ $away->fleet_status(0)->{verdicts} };
my %told = map { $_ => 1 } $section =~ /`fleet\.([\w.]+)`/g;
is_deeply [ sort keys %fields ], [ sort keys %told ], 'and each field';

for my $ngx ($away->nodes) {
    is $ngx->stop, 'QUIT', 'it stops';
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
}
done_testing;
