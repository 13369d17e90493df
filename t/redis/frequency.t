# Frequency caps of a fleet: nodes with states of their own and one Redis. A cap holds over all of
# them, and each decision with capped candidates left costs one round trip.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Ads;
use AdsTest::Nginx;
use AdsTest::Redis;

my $redis = AdsTest::Redis->new;
my %Ad    = (type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/');
my $zone  = AdsTest::Clock::noon_zone();    # no test sees the day end

sub cap { my ($count, $per, $level) = @_; return { count => $count, per => $per, $level ? (level => $level) : () } }

sub group {
    my ($id, $placement, $caps, $creatives, %o) = @_;
    return {
        id        => $id, frequency_caps => $caps, targeting => { placements => [ split / /, $placement ] },
        creatives => [ map { { id => $id * 10 + $_, %Ad } } 1 .. $creatives // 1 ], %o,
    };
}

my @slots   = qw(day hour many tier free two-a two-b left right wall same other campaign creative);
my $catalog = catalog({
    placements => [ map { { id => $_ } } @slots ],
    campaigns  => [
        {   id => 1, timezone => $zone, ad_groups => [
                group(1, 'day', [ cap(3, 'day') ]), group(2, 'hour', [ cap(2, '1h'), cap(5, 'lifetime') ]), group(3, 'many', [ cap(40, 'day') ]),
                # Whoever has seen the first gets the second, and then the house's.
                group(11, 'tier', [ cap(1, 'day') ], 1, priority => 'sponsorship'), group(12, 'tier', [ cap(1, 'day') ]),
                group(13, 'tier', [], 1, priority => 'house'), group(14, 'free', []),
                group(21, 'two-a two-b', [ cap(1, 'day') ]), group(22, 'two-a two-b', [], 2, priority => 'house'),
                group(31, 'left', [ cap(1, 'day') ], 1, together => 'skin'), group(32, 'right', [], 1, together => 'skin', targeting => { placements => ['right'], keys => { both => ['1'] } }),
                group(41, 'wall', [ cap(5, 'day') ], 1, pacing => { strategy => 'asap', daily_impression_cap => 2 }),
                group(51, 'creative', [ cap(1, 'day', 'creative') ], 2),
            ] },
        { id => 2, timezone => $zone, ad_groups => [ group(61, 'same', [ cap(2, 'day', 'campaign') ]), group(62, 'other', [ cap(2, 'day', 'campaign') ]) ] },
    ],
});
my $path   = write_temp('fleet.json', $catalog);
my $secret = write_temp('fleet.keys', secret_text(1), 0600);

sub node {
    my (%o) = @_;
    my $ngx = AdsTest::Nginx->new(
        workers => $o{workers} // 1,
        http    => http_conf(
            state => 'logs/state', catalog => $path, secret => $secret,
            more => "    keepalive_requests 100000;\n    keepalive_timeout 1h;\n    ads_redis " . ($o{redis} // $redis->address . ' timeout=1s') . ";\n"),
        server => locations() . "ads_consent \$arg_c;\nads_session_cookie spot;\nads_explain on;\nlocation = /metrics { ads_status; }\n",
    )->start;
    return { ngx => $ngx, conn => $ngx->connection };
}

my $Sessions = 0;
sub session { return sprintf '%032x', ++$Sessions }

sub raw {
    my ($node, $query, $session) = @_;
    my $res = $node->{conn}->request('GET', "/spot/serve?placement=$query&c=" . (defined $session ? 1 : ''), defined $session ? { Cookie => "spot=$session" } : {});
    die "$query: $res->{status} $res->{body}" if $res->{status} != 200;
    return JSON::PP::decode_json($res->{body});
}

# The ad groups that a session gets.
sub ask { return [ map { $_->{ad_group} } @{ raw(@_)->{ads} } ] }

sub calls {
    my ($command) = @_;
    $command //= 'eval(?:sha)?';
    my $text = $redis->call('INFO', 'commandstats');
    my $n    = 0;
    $n += $1 while $text =~ /cmdstat_$command:calls=(\d+)/g;
    return $n;
}

my @nodes = map { node() } 1 .. 3;

subtest 'a cap holds over all nodes' => sub {
    my $s = session();
    is_deeply [ map { ask($nodes[ $_ % 3 ], 'day', $s) } 0 .. 5 ], [ [1], [1], [1], [], [], [] ], 'three a day, wherever they are';
    $s = session();
    is_deeply [ map { ask($nodes[ $_ % 3 ], 'hour', $s) } 0 .. 3 ], [ [2], [2], [], [] ], 'two an hour';
    $s = session();
    is scalar(grep { @{ ask($nodes[ $_ % 3 ], 'many', $s) } } 1 .. 60), 40, 'forty a day';
    $s = session();
    is_deeply [ map { ask($nodes[ $_ % 3 ], $_ % 2 ? 'same' : 'other', $s)->[0] } 0 .. 4 ], [ 62, 61, undef, undef, undef ], 'of a campaign';
    $s = session();
    my %seen;
    $seen{$_}++ for map { map { $_->{creative} } @{ raw($nodes[ $_ % 3 ], 'creative', $s)->{ads} } } 0 .. 20;
    is_deeply \%seen, { 511 => 1, 512 => 1 }, 'each creative once';
};

subtest 'one key for each session, which says nothing of it' => sub {
    my $s = session();
    ask($nodes[0], 'day', $s);
    ask($nodes[0], 'hour', $s);
    my @keys = @{ $redis->call('KEYS', '*') };
    is scalar(grep { !/^freq:\{[0-9a-f]{16}\}$/ } @keys), 0, 'freq:{hash}';
    is scalar(grep { /\Q$s/ } @keys), 0, 'not the cookie';
    is scalar @keys, $Sessions, 'one for each that was asked for';
    my %ttl = map { $_ => $redis->call('TTL', $_) } @keys;
    is scalar(grep { $_ <= 0 } values %ttl), 0, 'all expire';
};

subtest 'the next candidate is in the same call' => sub {
    my $s = session();
    ask($nodes[1], 'tier', $s);
    my $before = calls();
    is_deeply ask($nodes[0], 'tier', $s), [12], 'the first was seen on another node';
    is calls() - $before, 1, 'one call';
    is_deeply ask($nodes[2], 'tier', $s), [13], 'then the one without a cap';
    is calls() - $before, 2, 'one call';
    is_deeply ask($nodes[0], 'tier', $s), [13], 'on the node that knows one of two caps';
    is calls() - $before, 3, 'one call';
};

subtest 'no call where none is needed' => sub {
    my $s = session();
    ask($nodes[0], 'day', $s) for 1 .. 3;
    my $before = calls();
    ask($nodes[0], 'free', $s) for 1 .. 3;
    ask($nodes[0], 'day', $s)  for 1 .. 3;
    ask($nodes[0], 'day') for 1 .. 3;
    is calls() - $before, 0, 'no cap, a cap that the node knows of, a visitor without a session';
    is_deeply ask($nodes[0], 'day'), [1], 'who has no key';
};

subtest 'a page' => sub {
    my $s      = session();
    my $before = calls();
    my @page   = map { ask($nodes[$_], 'two-a,two-b', $s) } 0 .. 2;
    is scalar(grep { $_ == 21 } map { @$_ } @page), 1, 'a cap of one holds within a page and over nodes';
    is_deeply [ map { scalar @$_ } @page ], [ 2, 2, 2 ], 'and both places are filled';
    is calls() - $before, 3, 'one call a page';
};

subtest 'what is not served is given back' => sub {
    my $s     = session();
    my $hdels = sub { $redis->call('INFO', 'commandstats') =~ /cmdstat_hdel:calls=(\d+)/ ? $1 : 0 };
    my $given = $hdels->();
    is_deeply ask($nodes[0], 'left,right', $s), [], 'half of a set';
    wait_until { $hdels->() > $given } 30, 'the release';
    is_deeply ask($nodes[1], 'left,right&kv.both=1', $s), [ 31, 32 ], 'counts for nothing, on another node';
    is_deeply ask($nodes[2], 'left,right&kv.both=1', $s), [], 'the whole set counts';
    $s = session();
    my @got = map { @{ ask($nodes[0], 'wall', $s) } } 1 .. 4;
    is_deeply \@got, [ 41, 41 ], 'the cap on impressions is reached';
    is_deeply [ map { @{ ask($nodes[1], 'wall', $s) } } 1 .. 2 ], [ 41, 41 ], 'its refusals were not counted';
};

subtest 'reasons' => sub {
    my $s = session();
    ask($nodes[0], 'day', $s) for 1 .. 3;
    my $debug = raw($nodes[1], 'day&debug=1', $s)->{debug};
    is_deeply $debug, [ { placement => 'day', candidates => [ { ad_group => 1, reason => 'frequency' } ] } ], 'as on one node';
};

subtest 'Redis forgets its scripts' => sub {
    my $s = session();
    ask($nodes[0], 'day', $s);
    $redis->call('SCRIPT', 'FLUSH');
    is_deeply [ map { ask($nodes[$_], 'day', $s) } 1, 2, 0 ], [ [1], [1], [] ], 'they are sent again';
};

subtest 'Redis restarts' => sub {
    $redis->restart;
    my $s = session();
    for my $node (@nodes) {
        # Notes that are written again are EVAL.
        wait_until { my $before = calls('evalsha'); ask($node, 'day', session()); calls('evalsha') > $before } 30, 'a call of each node';
    }
    is_deeply [ map { ask($nodes[ $_ % 3 ], 'day', $s) } 0 .. 3 ], [ [1], [1], [1], [] ], 'and the cap holds';
};

subtest 'without Redis' => sub {
    my $stopped = AdsTest::Redis->new;
    my @two     = map { node(redis => $stopped->address . " timeout=20ms$_") } '', ' on_error=no_ad';
    ask($_, 'day', session()) for @two;
    $stopped->sigstop;
    my $s = session();
    is_deeply [ map { ask($two[0], 'day', $s) } 1 .. 4 ], [ [1], [1], [1], [] ], 'local: the caps of the node';
    is_deeply ask($two[1], 'day', $s), [], 'no_ad: nothing that has a cap';
    is_deeply ask($two[1], 'tier', $s), [13], 'but what has none';
    $stopped->sigcont;
    $s = session();
    wait_until { ask($two[1], 'day', session())->[0] } 30, 'the end of the pause';
    $stopped->stop;
    is_deeply [ map { ask($two[0], 'day', $s) } 1 .. 4 ], [ [1], [1], [1], [] ], 'local, with the server down';
    is_deeply ask($two[1], 'day', session()), [], 'no_ad';
    $stopped->start;
    wait_until { ask($two[1], 'day', session())->[0] } 30, 'the next connection';
    $_->{ngx}->stop for @two;
    is_deeply [ $_->{ngx}->problems(allow => [qr/ads: redis/]) ], [], 'clean' for @two;
};

subtest 'a unix socket' => sub {
    my $unix = AdsTest::Redis->new(socket => 1);
    my @two  = map { node(redis => $unix->address . ' timeout=1s prefix=shop:') } 1, 2;
    my $s    = session();
    is_deeply [ map { ask($two[ $_ % 2 ], 'day', $s) } 0 .. 3 ], [ [1], [1], [1], [] ], 'the same';
    like $unix->call('KEYS', '*')->[0], qr/^shop:freq:\{/, 'with a prefix';
    $_->{ngx}->stop for @two;
    is_deeply [ $_->{ngx}->problems ], [], 'clean' for @two;
};

subtest 'reloads' => sub {
    my $s = session();
    ask($nodes[0], 'day', $s);
    # A worker that has accepted a connection without a request on it would not end for a minute.
    $nodes[0]{ngx}->reload(wait_old => 1) for 1 .. 3;
    $nodes[0]{conn} = $nodes[0]{ngx}->connection;
    is_deeply [ map { ask($nodes[$_], 'day', $s) } 0, 1, 0 ], [ [1], [1], [] ], 'change nothing';
};

$_->{ngx}->stop for @nodes;
is_deeply [ $_->{ngx}->problems(allow => [qr/ads: redis .*(closed the connection|answers again|cannot be reached)/]) ], [], 'clean log, exit and reports' for @nodes;
done_testing;
