# Who asks: consent and what may follow from it: the session's cookie, the
# user's pseudonym, and what is written down of either.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;

my $Yes = '{"analytics":true}';

sub encoded { return $_[0] =~ s/([^A-Za-z0-9_.~-])/sprintf '%%%02X', ord $1/ger }

# A certificate of our own, where openssl can make one.
my ($Certificate, $CertificateKey) = (write_temp('tls.crt', ''), write_temp('tls.key', '', 0600));
my $has_tls = !$ENV{TEST_NGINX_USE_VALGRIND}
    && system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout $CertificateKey -out $Certificate 2>/dev/null") == 0;
my $tls = !$has_tls ? '' : <<"EOC";
    server {
        listen 127.0.0.1:%%PORT_tls%% ssl;
        ssl_certificate $Certificate;
        ssl_certificate_key $CertificateKey;
        ads_consent off;
        location = /serve { ads_serve; ads_session_cookie spot; }
        location = /none { ads_serve; ads_session_cookie spot samesite=none max_age=1d; }
    }
EOC

my $ngx = AdsTest::Nginx->new(
    http   => http_conf(state => 'logs/state', more => "    keepalive_requests 100000;\n$tls"),
    server => locations() . <<'EOC' . ($has_tls ? "location /tls/ { proxy_pass https://127.0.0.1:%%PORT_tls%%/; }\n" : ''),
        ads_session_cookie spot;
        ads_base /spot/;
        ads_user $arg_user;
        location = /plain    { ads_serve; }
        location = /off      { ads_serve; ads_consent off; }
        location = /long     { ads_serve; ads_consent off; ads_session_cookie a-b.c_D max_age=30d domain=example.com samesite=strict; }
        location = /none     { ads_serve; ads_consent off; ads_session_cookie other samesite=none; }
        location = /nested   { ads_serve; ads_consent cookie=my-consent:purposes.ads.measure; }
        location = /named    { ads_serve; ads_consent cookie=cmp; }
        location = /variable { ads_serve; ads_consent $arg_a; }
        location = /two      { ads_serve; ads_consent $arg_a $arg_b; }
        location = /both     { ads_serve; ads_consent cookie=consent_preferences:analytics $arg_a; }
        location = /pixel    { ads_track impression; ads_consent off; }
EOC
)->start;
my $conn = $ngx->connection;

