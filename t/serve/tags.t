# Creatives of type tag: which advertisers' are served, where they are shown, and under which
# policy.

use lib 't/lib';
use AdsTest::Clock;
use AdsTest;
use AdsTest::Ads;

ads_blocks(zone => 't006');
no_long_string();

our $Origin = 'ads_frame_origin http://frames.example:8443 advertiser=acme "advertiser=Two Words";';
our $Policy = "sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox; default-src 'none'; script-src https: 'unsafe-inline'; "
    . "style-src https: 'unsafe-inline'; img-src https: data: 'self'; font-src https: data:; media-src https:; connect-src https:; "
    . "frame-src https:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

# One tag of this advertiser.
sub one_tag {
    my ($advertiser, $markup) = @_;
    return catalog({ placements => [ { id => 'side', width => 300, height => 250 } ], campaigns => [ { id => 7, advertiser => $advertiser, ad_groups => [ { id => 13, creatives => [
        { id => 41, type => 'tag', content => { markup => $markup // '<script>go("{click_url}")</script>' }, click_url => 'https://a.example/' } ] } ] } ] });
}
sub impression { return token('impression', serve => 1, ad_group => 13, creative => 41, placement => 'side', @_) }

plan tests => 45;
run_tests();

__DATA__

=== TEST 1: a tag of an advertiser that may: its frame is on the other host, and its markup only there
--- http_config eval: $::Origin
--- config
location = /spot/frame { ads_frame; }
--- catalog eval: ::one_tag('acme')
--- steps
clock
GET /spot/serve?placement=side -> 200
    ~ "type":"tag","width":300,"height":250,"content":{},"viewable"
    ~ "frame_url":"http://frames.example:8443/spot/frame\?t=[\w-]{96}"
    ~ "click_url":"/spot/click
GET /spot/serve?placement=side&format=html -> 200
    ~ <iframe src="http://frames.example:8443/spot/frame\?t=[\w-]{96}" width="300" height="250" [^>]*sandbox="allow-scripts allow-popups allow-popups-to-escape-sandbox" referrerpolicy="no-referrer"></iframe>
    !~ go\(
GET /spot/frame?t={{impression()}} -> 200
    > Host: frames.example:8443
    Content-Security-Policy: {{$::Policy}}
    Referrer-Policy: no-referrer
    X-Content-Type-Options: nosniff
    ~ ^<!doctype html><html><head><meta charset="utf-8"><title>Advertisement</title>.*<body><script>go\("http://frames.example:8443/spot/click\?t=[\w-]{96}"\)</script></body></html>$
GET /spot/frame?t={{impression()}} -> 200
    > Host: FRAMES.example:8443



=== TEST 2: on any other host it is not there
--- http_config eval: $::Origin
--- config
location = /spot/frame { ads_frame; }
--- catalog eval: ::one_tag('acme')
--- steps
clock
GET /spot/frame?t={{impression()}} -> 404
    Content-Security-Policy: sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src https: 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'
    ~ <title>this host does not show tags</title></head><body></body></html>$
GET /spot/frame?t={{impression()}} -> 404
    > Host: frames.example
GET /spot/frame?t={{impression()}} -> 404
    > Host: x.frames.example:8443



=== TEST 3: of another advertiser it is not served, nor shown
--- http_config eval: $::Origin
--- config
location = /spot/frame { ads_frame; }
--- catalog eval: ::one_tag('Acme')
--- steps
clock
GET /spot/serve?placement=side -> 200
    = {"ads":[]}
GET /spot/frame?t={{impression()}} -> 410
    > Host: frames.example:8443



=== TEST 4: a name of two words, and markup without scripts
--- http_config eval: $::Origin
--- config
location = /spot/frame { ads_frame; ads_base https://spot.example/t/; }
--- catalog eval: ::one_tag('Two Words', '<a href="{click_url}">x</a>{click_url}')
--- steps
clock
GET /spot/serve?placement=side -> 200
    ~ "creative":41
GET /spot/frame?t={{impression()}} -> 200
    > Host: frames.example:8443
    ~ <body><a href="(https://spot.example/t/click\?t=[\w-]{96})">x</a>\1</body>



=== TEST 5: without ads_frame_origin there are none
--- config
location = /spot/frame { ads_frame; }
--- catalog eval: ::one_tag('acme')
--- steps
clock
GET /spot/serve?placement=side -> 200
    = {"ads":[]}
GET /spot/frame?t={{impression()}} -> 410
