# A click leads where the catalog says, whatever is sent with it; its macros; and a token
# tells nothing of the visitor.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;

my $Target = 'https://acme.example/landing';
my $Macros = 'https://acme.example/?i={click_id}&c={campaign}&g={ad_group}&r={creative}&p={placement}&t={timestamp}&b={cachebuster}&y=%7Bcampaign%7D#{campaign}';
my $ad = sub { return { id => $_[0], targeting => { placements => [ $_[1] ] }, creatives => [ { id => $_[0], type => 'html', content => { markup => 'x' }, click_url => $_[2] } ] } };
my $Catalog = write_temp('click.json', catalog({
    placements => [ { id => 'plain' }, { id => 'a-B_c9' } ],
    campaigns  => [ { id => 7, ad_groups => [ $ad->(12, 'plain', $Target), $ad->(13, 'a-B_c9', $Macros) ] } ],
}));
my $ngx = AdsTest::Nginx->new(
    http   => http_conf(catalog => $Catalog, state => 'logs/state'),
    server => locations() . <<'EOC',
        server_name good.example;
        set_real_ip_from 127.0.0.1;
        real_ip_header X-Real-IP;
        ads_consent off;
        ads_session_cookie spot;
        ads_user $arg_user;
EOC
)->start;

my $serve = 1;
sub click { return token('click', serve => $serve++, creative => 12, placement => 'plain', @_) }

# --- nothing that is sent changes the target -------------------------------------------

my @names = qw(url u uri r redirect redirect_uri redirect_url return return_to returnurl target dest destination next goto continue click_url
    clickurl adurl rurl link out to forward location Location href q t[] t.url type creative campaign);
my @evil  = ('https://evil.example/', '//evil.example', '/\evil.example', 'https:evil.example', 'javascript:alert(1)', 'https://acme.example@evil.example/',
    "x\r\nLocation: https://evil.example/", "x\nSet-Cookie: a=b", '{click_id}', "\0", '%252F%252Fevil.example', "\xe2\x80\xae");
