# Pages of other origins: ads_cors, who may embed and measure answers, and what
# an advertiser learns of the page that was clicked on.

use strict;
use warnings;

use lib 't/lib';
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;

my $ngx = AdsTest::Nginx->new(
    http   => http_conf(state => 'logs/state', more => "    keepalive_requests 100000;\n"),
    server => <<'EOC' . locations() =~ s{location = /spot/track}{location = /plain/serve { ads_serve; ads_cors off; } location = /spot/track}r,
        ads_cors https://news.example https://*.shop.example http://localhost:3000 https://*.cdn.example:8443;
EOC
)->start;
my $conn = $ngx->connection;

my $All = 'https://news.example, http://localhost:3000';

sub ask { my ($method, $path, @headers) = @_; return $conn->request($method, $path, \@headers) }
sub headers { my ($res, @names) = @_; return [ map { $res->{headers}{$_} } @names ] }

my @Cors = qw(access-control-allow-origin access-control-allow-credentials timing-allow-origin vary);

subtest 'origins that may' => sub {
    for my $origin ('https://news.example', 'http://localhost:3000', 'https://www.shop.example', 'https://a.b-c.shop.example', 'https://x.cdn.example:8443') {
        my $res = ask('GET', '/spot/serve?placement=top', Origin => $origin);
        is $res->{status}, 200, $origin;
        is_deeply headers($res, @Cors), [ $origin, 'true', $origin, 'Origin' ], 'may read and measure';
    }
};

subtest 'origins that may not' => sub {
    for my $origin (
        'null', '', '*', 'https://news.example.', 'https://news.example/', 'https://NEWS.example', 'http://news.example', 'https://news.example:443', 'https://news.example:8443',
        'https://news.example.evil.example', 'https://evil-news.example', 'https://shop.example', 'https://.shop.example', 'https://evilshop.example', 'http://www.shop.example',
        'https://www.shop.example:444', 'https://evil.example/.shop.example', 'https://evil.example?.shop.example', 'https://evil.example#.shop.example', 'https://a@b.shop.example',
        'https://evil.example:1.shop.example', 'https://x.cdn.example', 'http://localhost', 'http://localhost:30000', 'https://' . 'a' x 600 . '.shop.example', 'https://news.example https://news.example',
    ) {
        my $res = ask('GET', '/spot/serve?placement=top', Origin => $origin);
        is $res->{status}, 200, 'is served: ' . substr $origin, 0, 50;
        is_deeply headers($res, @Cors), [ undef, undef, $All, 'Origin' ], 'but may not read it';
    }
    my $res = ask('GET', '/spot/serve?placement=top', Origin => 'https://news.example', Origin => 'https://news.example');
    is_deeply headers($res, @Cors), [ undef, undef, $All, 'Origin' ], 'two origins are none';
    $res = ask('GET', '/spot/serve?placement=top');
    is_deeply headers($res, @Cors), [ undef, undef, $All, 'Origin' ], 'nor is none';
    $res = ask('GET', '/plain/serve?placement=top', Origin => 'https://news.example');
    is_deeply headers($res, @Cors), [ undef, undef, undef, undef ], 'off';
};

subtest 'also errors can be read' => sub {
    for my $case ([ 400, 'GET', '/spot/serve' ], [ 400, 'GET', '/spot/click?t=x' ], [ 400, 'POST', '/spot/impression?t=x' ], [ 405, 'PUT', '/spot/serve' ], [ 405, 'DELETE', '/spot/click' ],
        [ 410, 'GET', '/spot/impression?t=' . token('impression', issued => server_time() - 7_200_000) ], [ 400, 'HEAD', '/spot/serve' ]) {
        my ($status, $method, $path) = @$case;
        my $res = ask($method, $path, Origin => 'https://news.example');
        is $res->{status}, $status, "$method " . substr $path, 0, 30;
        is_deeply headers($res, @Cors), [ 'https://news.example', 'true', 'https://news.example', 'Origin' ], 'with the headers';
    }
};

