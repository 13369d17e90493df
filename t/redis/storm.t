# A storm of sessions on nodes at random, many at once: no session is above its cap, and none
# below. In the long form 10,000 sessions.

use strict;
use warnings;

use lib 't/lib';
use Test::More;

use AdsTest::Ads;
use AdsTest::Load ();
use AdsTest::Nginx;
use AdsTest::Redis;

my $sessions = AdsTest::Load::long() ? 10_000 : 400;
my $Nodes    = 3;
my $redis    = AdsTest::Redis->new;
my $catalog  = write_temp('storm.json', catalog({
    placements => [ { id => 'top' } ],
    campaigns  => [ { id => 1, timezone => AdsTest::Clock::noon_zone(), ad_groups => [
        { id => 1, frequency_caps => [ { count => 3, per => 'day' } ],
          creatives => [ { id => 11, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/' } ] } ] } ],
}));
my $secret = write_temp('storm.keys', secret_text(1), 0600);
my @nodes  = map {
    AdsTest::Nginx->new(
        workers => 2,
        http    => http_conf(state => 'logs/state', catalog => $catalog, secret => $secret, more => "    keepalive_requests 1000000;\n    ads_redis " . $redis->address . " timeout=1s;\n"),
        server  => locations() . "ads_consent off;\nads_session_cookie spot;\n",
    )->start
} 1 .. $Nodes;

# What gives each request its cookie, and sends it to any of the nodes.
my $front = AdsTest::Nginx->new(
    http   => 'upstream nodes { random; ' . join('', map { 'server 127.0.0.1:' . $_->port . ';' } @nodes) . ' keepalive 32; }',
    server => 'location = /spot/serve { proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Cookie "spot=$arg_s"; proxy_pass http://nodes; }',
)->start;

# Five requests of each session, of which neighbours are near each other.
my @paths;
for my $first (0 .. $sessions / 20 - 1) {
    my @some = map { my $s = $_; map { sprintf '/spot/serve?placement=top&s=%032x', $first * 20 + $s } 1 .. 5 } 1 .. 20;
    while (@some) { push @paths, splice @some, rand @some, 1 }
}
my $result = AdsTest::Load->start($front, connections => 24, keepalive => 1, next => AdsTest::Load::each_of(@paths))->wait_end;
is scalar @{ $result->{failed} }, 0, 'every request has an answer' or diag explain [ @{ $result->{failed} }[ 0 .. 2 ] ];

is scalar(grep { $_->[1] == 200 } @{ $result->{answered} }), 5 * $sessions, 'and a good one';

my %served;
for my $ngx (@nodes, $front) { $ngx->stop }
for my $ngx (@nodes) {
    $served{ $_->{session} }++ for grep { $_->{type} eq 'serve' } events($ngx->path('logs/spool'));
}
is scalar(keys %served), $sessions, 'sessions';
is scalar(grep { $_ > 3 } values %served), 0, 'none above its cap';
is scalar(grep { $_ < 3 } values %served), 0, 'none below';
is_deeply [ $_->problems ], [], 'clean log, exit and reports' for @nodes;
done_testing;
