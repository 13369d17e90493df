# nginx-ads privacy and Redis: what nodes have noted of a visitor is exported and erased, whichever
# key of the ring has made its name, on one server, by a user with no more than its rights, by TLS
# and in a cluster. A server that cannot be reached is an error, before anything is changed.

use strict;
use warnings;

use lib 't/lib';
use Cwd qw(abs_path);
use IO::Socket::INET ();
use JSON::PP ();
use Test::More;

use AdsTest::Ads;
use AdsTest::Command;
use AdsTest::Nginx;
use AdsTest::Postgres;
use AdsTest::Process qw(free_port);
use AdsTest::Redis;

my $catalog = write_temp('erase.json', catalog({
    placements => [ { id => 'top' } ],
    campaigns  => [ { id => 7, timezone => AdsTest::Clock::noon_zone(), ad_groups => [ {
        id => 12, frequency_caps => [ { count => 3, per => 'day' }, { count => 40, per => 'lifetime', level => 'campaign' } ],
        creatives => [ { id => 31, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/' } ],
    } ] } ],
}));
my ($old, $new) = (write_temp('old.keys', secret_text(1), 0600), write_temp('new.keys', secret_text(2, 1), 0600));
my ($rights)    = read_file('docs/redis.md') =~ /^ACL SETUSER ads-privacy on >PASSWORD (.*)$/m or die 'no rights in docs/redis.md';
my $redis       = AdsTest::Redis->new;
my $pg          = AdsTest::Postgres->new;
$pg->migrate;
my @database = ('--database', $pg->conninfo, '--as', 'officer');
my %Session  = (anna => 'a1b2c3d4e5f60718293a4b5c6d7e8f90', bert => 'b0e1d2c3b4a5968778695a4b3c2d1e0f');
my @anna     = ('--session', $Session{anna}, '--secret', $new);

sub node {
    my ($secret) = @_;
    return AdsTest::Nginx->new(
        http   => http_conf(state => 'logs/state', catalog => $catalog, secret => $secret, more => '    ads_redis ' . $redis->address . " timeout=1s prefix=a:;\n"),
        server => locations() . "ads_consent off;\nads_session_cookie spot;\n",
    )->start;
}

# How often somebody is shown the ad, which is three times.
sub shown {
    my ($ngx, $who, $times) = @_;
    my $n = 0;
    $n += $ngx->get('/spot/serve?placement=top', { Cookie => "spot=$Session{$who}" })->{body} =~ /"creative":31/ for 1 .. $times;
    return $n;
}

sub json { return JSON::PP->new->utf8->decode($out) }
sub keys_of { my ($at) = @_; return scalar @{ $at->call('KEYS', '*freq:*') } }

my $home_folder = in_folder();
before('privacy');
my $begun = time;
my $first = node($old);
wait_until { keys_of($redis) || shown($first, 'bert', 1) } 30, 'Redis to be used';
my $second = node($new);
is shown($first, 'anna', 2) + shown($second, 'anna', 4), 5, 'with another key a visitor is somebody else';
shown($second, 'bert', 1);
is keys_of($redis), 4, 'and has another name in Redis';

my @redis = ('--redis', $redis->address, '--redis-prefix', 'a:');
subtest 'one server' => sub {
    is run('export', @anna, @redis, @database), 0, 'export' or diag $err;
    my @seen = sort { "$a->{level}$a->{serves}" cmp "$b->{level}$b->{serves}" } @{ json()->{redis} };
    is_deeply [ map { "$_->{level} $_->{id} $_->{serves}" } @seen ], [ 'ad_group 12 2', 'ad_group 12 3', 'campaign 7 2', 'campaign 7 3' ], 'has what was noted, by each key of the ring';
    is scalar(grep { $_->{newest} < $begun || $_->{newest} > time } @seen), 0, 'with times';
    is run('erase', @anna, '--redis', $redis->address, '--json', @database), 0, 'with another prefix';
    is json()->{redis}, 0, 'there is nothing';
    is run('erase', @anna, @redis, @database), 0, 'erase' or diag $err;
    is $out, "erased: 0 events and 0 trials in PostgreSQL, 0 events in the spool, 0 entries of frequency caps, 2 keys in Redis\n", 'says what it did';
    is keys_of($redis), 2, 'others stay';
    is $pg->value(q{SELECT after ->> 'redis' FROM ads.audit_log WHERE action = 'erase' ORDER BY id DESC LIMIT 1}), 2, 'the log says that Redis was reached';
    is run('erase', @anna, @database), 0, 'without --redis';
    is $pg->value(q{SELECT after ? 'redis' FROM ads.audit_log WHERE action = 'erase' ORDER BY id DESC LIMIT 1}), 'f', 'it says that it was not';
    my $third = node($old);
    is shown($third, 'anna', 4), 3, 'a node that has not seen her shows it to her as to a new visitor';
    is run('erase', @anna, @redis, '--files-only', '--json'), 0, 'once more, without PostgreSQL';
    is json()->{redis}, 1, 'erases that';
};
$_->stop for $first, $second;

# One of his.
my $name  = $redis->call('KEYS', '*freq:*')->[0];
my @pairs = @{ $redis->call('HGETALL', $name) };

subtest 'users and sockets' => sub {
    $redis->call('ACL', 'SETUSER', 'privacy', 'on', '>open', map { s/^~/~a:/r } split / /, $rights);
    my ($right, $wrong) = map { write_temp($_, "$_\n", 0600) } qw(open shut);
    my @bert = ('--session', $Session{bert}, '--secret', $new, '--files-only', '--redis-prefix', 'a:');
    is run('export', @bert, '--redis', $redis->address, '--redis-user', 'privacy', '--redis-password-file', $right), 0, 'a user with its rights exports' or diag $err;
    is scalar @{ json()->{redis} } > 0, 1, 'what there is';
    is run('erase', @bert, '--redis', $redis->address, '--redis-user', 'privacy', '--redis-password-file', $wrong), 3, 'not with a wrong password';
    like $err, qr/redis "127\.0\.0\.1:\d+" refuses the user\./, 'it says why';
    unlike $err, qr/shut\n/, 'without the password';
    $redis->call('ACL', 'SETUSER', 'reader', 'on', '>open', '~*', '+hgetall');
    is run('erase', @bert, '--redis', $redis->address, '--redis-user', 'reader', '--redis-password-file', $right), 3, 'nor without the right to delete';
    like $err, qr/redis refused DEL: NOPERM/, 'it says why';
    my $dead = '127.0.0.1:' . free_port();
    is run('erase', @bert, '--redis', $dead, '--redis', 'unix:' . $redis->dir . '/redis.sock', '--redis-user', 'privacy', '--redis-password-file', $right, '--json'), 0,
        'by a socket, after an address where nobody is' or diag $err;
    is json()->{redis}, 2, 'erases';
    is keys_of($redis), 0, 'all';
    is scalar(grep { my %of = @$_; $of{username} eq 'privacy' && $of{reason} ne 'auth' } @{ $redis->call('ACL', 'LOG') }), 0, 'with the rights of docs/redis.md';
};

subtest 'what cannot be reached' => sub {
    my $logged = $pg->value('SELECT count(*) FROM ads.audit_log');
    my $marked = $pg->value('SELECT count(*) FROM ads.erasures');
    my @bert   = ('--session', $Session{bert}, '--secret', $new, @database);
    my $nobody = free_port();
    is run('erase', @bert, '--redis', "127.0.0.1:$nobody"), 3, 'nobody is there';
    like $err, qr/redis "127\.0\.0\.1:$nobody" cannot be reached: Connection refused\./, 'it says so';
    $redis->sigstop;
    is run('erase', @bert, @redis), 3, 'a server that does not answer';
    like $err, qr/redis "\S+" does not answer in time\./, 'it says so';
    $redis->sigcont;
    is run('erase', @bert, '--redis', 'unix:/nowhere/redis.sock'), 3, 'a socket that is not there';
    like $err, qr{redis "unix:/nowhere/redis\.sock" cannot be reached: No such file}, 'it says so';
    # What a server sends is not trusted.
    for my $bytes ("garbage\r\n", "\$536870912\r\n", "*1000000\r\n", "+OK\r\n+OK\r\n+OK\r\n", ":1\r\n\$5\r\nab", '') {
        my $listener = IO::Socket::INET->new(Listen => 4, LocalAddr => '127.0.0.1') or die $@;
        my $pid      = fork // die $!;
        if (!$pid) {
            my $s = $listener->accept;
            sysread $s, my $data, 65536;
            syswrite $s, $bytes;
            POSIX::_exit(0);
        }
        is run('erase', @bert, '--redis', '127.0.0.1:' . $listener->sockport), 3, 'a server that sends ' . JSON::PP->new->allow_nonref->encode($bytes);
        like $err, qr/has sent an invalid reply|has closed the connection/, 'is an error';
        waitpid $pid, 0;
    }
    is $pg->value('SELECT count(*) FROM ads.audit_log'), $logged, 'nothing was logged';
    is $pg->value('SELECT count(*) FROM ads.erasures'),  $marked, 'and nothing was erased';
    for my $wrong (
        [ qr/--redis requires --secret/,                     '--session', $Session{bert}, '--redis', 'a' ],
        [ qr/require --redis\./,                             @bert, '--redis-prefix', 'a' ],
        [ qr/--redis-user requires --redis-password-file/,   @bert, '--redis', 'a', '--redis-user', 'b' ],
        [ qr/require --redis-tls/,                           @bert, '--redis', 'a', '--redis-ca', 'b' ],
        [ qr/--redis-tls requires --redis-server-name/,      @bert, '--redis', '127.0.0.1:1', '--redis-tls' ],
        [ qr/--redis-cert and --redis-key require each/,     @bert, '--redis', 'a', '--redis-tls', '--redis-cert', 'b' ],
        )
    {
        my ($message, @arguments) = @$wrong;
        is run('erase', @arguments), 2, "@arguments[-2, -1]";
        like $err, $message, 'is refused with a reason';
    }
};

subtest 'TLS' => sub {
    my $made = system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=redis.example -addext 'subjectAltName=DNS:redis.example' -keyout tls.key -out tls.pem >/dev/null 2>&1") == 0;
    plan skip_all => 'no openssl' unless $made;
    my ($pem, $private) = map { abs_path($_) } 'tls.pem', 'tls.key';
    my $port = free_port();
    my $tls  = eval { AdsTest::Redis->new(settings => [ '--tls-port', $port, '--tls-cert-file', $pem, '--tls-key-file', $private, '--tls-ca-cert-file', $pem ]) };
    plan skip_all => 'redis-server has no TLS' unless $tls;
    $tls->call('HSET', $name, @pairs);
    my @bert = ('--session', $Session{bert}, '--secret', $new, '--files-only', '--redis-prefix', 'a:', '--redis', "127.0.0.1:$port", '--redis-tls', '--redis-cert', $pem, '--redis-key', $private);
    is run('erase', @bert, '--redis-ca', $pem, '--redis-server-name', 'other.example'), 3, 'not with another name';
    like $err, qr/certificate that is not valid for server_name/, 'it says why';
    is run('erase', @bert, '--redis-server-name', 'redis.example'), 3, 'nor with an unknown authority';
    is run('erase', @bert, '--redis-ca', $pem, '--redis-server-name', 'redis.example', '--json'), 0, 'but with the right one' or diag $err;
    is json()->{redis}, 1, 'it erases';
};

subtest 'a cluster' => sub {
    my @nodes = map { AdsTest::Redis->new(settings => [ '--cluster-enabled', 'yes', '--cluster-node-timeout', 2000 ]) } 1, 2;
    my @ids   = map { $_->call('CLUSTER', 'MYID') } @nodes;
    $nodes[0]->call('CLUSTER', 'ADDSLOTSRANGE', 0, 8191);
    $nodes[1]->call('CLUSTER', 'ADDSLOTSRANGE', 8192, 16383);
    $nodes[1]->call('CLUSTER', 'SET-CONFIG-EPOCH', 2);
    $nodes[0]->call('CLUSTER', 'MEET', '127.0.0.1', $nodes[1]->port);
    wait_until { !grep { $_->call('CLUSTER', 'INFO') !~ /cluster_state:ok.*cluster_known_nodes:2/s } @nodes } 30, 'the cluster';
    my $slot  = $nodes[0]->call('CLUSTER', 'KEYSLOT', $name);
    my $owner = $slot < 8192 ? 0 : 1;
    my @bert  = ('--session', $Session{bert}, '--secret', $new, '--files-only', '--redis-prefix', 'a:', '--json');
    for my $asked (0, 1) {
        $nodes[$owner]->call('HSET', $name, @pairs);
        is run('erase', @bert, '--redis', $nodes[$asked]->address), 0, "asked of node $asked" or diag $err;
        is json()->{redis}, 1, 'the right one erases';
    }
    # The slot is on its way to the other node, and the key has arrived there.
    my $to = 1 - $owner;
    $nodes[$to]->call('CLUSTER', 'SETSLOT', $slot, 'IMPORTING', $ids[$owner]);
    $nodes[$owner]->call('CLUSTER', 'SETSLOT', $slot, 'MIGRATING', $ids[$to]);
    my $at = $nodes[$to]->connect;
    $at->call('ASKING');
    $at->call('HSET', $name, @pairs);
    is run('export', @bert[ 0 .. $#bert - 1 ], '--redis', $nodes[$to]->address), 0, 'while its slot migrates' or diag $err;
    is scalar @{ json()->{redis} }, @pairs / 2, 'it is found';
    is run('erase', @bert, '--redis', $nodes[$to]->address), 0, 'and erased' or diag $err;
    is json()->{redis}, 1, 'where it is';
};

done_testing;