subtest 'preflight' => sub {
    my @asks = ('Access-Control-Request-Method' => 'POST', 'Access-Control-Request-Headers' => 'content-type');
    my @told = qw(access-control-allow-origin access-control-allow-methods access-control-allow-headers access-control-max-age);
    my $res = ask('OPTIONS', '/spot/impression', Origin => 'https://news.example', @asks);
    is $res->{status}, 204, 'of a beacon';
    is_deeply headers($res, @told), [ 'https://news.example', 'GET, HEAD, POST', 'content-type', 86_400 ], 'is answered';
    $res = ask('OPTIONS', '/spot/serve', Origin => 'https://a.shop.example', @asks);
    is_deeply headers($res, @told), [ 'https://a.shop.example', 'GET, HEAD', 'content-type', 86_400 ], 'of serve';
    $res = $conn->request('OPTIONS', '/spot/impression', [ Origin => 'https://news.example', @asks ], 'a body that nobody reads');
    is $res->{status}, 204, 'with a body';
    is ask('GET', '/spot/serve?placement=top')->{status}, 200, 'which is not taken for the next request';
    for my $case ([ 'another origin', Origin => 'https://evil.example', @asks ], [ 'no origin', @asks ], [ 'no question', Origin => 'https://news.example' ]) {
        my ($name, @headers) = @$case;
        $res = ask('OPTIONS', '/spot/impression', @headers);
        is $res->{status}, 405, $name;
        is $res->{headers}{'access-control-allow-methods'}, undef, 'gets no headers';
    }
    is ask('OPTIONS', '/plain/serve', Origin => 'https://news.example', @asks)->{status}, 405, 'off';
};

subtest 'a beacon from a page' => sub {
    my $token = token('impression');
    my $res = $conn->request('POST', "/spot/impression?t=$token", [ Origin => 'https://news.example', 'Content-Type' => 'application/json' ], '{}');
    is $res->{status}, 204, 'is counted';
    is_deeply headers($res, @Cors), [ 'https://news.example', 'true', 'https://news.example', 'Origin' ], 'and may be read';
};

subtest 'embedding' => sub {
    my $policy = 'cross-origin-resource-policy';
    my ($ad) = fetch_ads($ngx, 'placement=top');
    is ask('GET', endpoint($ad->{"${_}_url"}))->{headers}{$policy}, 'cross-origin', $_ for qw(impression viewable click);
    is ask('POST', endpoint($ad->{impression_url}))->{headers}{$policy}, 'cross-origin', 'a beacon';
    is ask('HEAD', endpoint($ad->{impression_url}))->{headers}{$policy}, 'cross-origin', 'HEAD';
    is ask('GET', "/spot/serve?placement=$_")->{headers}{$policy}, 'same-origin', "JSON is for scripts that may read it: $_" for qw(top empty);
    is ask('GET', "/spot/serve?placement=top&format=$_")->{headers}{$policy}, 'cross-origin', $_ for qw(js html);
    is ask('GET', '/spot/serve?placement=empty&format=html')->{headers}{$policy}, 'cross-origin', 'no ad';
    is ask('HEAD', '/spot/serve?placement=top&format=js')->{headers}{$policy}, 'cross-origin', 'HEAD of a script';
};

subtest 'clicks' => sub {
    my ($ad) = fetch_ads($ngx, 'placement=top');
    my $res = ask('GET', endpoint($ad->{click_url}), Referer => 'https://news.example/private?page');
    is $res->{status}, 302, 'a click';
    is $res->{headers}{'referrer-policy'}, 'strict-origin', 'has the site, not the page';
    is $res->{headers}{'cache-control'}, 'no-store', 'and is not cached';
    is ask('GET', endpoint($ad->{click_url}))->{headers}{'referrer-policy'}, 'strict-origin', 'also the second time';
    is ask('GET', '/spot/click?t=' . token('click', issued => server_time() - 2 * 86_400_000))->{headers}{'referrer-policy'}, 'strict-origin', 'and when the token has expired';
    is ask('GET', endpoint($ad->{impression_url}))->{headers}{'referrer-policy'}, undef, 'a picture leads nowhere';
};

$conn->close;
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';

for my $origin ('*', 'https://*', 'https://*.com', 'null', 'news.example', 'https://', 'https://news.example/', 'https://News.example', 'https://news.example:', 'https://news.example:x', 'ftp://news.example',
    'https://a.*.example', 'https://*.', 'https://.example', 'https://news.example.', 'https://[::1]', 'https://a@b.example', 'off https://news.example', 'https://news.example off') {
    my $other = AdsTest::Nginx->new(http => http_conf(), server => locations() . "ads_cors $origin;\n");
    my $result = $other->launch;
    is $result->{ready}, 0, "ads_cors $origin: refused";
    like $result->{stderr} . $other->error_log, qr{\[emerg\].*ads: invalid value "[^"]*" in "ads_cors": must be an origin such as https://example\.com or}, 'and what would be right';
}

done_testing;
