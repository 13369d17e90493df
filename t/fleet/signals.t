# The signals of a fleet: nodes tell Redis what they have counted of each limit, by users with no more
# than the rights in docs/redis.md, over TCP, a socket and TLS; the tick of each paces by what all have
# used, and goes on by itself while Redis does not answer.

use strict;
use warnings;
use lib 't/lib';

use File::Temp qw(tempdir);
use Test::More;

use AdsTest::Ads qw(write_temp);
use AdsTest::Fleet;
use AdsTest::Load;
use AdsTest::Nginx qw(wait_until);
use AdsTest::Process qw(free_port);
use AdsTest::Redis;

my ($rights) = do { open my $in, '<', 'docs/redis.md' or die $!; local $/; <$in> =~ /^ACL SETUSER ads on >PASSWORD (.*)$/m };
my $dir      = tempdir(CLEANUP => 1);
chmod 0755, $dir;
system("cd $dir && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=redis.example -addext 'subjectAltName=DNS:redis.example' -keyout key -out pem >/dev/null 2>&1 && chmod 644 pem key") == 0
    or plan skip_all => 'no openssl';
my $port  = free_port();
my $redis = eval { AdsTest::Redis->new(settings => [ '--tls-port', $port, '--tls-cert-file', "$dir/pem", '--tls-key-file', "$dir/key", '--tls-ca-cert-file', "$dir/pem" ]) };
plan skip_all => 'redis-server has no TLS' unless $redis;
$redis->call('ACL', 'SETUSER', 'ads', 'on', '>open', split / /, $rights);
my $user  = 'user=ads password_file=' . write_temp('password', "open\n", 0600);
# Workers that are late only fall back: this is about the keeper.
my @ways  = (
    '127.0.0.1:' . free_port() . ' ' . $redis->address . " $user",    # nobody is at the first
    'unix:' . $redis->dir . "/redis.sock $user",
    "127.0.0.1:$port $user tls ca=$dir/pem cert=$dir/pem key=$dir/key server_name=redis.example",
);
my $cap   = 600_000;
my $fleet = AdsTest::Fleet->new(nodes => 0, groups => { 1 => { cap => $cap } });
for my $way (@ways) {
    $fleet->{http} = "ads_redis $way;";
    $fleet->add_node;
}
$fleet->start;

sub limit   { my ($i) = @_; return AdsTest::Load::group($fleet->node($i), 1)->{limits}[0] }
sub signals { my ($i) = @_; return $fleet->fleet_status($i)->{signals} }
sub metric {
    my ($i, $name) = @_;
    my $body = $fleet->node($i)->get('/console/status?format=prometheus')->{body};
    return $body =~ /^\Q$name\E (\S+)$/m ? $1 : die "no $name";
}
# Requests until it is so: a limit without any is looked at once a minute.
sub while_serving {
    my ($name, $is) = @_;
    return wait_until { $fleet->serve($_, 1) for 0, 0, 0, 1, 2, 2; $is->() } 60, $name;
}
sub known { my ($i) = @_; return signals($i)->{limits} }

# What a node expects to serve of the cap: its part of what all have served.
my @part = map { $_ * $cap / 6 } 3, 1, 2;
while_serving('the counts of all', sub { !grep { abs(limit($_)->{amount} - $part[$_]) > $cap / 100 } 0 .. 2 }) and pass 'each node knows what the others have served';
while_serving('the status', sub { !grep { known($_) != 1 } 0 .. 2 }) and pass 'the status says so';
while_serving('the metric', sub { metric(2, 'ads_signals_limits') == 1 }) and pass 'and the metric';
cmp_ok abs(metric(0, 'ads_signals_read_timestamp_seconds') - time), '<', 60, 'with the time';
cmp_ok metric(0, 'ads_redis_command_seconds_count{command="signals"}'), '>=', 2, 'calls are measured';

my ($serves) = grep { /serves/ } @{ $redis->call('KEYS', 'pacing:*') };
like $serves, qr/^pacing:serves:\{g1\}:\d{4}-\d\d-\d\d$/, 'a key for the serves of a day';
my $served = sub { my $n = 0; $n += limit($_)->{used} for 0 .. 2; return $n };
wait_until { $redis->call('GET', $serves) == $served->() } 90, 'all serves' and pass 'has those of all nodes';
my ($date) = $serves =~ /([\d-]+)$/;
is_deeply [ sort @{ $redis->call('KEYS', 'pacing:*') } ], [ "pacing:impressions:{g1}:$date", "pacing:nodes:{g1}:impressions:$date", $serves ], 'there are no others';
cmp_ok $redis->call('TTL', $_), '>', 172_000, "$_ expires" for @{ $redis->call('KEYS', 'pacing:*') };
is $redis->call('HLEN', "pacing:nodes:{g1}:impressions:$date"), 3, 'with what each has told';
is_deeply $redis->call('ACL', 'LOG'), [], 'Redis has refused nothing';

$redis->call('FLUSHALL');
while_serving('all of it again', sub { ($redis->call('HLEN', "pacing:nodes:{g1}:impressions:$date") // 0) == 3 }) and pass 'what Redis has lost is told again';

# Not an answer for a while. The tick goes on: what is due by now grows.
for my $away ([ 'stopped', sub { $redis->sigstop }, sub { $redis->sigcont } ], [ 'gone', sub { $redis->stop }, sub { $redis->start; $redis->call('ACL', 'SETUSER', 'ads', 'on', '>open', split / /, $rights) } ]) {
    my ($name, $begin, $end) = @$away;
    $begin->();
    while_serving('nodes to notice', sub { !grep { known($_) } 0 .. 2 }) and pass "Redis is $name: no node paces by the others";
    my @due = map { limit($_)->{ideal} } 0 .. 2;
    while_serving('ticks', sub { !grep { limit($_)->{ideal} <= $due[$_] } 0 .. 2 }) and pass 'each tick goes on';
    is $fleet->serve(0, 1), 1, 'and serves';
    $end->();
    while_serving('signals', sub { !grep { known($_) != 1 } 0 .. 2 }) and pass 'then all are known again';
}
like $fleet->node(1)->error_log, qr/\[error\].*ads: signals: redis "unix:\S+" (?:does not answer in time|has closed the connection|cannot be reached: [^:]+): this node paces its own part of each limit/, 'the log says why';
like $fleet->node(1)->error_log, qr/\[notice\].*ads: signals: redis answers again/, 'and when it was over';
$fleet->within_limits('at the end');
$_->stop for $fleet->nodes;
is_deeply [ map { $_->problems(allow => [qr/ads: (?:signals: )?redis/]) } $fleet->nodes ], [], 'no alert';

done_testing;
