# A rate limit of two nodes, counted in Redis: together no more pass than one node would let pass,
# and without Redis each node has its own.

use strict;
use warnings;

use lib 't/lib';
use Test::More;

use AdsTest::Ads;
use AdsTest::Load ();
use AdsTest::Nginx;
use AdsTest::Redis;

my $redis  = AdsTest::Redis->new;
my $secret = write_temp('rate.keys', secret_text(1), 0600);
my $source = write_temp('rate.json', catalog_text());

my $limits = <<'C';
location = /plain  { ads_rate_limit zone=plain:1m rate=5 window=1h redis; try_files /ok =404; }
location = /again  { ads_rate_limit zone=plain; try_files /ok =404; }
location = /short  { ads_rate_limit zone=short:1m rate=3 window=2s redis; try_files /ok =404; }
location = /parts  { ads_rate_limit zone=parts:1m rate=300 window=1h redis; try_files /ok =404; }
location = /keyed  { ads_rate_limit zone=keyed:1m rate=2 window=1h redis key=$arg_k; try_files /ok =404; }
location = /dry    { ads_rate_limit zone=dry:1m rate=2 window=1h redis dry_run; try_files /ok =404; }
location = /two    { ads_rate_limit zone=local:1m rate=2 window=1h; ads_rate_limit zone=wide:1m rate=3 window=1h redis; try_files /ok =404; }
location = /silent { ads_rate_limit zone=silent:1m rate=2 window=1h redis status=silent; ads_serve; }
location /index/   { ads_rate_limit zone=index:1m rate=3 window=1h redis; index index.html; }
set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;
C

