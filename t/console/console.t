# ads_console: the files of the page, its policy, one authentication for all of the console.

use strict;
use warnings;
use lib 't/lib';

use Compress::Zlib ();
use File::Temp qw(tempdir);
use Test::More;

use AdsTest::Ads;
use AdsTest::Api;
use AdsTest::Nginx;

my $policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https:; connect-src 'self'; frame-src 'self'; "
    . "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'";

# ---- files -------------------------------------------------------------------------------

my $folder = tempdir(CLEANUP => 1);
sub put {
    my ($name, $text) = @_;
    open my $out, '>', "$folder/$name" or die "$!";
    print {$out} $text;
    return close $out;
}
put('index.html', '<!doctype html><title>Console</title>');
put('console.js', 'let one = 1;');
put('style.css',  'a { color: red }');
put('icon.svg',   '<svg/>');
put('notes.txt',  'not for the web');

my $ngx = AdsTest::Nginx->new(http => '', server => "location /console/ { ads_console $folder; location = /console/other { return 204; } }")->start;
my %types = ('' => 'text/html; charset=utf-8', 'index.html' => 'text/html; charset=utf-8', 'console.js' => 'text/javascript; charset=utf-8',
    'style.css' => 'text/css; charset=utf-8', 'icon.svg' => 'image/svg+xml; charset=utf-8');
for my $name (sort keys %types) {
    my $res = $ngx->get("/console/$name");
    is $res->{status}, 200, "/console/$name";
    is $res->{headers}{'content-type'},            $types{$name}, 'its type';
    is $res->{headers}{'content-security-policy'}, $policy,       'its policy';
    is $res->{headers}{'x-content-type-options'},  'nosniff',     'not to be guessed';
    is $res->{headers}{'referrer-policy'},         'no-referrer', 'no referrer';
    is $res->{headers}{'cache-control'},           'private, no-cache', 'looked for anew';
}
is $ngx->get('/console/')->{body}, '<!doctype html><title>Console</title>', 'the page';
my $etag = $ngx->get('/console/console.js')->{headers}{etag};
is $ngx->get('/console/console.js', { 'If-None-Match' => $etag })->{status}, 304, 'unchanged';
is $ngx->get("/console/$_")->{status}, 404, "no /console/$_" for qw(notes.txt other.js a/console.js ..console.js);
is $ngx->get('/console/other')->{status}, 204, 'a nested location is its own';
is $ngx->post('/console/')->{status}, 405, 'only to be read';
is $ngx->request('HEAD', '/console/')->{body}, '', 'HEAD';
my $redirect = $ngx->get('/console');
is $redirect->{status}, 301, 'without the slash';
like $redirect->{headers}{location}, qr{/console/\z}, 'with it';

put('console.js', 'let two = 2;');
is $ngx->get('/console/console.js')->{body}, 'let one = 1;', 'read with the configuration';
$ngx->reload(wait_old => 1);
is $ngx->get('/console/console.js')->{body}, 'let two = 2;', 'and with the next';
isnt $ngx->get('/console/console.js')->{headers}{etag}, $etag, 'which its ETag tells';

# ---- what is refused -----------------------------------------------------------------------

sub refused {
    my ($server, $like, $what) = @_;
    my $bad = AdsTest::Nginx->new(http => '', server => $server);
    my $result = $bad->launch;
    ok defined $result->{exit} && $result->{exit} != 0, "$what: refused";
    like $bad->error_log, $like, 'and why';
    $bad->stop;
    return;
}
refused('location /c/ { ads_console /nowhere/console; }', qr{\[emerg\] .*opendir\(\) "/nowhere/console" failed \(2: No such file or directory\) in .*/nginx.conf:\d+}, 'no folder');
my $empty = tempdir(CLEANUP => 1);
refused("location /c/ { ads_console $empty; }", qr{\[emerg\] .*open\(\) "\Q$empty\E/index.html" failed \(2: No such file or directory\) in }, 'no page in it');
for my $location ('= /c/', '/c', '~ /c/') {
    refused("location $location { ads_console $folder; }", qr{"ads_console" must be in a location of a prefix that ends in a slash, such as /console/}, "location $location");
}
refused("location /c/ { ads_console $folder; ads_console $folder; }", qr/"ads_console" is not allowed here: the location already has a handler/, 'twice');

# The host that shows scripts of third parties has nothing else.
{
    my $bad = AdsTest::Nginx->new(http => http_conf(more => <<"EOC"), server => locations());
    ads_frame_origin http://frames.example advertiser=acme;
    server {
        listen 127.0.0.1:%%PORT_frames%%;
        server_name frames.example;
        location = /spot/frame { ads_frame; }
        location /console/ { ads_console $folder; }
        location / { return 404; }
    }
EOC
    my $result = $bad->launch;
    ok defined $result->{exit} && $result->{exit} != 0, 'the console on the host for frames: refused';
    like $bad->error_log, qr/serves pages; must be a host that has only ads_frame/, 'and why';
    $bad->stop;
}

# ---- the page ------------------------------------------------------------------------------

SKIP: {
    my @files = glob 'build/console/*' or skip 'the console is not built: make console', 1;
    my $size = 0;
    for my $path (@files) {
        my $text = AdsTest::Nginx::slurp($path);
        $size += length Compress::Zlib::memGzip($text);
        unlike $text, qr/<script>|<style>|\bon\w+="|style="/, "$path: nothing inline that its policy forbids" if $path =~ /html$/;
    }
    cmp_ok $size, '<=', 100_000, "gzipped, the page is $size bytes";
}

# ---- who may see it ------------------------------------------------------------------------

SKIP: {
    -d 'build/console' or skip 'the console is not built: make console', 1;
    my $api = AdsTest::Api->new(console => 1);
    my @urls = (map { "/console/$_" } '', 'index.html', 'console.js', 'style.css', 'icon.svg', 'nothing', 'live', 'live?campaigns=1', 'status', 'status?format=prometheus',
        'api/', 'api/me', 'api/campaigns', 'api/openapi.json', 'api/campaigns/7/pause', '%61pi/me', './status', 'x/../status', '//status');
    for my $url (@urls) {
        for my $method (qw(GET POST HEAD)) {
            is $api->{ngx}->request($method, $url)->{status}, 401, "$method $url";
        }
        is $api->call('GET', $url, raw => 1, headers => { Authorization => 'Basic YWRtaW46d3Jvbmc=' })->{status}, 401, "$url with a wrong password";
    }
    is $api->call('GET', '/console/', raw => 1, as => 'viewer')->{status}, 200, 'a viewer';
    is $api->call('GET', '/console/status', raw => 1, as => 'viewer')->{status}, 200, 'who sees the node';
    is $api->call('GET', '/console/', raw => 1, as => 'carol')->{status}, 200, 'an advertiser';
    for my $who (qw(carol nobody)) {
        is $api->call('GET', "/console/$_", raw => 1, as => $who)->{status}, 403, "$who does not see $_ of the node" for qw(live status);
    }
}

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean log and exit';
done_testing;
