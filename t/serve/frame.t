# What pages load in addition to responses of /spot/serve: ads_frame, ads_slots_css and ads_tag.

use lib 't/lib';
use AdsTest::Clock;
use AdsTest;
use AdsTest::Ads;

ads_blocks(zone => 't005');
no_long_string();

our $Empty = '^<!doctype html><html lang="en"><head><meta charset="utf-8"><title>[^<]+</title></head><body></body></html>$';
our $Csp   = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src https: 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

# The ad of placement side, and the click of the same serve.
our %Serve = (serve => 1, ad_group => 13, creative => 41, placement => 'side', price => 0);
sub impression { return token('impression', %Serve, @_) }
sub click      { return token('click', %Serve, price => 40_000_000, @_) }

# A catalog of one ad with this markup.
sub markup {
    my ($markup, %o) = @_;
    my $creative = { id => 41, type => 'html', content => { markup => $markup }, click_url => 'https://a.example/', %{ $o{creative} // {} } };
    my $group = { id => 13, creatives => [$creative], %{ $o{group} // {} } };
    return catalog({ placements => [ { id => 'side' } ], campaigns => [ { id => 7, ad_groups => [$group], %{ $o{campaign} // {} } } ] });
}

our $Sheet = <<'EOS';
page-spot{display:block}
page-spot[hidden]{display:none}
page-spot[placement="top"]{width:728px;max-width:100%;height:90px}
page-spot[placement="Old_one"]{display:none}
EOS

# FNV-1a of 64 bits.
sub etag {
    my ($text) = @_;
    use integer;
    my $hash = -3750763034362895579;
    $hash = ($hash ^ ord) * 1099511628211 for split //, $text;
    return sprintf '"%016x"', $hash;
}

# A folder with the scripts of a tag.
our $Scripts = write_temp('tag.js', "define('page-spot')") =~ s{/tag\.js$}{}r;
write_temp('tag-debug.js',  'export const debug = 1');
write_temp('other.js',      'secret');
write_temp('tag-notes.txt', 'secret');

plan tests => 138;
run_tests();

__DATA__

=== TEST 1: a document with the ad and the click of the same serve
--- config
location = /spot/frame { ads_frame; }
--- steps
clock
GET /spot/frame?t={{impression()}} -> 200
    Content-Type: text/html; charset=utf-8
    Content-Security-Policy: {{$::Csp}}
    X-Content-Type-Options: nosniff
    Referrer-Policy: no-referrer
    Cache-Control: no-store
    ~ ^<!doctype html><html><head><meta charset="utf-8"><title>Advertisement</title><base target="_blank"><style>[^<]*</style></head><body>
    ~ <a class="spot" rel="noopener sponsored" href="/spot/click\?t={{click()}}"><p>Autumn</p></a></body></html>$
GET /spot/click?t={{click()}} -> 302
    Location: https://acme.example/side
GET /status -> 200
    ~ "id":13,"campaign":7,[^}]*"serves":0,"anonymous":0,"impressions":0,"viewables":0,"clicks":1,
HEAD /spot/frame?t={{impression()}} -> 200
    Content-Security-Policy: {{$::Csp}}
    = 



=== TEST 2: what /spot/serve answers leads there, and the click is the same
--- config
location = /spot/frame { ads_frame; }
--- steps
GET /spot/serve?placement=side -> 200
    ~ "frame_url":"/spot/frame\?t=([\w-]{96})"
    ~ "impression_url":"/spot/impression\?t=([\w-]{96})".*"frame_url":"/spot/frame\?t=\1"
    ~ "viewable":{"share":0.5,"seconds":1}
GET /spot/serve?placement=top -> 200
    !~ frame_url



=== TEST 3: tokens that are refused; each answer is an empty document under the same policy
--- config
location = /spot/frame { ads_frame; }
--- steps
clock
GET /spot/frame -> 400
    Content-Type: text/html; charset=utf-8
    Content-Security-Policy: {{$::Csp}}
    X-Content-Type-Options: nosniff
    Referrer-Policy: no-referrer
    Cache-Control: no-store
    ~ {{$::Empty}}
GET /spot/frame?t=x -> 400
    ~ {{$::Empty}}
GET /spot/frame?t={{click()}} -> 400
    ~ <title>the token is for another event type</title>
GET /spot/frame?t={{flip(impression(), 77)}} -> 400
    ~ {{$::Empty}}
GET /spot/frame?t={{impression(issued => noon() + 120_000)}} -> 400
    ~ <title>the token was issued in the future</title>
GET /spot/frame?t={{impression(issued => noon() - 3_601_000)}} -> 410
    Content-Security-Policy: {{$::Csp}}
    ~ <title>the token has expired</title>
GET /spot/frame?t={{impression(creative => 999)}} -> 410
    ~ {{$::Empty}}
GET /spot/frame?t={{impression(ad_group => 12)}} -> 410
    ~ {{$::Empty}}
POST /spot/frame?t={{impression()}} -> 405
    Allow: GET, HEAD
    Content-Security-Policy: {{$::Csp}}
    ~ {{$::Empty}}
GET /status -> 200
    ~ "written":0,"duplicate":0,"invalid":0,"dropped":0,"expired":0,"rejected":0



=== TEST 4: the token of any kind of creative shows it
--- config
location = /spot/frame { ads_frame; }
--- steps
clock
GET /spot/frame?t={{token('impression', serve => 2)}} -> 200
    ~ <a href="/spot/click\?t=[\w-]{96}" target="_blank" rel="noopener sponsored"><img src="https://cdn.example.com/a.png" [^>]*></a></body></html>$
GET /spot/frame?t={{token('impression', serve => 3, campaign => 8, ad_group => 14, creative => 51)}} -> 200
    ~ <strong class="spot-title">Winter</strong>



=== TEST 5: what somebody has paused is not shown, what has ended is
--- config
location = /spot/frame { ads_frame; }
--- catalog eval
::catalog({placements => [{id => 'side'}], campaigns => [
    (map { {id => $_, ad_groups => [{id => $_, $_ == 2 ? (status => 'paused') : (), creatives => [{id => $_, type => 'html', content => {markup => 'x'}, click_url => 'https://a.example/',
        $_ == 1 ? (status => 'paused') : ()}]}], $_ == 3 ? (status => 'paused') : $_ == 4 ? (status => 'completed') : $_ == 5 ? (status => 'archived') : ()} } 1 .. 6)]})
--- steps
clock
GET /spot/frame?t={{token('impression', campaign => 1, ad_group => 1, creative => 1)}} -> 410
GET /spot/frame?t={{token('impression', campaign => 2, ad_group => 2, creative => 2)}} -> 410
GET /spot/frame?t={{token('impression', campaign => 3, ad_group => 3, creative => 3)}} -> 410
GET /spot/frame?t={{token('impression', campaign => 4, ad_group => 4, creative => 4)}} -> 200
GET /spot/frame?t={{token('impression', campaign => 5, ad_group => 5, creative => 5)}} -> 410
GET /spot/frame?t={{token('impression', campaign => 6, ad_group => 6, creative => 6)}} -> 200



=== TEST 6: markup with links of its own: each counts, and there is no link around them
--- config
location = /spot/frame { ads_frame; }
--- catalog eval
::markup('<p><a href="{click_url}">One</a> <a href="{click_url}">Two</a> {click_id} {click_urls}</p>')
--- steps
clock
GET /spot/frame?t={{impression()}} -> 200
    ~ <body><p><a href="/spot/click\?t=([\w-]{96})">One</a> <a href="/spot/click\?t=\1">Two</a> {click_id} {click_urls}</p></body></html>$
GET /spot/serve?placement=side -> 200
    ~ "markup":".*{click_url}.*One



=== TEST 7: who may show the frame, and where its click leads
--- config
ads_cors https://news.example https://*.shop.example:8443;
location = /other/frame { ads_frame; }
location = /spot/frame { ads_frame; ads_base https://spot.example/t/; ads_cors off; }
--- steps
clock
GET /other/frame?t={{impression()}} -> 200
    Content-Security-Policy: {{$::Csp}} https://news.example https://*.shop.example:8443
    ~ href="/other/click\?t={{'[\w-]'}}{96}"
GET /spot/frame?t={{impression()}} -> 200
    Content-Security-Policy: {{$::Csp}}
    ~ href="https://spot.example/t/click\?t={{'[\w-]'}}{96}"



=== TEST 8: html in another page's frame is a frame by URL, and a large ad is viewable with less of it
--- config
--- catalog eval
::catalog({placements => [{id => 'side', width => 970, height => 250}, {id => 'any'}], campaigns => [{id => 7, ad_groups => [{id => 13, creatives => [
    {id => 41, type => 'html', content => {markup => '<p>Autumn</p>'}, click_url => 'https://a.example/'}]}]}]})
--- steps
GET /spot/serve?placement=side -> 200
    ~ "viewable":{"share":0.3,"seconds":1}
GET /spot/serve?placement=any -> 200
    ~ "viewable":{"share":0.5,"seconds":1}
GET /spot/serve?placement=side&format=html -> 200
    ~ <iframe src="/spot/frame\?t=([\w-]{96})" width="970" height="250" title="Advertisement" scrolling="no" frameborder="0" align="top" sandbox="allow-popups allow-popups-to-escape-sandbox" referrerpolicy="no-referrer"></iframe><img src="/spot/impression\?t=\1"
    !~ Autumn



=== TEST 9: the style sheet of the slots
--- config
location = /spot/slots.css { ads_slots_css; }
location = /my.css { ads_slots_css element=my-place; }
--- catalog eval
::catalog({placements => [{id => 'top', width => 728, height => 90}, {id => 'any'}, {id => 'Old_one', width => 300, height => 250, status => 'paused'}], campaigns => []})
--- steps
GET /spot/slots.css -> 200
    Content-Type: text/css
    Cache-Control: public, max-age=60
    ETag: {{etag($::Sheet)}}
    X-Content-Type-Options: nosniff
    Cross-Origin-Resource-Policy: cross-origin
    ~ ^{{$::Sheet =~ s/([\[\]])/\\$1/gr =~ s/\n/\\n/gr}}$
GET /spot/slots.css -> 304
    > If-None-Match: {{etag($::Sheet)}}
GET /my.css -> 200
    ~ ^my-place{display:block}
HEAD /spot/slots.css -> 200
    Content-Type: text/css
POST /spot/slots.css -> 405
    Allow: GET, HEAD



=== TEST 10: the script and its modules, and no other file
--- config eval
"location /spot/tag { ads_tag $::Scripts; } location = /x/tag.js { ads_tag element=my-place $::Scripts; }"
--- steps
GET /spot/tag.js -> 200
    Content-Type: text/javascript
    Cache-Control: public, max-age=3600
    Access-Control-Allow-Origin: *
    Cross-Origin-Resource-Policy: cross-origin
    X-Content-Type-Options: nosniff
    ETag: {{etag("define('page-spot')")}}
    = define('page-spot')
GET /spot/tag.js -> 304
    > If-None-Match: {{etag("define('page-spot')")}}
GET /spot/tag-debug.js?v=2 -> 200
    = export const debug = 1
GET /x/tag.js -> 200
    = define('my-place')
HEAD /spot/tag.js -> 200
    Content-Length: 19
GET /spot/tag-notes.txt -> 404
GET /spot/tag/../other.js -> 404
GET /spot/tag-debug.js/ -> 404
GET /spot/tag -> 404
POST /spot/tag.js -> 405
    Allow: GET, HEAD