sub node {
    my ($address, $more) = @_;
    my $ngx = AdsTest::Nginx->new(
        workers => 2,
        http    => http_conf(state => 'logs/state', catalog => $source, secret => $secret, more => "    ads_redis $address timeout=1s" . ($more // '') . ";\n"),
        server  => locations() . $limits,
    );
    $ngx->write_file('html/ok', 'ok');
    $ngx->write_file('html/index/index.html', 'index');
    return $ngx->start;
}

my @nodes = map { node($redis->address) } 1, 2;

sub ask { my ($ngx, $path, $from) = @_; return $ngx->get($path, { 'X-Real-IP' => $from // '192.0.2.1' }) }

# The statuses of so many requests, to one node after the other.
sub statuses {
    my ($count, $path, $from) = @_;
    return join ' ', map { ask($nodes[ $_ % 2 ], $path, $from)->{status} } 1 .. $count;
}
sub told { my ($res) = @_; return [ @{ $res->{headers} }{qw(x-ratelimit-limit x-ratelimit-remaining retry-after)} ] }
sub calls { return $redis->call('INFO', 'commandstats') =~ /cmdstat_evalsha:calls=(\d+)/ ? $1 : 0 }

subtest 'nodes share a limit' => sub {
    is statuses(7, '/plain'), '200 200 200 200 200 429 429', 'five over both nodes';
    is statuses(6, '/plain', '192.0.2.2'), '200 200 200 200 200 429', 'of each address';
    my $res = ask($nodes[0], '/plain', '192.0.2.3');
    is_deeply told($res), [ 5, 4, undef ], 'headers';
    $res = ask($nodes[1], '/again', '192.0.2.3');
    is_deeply told($res), [ 5, 3, undef ], 'count what passed on the other node';
    $res = ask($nodes[1], '/plain');
    is_deeply [ @{ told($res) }[ 0, 1 ] ], [ 5, 0 ], 'of a refusal';
    cmp_ok $res->{headers}{'retry-after'}, '<=', 3600, 'seconds until one would pass';
    cmp_ok $res->{headers}{'retry-after'}, '>', 3000, 'which is when the first one leaves the window';
    is statuses(4, '/keyed?k=a'), '200 200 429 429', 'a key of its own';
    is statuses(3, '/keyed'), '200 200 200', 'an empty one has no limit';
};

subtest 'keys in Redis' => sub {
    my @keys = @{ $redis->call('KEYS', '*') };
    is scalar(grep { !/^rate:\{[0-9a-f]{16}\}$/ } @keys), 0, 'are hashes';
    is scalar @keys, 4, 'one of each address and zone';
    my @ttl = map { $redis->call('PTTL', $_) } @keys;
    is scalar(grep { $_ <= 0 || $_ > 3_601_000 } @ttl), 0, 'and end with the window';
};

subtest 'the window slides' => sub {
    is ask($nodes[ $_ % 2 ], '/short')->{status}, 200, 'passes' for 1 .. 3;
    my $res = ask($nodes[0], '/short');
    # On a machine that stood still between them the first may have left the window.
    SKIP: {
        skip 'too slow', 1 if $res->{status} == 200;
        cmp_ok $res->{headers}{'retry-after'}, '<=', 2, 'a refusal';
    }
    wait_until { ask($nodes[1], '/short')->{status} == 200 } 30, 'the end of the window' and pass 'room again';
    wait_until { !grep { $redis->call('GET', $_) && $redis->call('PTTL', $_) <= 3000 } @{ $redis->call('KEYS', '*') } } 30, 'the end of its key' and pass 'the key has gone';
};

subtest 'a rate above 256' => sub {
    is scalar(grep { ask($nodes[ $_ % 2 ], '/parts')->{status} == 200 } 1 .. 310), 300, 'is kept in parts';
    my $res = ask($nodes[0], '/parts');
    cmp_ok $res->{headers}{'retry-after'}, '<=', 3600 * 65 / 64 + 1, 'room comes up to a part late';
    cmp_ok $res->{headers}{'retry-after'}, '>', 3000, 'not before';
};

subtest 'what needs no call' => sub {
    my $from = '192.0.2.10';
    ask($nodes[0], '/plain', $from) for 1 .. 5;
    my $before = calls();
    is ask($nodes[0], '/plain', $from)->{status}, 429, 'a limit that one node has used up';
    is calls() - $before, 0, 'no call';
    is ask($nodes[1], '/plain', $from)->{status}, 429, 'on the other node';
    is calls() - $before, 1, 'one call';
};

subtest 'several limits' => sub {
    is statuses(6, '/two', '192.0.2.20'), '200 200 200 429 429 429', 'the wider one holds over both';
    is join(' ', map { ask($nodes[0], '/two', '192.0.2.21')->{status} } 1 .. 3), '200 200 429', 'the narrow one on each';
    is join(' ', map { ask($nodes[1], '/two', '192.0.2.21')->{status} } 1 .. 2), '200 429', 'and what it refused the wider one did not count';
};

subtest 'silent, dry_run, internal redirects' => sub {
    is statuses(4, '/dry', '192.0.2.30'), '200 200 200 200', 'dry_run lets all pass';
    my @serves = map { ask($nodes[ $_ % 2 ], '/silent?placement=top', '192.0.2.31') } 1 .. 3;
    like $serves[$_]{body}, qr/"creative":31,/, 'an ad' for 0, 1;
    is $serves[2]{body}, '{"ads":[]}', 'over a silent limit there is none';
    is_deeply told($serves[2]), [ undef, undef, undef ], 'and no header';
    is statuses(4, '/index/', '192.0.2.32'), '200 200 200 429', 'an index counts once';
};

subtest 'many at once' => sub {
    my $front = AdsTest::Nginx->new(
        http   => 'upstream nodes { random; ' . join('', map { 'server 127.0.0.1:' . $_->port . ';' } @nodes) . ' keepalive 32; }',
        server => 'location = /plain { proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header X-Real-IP 10.0.0.$arg_a; proxy_pass http://nodes; }',
    )->start;
    my @paths = map { my $a = $_; map {"/plain?a=$a"} 1 .. 12 } 1 .. 20;
    my $result = AdsTest::Load->start($front, connections => 16, keepalive => 1, next => AdsTest::Load::each_of(@paths))->wait_end;
    is scalar @{ $result->{failed} }, 0, 'every request has an answer';
    my %passed;
    $_->[1] == 200 and $passed{ $_->[0] }++ for @{ $result->{answered} };
    is_deeply [ sort values %passed ], [ (5) x 20 ], 'five of each address pass';
    $front->stop;
};

subtest 'a client that leaves while its request waits' => sub {
    my $conn = $nodes[0]->connection;
    $redis->sigstop;
    $conn->send_raw("GET /plain HTTP/1.1\r\nHost: a\r\nX-Real-IP: 192.0.2.40\r\n\r\n");
    $conn->close;
    $redis->sigcont;
    is ask($nodes[0], '/plain', '192.0.2.41')->{status}, 200, 'others are answered';
};

subtest 'without Redis' => sub {
    my $away = AdsTest::Redis->new;
    my @two  = map { node($away->address, ' timeout=20ms') } 1, 2;
    ask($_, '/plain', '192.0.2.50') for @two;
    $away->sigstop;
    my $from = '192.0.2.51';
    is join(' ', map { ask($two[0], '/plain', $from)->{status} } 1 .. 6), '200 200 200 200 200 429', 'hung: the limit of one node';
    is join(' ', map { ask($two[1], '/plain', $from)->{status} } 1 .. 6), '200 200 200 200 200 429', 'and of the other';
    $away->sigcont;
    $away->stop;
    $from = '192.0.2.52';
    is join(' ', map { ask($two[0], '/plain', $from)->{status} } 1 .. 6), '200 200 200 200 200 429', 'down: the same';
    my $n = $two[0]->get('/status?format=prometheus')->{body} =~ /^ads_redis_events_total\{event="fallbacks"\} (\d+)/m ? $1 : 0;
    cmp_ok $n, '>', 0, 'which is counted';
    $_->stop for @two;
    is_deeply [ $_->problems(allow => [qr/ads: redis/, qr/ads_rate_limit: more than/]) ], [], 'clean' for @two;
};

subtest 'the rights that docs/redis.md names' => sub {
    my ($rights) = do { open my $in, '<', 'docs/redis.md' or die $!; local $/; <$in> =~ /^ACL SETUSER ads on >PASSWORD ([^\n]*)\n/m };
    my $own  = AdsTest::Redis->new;
    $own->call('ACL', 'SETUSER', 'ads', 'on', '>open', split / /, $rights);
    my $ngx = node($own->address, ' user=ads password_file=' . write_temp('rate.password', "open\n", 0600));
    is join(' ', map { ask($ngx, '/plain')->{status} } 1 .. 6), '200 200 200 200 200 429', 'are enough';
    cmp_ok scalar @{ $own->call('KEYS', 'rate:*') }, '==', 1, 'it counts in Redis';
    is_deeply $own->call('ACL', 'LOG'), [], 'nothing was refused';
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [qr/ads_rate_limit: more than/]) ], [], 'clean';
};

$_->stop for @nodes;
is_deeply [ $_->problems(allow => [qr/ads_rate_limit: more than|ads: redis/]) ], [], 'clean log, exit and reports' for @nodes;

for my $case (
    [ '', 'ads_rate_limit zone=a:1m rate=1 window=1s redis;', qr/ads: "redis" in "ads_rate_limit" requires "ads_redis" in/ ],
    [ 'ads_redis 127.0.0.1;', 'ads_rate_limit zone=a:1m rate=1 window=1s redis; ads_rate_limit zone=b:1m rate=1 window=1s redis;', qr/ads: only one limit of a location may be "redis" in/ ],
    [ 'ads_redis 127.0.0.1;', 'ads_rate_limit zone=a:1m rate=1 window=1s; location /b { ads_rate_limit zone=a redis; }', qr/ads: conflicting parameters for zone "a"/ ],
) {
    my ($http, $server, $says) = @$case;
    my $ngx    = AdsTest::Nginx->new(http => $http, server => $server);
    my $result = $ngx->launch;
    is $result->{ready}, 0, "$server is refused";
    like $result->{stderr} . $ngx->error_log, qr/\[emerg\].*$says/, 'and why';
}
done_testing;