# What a request for an ad brings: its cookie, its flags and its event.
sub ask {
    my ($path, $cookie) = @_;
    my $res = $conn->request('GET', $path . ($path =~ /\?/ ? '&' : '?') . 'placement=top', length($cookie // '') ? { Cookie => $cookie } : {});
    die "$path: $res->{status} $res->{body}" if $res->{status} != 200;
    my $ad     = JSON::PP::decode_json($res->{body})->{ads}[0];
    my @events = events($ngx->path('logs/spool'));
    my $set    = $res->{headers}{'set-cookie'};
    my ($session) = ($set // '') =~ /^[^=]+=([^;]*)/;
    return {
        ad      => $ad,
        set     => $set,
        session => $session,
        flags   => open_token($ad->{impression_url} =~ s/.*t=//r)->{flags},
        event   => $events[-1],
    };
}

# Consent shows in three places, which have to agree.
sub consent {
    my ($path, $cookie, $expected, $name) = @_;
    my $got  = ask($path, $cookie);
    my $told = join ' ', defined $got->{set} ? 'cookie' : '-', $got->{flags} & 1 ? 'token' : '-', $got->{event}{consent} ? 'event' : '-',
        $got->{event}{session} eq 'anonymous' ? '-' : 'session';
    return is $told, $expected ? 'cookie token event session' : '- - - -', $name;
}

sub preferences { return 'consent_preferences=' . encoded($_[0]) }

subtest 'the cookie of a session' => sub {
    my $got = ask('/plain', preferences($Yes));
    like $got->{set}, qr/^spot=[0-9a-f]{32}; Path=\/; HttpOnly; SameSite=Lax$/, 'its attributes';
    is $got->{event}{session}, $got->{session}, 'the event is of that session';
    like ask('/long')->{set}, qr/^a-b\.c_D=[0-9a-f]{32}; Path=\/; HttpOnly; Max-Age=2592000; Domain=example\.com; SameSite=Strict$/, 'all parameters';
    my %seen = map { ask('/off')->{session} => 1 } 1 .. 50;
    is scalar keys %seen, 50, 'each visitor gets another';
    my $known = ask('/plain', preferences($Yes) . "; spot=$got->{session}");
    is $known->{set}, undef, 'it is not set again when it is sent';
    is $known->{event}{session}, $got->{session}, 'and stays the same';
};

subtest 'a malformed session is replaced' => sub {
    my $good = '0123456789abcdef' x 2;
    is ask('/off', "spot=$good")->{set}, undef, 'a good one is not';
    for my $bad ('', 'x', substr($good, 1), $good . '0', uc $good, 'g' . substr($good, 1), '"' . $good . '"', '%61' . substr($good, 1), 'anonymous', '../../etc/passwd',
        "\xff" x 32, ' ' x 32) {
        my $got = ask('/off', "spot=$bad");
        like $got->{session}, qr/^[0-9a-f]{32}$/, 'a new one instead of ' . encoded($bad);
        isnt $got->{session}, $good, 'not the old one';
        is $got->{event}{session}, $got->{session}, 'and it is the one that counts';
    }
    is ask('/long', "a-b.c_D=$good")->{set}, undef, 'a name with other characters';
    my $got = ask('/long', "spot=$good");
    isnt $got->{session}, undef, 'a cookie of another name is not used';
};

subtest 'over TLS' => sub {
    plan skip_all => 'no certificate, or valgrind' unless $has_tls;
    like $ngx->get('/tls/serve?placement=top')->{headers}{'set-cookie'}, qr/^spot=[0-9a-f]{32}; Path=\/; HttpOnly; SameSite=Lax; Secure$/, 'secure';
    like $ngx->get('/tls/none?placement=top')->{headers}{'set-cookie'},
        qr/^spot=[0-9a-f]{32}; Path=\/; HttpOnly; SameSite=None; Max-Age=86400; Secure$/, 'for other sites';
};

# Browsers refuse SameSite=None without Secure, which is also right behind a
# proxy that ends TLS.
subtest 'for other sites' => sub {
    like ask('/none')->{set}, qr/; SameSite=None(?:;|$)/, 'SameSite=None';
    like ask('/none')->{set}, qr/; Secure(?:;|$)/, 'has Secure';
};

subtest 'only true is a yes' => sub {
    consent('/plain', undef, 0, 'no cookie at all');
    consent('/plain', 'consent_preferences=', 0, 'an empty one');
    consent('/plain', preferences($Yes), 1, 'true');
    consent('/plain', "consent_preferences=$Yes", 1, 'true, without escapes');
    consent('/plain', preferences(' { "necessary" : false , "analytics" : true } '), 1, 'among others, with blanks');
    consent('/plain', preferences('{"\u0061nalytics":true}'), 1, 'the key written otherwise');
    consent('/plain', 'a=b; ' . preferences($Yes) . '; c=d', 1, 'between other cookies');
    for my $no (
        '{"analytics":false}', '{"analytics":"true"}', '{"analytics":1}', '{"analytics":null}', '{"analytics":[]}', '{"analytics":[true]}', '{"analytics":{}}',
        '{"analytics":{"analytics":true}}', '{}', '[]', 'true', '"true"', '1', 'null', '[true]', '["analytics",true]', '{"Analytics":true}', '{"analytics ":true}',
        '{"other":true}', '{"analytics":true,"analytics":true}', '{"analytics":true,"analytics":false}', '{"analytics":false,"analytics":true}',
        '{"analytics":true,"x":1,"x":2}', '{"analytics":true', '"analytics":true', '{"analytics":true}}', '{"analytics":true} x', '{"analytics":TRUE}', "{'analytics':true}",
        '{analytics:true}', '{"analytics":true,}', '{"analytics"=true}', '{"analytics":true/**/}', "{\"analytics\":true,\"x\":\"\xff\"}", "{\"analytics\":true}\0", "\0",
        "\xef\xbb\xbf{\"analytics\":true}", '{"x":{"analytics":true}}', '{"analytics":true,"x":"' . 'y' x 2000 . '"' , '[' x 1000, '{"a":' x 250,
        '{"analytics":truetrue}', '{"analytics":01}', 'yes', '%7B', '{"analytics":tr+ue}',
    ) {
        consent('/plain', preferences($no), 0, 'no: ' . substr encoded($no), 0, 60);
    }
    for my $no ('%7B%22analytics%22%3Atrue%7', '%7B%22analytics%22%3Atrue%', '%7B%22analytics%22%3Atrue%7D%zz', '%7B%22analytics%22%3Atru%6', '%', '%%', '%2525',
        encoded(encoded($Yes)), '%u007B%22analytics%22%3Atrue%7D', '%7B%22analytics%22%3A+true%7D') {
        consent('/plain', "consent_preferences=$no", 0, "broken escapes: $no");
    }
    consent('/plain', preferences('{"analytics":true,"x":"' . 'y' x 3000 . '"}'), 1, 'a long one');
    consent('/plain', preferences('{"analytics":true,"x":"' . 'y' x 5000 . '"}'), 0, 'one that is too long');
};

subtest 'where the cookie tells it' => sub {
    consent('/nested', 'my-consent=' . encoded('{"purposes":{"ads":{"measure":true}}}'), 1, 'a key in keys');
    consent('/nested', 'my-consent=' . encoded('{"purposes":{"ads":{"measure":false}}}'), 0, 'false there');
    consent('/nested', 'my-consent=' . encoded($_), 0, $_)
        for '{"purposes.ads.measure":true}', '{"purposes":{"ads":true}}', '{"purposes":true}', '{"measure":true}', '{"purposes":{"ads":[true]}}', '{"purposes":{"ads":{"measure":{}}}}';
    consent('/nested', preferences($Yes), 0, 'the usual cookie is not asked');
    consent('/named', 'cmp=' . encoded($Yes), 1, 'the usual key of another cookie');
    consent('/named', preferences($Yes), 0, 'and of no other');
};

subtest 'variables' => sub {
    consent("/variable?a=$_", undef, 1, "yes: $_") for qw(1 true yes);
    consent("/variable?a=$_", undef, 0, "no: $_") for qw(0 false no 2 TRUE Yes on y null %31);
    consent('/variable', undef, 0, 'absent: nobody said yes');
    consent('/variable?a=', undef, 0, 'empty: nobody said yes');
    consent('/variable?a=0', preferences($Yes), 0, 'the cookie is not asked');
    consent('/variable', preferences($Yes), 0, 'also when the variable is absent');
};

subtest 'several sources: the strictest wins' => sub {
    my $no = '{"analytics":false}';
    for my $case (
        [ '/two?a=1&b=1', undef, 1 ], [ '/two?a=1', undef, 1 ], [ '/two?b=yes', undef, 1 ], [ '/two', undef, 0 ], [ '/two?a=1&b=0', undef, 0 ],
        [ '/two?a=0&b=1', undef, 0 ], [ '/two?a=1&b=maybe', undef, 0 ],
        [ '/both', $Yes, 1 ], [ '/both?a=1', undef, 1 ], [ '/both?a=1', $Yes, 1 ], [ '/both?a=0', $Yes, 0 ], [ '/both?a=1', $no, 0 ],
        [ '/both?a=1', '{"analytics":', 0 ], [ '/both?a=1', '{}', 0 ], [ '/both', undef, 0 ],
    ) {
        my ($path, $cookie, $expected) = @$case;
        consent($path, defined $cookie ? preferences($cookie) : undef, $expected, "$path, cookie " . ($cookie // 'absent'));
    }
    consent('/off', undef, 1, 'off: none is needed');
    consent('/off', preferences($no), 1, 'off: and none is asked');
};

subtest 'the pseudonym of a user' => sub {
    my %user;
    for my $name ('alice', 'bob', 'alice@example.com', 'x' x 500) {
        my $got = ask("/plain?user=$name", preferences($Yes))->{event}{user};
        like $got, qr/^[0-9a-f]{32}$/, 'hex digits';
        unlike $got, qr/alice|bob/, 'not the name';
        is ask("/plain?user=$name", preferences($Yes) . '; spot=' . 'a' x 32)->{event}{user}, $got, 'the same the next time, whatever the session';
        $user{$got}++;
        my $without = ask("/plain?user=$name")->{event};
        is_deeply [ @$without{qw(user session metadata)} ], [ '', 'anonymous', '{}' ], 'none without consent';
    }
    is scalar keys %user, 4, 'everybody has another';
    is ask('/plain', preferences($Yes))->{event}{user}, '', 'not signed in: none';
    is ask('/plain?user=', preferences($Yes))->{event}{user}, '', 'an empty name: none';
    for my $file (segments($ngx->path('logs/spool'))) {
        open my $in, '<:raw', $file or die "$file: $!";
        my $text = do { local $/; <$in> };
        unlike $text, qr/alice|xxxx/, 'no name is in the spool';
    }
};

subtest 'without consent' => sub {
    my $session = 'b' x 32;
    my $got = ask('/plain?user=carol', "spot=$session");
    is $got->{set}, undef, 'no cookie is set';
    is_deeply [ @{ $got->{event} }{qw(session user consent)} ], [ 'anonymous', '', 0 ], 'a cookie that is there is not read';
    my $res = $conn->request('GET', endpoint($got->{ad}{impression_url}) . '&user=carol', { Cookie => "spot=$session" });
    is $res->{headers}{'set-cookie'}, undef, 'nor by the pixel';
    my $event = (events($ngx->path('logs/spool')))[-1];
    is_deeply [ @$event{qw(type session user consent)} ], [ 'impression', 'anonymous', '', 0 ], 'the impression neither';
};

subtest 'events that follow' => sub {
    my $cookie = preferences($Yes) . '; spot=' . 'c' x 32;
    my $ad     = ask('/plain?user=dora', $cookie)->{ad};
    my $user   = (events($ngx->path('logs/spool')))[-1]{user};
    for my $type (qw(impression viewable click)) {
        my $res = $conn->request('GET', endpoint($ad->{"${type}_url"}) . '&user=dora', { Cookie => $cookie });
        my $event = (events($ngx->path('logs/spool')))[-1];
        is_deeply [ @$event{qw(type session user consent)} ], [ $type, 'c' x 32, $user, 1 ], $type;
        is $res->{headers}{'set-cookie'}, undef, "$type: no cookie";
    }
    my $fresh = ask('/off')->{ad};
    my $res   = $conn->request('GET', '/pixel?' . (endpoint($fresh->{impression_url}) =~ s/.*\?//r));
    is $res->{status}, 200, 'a pixel without a session';
    is $res->{headers}{'set-cookie'}, undef, 'begins none';
    is +(events($ngx->path('logs/spool')))[-1]{session}, 'anonymous', 'and is anonymous';
};

subtest 'no cookie where nothing is decided' => sub {
    for my $path ('/off?placement=nowhere', '/off') {
        is $conn->request('GET', $path)->{headers}{'set-cookie'}, undef, "a bad request: $path";
    }
    is $conn->request('HEAD', '/off?placement=top')->{headers}{'set-cookie'}, undef, 'HEAD';
    like $conn->request('GET', '/off?placement=empty')->{headers}{'set-cookie'}, qr/^spot=/, 'but with no ad there is one';
    like $conn->request('GET', '/off?placement=empty&format=html')->{headers}{'set-cookie'}, qr/^spot=/, 'also with 204';
};

$conn->close;
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';
done_testing;