sub escaped { return join '', map { sprintf '%%%02X', ord } split //, $_[0] }

sub leads {
    my ($res, $what, $want) = @_;
    $want //= $Target;
    my $raw   = join "\n", map { "$_: $res->{headers}{$_}" } sort keys %{ $res->{headers} };
    return $res->{status} == 302 && $res->{headers}{location} eq $want && $res->{headers}{'referrer-policy'} eq 'strict-origin' && $raw !~ /evil/i ? () : "$what: $res->{status} $raw";
}

my (@wrong, $asked);
my $ask = sub {
    my ($what, $method, $path, @headers) = @_;
    $asked++;
    push @wrong, leads($ngx->request($method, $path, \@headers), $what);
};
my $conn = $ngx->connection;
for my $name (@names) {
    for my $value (@evil) {
        my $query = escaped($name) . '=' . escaped($value);
        for my $all ('t=' . click() . "&$query", "$query&t=" . click()) {
            $asked++;
            push @wrong, leads($conn->request('GET', "/spot/click?$all"), "$name=$value");
        }
    }
}
$conn->close;
$ask->("$_->[0]: $_->[1]", 'GET', '/spot/click?t=' . click(), @$_) for (
    [ Host => 'evil.example' ], [ 'X-Forwarded-Host' => 'evil.example' ], [ Forwarded => 'host=evil.example' ], [ 'X-Original-URL' => 'https://evil.example/' ], [ 'X-Rewrite-URL' => '//evil.example' ],
    [ Referer => 'https://evil.example/' ], [ Origin => 'https://evil.example' ], [ Location => 'https://evil.example/' ], [ 'X-HTTP-Method-Override' => 'https://evil.example' ],
    [ Cookie => 'url=https://evil.example/; spot=https://evil.example/' ], [ 'User-Agent' => 'https://evil.example/ {click_id}' ],
);
$ask->('a fragment', 'GET', '/spot/click?t=' . click() . '&x=#https://evil.example/');
$ask->('another t',  'GET', '/spot/click?t=' . click() . '&t=https://evil.example/');
$ask->('an address as the request', 'GET', 'http://evil.example/spot/click?t=' . click());
$ask->('a replay', 'GET', '/spot/click?url=https://evil.example&t=' . token('click', serve => 1, creative => 12, placement => 'plain'));
$ask->('too late', 'GET', '/spot/click?url=https://evil.example&t=' . click(issued => server_time() - 2 * 86_400_000));
$ask->('of all types', 'GET', '/spot/track?type=click&url=https://evil.example&t=' . click());
is_deeply \@wrong, [], "$asked clicks go to the catalog's target, and nowhere else";

for my $path ('//evil.example/spot/click', '/spot/click//evil.example', '/spot/click/https://evil.example/', '/spot/click/', '/spot/%2f%2fevil.example', '/spot/..//evil.example/%2e%2e') {
    my $res = $ngx->get("$path?t=" . click());
    ok $res->{status} >= 400 && !defined $res->{headers}{location}, "$path leads nowhere" or diag explain $res;
}
for my $token ('https://evil.example/', '//evil.example', 'x' x 96, flip(click(), 77), '') {
    my $res = $ngx->get('/spot/click?url=https://evil.example&t=' . escaped($token));
    ok $res->{status} == 400 && !defined $res->{headers}{location}, 'without a valid token there is no redirect';
    unlike $res->{body}, qr/evil/, 'nor an echo';
}
my $res = $ngx->post('/spot/click?t=' . click(), 'url=https://evil.example');
is $res->{status}, 204, 'a beacon';
is $res->{headers}{location}, undef, 'has no redirect';

# --- macros ------------------------------------------------------------------------------

my $began = time;
my %own = (creative => 13, ad_group => 13, placement => 'a-B_c9');
my @went = map { $ngx->get('/spot/click?t=' . token('click', serve => 9000 + $_, %own))->{headers}{location} } 1 .. 20;
my %busters;
for my $i (1 .. 20) {
    my $id = token('conversion', serve => 9000 + $i, %own);
    like $went[ $i - 1 ], qr{^https://acme\.example/\?i=\Q$id\E&c=7&g=13&r=13&p=a-B_c9&t=\d+&b=([0-9a-f]{16})&y=%7Bcampaign%7D#7$}, 'every macro has its value' or last;
    my ($second, $buster) = $went[ $i - 1 ] =~ /&t=(\d+)&b=(\w+)/;
    ok $began <= $second && $second <= time, 'the timestamp is that of the click' or diag $second;
    $busters{$buster}++;
}
is scalar keys %busters, 20, 'no cache is hit twice';

# A target that is not one is refused before anybody can click on it.
for my $url ('javascript:alert(1)', '//evil.example', 'http:evil.example', "https://a.example/\r\nSet-Cookie: a=b", 'https://a.example/ b', 'data:text/html,x', '{click_id}', 'https://{placement}/', 'https://user@a.example/', '') {
    my $bad = write_temp('bad.json', catalog({ placements => [ { id => 'plain' } ], campaigns => [ { id => 7, ad_groups => [ $ad->(12, 'plain', $url) ] } ] }));
    my $other = AdsTest::Nginx->new(http => http_conf(catalog => $bad), server => locations());
    my $result = $other->launch;
    is $result->{ready}, 0, 'no target: ' . ($url =~ s/\s/ /gr);
    like $result->{stderr} . $other->error_log, qr/click_url/, 'and which it is';
}

# --- a token tells nothing of the visitor ---------------------------------------------------

my %seen;
for my $visitor (1 .. 6) {
    my $session = sprintf '%032x', 0xabc0 + $visitor;
    my $res = $ngx->get("/spot/serve?placement=plain&user=person$visitor", { Cookie => "spot=$session", 'X-Real-IP' => "203.0.113.$visitor", 'User-Agent' => 'Mozilla/5.0 (X11; Linux x86_64)', Referer => "https://news.example/$visitor" });
    my ($served) = @{ JSON::PP::decode_json($res->{body})->{ads} };
    for my $type (qw(impression viewable click)) {
        my ($text) = $served->{"${type}_url"} =~ /t=([\w-]{96})$/;
        my $token = open_token($text);
        ok $token->{authentic}, "$type: a token" if $visitor == 1;
        delete @$token{qw(serve issued)};
        $seen{$type}{ JSON::PP->new->canonical->encode($token) }++;
    }
}
is scalar keys %{ $seen{$_} }, 1, "$_: of six visitors it differs by nothing but the serve and its time" for qw(impression viewable click);

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';
done_testing;
