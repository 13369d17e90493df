# Servers that do not do what Redis does: garbage, parts of replies, replies that claim to be huge,
# errors, silence. Each request gets its answer from the caps of the node; the worker neither dies
# nor grows, and connects again when there is a Redis.

use strict;
use warnings;

use lib 't/lib';
use IO::Select ();
use IO::Socket::INET ();
use Fcntl qw(O_NONBLOCK);
use JSON::PP ();
use Test::More;
use Time::HiRes qw(time);

use AdsTest::Ads;
use AdsTest::Load ();
use AdsTest::Nginx;
use AdsTest::Process qw(free_port);
use AdsTest::Strace;

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

my ($ngx, $conn, $worker);

sub start {
    my ($address) = @_;
    $ngx = AdsTest::Nginx->new(
        http   => http_conf(state => 'logs/state', catalog => write_temp('hostile.json', $catalog), more => "    keepalive_requests 100000;\n    keepalive_timeout 1h;\n    ads_redis $address timeout=50ms;\n"),
        server => locations() . "ads_consent off;\nads_session_cookie spot;\n",
    )->start;
    $conn = $ngx->connection;
    ($worker) = $ngx->worker_pids;
    return;
}

sub ends_clean {
    is_deeply [ ($ngx->worker_pids)[0] ], [$worker], 'one worker has lived through it';
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [qr/ads: redis/]) ], [], 'clean log, exit and reports';
    return;
}

start("127.0.0.1:$port");
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
    for (1 .. 100 * $n) {
        last if metric('connects') >= $from + $n;
        ask(++$Sessions) for 1 .. 5;
    }
    cmp_ok metric('connects'), '>=', $from + $n, "$n connections";
    my $after = AdsTest::Load::memory($worker);
    cmp_ok $after->{fds}, '<=', $before->{fds} + 1, 'no descriptor is left';
    cmp_ok $after->{anon}, '<', $before->{anon} + 4096, 'memory stays as it was' or diag explain $before, $after;
};

# Sockets of the worker that a read or a write could block.
sub blocking_sockets {
    my @found;
    for my $fd (glob "/proc/$worker/fd/*") {
        next if (readlink $fd // '') !~ /^socket:/;
        open my $in, '<', $fd =~ s{/fd/}{/fdinfo/}r or next;
        local $/;
        my ($flags) = <$in> =~ /^flags:\s*(\d+)/m;
        push @found, readlink $fd if !(oct($flags) & O_NONBLOCK);
    }
    return @found;
}

subtest 'a Redis that hangs' => sub {
    behave('');
    # One reply at least is due.
    wait_until { my $n = metric('timeouts'); ask(++$Sessions); metric('timeouts') > $n } 30, 'a timeout';
    my $strace = AdsTest::Strace->attach($worker, '-e', 'trace=poll,ppoll,select,pselect6,nanosleep,clock_nanosleep,futex,fsync,fdatasync,flock,connect,epoll_wait,epoll_pwait');
    my ($before, $n, $longest) = (metric('fallbacks'), 30, 0);
    for (1 .. $n) {
        my $from = time;
        is ask(++$Sessions), 1, 'an ad by the caps of the node' or last;
        $longest = time - $from if time - $from > $longest;
    }
    wait_until { metric('fallbacks') - $before >= $n } 30, 'the metrics' and pass 'each of them without a reply';
    is_deeply [ blocking_sockets() ], [], 'no socket of the worker blocks';
    $strace->detach;
    my ($text, %calls) = $strace->text;
    $calls{$1}++ while $text =~ /^\d+\s+(\w+)\(/mg;
    cmp_ok delete($calls{epoll_wait}) // delete $calls{epoll_pwait}, '>', 0, 'the worker waits for events';
    delete $calls{futex} if $text !~ /FUTEX_WAIT/;    # the keeper's bell
    my $finished = grep { !/EINPROGRESS|= 0/ } $text =~ /^\d+\s+connect\(.*$/mg;
    is $finished, 0, 'connecting does not wait';
    delete $calls{connect};
    is_deeply \%calls, {}, 'and for nothing else' or diag $text;
    note sprintf 'the longest answer took %.1f ms with a deadline of 50 ms, under strace', 1000 * $longest;
};
ends_clean();

# The same as a cluster, whose servers send commands elsewhere.
start("cluster 127.0.0.1:$port");
ask(++$Sessions) for 1 .. 3;
$before = AdsTest::Load::memory($worker);
my $other = free_port();    # nobody is there
my %cluster = (
    'MOVED to itself'          => "-MOVED 7 127.0.0.1:$port\r\n",
    'MOVED to nobody'          => "-MOVED 7 127.0.0.1:$other\r\n",
    'MOVED to many'            => join('', map {"-MOVED $_ 127.0.0.$_:$other\r\n"} 1 .. 100),
    'MOVED to a name'          => "-MOVED 7 redis.example:6379\r\n",
    'MOVED without an address' => "-MOVED 7\r\n",
    'MOVED to the sender'      => "-MOVED 7 :$port\r\n",
    'ASK at itself'            => "-ASK 7 127.0.0.1:$port\r\n-ASK 7 127.0.0.1:$port\r\n",
    'ASK at nobody'            => "-ASK 7 127.0.0.1:$other\r\n",
    'TRYAGAIN'                 => "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    'CLUSTERDOWN'              => "-CLUSTERDOWN Hash slot not served\r\n",
    'slots of nobody'          => "*0\r\n",
    'slots out of range'       => "*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n+127.0.0.1\r\n:$port\r\n",
    'all slots at itself'      => "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n+127.0.0.1\r\n:$port\r\n",
    'many servers'             => '*200' . join('', map {"\r\n*3\r\n:$_\r\n:$_\r\n*2\r\n+127.0.0.1\r\n:" . (20_000 + $_)} 0 .. 199) . "\r\n",
    'a reply without an end'   => '*60000' . "\r\n:1" x 5000,
    'garbage'                  => "\0\1\2" x 100,
);
for my $name (sort keys %cluster) {
    behave($cluster{$name});
    for (1 .. 2) {
        my $session = ++$Sessions;
        my @got     = map { ask($session) } 1 .. 3;
        ok $got[0] + $got[1] + $got[2] <= 2, "$name: an answer each time, and no more than the cap";
    }
}
my $after = AdsTest::Load::memory($worker);
cmp_ok $after->{fds}, '<=', $before->{fds} + 70, 'no more connections than a cluster may have masters';
cmp_ok $after->{anon}, '<', $before->{anon} + 16_384, 'memory is bounded' or diag explain $before, $after;
ends_clean();
done_testing;
