# `make run-fleet`, as scripts/run-fleet starts it: what it prints is there, and nothing is left of it.
use strict;
use warnings;

use lib 't/lib';
use Cwd qw(abs_path);
use File::Path qw(make_path);
use Test::More;

use AdsTest::Command;
use AdsTest::Conf ();
use AdsTest::Http ();
use AdsTest::Postgres ();
use AdsTest::Process qw(alive free_port listening spawn wait_until);

plan skip_all => 'no PostgreSQL server on this machine' unless AdsTest::Postgres::available();
plan skip_all => 'redis-server is not installed' if system('command -v redis-server >/dev/null') != 0;

my $module = abs_path($ENV{TEST_NGINX_LOAD_MODULES} // 'build/ngx_http_ads_module.so');

# A copy of what it needs, so that one that runs is not disturbed. What it would build is there.
in_folder();
system('cp', '-R', "$home/conf", "$home/scripts", '.') == 0 or die 'cp';
make_path('build', 'bin');
symlink $module,  'build/ngx_http_ads_module.so' or die $!;
symlink $command, 'build/nginx-ads'              or die $!;
symlink AdsTest::Conf::binary(), 'bin/nginx'     or die $!;
$ENV{PATH} = abs_path('bin') . ":$ENV{PATH}";

my $port;
wait_until { $port = free_port(); !grep { listening($port + $_) } 0 .. 15 } 5, 'its ports';
my ($runner, %tried);
END {
    local $?;
    if ($runner && alive($runner)) {
        kill TERM => $runner;
        waitpid $runner, 0;
    }
}

sub get { my ($port, $path) = @_; return AdsTest::Http->new(port => $port)->request('GET', $path) }

write_file('run.log', '');
$runner = spawn([ 'env', "PORT=$port", 'MAKE=true', 'VISITORS=20', 'scripts/run-fleet' ], {}, 'run.log');
wait_until { read_file('run.log') =~ /Ctrl-C stops all/ || !alive($runner) } 120, 'the fleet';
my $said = read_file('run.log');
like $said, qr/Ctrl-C stops all of it/, 'it starts' or diag $said;
like `redis-cli -p @{[ $port + 4 ]} cluster info`, qr/cluster_state:ok.*cluster_known_nodes:6/s, 'a Redis Cluster of six servers';
my ($database) = $said =~ /ADS_DATABASE='([^']+)'/ or die $said;
my ($services) = $database =~ m{host=(\S+)/postgres} or die $database;

my %nodes;
wait_until {
    my $res = get($port, '/spot/serve?placement=home-top');
    $nodes{ $res->{headers}{'x-node'} }++ if $res->{status} == 200;
    keys %nodes == 3;
} 30, 'an answer of each node';
is_deeply [ sort keys %nodes ], [ map {"127.0.0.1:" . ($port + $_)} 1 .. 3 ], 'the balancer asks three nodes';
is get($port + 1, '/console/status')->{status}, 200, 'each has its status';
my $fleet = `build/nginx-ads fleet nodes --db '$database'`;
is scalar(() = $fleet =~ /^web\d +\d+ +active /mg), 3, 'three are active' or diag $fleet;
ok wait_until(sub { `psql -qAtX -d '$database' -c "SELECT count(*) FROM ads.ad_events WHERE type = 'impression'"` > 3 }, 60), 'visitors come, and see ads';

# As it says: a node that is stopped, and started again.
my ($stop, $start) = $said =~ /^ +(kill -QUIT .*)\n +(\S.*)$/m or die $said;
is system($stop), 0, $stop;
wait_until { !listening($port + 2) } 30, 'the end of a node';
is get($port, '/spot/serve?placement=home-top')->{status}, 200, 'the others go on' for 1 .. 4;
is system($start), 0, $start;
wait_until { listening($port + 2) } 30, 'a node';

my @pids = map { split ' ', read_file($_) } glob 'build/fleet/*/nginx.pid';
is scalar @pids, 4, 'four nginx';
kill INT => $runner;
wait_until { !alive($runner) } 60, 'the end of it all';
is scalar(grep { listening($port + $_) } 0 .. 15), 0, 'nothing listens';
is scalar(grep { alive($_) } @pids), 0, 'no nginx is left';
ok !-e $services, 'nor a database';
done_testing;
