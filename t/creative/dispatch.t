# nginx-ads dispatch, on a real PostgreSQL, with a TLS server of the test as the third party:
# connections go to allowed addresses only; slow, huge and broken responses cost no more than their
# limits; each pixel is sent once by all dispatchers together; a dispatcher that is killed loses
# none; and the nginx that serves is not affected.
#
# 127.1.0.0/16 is let in with --allow-address; the rest of 127/8 stands for a network of
# our own. There are listeners that nobody may ever connect to.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::INET ();
use JSON::PP ();
use List::Util qw(sum);
use POSIX qw(WNOHANG);
use Test::More;

use AdsTest::Command;
use AdsTest::Load;
use AdsTest::Nginx;
use AdsTest::Postgres;
use AdsTest::Process qw(alive slow spawn);

plan skip_all => 'no openssl on this machine' unless grep { -x "$_/openssl" } split /:/, $ENV{PATH};

my $dir = in_folder();

# ---- the third parties --------------------------------------------------------------------

is system(qw(sh -c), 'exec "$@" 2>/dev/null', 'sh', 'openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '30', '-keyout', "$dir/key.pem", '-out',
    "$dir/cert.pem", '-subj', '/CN=third parties', '-addext', 'subjectAltName=DNS:*.example.com,DNS:*.tracker.example',
    '-addext', 'basicConstraints=critical,CA:TRUE'), 0, 'a certificate'
    or BAIL_OUT('openssl');

# Accepts connections and never responds.
my $mute = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 100, Proto => 'tcp', Blocking => 0) or die $!;

# A connection accepted after nobody_came.
sub nobody_came { 1 while $mute->accept; return }

sub somebody_came {
    my $connection;
    wait_until { $connection = $mute->accept } 60, 'a request to be under way';
    return $connection;
}

