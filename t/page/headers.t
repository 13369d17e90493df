# Request and response headers of pages with ads: proxied, from the cache and static.

use strict;
use warnings;

use lib 't/lib';
use Compress::Zlib ();
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;
use AdsTest::Origin;

my $page = <<'E';
<!doctype html>
<title>A page</title>
<page-spot placement="top">top</page-spot>
<p>Text</p>
<page-spot id=two placement='side'>side</page-spot>
<page-spot placement="empty">nothing</page-spot>
<page-spot placement="unknown">unknown</page-spot>
E

my $origin = AdsTest::Origin->new;
my $inject = 'ads_inject on;';
my $ngx = AdsTest::Nginx->new(
    http => http_conf(state => 'logs/state') . "proxy_cache_path logs/cache keys_zone=pages:1m; ads_consent off; keepalive_requests 10000;\n",
    server => locations() . <<"E",
        ads_base /spot/;
        expires 1h;
        location /static/     { alias html/; $inject }
        location /marked/     { alias html/; gzip on; gzip_min_length 1; $inject }
        location /off/        { alias html/; }
        location /keep/       { alias html/; ads_inject on cache=keep; }
        location /tag/        { alias html/; ads_inject on pixel=off; }
        location /other/      { alias html/; ads_inject on element=my-place; }
        location /proxied/    { proxy_pass http://127.0.0.1:%%PORT_origin%%/; $inject }
        location /direct/     { proxy_pass http://127.0.0.1:%%PORT_origin%%/; proxy_buffering off; $inject }
        location /cached/     { proxy_pass http://127.0.0.1:%%PORT_origin%%/; proxy_cache pages; proxy_cache_valid 200 1h;
                                add_header X-Cache \$upstream_cache_status; $inject }
        location /opened/     { proxy_pass http://127.0.0.1:%%PORT_origin%%/; gunzip on; gzip on; gzip_min_length 1; $inject }
        location /asked/      { proxy_pass http://127.0.0.1:@{[ $origin->port ]}/; $inject }
        location /missing/    { alias html/; error_page 404 /static/page.html; $inject }
        location /shown/      { alias html/; error_page 404 =200 /static/page.html; }
        location /index/      { alias html/; index page.html; $inject }
        location /tried/      { try_files /none /static/page.html; }
        location /sent/       { proxy_pass http://127.0.0.1:%%PORT_origin%%/; proxy_pass_request_headers off; }
        location /known/      { alias html/; ads_session_cookie spot; $inject }
        location /shared/     { alias html/; ads_session_cookie spot; ads_inject on cache=keep; }
        location /limited/    { alias html/; ads_rate_limit zone=few:64k rate=1 window=1d status=silent; $inject }
        location = /moved     { return 302 /static/page.html; $inject }
    }
    server {
        listen 127.0.0.1:%%PORT_origin%%;
        root html;
        location /packed/   { alias html/packed/; gzip_static always; }
        location /wide/     { alias html/; charset utf-16le; }
        location /sent/     { default_type text/html; add_header X-Accel-Redirect /static/page.html; return 200 x; }
        location /narrow/   { alias html/; charset Windows-1252; }
        add_header Cache-Control 'public, max-age=60'; add_header CDN-Cache-Control 'max-age=60'; add_header Content-MD5 x;
E
);
$ngx->write_file('html/page.html', $page);
$ngx->write_file('html/other.html', $page =~ s/page-spot/my-place/gr);
$ngx->write_file('html/page.txt', $page);
$ngx->write_file('html/packed/page.html.gz', Compress::Zlib::memGzip($page));
$ngx->start;

# The page without its ads, each replaced by [TYPE ATTRIBUTES]; attributes and tokens are checked.
my $token = qr/[\w-]{96}/;
sub plain {
    my ($body) = @_;
    $body =~ s{<page-spot data-inserted="[0-9a-f]{16}" data-type="(\w+)" data-width="\d+" data-height="\d+" data-creative="\d+" data-viewable-share="0\.5" data-viewable-seconds="1" data-impression="/spot/impression\?t=$token" data-viewable="/spot/viewable\?t=$token" data-click="/spot/click\?t=$token"([^>]*)>(.*?)</page-spot>}{[$1$2]}gs;
    return $body;
}
my $filled = <<'E';
<!doctype html>
<title>A page</title>
[image placement="top"]
<p>Text</p>
[html id=two placement='side']
<page-spot data-inserted="" placement="empty">nothing</page-spot>
<page-spot placement="unknown">unknown</page-spot>
E

my %conditions = ('If-Modified-Since' => 'Fri, 01 Jan 2100 00:00:00 GMT', Range => 'bytes=0-9');
for my $where (qw(static/page.html proxied/page.html direct/page.html cached/page.html cached/page.html opened/page.html opened/packed/page.html
    shown/x index/ tried/x sent/sent/x proxied/narrow/page.html)) {
    for my $headers ({}, {%conditions}, { 'If-None-Match' => '*' }, { 'If-Match' => '"x"' }, { 'If-Unmodified-Since' => 'Fri, 01 Jan 1999 00:00:00 GMT' }) {
        my $got = $ngx->get("/$where", $headers);
        my $what = "/$where" . join '', map { " $_" } sort keys %$headers;
        is $got->{status}, 200, "$what: 200";
        is plain($got->{body}), $filled, "$what: its slots are filled";
        is $got->{headers}{'content-length'} // length $got->{body}, length $got->{body}, "$what: a length, if any, is its own";
        is_deeply [ @{ $got->{header_list} }{qw(cache-control cdn-cache-control content-md5 etag last-modified accept-ranges expires content-encoding)} ],
            [ ['private, no-store'], (undef) x 7 ], "$what: it is not for caches";
    }
}
is $ngx->get('/cached/page.html')->{headers}{'x-cache'}, 'HIT', 'it is in the cache';

subtest 'HEAD' => sub {
    my $before = events_of('serve');
    for my $where (qw(static proxied cached)) {
        my $got = $ngx->connection->request('HEAD', "/$where/page.html");
        is $got->{status}, 200, "/$where: 200";
        is $got->{headers}{'cache-control'}, 'private, no-store', 'not for caches';
        is $got->{headers}{'content-length'}, undef, 'no length';
        is $got->{headers}{etag}, undef, 'no tag';
    }
    is events_of('serve'), $before, 'nothing is served';
};

subtest 'a page that is left alone' => sub {
    for my $where (qw(/off/page.html /static/page.txt)) {
        my $got = $ngx->get($where);
        is $got->{body}, $page, "$where: as it is";
        ok $got->{headers}{etag} && $got->{headers}{'content-length'}, 'with its headers';
        is $ngx->get($where, { 'If-None-Match' => $got->{headers}{etag} })->{status}, 304, 'not modified';
        is $ngx->get($where, { Range => 'bytes=0-9' })->{body}, substr($page, 0, 10), 'a part';
    }
    is $ngx->get('/missing/x')->{status}, 404, 'a page for an error keeps its status';
    is $ngx->get('/missing/x')->{body}, $page, 'and its slots';
    is $ngx->get('/moved')->{status}, 302, 'a redirect';
};

sub pages { return status_of($ngx)->{pages} }
sub counted {
    my ($result, $path, $headers) = @_;
    my $before = pages()->{$result};
    my $got = $ngx->get($path, $headers);
    wait_until { pages()->{$result} > $before } 10, "$result to be counted";
    is pages()->{$result}, $before + 1, "$path is counted as $result";
    return $got;
}

subtest 'unreadable responses' => sub {
    my $got = counted('encoded', '/proxied/packed/page.html');
    is $got->{headers}{'content-encoding'}, 'gzip', 'compressed pages pass';
    is Compress::Zlib::memGunzip($got->{body}), $page, 'untouched';
    is counted('charset', '/proxied/wide/page.html')->{body}, $page, 'pages in UTF-16 as well';
    counted('decided', '/static/page.html');
};

subtest 'compressed for the client' => sub {
    for my $where (qw(/marked/page.html /opened/page.html /opened/packed/page.html)) {
        my $got = $ngx->get($where, { 'Accept-Encoding' => 'gzip' });
        is $got->{headers}{'content-encoding'}, 'gzip', "$where is compressed";
        is plain(Compress::Zlib::memGunzip($got->{body})), $filled, 'after its slots are filled';
    }
};

subtest 'prefetched' => sub {
    my $before = events_of('serve');
    for my $headers ({ 'Sec-Purpose' => 'prefetch' }, { 'Sec-Purpose' => 'prefetch;prerender' }, { Purpose => 'prefetch' }) {
        my $got = counted('prefetch', '/static/page.html', $headers);
        is $got->{body}, $page, 'slots are left for the tag';
        is $got->{headers}{'cache-control'}, 'private, no-store', 'not for caches';
    }
    is events_of('serve'), $before, 'nothing is served';
};

subtest 'parameters' => sub {
    my $got = $ngx->get('/keep/page.html');
    is plain($got->{body}), $filled, 'cache=keep: the slots are filled';
    like $got->{headers}{'cache-control'}, qr/max-age=3600/, 'and the rules for caches stay';
    is $got->{headers}{etag}, undef, 'but not the tag';
    like $ngx->get('/static/page.html')->{body}, qr{<img src="/spot/impression\?t=$token" width="1" height="1" alt="" hidden>}, 'a pixel counts';
    unlike $ngx->get('/tag/page.html')->{body}, qr{<img src="/spot/impression}, 'pixel=off: none does';
    is plain($ngx->get('/other/other.html')->{body} =~ s/my-place/page-spot/gr), $filled, 'element=';
    is $ngx->get('/other/page.html')->{body}, $page, 'and no other element';
};

subtest 'visitors' => sub {
    my $got = $ngx->get('/known/page.html');
    my ($session) = ($got->{headers}{'set-cookie'} // '') =~ /^spot=([0-9a-f]{32});/;
    ok $session, 'a session begins with the page';
    my ($serve) = $got->{body} =~ m{data-inserted="(\w+)"};
    is_deeply [ map { $_->{session} } grep { sprintf('%016x', $_->{serve}) eq $serve } events($ngx->path('logs/spool')) ], [$session], 'and its ads are for it';
    is $ngx->get('/known/page.html', { Cookie => "spot=$session" })->{headers}{'set-cookie'}, undef, 'once';
    is $ngx->get('/shared/page.html')->{headers}{'set-cookie'}, undef, 'and not where a cache would keep it';
    is plain($ngx->get('/limited/page.html')->{body}), $filled, 'below a limit';
    unlike $ngx->get('/limited/page.html')->{body}, qr/data-inserted="\w/, 'above it no ad is inserted';
    like $ngx->get('/limited/page.html')->{body}, qr{<page-spot data-inserted="" placement="top">top</page-spot>}, 'but what the page has';
};

subtest 'the upstream request' => sub {
    my %all = ('Accept-Encoding' => 'gzip, br', 'If-None-Match' => '"x"', 'If-Modified-Since' => 'x', 'If-Range' => '"x"', 'X-Mine' => '1', %conditions);
    my $got = $origin->page($ngx, '/asked/page', headers => \%all, parts => [$page]);
    unlike $got->{request}, qr/^(?:Accept-Encoding|If-|Range)/mi, 'nothing that makes less than a page of the answer';
    like $got->{request}, qr/^X-Mine: 1\r$/m, 'the rest';
    is plain($got->{response}{body}), $filled, 'the slots are filled';
    $got = $origin->page($ngx, '/asked/picture', headers => { %all, 'Sec-Fetch-Dest' => 'image' }, parts => ['x'], head => "Content-Type: image/png\r\n");
    like $got->{request}, qr/^$_: \Q$all{$_}\E\r$/m, "$_ for a picture" for sort keys %all;
};

subtest 'inserted ads are counted' => sub {
    my $got = $ngx->get('/static/page.html');
    my ($impression) = $got->{body} =~ m{data-impression="(/spot/impression\?t=$token)"};
    my ($click)      = $got->{body} =~ m{data-click="(/spot/click\?t=$token)"};
    my ($serve)      = $got->{body} =~ m{data-inserted="(\w+)"};
    is $ngx->get($impression)->{status}, 200, 'the pixel';
    is $ngx->get($click)->{status}, 302, 'the click';
    my %seen = map { $_->{type} => $_ } grep { sprintf('%016x', $_->{serve}) eq $serve } events($ngx->path('logs/spool'));
    is_deeply [ sort keys %seen ], [qw(click impression serve)], 'all have the serve id of the page';
};

# The number of events of this type, once all are written.
sub events_of {
    my ($type) = @_;
    return scalar grep { $_->{type} eq $type } events($ngx->path('logs/spool'));
}

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean log, exit and reports';
done_testing;
