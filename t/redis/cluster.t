# Frequency caps on a cluster of six servers: a cap holds over nodes, over slots that move and over
# a failover, and a decision with capped candidates left costs one round trip.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Ads;
use AdsTest::Load ();
use AdsTest::Nginx;
use AdsTest::RedisCluster;

my $long     = AdsTest::Load::long();
my $sessions = $long ? 10_000 : 120;
my $Cap      = 3;
my $cluster  = AdsTest::RedisCluster->new;
my %Ad       = (type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/');
my $catalog  = write_temp('cluster.json', catalog({
    placements => [ map { { id => $_ } } qw(top free) ],
    campaigns  => [ { id => 1, timezone => AdsTest::Clock::noon_zone(), ad_groups => [
        { id => 1, frequency_caps => [ { count => $Cap, per => 'day' } ], targeting => { placements => ['top'] }, creatives => [ { id => 11, %Ad } ] },
        { id => 2, targeting => { placements => ['free'] }, creatives => [ { id => 21, %Ad } ] },
    ] } ],
}));
my $secret = write_temp('cluster.keys', secret_text(1), 0600);

sub node {
    my (%o) = @_;
    return AdsTest::Nginx->new(
        workers => $o{workers} // 2,
        http    => http_conf(state => 'logs/state', catalog => $catalog, secret => $secret,
            more => "    keepalive_requests 1000000;\n    keepalive_timeout 1h;\n    ads_redis cluster " . ($o{seeds} // $cluster->addresses) . " timeout=1s" . ($o{more} // '') . ";\n"),
        server => locations() . "ads_consent off;\nads_session_cookie spot;\nlocation = /metrics { ads_status; }\n",
    )->start;
}

my $Sessions = 0;
sub session { return ++$Sessions }

sub ask {
    my ($ngx, $session, $placement) = @_;
    my $res = $ngx->get('/spot/serve?placement=' . ($placement // 'top'), { Cookie => sprintf 'spot=%032x', $session });
    die "$res->{status} $res->{body}" if $res->{status} != 200;
    return scalar @{ JSON::PP::decode_json($res->{body})->{ads} };
}

sub metric {
    my ($event, @nodes) = @_;
    my $n = 0;
    for my $ngx (@nodes) {
        my $body = $ngx->get('/metrics?format=prometheus')->{body};
        $n += $body =~ /^ads_redis_events_total\{event="$event"\} (\d+)/m ? $1 : die "no $event";
    }
    return $n;
}

sub replies {
    my ($command, @nodes) = @_;
    my $n = 0;
    for my $ngx (@nodes) {
        my $body = $ngx->get('/metrics?format=prometheus')->{body};
        $n += $body =~ /^ads_redis_command_seconds_count\{command="$command"\} (\d+)/m ? $1 : die "no $command";
    }
    return $n;
}

sub scripts { return $cluster->calls('eval(?:sha)?') }

my @nodes = map { node() } 1 .. 3;

# What gives each request its cookie, and sends it to any of the nodes.
my $front = AdsTest::Nginx->new(
    http   => 'upstream nodes { random; ' . join('', map { 'server 127.0.0.1:' . $_->port . ';' } @nodes) . ' keepalive 32; }',
    server => 'location = /spot/serve { proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Cookie "spot=$arg_s"; proxy_pass http://nodes; }',
)->start;

# Requests of so many new sessions, of which neighbours are near each other.
sub requests {
    my ($count, $each) = @_;
    my @paths;
    while ($count > 0) {
        my @some = map { my $s = session(); map { sprintf '/spot/serve?placement=top&s=%032x', $s } 1 .. $each } 1 .. ($count < 20 ? $count : 20);
        $count -= 20;
        while (@some) { push @paths, splice @some, rand @some, 1 }
    }
    return @paths;
}

sub load {
    my (@paths) = @_;
    return AdsTest::Load->start($front, connections => 8, keepalive => 1, next => AdsTest::Load::each_of(@paths));
}

# How often each session was served, by the spools of all nodes.
sub served {
    my %served;
    for my $ngx (@nodes) {
        $served{ hex substr $_->{session}, -8 }++ for grep { $_->{type} eq 'serve' } events($ngx->path('logs/spool'));
    }
    return \%served;
}

# Sessions above the cap by how much, of those from the first to the last.
sub excess {
    my ($first, $last) = @_;
    my $served = served();
    my ($above, $below, $most) = (0, 0, 0);
    for my $session ($first .. $last) {
        my $n = $served->{$session} // 0;
        $above++ if $n > $Cap;
        $below++ if $n < $Cap;
        $most = $n if $n > $most;
    }
    return ($above, $below, $most);
}

subtest 'a cap holds over nodes and servers' => sub {
    my @sessions = map { session() } 1 .. 12;    # over the slots of all masters
    my %got      = map { my $s = $_; $s => join '', map { ask($nodes[ $_ % 3 ], $s) } 0 .. 4 } @sessions;
    is_deeply [ sort values %got ], [ ('11100') x 12 ], 'three a day';
    is scalar(grep { !/^freq:\{[0-9a-f]{16}\}$/ } $cluster->keys('*')), 0, 'a key for each session';
    cmp_ok scalar(grep { @{ $_->call('KEYS', '*') } } $cluster->masters), '>', 1, 'on more than one master';
};

subtest 'round trips' => sub {
    my ($s, $calls) = (session(), scripts());
    ask($nodes[ $_ % 3 ], $s) for 0 .. 2;
    is scripts() - $calls, 3, 'one script call for each decision with capped candidates';
    # Redis does not count what it sends elsewhere.
    my $trips = sub { replies('frequency', @nodes) - metric('moved', @nodes) - metric('asked', @nodes) };
    wait_until { $trips->() >= scripts() } 30, 'the metrics';
    is $trips->(), scripts(), 'each is one reply';
    ask($nodes[0], $s, 'free') for 1 .. 5;
    ask($nodes[0], $s)         for 1 .. 5;
    ($s, $calls) = (session(), scripts());
    ask($nodes[0], $s, 'free') for 1 .. 5;
    is scripts() - $calls, 0, 'none without caps';
    my $single = node(workers => 1);
    ask($single, $s) for 1 .. 3;
    $calls = scripts();
    ask($single, $s) for 1 .. 3;
    is scripts() - $calls, 0, 'none for a cap that the node knows of';
    $single->stop;
    is_deeply [ $single->problems ], [], 'clean';
};

subtest 'a user with the rights that docs/redis.md names' => sub {
    my ($rights, $more) = do { open my $in, '<', 'docs/redis.md' or die $!; local $/; <$in> =~ /^ACL SETUSER ads on >PASSWORD ([^\n]*)\n.*^A cluster also needs `(.*?)`/ms };
    ok $more, 'on a cluster';
    $_->call('ACL', 'SETUSER', 'ads', 'on', '>open', split(/ /, $rights), split / /, $more) for $cluster->nodes;
    my $file = write_temp('cluster.password', "open\n", 0600);
    my $ngx  = node(workers => 1, more => " on_error=no_ad user=ads password_file=$file");
    wait_until { ask($ngx, session()) } 30, 'an ad';
    is_deeply [ map { ask($ngx, session()) } 1 .. 12 ], [ (1) x 12 ], 'has what it needs';
    my ($from, $to) = $cluster->masters;
    my $asking = $cluster->calls('asking');
    my $id     = session();
    my %known  = map { $_ => 1 } $from->call('KEYS', '*')->@*;
    until (grep { !$known{$_} } $from->call('KEYS', '*')->@*) { ask($ngx, $id = session()) }
    my ($key) = grep { !$known{$_} } $from->call('KEYS', '*')->@*;
    my ($slot, $source, $target) = ($cluster->slot_of($key), map { $_->call('CLUSTER', 'MYID') } $from, $to);
    $to->call('CLUSTER', 'SETSLOT', $slot, 'IMPORTING', $source);
    $from->call('CLUSTER', 'SETSLOT', $slot, 'MIGRATING', $target);
    $from->call('MIGRATE', '127.0.0.1', $to->port, $key, 0, 5000);
    is_deeply [ map { ask($ngx, $id) } 1 .. 3 ], [ 1, 1, 0 ], 'also while the slot of a session moves';
    is $cluster->calls('asking') - $asking, 2, 'by ASKING';
    $_->call('CLUSTER', 'SETSLOT', $slot, 'NODE', $target) for $to, $from;
    is_deeply [ map { @{ $_->call('ACL', 'LOG') } } $cluster->nodes ], [], 'no server has refused anything';
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'clean';
};

subtest 'a storm' => sub {
    my $first  = $Sessions + 1;
    my $result = load(requests($sessions, 5))->wait_end;
    is scalar @{ $result->{failed} }, 0, 'every request has an answer' or diag explain [ @{ $result->{failed} }[ 0 .. 2 ] ];
    wait_until { (excess($first, $Sessions))[1] == 0 } 30, 'all events';
    my ($above, $below) = excess($first, $Sessions);
    is $above, 0, "of $sessions sessions none is above its cap";
    is $below, 0, 'and none below';
    is metric('fallbacks', @nodes), 0, 'no decision went without Redis';
};

subtest 'slots move under load' => sub {
    my $first = $Sessions + 1;
    my ($from, $to) = $cluster->masters;
    my $moved = metric('moved', @nodes);
    my $load  = load(requests($sessions, 5));
    $load->wait_for(30);
    $cluster->move_slots($long ? 2000 : 200, $from, $to);
    my $result = $load->wait_end;
    is scalar @{ $result->{failed} }, 0, 'every request has an answer';
    # Of sessions of slots that have moved, whether or not the load met one.
    my $id;
    for (1 .. 2000) {
        $id = session();
        last if metric('moved', @nodes) > $moved;
        ask($nodes[ $id % 3 ], $id);
    }
    cmp_ok metric('moved', @nodes), '>', $moved, 'workers were told of slots that moved';
    my ($above, $below, $most) = excess($first, $first + $sessions - 1);
    note "while slots moved: $above of $sessions sessions above the cap of $Cap, the most $most; " . metric('asked', @nodes) . ' ASK, ' . (metric('moved', @nodes) - $moved) . ' MOVED';
    is $above, 0, 'none is above its cap';
    is metric('fallbacks', @nodes), 0, 'no decision went without Redis';
};

# Bytes of notes on some servers.
sub noted {
    my $n = 0;
    for my $server (@_) { $n += $server->call('HSTRLEN', $_, 'g1') for @{ $server->call('KEYS', '*') } }
    return $n;
}

# Until each worker asks Redis.
sub wait_redis {
    my @asked = (@nodes) x 40;    # each worker, for slots of each master
    wait_until { my $n = $cluster->calls('evalsha'); ask($_, session()) for @asked; $cluster->calls('evalsha') - $n >= @asked } 30, 'decisions with Redis';
    return;
}

subtest 'a failover to a replica that lacks the last serves' => sub {
    my ($master)  = $cluster->masters;
    my ($replica) = grep { $_->call('INFO', 'replication') =~ /^role:slave.*^master_port:${\ $master->port}\r$/ms } $cluster->nodes;
    $replica->sigstop;
    $master->call('CLIENT', 'KILL', 'TYPE', 'replica');
    # Each session on one node only.
    my @some = map { session() } 1 .. 60;
    for my $s (@some) { ask($nodes[ $s % 3 ], $s) for 1 .. 2 }
    my $noted = noted($master);
    like $master->call('INFO', 'replication'), qr/^connected_slaves:0\r$/m, 'no replica has them';
    $master->kill;
    $replica->sigcont;
    $cluster->wait_failover($master);
    wait_until { noted($replica) >= $noted } 30, 'the notes of all nodes';
    is noted($replica), $noted, 'the nodes write them again, each once';
    wait_redis();
    my @again = map { my $s = $_; join '', map { ask($nodes[ ($s + $_) % 3 ], $s) } 1 .. 3 } @some;
    is scalar(grep { $_ ne '100' } @again), 0, 'they count on other nodes' or diag "@again";
    $master->start;
    wait_until { $master->call('INFO', 'replication') =~ /master_link_status:up/ } 60, 'the old master as a replica';
};

subtest 'a failover under load' => sub {
    my $first    = $Sessions + 1;
    my ($master) = $cluster->masters;
    my $before   = metric('fallbacks', @nodes);
    my $load     = load(requests($sessions, 5));
    $load->wait_for(30);
    $master->kill;
    $cluster->wait_failover($master);
    my $result = $load->wait_end;
    is scalar @{ $result->{failed} }, 0, 'every request has an answer';
    my $without = metric('fallbacks', @nodes) - $before;
    my ($above, $below, $most) = excess($first, $first + $sessions - 1);
    note "through the failover: $above of $sessions sessions above the cap of $Cap, the most $most; $without decisions without Redis";
    cmp_ok $most, '<=', $Cap * @nodes, 'at most the cap on each node';
    cmp_ok $above, '<=', $without, 'only sessions that were served without Redis';
    $first = $Sessions + 1;
    wait_redis();
    my @after = map { my $s = session(); join '', map { ask($nodes[ $_ % 3 ], $s) } 0 .. 3 } 1 .. 30;
    is scalar(grep { $_ ne '1110' } @after), 0, 'and then caps are exact';
};

for my $ngx (@nodes, $front) { $ngx->stop }
is_deeply [ $_->problems(allow => [qr/ads: redis/]) ], [], 'clean log, exit and reports' for @nodes;
done_testing;
