# Servers that do not do what Redis does: garbage, parts of replies, replies that claim to be huge,
# errors, silence. Each request gets its answer from the caps of the node; the worker neither dies
# nor grows, and connects again when there is a Redis.

use strict;
use warnings;

use lib 't/lib';
use IO::Select ();
use IO::Socket::INET ();
use JSON::PP ();
use Test::More;
use Time::HiRes qw(time);

use AdsTest::Ads;
use AdsTest::Load ();
use AdsTest::Nginx;
use AdsTest::Process qw(free_port);

my %Ad      = (type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/');
my $catalog = catalog({
    placements => [ { id => 'top' } ],
    campaigns  => [ { id => 1, timezone => AdsTest::Clock::noon_zone(),
        ad_groups => [ { id => 1, frequency_caps => [ { count => 2, per => 'day' } ], creatives => [ { id => 11, %Ad } ] } ] } ],
});
my $port = free_port();

# Answers each command with what the file says, until it is told to end.
my $behaviour = write_temp('behaviour', '');
sub serve_bytes {
    my $listener = IO::Socket::INET->new(Listen => 64, LocalAddr => "127.0.0.1:$port", ReuseAddr => 1) or die "cannot listen: $@";
    my $pid      = fork // die $!;
    return $pid if $pid;
    $SIG{PIPE} = 'IGNORE';
    my $all = IO::Select->new($listener);
    while (1) {
        for my $s ($all->can_read) {
            if ($s == $listener) { $all->add(scalar $listener->accept); next }
            my $n = sysread $s, my $data, 65536;
            if (!$n) { $all->remove($s); close $s; next }
            open my $in, '<:raw', $behaviour or next;
            local $/;
            my $text = <$in> // '';
            my $closes = $text =~ s/^close://;
            syswrite $s, $text;
            if ($closes) { $all->remove($s); close $s }
        }
    }
}
my $server = serve_bytes();
END { local $?; kill KILL => $server if $server; waitpid $server, 0 if $server }

my $ngx = AdsTest::Nginx->new(
    http   => http_conf(state => 'logs/state', catalog => write_temp('hostile.json', $catalog), more => "    keepalive_requests 100000;\n    keepalive_timeout 1h;\n    ads_redis 127.0.0.1:$port timeout=50ms;\n"),
    server => locations() . "ads_consent off;\nads_session_cookie spot;\n",
)->start;
my $conn     = $ngx->connection;
my ($worker) = $ngx->worker_pids;
my $Sessions = 0;

sub ask {
    my ($session) = @_;
    my $res = $conn->request('GET', '/spot/serve?placement=top', { Cookie => sprintf 'spot=%032x', $session });
    die "$res->{status} $res->{body}" if $res->{status} != 200;
    return scalar @{ JSON::PP::decode_json($res->{body})->{ads} };
}

sub metric {
    my ($event) = @_;
    my $body = $ngx->get('/status?format=prometheus')->{body};
    return $body =~ /^ads_redis_events_total\{event="$event"\} (\d+)/m ? $1 : die "no $event";
}

sub behave {
    my ($text) = @_;
    open my $out, '>:raw', "$behaviour.new" or die $!;
    print {$out} $text;
    close $out;
    rename "$behaviour.new", $behaviour or die $!;
    return;
}

my %replies = (
    'garbage'                        => "GET / HTTP/1.1\r\n\r\n",
    'zeros'                          => "\0" x 1000,
    'a bulk string of 512 MB'        => '$536870912' . "\r\n" . 'x' x 60_000,
    'an array of two billion'        => "*2147483647\r\n",
    'a negative array'               => "*-7\r\n",
    'arrays in arrays'               => "*1\r\n" x 20,
    'an endless line'                => '+' . 'x' x 60_000,
    'a number that is none'          => ":12x4\r\n",
    'too many replies'               => ":1\r\n" x 50,
    'too large a reply'              => "*1\r\n\$70000\r\n" . 'x' x 70_000 . "\r\n",
    'a closed connection'            => 'close:',
);
my %errors = (
    'LOADING'   => "-LOADING Redis is loading the dataset in memory\r\n",
    'READONLY'  => "-READONLY You can't write against a read only replica.\r\n",
    'OOM'       => "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    'WRONGTYPE' => "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
    'NOAUTH'    => "-NOAUTH Authentication required.\r\n",
    'a string'  => "+OK\r\n",
    'an empty array'           => "*0\r\n",
    'an array of strings'      => "*1\r\n+1\r\n",
    'a number out of range'    => "*1\r\n:99\r\n",
    'a part of a reply'        => "*1\r\n:",
    'nothing'                  => '',
);

ask(++$Sessions) for 1 .. 3;
my $before = AdsTest::Load::memory($worker);

for my $name (sort keys %replies) {
    behave($replies{$name});
    my $failures = metric('failures');
    wait_until { ask(++$Sessions) == 1 or die 'no ad'; metric('failures') > $failures } 30, "that $name drops the connection";
    my $session = ++$Sessions;
    is_deeply [ map { ask($session) } 1 .. 3 ], [ 1, 1, 0 ], "$name: the caps of the node";
}
for my $name (sort keys %errors) {
    behave($errors{$name});
    for (1 .. 3) {
        my $session = ++$Sessions;
        my @got     = map { ask($session) } 1 .. 3;
        # A number out of range names no candidate: nothing is granted.
        ok $got[0] + $got[1] + $got[2] <= 2, "$name: no more than the cap";
    }
}

subtest 'reconnecting again and again' => sub {
    behave("close:*1\r\n:1\r\n");
    my $n    = AdsTest::Load::long() ? 1000 : 25;
    my $from = metric('connects');
    wait_until { ask(++$Sessions); metric('connects') >= $from + $n } 5 * $n, "$n connections";
    my $after = AdsTest::Load::memory($worker);
    cmp_ok $after->{fds}, '<=', $before->{fds} + 1, 'no descriptor is left';
    cmp_ok $after->{anon}, '<', $before->{anon} + 4096, 'memory stays as it was' or diag explain $before, $after;
};

is_deeply [ ($ngx->worker_pids)[0] ], [$worker], 'one worker has lived through it';
$ngx->stop;
is_deeply [ $ngx->problems(allow => [qr/ads: redis/]) ], [], 'clean log, exit and reports';
done_testing;