my $long = 'x' x 4000;
my $third = AdsTest::Nginx->new(modules => [], conf => <<"EOC");
http {
    access_log off;
    log_format seen '\$server_addr|\$http_host|\$request_uri|\$http_user_agent|\$http_referer\$http_cookie\$http_authorization|\$status|\$body_bytes_sent';
    server { listen 127.0.0.1:%%PORT%%; return 200; }
    server {
        listen 127.1.0.1:%%PORT_tls%% ssl;
        listen 127.1.0.2:%%PORT_tls%% ssl;
        ssl_certificate     $dir/cert.pem;
        ssl_certificate_key $dir/key.pem;
        access_log %%PREFIX%%/logs/seen.log seen;
        root $dir/www;
        absolute_redirect off;
        set \$long $long;
        location /ok      { add_header Set-Cookie "id=42"; return 200 "GIF"; }
        location /empty   { return 204; }
        location /broken  { return 503; }
        location /busy    { return 429; }
        location /gone    { return 404; }
        location /huge    { try_files /huge.bin =404; }
        location /headers { add_header X-Long "\$long\$long\$long\$long\$long"; return 200; }
        location /slow    { proxy_pass http://127.0.0.1:@{[ $mute->sockport ]}; proxy_ignore_client_abort off; }
        location /later {
            if (-f $dir/now) { return 204; }
            proxy_pass http://127.0.0.1:@{[ $mute->sockport ]};
        }
        location = /hop           { return 302 https://b.example.com/ok?hop=1; }
        location = /relative      { return 307 /ok?relative=1; }
        location = /to-http       { return 302 http://b.example.com/ok; }
        location = /to-loopback   { return 302 https://127.2.0.1/ok; }
        location = /to-private    { return 302 https://inside.example.com/ok; }
        location = /to-port       { return 302 https://b.example.com:8443/ok; }
        location = /to-file       { return 302 file:///etc/passwd; }
        location = /to-user       { return 302 https://b.example.com\@127.2.0.1/; }
        location = /circle        { return 302 https://a.example.com/circle2; }
        location = /circle2       { return 302 https://a.example.com/circle; }
        location ~ ^/chain/(.*)\$ { return 302 https://a.example.com/chain/x\$1; }
    }
}
EOC
mkdir "$dir/www";
open my $huge, '>', "$dir/www/huge.bin" or die $!;
truncate $huge, 200 << 20 or die $!;
close $huge;
$third->start;
my $tls = $third->port('tls');

# Not to be connected to: the forbidden port, a forbidden address, a proxy.
my %forbidden;
for my $place ([ '127.2.0.1', $tls ], [ '127.1.0.1', 443 ], [ '127.1.0.2', 443 ], [ '127.2.0.1', 443 ], [ '127.1.0.1', 80 ],
    [ '127.1.0.2', 80 ], [ '127.1.0.2', 8443 ], [ '127.0.0.1', 0 ])
{
    my ($host, $port) = @$place;
    # Low ports need privileges.
    my $socket = IO::Socket::INET->new(LocalAddr => $host, LocalPort => $port, Listen => 50, Proto => 'tcp', Blocking => 0)
        or next;
    $forbidden{ $port ? "$host:$port" : 'proxy' } = $socket;
}
ok $forbidden{"127.2.0.1:$tls"} && $forbidden{proxy}, 'there are forbidden listeners';

sub trespassers {
    return join ' ', sort grep { $forbidden{$_}->accept } keys %forbidden;
}

# The requests since the last call, as "address host uri".
my $read = 0;

sub seen {
    open my $in, '<', $third->path('logs/seen.log') or return ();
    seek $in, $read, 0;
    my @lines = <$in>;
    $read = tell $in;
    chomp @lines;
    return @lines;
}
sub uris { return sort map { (split /\|/)[2] } seen() }

# ---- the database ---------------------------------------------------------------------------

my $pg = AdsTest::Postgres->new;
my $db;
sub json { return JSON::PP->new->utf8->decode(shift) }

my @names = map { ('--resolve', $_) } split ' ', 'a.example.com=127.1.0.1 b.example.com=127.1.0.2 inside.example.com=127.2.0.1
    mixed.example.com=127.1.0.1,127.2.0.1 other.example.net=127.1.0.1 two.example.com=127.1.0.3,127.1.0.1
    mapped.example.com=::ffff:127.2.0.1 pixel.tracker.example=127.1.0.1';
my @network = ('--allow-address', "127.1.0.0/16:$tls", '--ca-file', "$dir/cert.pem");
# Long enough for a busy machine; tests of a timeout set their own.
my @once = ('dispatch', 'run', '--once', '--verbose', @network, '--timeout', '20s', '--backoff', '10m');

my $serve = 1;

# A creative with this pixel, and impressions of it.
sub impressions {
    my ($creative, $url, $count) = @_;
    $db->run("INSERT INTO ads.creatives (id, ad_group_id, type, content, click_url, impression_url) VALUES
        ($creative, 12, 'html', '{\"markup\": \"a\"}', 'https://a.example/', " . $db->quote($url) . ') ON CONFLICT DO NOTHING');
    my @events = map { $db->event(type => 'impression', creative => $creative, serve => $serve++, session => "visitor-$serve") } 1 .. $count // 1;
    while (my @some = splice @events, 0, 200) {
        $db->run($db->ingest_sql(@some));
    }
    return;
}

sub fresh {
    $db = $pg->database(shift);
    $db->migrate;
    $ENV{ADS_DATABASE} = $db->conninfo;
    $db->run('INSERT INTO ads.campaigns (id) VALUES (7); INSERT INTO ads.ad_groups (id, campaign_id) VALUES (12, 7)');
    seen();
    return;
}

sub waiting { return $db->value('SELECT count(*) FROM ads.pixel_queue') }
sub dead { return { map { @$_ } $db->query('SELECT creative_id, error FROM ads.dead_pixels') } }
sub days { return $db->value('SELECT concat_ws(\' \', sum(sent), sum(retried), sum(dead)) FROM ads.pixel_days') }

# ---- what is sent ---------------------------------------------------------------------------

subtest 'a pixel is sent' => sub {
    fresh('sent');
    my $moment = int(time) * 1000;
    impressions(31, 'https://a.example.com/ok?c={campaign}&g={ad_group}&k={creative}&p={placement}&t={timestamp}&i={click_id}&b={cachebuster}', 0);
    my $event = $db->event(type => 'impression', creative => 31, serve => 77, at => $moment);
    $db->run($db->ingest_sql($event, $db->event(type => 'impression', creative => 31, serve => 78, invalid => 1),
        $db->event(type => 'click', creative => 31, serve => 77, at => $moment)));
    $db->run($db->ingest_sql($event));
    is waiting(), 1, 'a valid impression is queued, and once';
    is run(@once, @names), 0, 'it is sent' or diag $err;
    is $out, "1 sent, 0 to be retried, 0 given up\n", 'which is said';
    my @seen = seen();
    is scalar @seen, 1, 'it was fetched once';
    my ($address, $host, $uri, $agent, $private, $status) = split /\|/, $seen[0];
    is "$address $host $status", '127.1.0.1 a.example.com 200', 'at the address that was checked, under its name';
    like $uri, qr{^/ok\?c=7&g=12&k=31&p=home-top&t=@{[ $moment / 1000 ]}&i=&b=[0-9a-f]{16}$}, 'with its macros';
    like $agent, qr{^nginx-ads/\d}, 'by our own name';
    is $private, '-' x 3, 'with no referer, cookie or password';
    like $err, qr/^\S+Z \[dispatch\] connecting to 127\.1\.0\.1:$tls for a\.example\.com$/m, '--verbose shows the socket';
    is waiting(), 0, 'nothing is left';
    is days(), '1 0 0', 'and it is counted';
    is run(@once, @names, '--json'), 0, 'again';
    is_deeply json($out), { sent => 0, retried => 0, dead => 0, lost => 0 }, 'there is nothing to send';
    is_deeply [ uris() ], [], 'and nothing is';
    impressions(32, 'https://a.example.com/ok?n={cachebuster}', 5);
    impressions(33, 'https://pixel.tracker.example/empty', 1);
    run(@once, @names);
    my @uris = uris();
    is scalar(@uris), 6, 'several at once';
    is scalar(keys %{ { map { $_ => 1 } @uris } }), 6, 'each its own';
};

subtest 'forbidden addresses are not connected to' => sub {
    fresh('blocked');
    my %pixels = (
        40 => [ 'https://10.0.0.1/x',               qr/^blocked: 10\.0\.0\.1 is not public: a private network$/ ],
        41 => [ 'https://127.2.0.1/x',              qr/^blocked: 127\.2\.0\.1 is not public/ ],
        42 => [ 'https://127.1.0.1/x',              qr/^blocked: 127\.1\.0\.1 is not public/ ],
        43 => [ 'https://b.example.com:8443/x',     qr/^blocked: must use port 443$/ ],
        44 => [ 'https://b.example.com:80/x',       qr/^blocked: must use port 443$/ ],
        45 => [ 'https://localhost/x',              qr/^blocked: must name a host with a domain$/ ],
        46 => [ 'https://inside.example.com/x',     qr/^blocked: inside\.example\.com: 127\.2\.0\.1 is not public: this machine$/ ],
        47 => [ 'https://mixed.example.com/ok',     qr/^blocked: mixed\.example\.com: 127\.2\.0\.1 is not public/ ],
        48 => [ 'https://mapped.example.com/ok',    qr/^blocked: mapped\.example\.com: ::ffff:7f02:1 is not public/ ],
        49 => [ 'https://db.internal/x',            qr/^blocked: must not name a host of an internal domain/ ],
        50 => [ 'https://[::1]/x',                  qr/^blocked: ::1 is not public: this machine$/ ],
    );
    impressions($_, $pixels{$_}[0]) for sort keys %pixels;
    is run(@once, @names), 0, 'a run' or diag $err;
    my $dead = dead();
    like $dead->{$_}, $pixels{$_}[1], "$pixels{$_}[0] is blocked" for sort keys %pixels;
    is waiting(), 0, 'for good';
    is days(), "0 0 " . keys %pixels, 'and counted';
    is_deeply [ seen() ], [], 'no server was connected to';
    unlike $err, qr/connecting/, 'no socket was opened';
    like $err, qr/^\S+Z \[dispatch\] creative 43: https:\S+ is given up: blocked: must use port 443$/m, 'each is logged';
    is trespassers(), '', 'no forbidden listener was connected to';
};

subtest 'redirects' => sub {
    fresh('redirects');
    impressions(60, 'https://a.example.com/hop');
    run(@once, @names);
    is_deeply [ uris() ], ['/hop'], 'none is followed';
    is dead()->{60}, 'status 302, and redirects are not followed', 'unless it is asked for';

    my %pixels = (
        61 => [ 'hop',         undef ],
        62 => [ 'relative',    undef ],
        63 => [ 'to-http',     qr/^blocked: redirected to http:\S+: must start with https:/ ],
        64 => [ 'to-loopback', qr/^blocked: redirected to https:\S+: 127\.2\.0\.1 is not public/ ],
        65 => [ 'to-private',  qr/^blocked: inside\.example\.com: 127\.2\.0\.1 is not public/ ],
        66 => [ 'to-port',     qr/^blocked: redirected to https:\S+: must use port 443/ ],
        67 => [ 'to-file',     qr/^blocked: redirected to file:\S+: must start with https:/ ],
        68 => [ 'to-user',     qr/^blocked: redirected to https:\S+: must not contain a user name/ ],
        69 => [ 'circle',      qr/redirect loop$/ ],
        70 => [ 'chain/',      qr/^more than 3 redirects$/ ],
    );
    $db->run('DELETE FROM ads.dead_pixels');
    impressions($_, "https://a.example.com/$pixels{$_}[0]") for sort keys %pixels;
    is run(@once, @names, '--redirects', 3), 0, 'with --redirects' or diag $err;
    my @seen = seen();
    is scalar(grep { m{^127\.1\.0\.2\|b\.example\.com\|/ok\?hop=1\|[^|]*\|---\|200} } @seen), 1, 'the redirect goes to the other host, without a referer';
    is scalar(grep { m{^127\.1\.0\.1\|a\.example\.com\|/ok\?relative=1\|} } @seen), 1, 'a relative one to the same';
    is scalar(grep { m{/chain/} } @seen), 4, 'no more of a chain than that';
    is scalar(grep { m{/circle} } @seen), 2, 'and a circle once round';
    my $dead = dead();
    for my $id (sort keys %pixels) {
        defined $pixels{$id}[1] ? like($dead->{$id}, $pixels{$id}[1], $pixels{$id}[0]) : ok(!exists $dead->{$id}, "$pixels{$id}[0] is sent");
    }
    is trespassers(), '', 'no forbidden listener was connected to';
    is_deeply [ grep { !/connecting to 127\.1\.0\.[12]:$tls / } grep { /connecting/ } split /\n/, $err ], [], 'no other socket was opened';
};

subtest 'a name that changes its mind' => sub {
    fresh('rebinding');
    # The first answer is public, the second one private.
    impressions(80, 'https://rebind.example.com/ok?n={cachebuster}', 8);
    impressions(81, 'https://a.example.com/hop');
    my @rebind = map { ('--resolve', $_) } 'rebind.example.com=127.1.0.2', 'rebind.example.com=127.2.0.1', 'b.example.com=127.1.0.2', 'b.example.com=127.2.0.1', 'a.example.com=127.1.0.1';
    is run(@once, '--redirects', 1, '--parallel', 2, @rebind), 0, 'a run' or diag $err;
    is $out, "9 sent, 0 to be retried, 0 given up\n", 'is asked once, and all go where it was checked';
    is scalar(grep { /^127\.1\.0\.2\|/ } seen()), 9, 'and nowhere else';
    impressions(80, 'https://rebind.example.com/ok?n={cachebuster}');
    run(@once, map { ('--resolve', $_) } 'rebind.example.com=127.2.0.1', 'rebind.example.com=127.1.0.2');
    like dead()->{80}, qr/127\.2\.0\.1 is not public/, 'the other way round it is blocked';
    is_deeply [ seen() ], [], 'without a connection';
    is trespassers(), '', 'no forbidden listener was connected to';
};

subtest 'answers' => sub {
    fresh('answers');
    impressions(90, 'https://a.example.com/huge');
    impressions(91, 'https://a.example.com/headers');
    impressions(92, 'https://a.example.com/broken');
    impressions(93, 'https://a.example.com/busy');
    impressions(94, 'https://a.example.com/gone');
    impressions(95, 'https://other.example.net/ok');      # not in the certificate
    impressions(96, 'https://two.example.com/ok');        # nobody is at its first address
    impressions(97, 'https://unknown.example.com/ok');
    is run(@once, @names), 0, 'a run' or diag $err;
    is $out, "2 sent, 5 to be retried, 1 given up\n", 'ends' or diag $err;
    my ($bytes) = map { (split /\|/)[6] } grep { m{/huge} } wait_seen('/huge');
    cmp_ok $bytes, '<', 50 << 20, 'of 200 MB only a little is read';
    is dead()->{94}, 'status 404', '404 is permanent';
    my %error = map { $_->[0] => $_->[1] } $db->query('SELECT creative_id, error FROM ads.pixel_queue');
    like $error{91}, qr/headers are too long/,      'headers have an end';
    is   $error{92}, 'status 503',                 'a server with troubles is tried again';
    is   $error{93}, 'status 429',                 'also a busy one';
    like $error{95}, qr/certificate|no alternative/i,   'the certificate must be that of the name';
    like $error{97}, qr/^no address found for/,      'a name without an address may get one';
    is $db->value(q{SELECT bool_and(next_try BETWEEN now() + interval '5 min' AND now() + interval '15 min') FROM ads.pixel_queue}), 't', 'later';
    is $db->value('SELECT count(*) FROM ads.pixel_queue WHERE taken_by IS NOT NULL'), 0, 'by anybody';
    is days(), '2 5 1', 'all are counted';
    my @more = map { ('--resolve', $_) } 'a.example.com=127.1.0.1';
    $db->run(q{DELETE FROM ads.pixel_queue});
    impressions(98, 'https://a.example.com/ok');
    run('dispatch', 'run', '--once', '--allow-address', "127.1.0.0/16:$tls", @more, '--timeout', '20s');
    like $db->value('SELECT error FROM ads.pixel_queue'), qr/certificate/i, 'and from a known client';
};

# nginx logs when the connection ends.
sub wait_seen {
    my ($uri) = @_;
    my @seen;
    wait_until { push @seen, seen(); grep { /\Q$uri\E/ } @seen } 20, "$uri to be logged";
    return @seen;
}

subtest 'silence' => sub {
    fresh('silence');
    impressions(100, 'https://a.example.com/slow?n={cachebuster}', 40);
    impressions(101, 'https://b.example.com/ok?n={cachebuster}',   40);
    my $began = time;
    is run('dispatch', 'run', '--once', @network, @names, '--timeout', '1500ms', '--parallel', 40, '--backoff', '10m'), 0, 'a run';
    is $db->value('SELECT sum(sent) FROM ads.pixel_days WHERE creative_id = 101'), 40, 'those of others are sent';
    is $db->value(q{SELECT string_agg(DISTINCT error, '|') FROM ads.pixel_queue}), 'timed out', 'a silent server is given up';
    is waiting(), 40, 'for another time';
    cmp_ok time - $began, '<', 60 * slow(), 'soon';
    like $err, qr/a\.example\.com is suspended for 30 s: timed out/, 'and then left alone';
    # The circuit breaker lasts as long as the dispatcher: skipped tries are not counted.
    $db->run('UPDATE ads.pixel_queue SET next_try = now(), tries = 0');
    run('dispatch', 'run', '--once', @network, @names, '--timeout', '1500ms', '--parallel', 6, '--backoff', '10m');
    is waiting(), 40, 'all are still there';
    cmp_ok $db->value('SELECT count(*) FROM ads.pixel_queue WHERE tries = 1'), '<=', 12, 'only some were tried';
    is $db->value('SELECT max(tries) FROM ads.pixel_queue'), 1, 'once';
    is $db->value('SELECT bool_and(next_try > now() AND taken_by IS NULL) FROM ads.pixel_queue'), 't', 'the others wait';
};

subtest 'an end' => sub {
    fresh('ends');
    impressions(110, 'https://a.example.com/broken');
    impressions(111, 'https://a.example.com/ok');
    run(@once, @names, '--tries', 2);
    is waiting(), 1, 'a first try';
    $db->run('UPDATE ads.pixel_queue SET next_try = now()');
    run(@once, @names, '--tries', 2);
    is waiting(), 0, 'and a last one';
    is dead()->{110}, 'status 503, after 2 tries', 'the reason is kept';
    is run('dispatch', 'status'), 0, 'status';
    like $out, qr/^waiting 0, of which 0 due and 0 under way\ntoday   1 sent, 1 retried, 1 given up\ndead    1\n  1 of creative 110: status 503, after 2 tries\n$/, 'reports it';
    run('dispatch', 'status', '--json');
    is_deeply json($out), { waiting => 0, due => 0, taken => 0, oldest_seconds => 0, dead => 1, sent_today => 1, retried_today => 1, dead_today => 1,
        reasons => [ { creative => 110, error => 'status 503, after 2 tries', pixels => 1 } ] }, 'also in JSON';
    is run('dispatch', 'retry'), 2, 'retry wants to know of what';
    run('dispatch', 'retry', '--creative', 5);
    is $out, "0 pixels queued again\n", 'another creative has none';
    run('dispatch', 'retry', '--creative', 'Broken');
    is $err, qq(nginx-ads: there is no creative "Broken".\n), 'nor one of that name';
    run('dispatch', 'retry', '--creative', 110, '--json');
    is_deeply json($out), { queued => 1 }, 'it may be queued again';
    is $db->value('SELECT tries FROM ads.pixel_queue'), 0, 'with all its tries';
    is $db->value('SELECT count(*) FROM ads.dead_pixels'), 0, 'and is not dead any more';
    # A pixel that crashes its dispatcher must not be retried for ever.
    $db->run('UPDATE ads.pixel_queue SET tries = 6');
    run(@once, @names);
    is dead()->{110}, 'its dispatcher died, 6 times', 'what kills its dispatcher has an end';
};

subtest 'no proxy, no secrets of the environment' => sub {
    fresh('proxies');
    impressions(120, 'https://a.example.com/ok');
    my $proxy = 'http://127.0.0.1:' . $forbidden{proxy}->sockport;
    local @ENV{ qw(https_proxy HTTPS_PROXY http_proxy ALL_PROXY all_proxy) } = ($proxy) x 5;
    local $ENV{HOME} = $dir;
    for my $file ('.netrc', '.curlrc') {
        open my $to, '>', "$dir/$file" or die $!;
        print $to $file eq '.netrc' ? "machine a.example.com login me password secret\n" : "user = me:secret\nproxy = $proxy\n";
        close $to;
        chmod 0600, "$dir/$file";
    }
    run(@once, @names);
    is $out, "1 sent, 0 to be retried, 0 given up\n", 'it is sent' or diag $err;
    like join('', seen()), qr/\|---\|200/, 'without a password';
    is trespassers(), '', 'and by no proxy';
};

# ---- many ------------------------------------------------------------------------------------

my @daemons;
my $owner = $$;
END { kill KILL => grep { alive($_) } @daemons if defined $owner && $$ == $owner }

sub daemon {
    my ($log, @arguments) = @_;
    unlink $log;
    push @daemons, spawn([ $command, 'dispatch', 'run', '--poll', '50ms', @network, @names, @arguments ], {}, $log);
    return $daemons[-1];
}

sub stopped {
    my ($pid) = @_;
    kill TERM => $pid;
    wait_until { waitpid($pid, WNOHANG) == $pid } 60, 'the dispatcher to end';
    return $?;
}

subtest 'several at once' => sub {
    fresh('several');
    my $count = 600;
    impressions(130, 'https://a.example.com/empty?n={cachebuster}', $count);
    my @pids = map { daemon("$dir/log$_", '--parallel', 16, '--timeout', '20s') } 1 .. 3;
    impressions(131, 'https://b.example.com/empty?n={cachebuster}', $count);
    wait_until { waiting() == 0 } 120, 'all to be sent';
    is_deeply [ map { stopped($_) } @pids ], [ 0, 0, 0 ], 'all end well';
    my %times;
    $times{$_}++ for uris();
    is scalar(keys %times), 2 * $count, 'every pixel is sent';
    is_deeply [ grep { $times{$_} > 1 } keys %times ], [], 'and none twice';
    is days(), 2 * $count . ' 0 0', 'they are counted as they were sent';
    my @sent = map { read_file("$dir/log$_") =~ /stopped: (\d+) sent/ } 1 .. 3;
    is sum(@sent), 2 * $count, 'by all together';
};

subtest 'killed in the middle' => sub {
    fresh('killed');
    impressions(140, 'https://a.example.com/later?n={cachebuster}', 30);
    nobody_came();
    my $pid = daemon("$dir/log", '--parallel', 10, '--timeout', '5m', '--lease', '20m', '--instance', 'one');
    wait_until { $db->value(q{SELECT count(*) FROM ads.pixel_queue WHERE taken_by = 'one'}) == 10 } 60, 'it to have taken some';
    my $held = somebody_came();
    kill KILL => $pid;
    wait_until { !alive($pid) } 20, 'its end';
    is waiting(), 30, 'nothing is lost';
    open my $now, '>', "$dir/now" or die $!;
    is run(@once, @names), 0, 'another one';
    is $out, "20 sent, 0 to be retried, 0 given up\n", 'leaves alone what the first one has';
    is $db->value('SELECT count(*) FROM ads.pixel_queue WHERE next_try > now()'), 10, 'until its lease ends';
    $db->run('UPDATE ads.pixel_queue SET next_try = now()');
    is run(@once, @names), 0, 'then';
    is $out, "10 sent, 0 to be retried, 0 given up\n", 'also the rest is sent';
    is waiting(), 0, 'all is done';
    is days(), '30 0 0', 'and counted once';

    # A dispatcher whose lease has ended cannot finish a pixel that another one holds.
    impressions(141, 'https://a.example.com/ok');
    my ($id) = $db->row(q{SELECT id FROM ads.take_pixels('late', 1, interval '1 h')});
    $db->run('UPDATE ads.pixel_queue SET next_try = now()');
    $db->run(q{SELECT FROM ads.take_pixels('other', 1, interval '1 h')});
    is $db->value("SELECT ads.finish_pixels('late', '{$id}', '{1}', '{sent}', '{0}', '{NULL}')"), 0, 'a lease that has ended';
    is $db->value("SELECT ads.finish_pixels('other', '{$id}', '{1}', '{sent}', '{0}', '{NULL}')"), 0, 'an earlier try';
    is waiting(), 1, 'is worth nothing';
    is $db->value("SELECT ads.finish_pixels('other', '{$id}', '{2}', '{sent}', '{0}', '{NULL}')"), 1, 'only the holder can finish it';
    unlink "$dir/now";
};

subtest 'PostgreSQL goes and comes' => sub {
    fresh('goes');
    my $pid = daemon("$dir/log", '--timeout', '20s');
    wait_until { $pg->value(q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nginx-ads dispatch'}) } 60, 'it to be connected';
    $pg->restart;
    impressions(150, 'https://a.example.com/ok?n={cachebuster}', 5);
    wait_until { waiting() == 0 } 60, 'it to go on';
    is days(), '5 0 0', 'all are sent';
    is stopped($pid), 0, 'it ends well';
    like read_file("$dir/log"), qr/\[dispatch\] connected to PostgreSQL again/, 'and reports it';
};

# ---- the nginx that serves ---------------------------------------------------------------------

subtest 'serving knows nothing of it' => sub {
    fresh('serving');
    my $conninfo = $db->conninfo;
    my $ngx = ads_nginx(workers => 2, http => qq{ads_postgres "$conninfo";})->start;
    $db->run(q{INSERT INTO ads.creatives (id, ad_group_id, type, content, click_url, impression_url) VALUES
        (120, 12, 'native', '{"title": "a"}', 'https://a.example/', 'https://a.example.com/later?n={cachebuster}')});
    my $next = pixels(template($ngx));
    nobody_came();
    my $pid = daemon("$dir/log", '--parallel', 32, '--timeout', '5m', '--lease', '20m', '--instance', 'hung');
    is $ngx->get($next->())->{status}, 200, 'an impression';
    my $held = somebody_came();
    kill STOP => $pid;
    my $result = AdsTest::Load->start($ngx, connections => 8, next => each_of(map { $next->() } 1 .. 300))->wait_end;
    is scalar @{ $result->{failed} }, 0, 'no request fails while the dispatcher hangs';
    my $events = 1 + @{ $result->{answered} };
    wait_until { waiting() == $events } 60, 'events to be shipped, and their pixels queued';
    is $db->value(q{SELECT count(*) FROM ads.ad_events WHERE type = 'impression'}), $events, 'all events are stored';
    open my $now, '>', "$dir/now" or die $!;
    kill CONT => $pid;
    wait_until { waiting() == 1 } 120, 'the others to be sent';
    kill KILL => $pid;
    wait_until { !alive($pid) } 20, 'its end';
    is $db->value('SELECT sum(sent) FROM ads.pixel_days'), $events - 1, 'when it is back all are sent';
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
};

# ---- what is wrong -------------------------------------------------------------------------------

for my $wrong (
    [ [qw(--parallel 257)], qr/--parallel: must be a whole number from 1 to 256/ ],
    [ [qw(--redirects 6)],  qr/--redirects: must be a whole number from 0 to 5/ ],
    [ [qw(--allow-address 10.0.0.0/33)], qr/must be a network such as/ ],
    [ [qw(--allow-address 10.0.0.0/8:0)], qr/must be a network such as/ ],
    [ [qw(--resolve x)], qr/must be HOST=ADDRESS/ ],
    [ [qw(--timeout 10s --lease 15s)], qr/--lease must be twice as long/ ],
    [ [qw(--ca-file none.pem)], qr/none\.pem/ ],
    [ [qw(--json)], qr/--once/ ],
    ) {
    is run('dispatch', 'run', @{ $wrong->[0] }), 2, "@{ $wrong->[0] } is refused";
    like $err, $wrong->[1], 'with a reason';
}
{
    local $ENV{ADS_DATABASE} = 'host=/nowhere';
    is run(@once), 3, 'no database';
    like $err, qr/cannot reach PostgreSQL/, 'is said';
}
$pg->run(q{CREATE ROLE reader LOGIN IN ROLE ads_report}, dbname => 'postgres');
is run('dispatch', 'status', '--database', $db->conninfo(user => 'reader')), 0, 'a reader may see the status';
is run(@once, '--database', $db->conninfo(user => 'reader')), 3, 'but send nothing';
like $err, qr/GRANT ads_admin/, 'with what is required';

is trespassers(), '', 'no forbidden listener was connected to, in the whole test';
$third->stop;
done_testing;
