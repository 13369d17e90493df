# Follows docs/web.md from nothing, as a reader would: its locations, its page in a blank file, and
# the catalog that `make install` installs.

use strict;
use warnings;

use lib 't/lib';
use Cwd qw(abs_path);
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;
use AdsTest::Browser;

my ($node, $browser) = AdsTest::Browser::needs('build/tag/tag.js');

open my $in, '<', 'docs/web.md' or die $!;
my ($section) = do { local $/; <$in> } =~ /^## The tag\n(.*?)^## /ms or die;
my ($locations) = $section =~ /^```nginx\n(.*?)^```/ms or die;
my ($page)      = $section =~ /^```html\n(<!doctype html>.*?)^```/ms or die;

# The path where `make install` would have installed it.
my $tag = abs_path('build/tag');
$locations =~ s/ads_tag;/ads_tag $tag;/ or die;

open my $catalog, '<', 'conf/catalog.json' or die $!;
my $ngx = AdsTest::Nginx->new(
    http   => http_conf(state => 'logs/state', catalog => write_temp('web.json', do { local $/; <$catalog> }), more => <<'EOH'),
    types { text/html html; image/svg+xml svg; }
    log_format requests '$request_method $uri $args $status $http_sec_purpose';
EOH
    server => "access_log logs/requests.log requests;\n$locations",
)->start;
mkdir $ngx->path('html/pictures');
for my $picture (glob 'conf/demo/pictures/*.svg') {
    open my $from, '<', $picture or die $!;
    $ngx->write_file('html/pictures/' . $picture =~ s{.*/}{}r, do { local $/; <$from> });
}
$ngx->write_file('html/first.html',  $page);
$ngx->write_file('html/favicon.ico', '');

AdsTest::Browser::run($node, 't/browser/web-page.mjs', SITE => 'http://127.0.0.1:' . $ngx->port, ROOT => $ngx->path('html'), LOG => $ngx->path('logs/requests.log'), BROWSER => $browser);

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean log and exit';
done_testing;
