# Users with no more than their rights, passwords, and TLS.

use strict;
use warnings;

use lib 't/lib';
use File::Temp qw(tempdir);
use JSON::PP ();
use Test::More;

use AdsTest::Ads;
use AdsTest::Nginx;
use AdsTest::Redis;

my $catalog = write_temp('security.json', catalog({
    placements => [ { id => 'top' }, { id => 'left' }, { id => 'right' } ],
    campaigns  => [ { id => 1, timezone => AdsTest::Clock::noon_zone(), ad_groups => [
        map { {
            id => $_->[0], frequency_caps => [ { count => 2, per => 'day' } ], targeting => { placements => [ $_->[1] ], $_->[3] ? (keys => { both => ['1'] }) : () }, $_->[2] ? (together => 'set') : (),
            creatives => [ { id => $_->[0] * 10, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/' } ],
        } } [ 1, 'top' ], [ 2, 'left', 1 ], [ 3, 'right', 1, 1 ]
    ] } ],
}));
my $secret = write_temp('security.keys', secret_text(1), 0600);

sub node {
    my ($arguments) = @_;
    return AdsTest::Nginx->new(
        http   => http_conf(state => 'logs/state', catalog => $catalog, secret => $secret, more => "    ads_redis $arguments timeout=1s on_error=no_ad;\n"),
        server => locations() . "ads_consent off;\nads_session_cookie spot;\n",
    )->start;
}

my $Sessions = 0;
sub ask {
    my ($ngx, $placements, $session) = @_;
    my $res = $ngx->get("/spot/serve?placement=$placements", { Cookie => sprintf 'spot=%032x', $session // ++$Sessions });
    die "$res->{status} $res->{body}" if $res->{status} != 200;
    return scalar @{ JSON::PP::decode_json($res->{body})->{ads} };
}

sub ends_clean {
    my ($ngx, @allow) = @_;
    $ngx->stop;
    return is_deeply [ $ngx->problems(allow => \@allow) ], [], 'clean log, exit and reports';
}

my ($rights) = do { open my $in, '<', 'docs/redis.md' or die $!; local $/; <$in> =~ /^ACL SETUSER ads on >PASSWORD (.*)$/m };
ok $rights, 'docs/redis.md says what rights are needed';

subtest 'a user with these rights' => sub {
    my $redis = AdsTest::Redis->new;
    $redis->call('ACL', 'SETUSER', 'ads', 'on', '>open', split / /, $rights);
    my $file  = write_temp('password', "open\n", 0600);
    my @nodes = map { node($redis->address . " user=ads password_file=$file") } 1, 2;
    my $s     = ++$Sessions;
    wait_until { ask($nodes[0], 'top') } 30, 'an ad';
    is_deeply [ map { ask($nodes[ $_ % 2 ], 'top', $s) } 0 .. 3 ], [ 1, 1, 0, 0 ], 'does all that is needed';
    is ask($nodes[0], 'left,right'), 0, 'a set that is given back';
    wait_until { $redis->call('INFO', 'commandstats') =~ /cmdstat_hdel/ } 30, 'the release';
    is_deeply $redis->call('ACL', 'LOG'), [], 'Redis has refused nothing';
    ends_clean($_) for @nodes;
};

subtest 'a wrong password' => sub {
    my $redis = AdsTest::Redis->new(settings => [ '--requirepass', 'secret' ]);
    my %file  = map { $_ => write_temp($_, $_, 0600) } qw(secret wrong);
    my ($bad, $none, $good) = map { node($redis->address . $_) } " password_file=$file{wrong}", '', " password_file=$file{secret}";
    is ask($bad,  'top'), 0, 'is refused';
    is ask($none, 'top'), 0, 'as is none';
    wait_until { ask($good, 'top') } 30, 'the right one is accepted';
    wait_until { $bad->error_log =~ /ads: redis "127\.0\.0\.1:\d+" refuses the user/ } 30, 'the message' and pass 'the log says so';
    wait_until { $none->error_log =~ /ads: redis "127\.0\.0\.1:\d+" replied "(?:NOAUTH|ERR Protocol error: unauthenticated)/ } 30, 'the message' and pass 'and what Redis says';
    unlike $bad->error_log, qr/wrong/, 'but not the password';
    ends_clean($_, qr/ads: redis/) for $bad, $none, $good;
};

subtest 'TLS' => sub {
    my $dir = tempdir(CLEANUP => 1);
    chmod 0755, $dir;
    my $made = system("cd $dir && {
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem &&
        openssl req -newkey rsa:2048 -nodes -subj /CN=redis.example -keyout server.key -out server.csr &&
        printf 'subjectAltName=DNS:redis.example' > ext &&
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out server.pem &&
        chmod 644 *; } >/dev/null 2>&1") == 0;
    plan skip_all => 'no openssl' unless $made;
    my $port  = AdsTest::Nginx::free_port();
    my $redis = eval { AdsTest::Redis->new(settings => [ '--tls-port', $port, '--tls-cert-file', "$dir/server.pem", '--tls-key-file', "$dir/server.key", '--tls-ca-cert-file', "$dir/ca.pem" ]) };
    plan skip_all => 'redis-server has no TLS' unless $redis;
    my $tls   = "127.0.0.1:$port tls";
    my $certificate = "cert=$dir/server.pem key=$dir/server.key";
    my ($good, $name, $ca, $client) = map { node("$tls $_") }
        "ca=$dir/ca.pem server_name=redis.example $certificate", "ca=$dir/ca.pem server_name=other.example $certificate", "server_name=redis.example $certificate", "ca=$dir/ca.pem server_name=redis.example";
    wait_until { ask($good, 'top') } 30, 'an ad';
    my $s = ++$Sessions;
    is_deeply [ map { ask($good, 'top', $s) } 0 .. 2 ], [ 1, 1, 0 ], 'works';
    is ask($name, 'top'), 0, 'not with another name in the certificate';
    is ask($ca, 'top'), 0, 'nor with an unknown authority';
    is ask($client, 'top'), 0, 'nor without the certificate that the server asks for';
    wait_until { $_->error_log =~ /ads: redis "\S+" has a certificate that is not valid for server_name/ } 30, 'the message' for $name, $ca;
    ends_clean($good);
    ends_clean($_, qr/ads: redis/) for $name, $ca, $client;
};

done_testing;
