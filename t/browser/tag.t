# The tag on pages in a real Chromium, against nginx. The tests are in *.mjs beside this file.

use strict;
use warnings;

use lib 't/lib';
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;
use AdsTest::Browser;

my ($node, $browser) = AdsTest::Browser::needs('build/tag/tag.js');
my $port = free_port();
my $site = "http://127.0.0.1:$port";

# PLACEMENT has one ad: group ID with creative ID*10+1.
sub group {
    my ($id, $placement, $width, $height, %o) = @_;
    my @content = (type => 'image', content => { src => "/picture-$placement.svg", alt => "Ad $id" });
    return {
        id => $id, targeting => { placements => [$placement], %{ delete $o{targeting} // {} } },
        creatives => [ { id => $id * 10 + 1, @content, $width ? (width => $width, height => $height) : (), click_url => "$site/landing.html?ad=$id",
                %{ delete $o{creative} // {} } } ],
        %o,
    };
}

my @Slots = (
    [ 'top', 728, 90 ], [ 'side', 300, 250 ], [ 'low', 300, 250 ], [ 'large', 970, 250 ], [ 'text' ], [ 'markup', 300, 250 ], [ 'third', 300, 250 ],
    [ 'empty', 300, 250 ], [ 'broken', 300, 250 ], [ 'left', 160, 600 ], [ 'right', 160, 600 ], [ 'first', 300, 50 ], [ 'second', 300, 50 ], [ 'section', 300, 50 ],
    [ 'whole', 300, 100 ], [ 'links', 300, 250 ], [ 'script', 300, 250 ], [ 'partner', 300, 250 ],
    [ 'most', 300, 250, viewable => { share => 0.8, seconds => 2 } ],
);
my $catalog = catalog({
    placements => [ map { my ($id, $width, $height, %more) = @$_; { id => $id, $width ? (width => $width, height => $height) : (), %more } } @Slots ],
    campaigns  => [
        {   id => 1, name => 'Site', advertiser => 'acme', timezone => AdsTest::Clock::noon_zone(), ad_groups => [
                group(1, 'top', 728, 90), group(2, 'side', 300, 250), group(3, 'low', 300, 250), group(4, 'large', 970, 250),
                group(5, 'text', 0, 0, creative => { type => 'native', content => { title => '<b>Winter</b>', body => 'Warm & dry', image => '/picture-text.svg' } }),
                group(6, 'broken', 300, 250, creative => { content => { src => '/gone.svg', alt => 'Gone' } }),
                group(7, 'whole', 300, 100),
                group(8, 'markup', 300, 250, creative => { type => 'html', content => { markup => '<p style="margin:0;height:250px;background-color:#cfe">Markup <img src="/picture-text.svg" alt=""></p>' } }),
                group(14, 'links', 300, 250, creative => { type => 'html', content => { markup => '<a href="{click_url}">One</a> <a href="{click_url}">Two</a>' } }),
                group(15, 'script', 300, 250, creative => { type => 'html', content => { markup =>
                    qq(<p>Script</p><script>fetch("$site/stolen-1")</script><script src="$site/stolen-2.js"></script><img src="x" onerror="fetch('$site/stolen-3')">) } }),
                group(16, 'partner', 300, 250, creative => { type => 'tag', content => { markup => <<'EOM' } }),
<a id="link" href="{click_url}">Partner</a>
<script>
let page = 'not reached';
try { page = parent.document.title; } catch {}
document.body.append(` ${origin} ${page}`);
</script>
EOM
                group(17, 'most', 300, 250),
                group(10, 'left', 160, 600, together => 'skin'), group(11, 'right', 160, 600, together => 'skin'),
                group(12, 'section', 300, 50, targeting => { keys => { section => ['sport'] } }),
                group(13, 'section', 300, 50, priority => 'house'),
            ] },
        { id => 2, name => 'One', advertiser => 'one', timezone => AdsTest::Clock::noon_zone(), ad_groups => [ group(21, 'first', 300, 50, exclusive => 'advertiser'), group(22, 'second', 300, 50) ] },
        { id => 3, name => 'Other', advertiser => 'other', timezone => AdsTest::Clock::noon_zone(), ad_groups => [ group(23, 'second', 300, 50, priority => 'house') ] },
    ],
});

my $ngx = AdsTest::Nginx->new(
    port => $port,
    http => http_conf(state => 'logs/state', catalog => write_temp('browser.json', $catalog), more => <<'EOH' =~ s/%%PORT%%/$port/r),
    types { text/html html; image/svg+xml svg; text/css css; text/javascript js; }
    log_format requests '$request_method $uri $args $status $http_sec_purpose';
    ads_frame_origin http://frames.localhost:%%PORT%% advertiser=acme;
    map $uri $policy {
        ~^/strict/ "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' https:; frame-src 'self'; style-src 'self'; require-trusted-types-for 'script'";
    }
EOH
    server => locations() . AdsTest::Browser::locations() . <<"EOC" )->start;
        access_log logs/requests.log requests;
        ads_explain on;
        ads_cors http://localhost:$port;
        location / { add_header Content-Security-Policy \$policy; }
    }
    server {
        listen 127.0.0.1:$port;
        server_name frames.localhost;
        ads_cors $site;
        location = /spot/frame { ads_frame; }
        location = /spot/click { ads_track click; }
        location / { return 404; }
EOC

my %color = (top => '#1c2541', side => '#7a1f3d', low => '#1f5f3d', large => '#5a3d7a', left => '#7a5a1f', right => '#1f5a7a');
for (@Slots) {
    my ($id, $width, $height) = @$_;
    $_ //= 60 for $width, $height;
    my $fill = $color{$id} // '#444';
    $ngx->write_file("html/picture-$id.svg",
        qq(<svg xmlns="http://www.w3.org/2000/svg" width="$width" height="$height"><rect width="100%" height="100%" fill="$fill"/><text x="12" y="36" font-size="24" fill="#fff">$id</text></svg>));
}

AdsTest::Browser::run($node, 't/browser/tests.mjs', SITE => $site, ROOT => $ngx->path('html'), LOG => $ngx->path('logs/requests.log'), BROWSER => $browser);

$ngx->stop;
is_deeply [ $ngx->problems(allow => [ qr/gone\.svg/, qr/favicon/ ]) ], [], 'clean log and exit';
done_testing;
