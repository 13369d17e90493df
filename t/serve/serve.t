# /spot/serve: formats, what is served and what is not, bad input, methods.

use lib 't/lib';
use AdsTest;
use AdsTest::Ads;

ads_blocks(zone => 't003');
no_long_string();

our $Token    = '[\w-]{96}';
our $Document = '^<!doctype html><html><head><meta charset="utf-8"><title>Advertisement</title></head><body marginwidth="0" marginheight="0">';

# A catalog of one placement and one ad in it.
sub one_ad {
    my (%o) = @_;
    my $creative = { id => 1, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/', %{ $o{creative} // {} } };
    my $group    = { id => 1, creatives => [$creative], %{ $o{group} // {} } };
    my $campaign = { id => 1, ad_groups => [$group], %{ $o{campaign} // {} } };
    return catalog({ placements => [ { id => 'top', %{ $o{placement} // {} } } ], campaigns => [$campaign] });
}

our $Hostile = qq(</script><script>alert("1")</script>'&\\\x{2028}\x{2029}\n);

plan tests => 295;
run_tests();

__DATA__

=== TEST 1: JSON, to the last character
--- config
--- steps
GET /spot/serve?placement=top -> 200
    Content-Type: application/json
    Cache-Control: no-store
    ~ ^{"ads":\[{"placement":"top","campaign":7,"ad_group":12,"creative":31,"experiment":null,"type":"image",
    ~ "width":728,"height":90,"content":{"src":"https://cdn.example.com/a.png","alt":"Sale"},"viewable":{"share":0.5,"seconds":1},
    ~ "impression_url":"/spot/impression\?t={{$Token}}","click_url":"/spot/click\?t={{$Token}}",
    ~ "viewable_url":"/spot/viewable\?t={{$Token}}","serve_id":"[0-9a-f]{16}"}\]}$
GET /spot/serve?placement=top&format=json -> 200
    ~ "creative":31



=== TEST 2: several placements, in the order asked for
--- config
--- steps
GET /spot/serve?placement=side,top,text -> 200
    ~ "placement":"side".*"placement":"top".*"placement":"text"
GET /spot/serve?placement=text&placement=side -> 200
    ~ "placement":"text".*"placement":"side"
    !~ "placement":"top"
GET /spot/serve?placement=top,empty,,text, -> 200
    ~ ^{"ads":\[{"placement":"top".*"},{"placement":"text".*"}\]}$
    !~ "placement":.*"placement":.*"placement":



=== TEST 3: no creative twice on a page
--- config
--- steps
GET /spot/serve?placement=top,top -> 200
    ~ ^{"ads":\[{"placement":"top"
    !~ "placement":"top".*"placement":"top"



=== TEST 4: no ad
--- config
--- steps
GET /spot/serve?placement=empty -> 200
    Content-Type: application/json
    Cache-Control: no-store
    = {"ads":[]}
GET /spot/serve?placement=empty&format=html -> 204
    Cache-Control: no-store
    !Content-Type
    = 
GET /spot/serve?placement=empty&format=js -> 200
    = adsFill({"ads":[]});



=== TEST 5: JavaScript
--- config
--- steps
GET /spot/serve?placement=top&format=js -> 200
    Content-Type: application/javascript; charset=utf-8
    Cache-Control: no-store
    ~ ^adsFill\({"ads":\[{"placement":"top".*}\]}\);$
GET /spot/serve?placement=top&format=js&callback=my.$fn_1 -> 200
    ~ ^my\.\$fn_1\({"ads":\[
GET /spot/serve?placement=top&format=js&callback={{'a' x 64}} -> 200
    ~ ^a{64}\({



=== TEST 6: HTML of each type of creative
--- config
--- steps
GET /spot/serve?placement=top&format=html -> 200
    Content-Type: text/html; charset=utf-8
    Cache-Control: no-store
    ~ {{$::Document}}<a href="/spot/click\?t={{$Token}}" target="_blank" rel="[^"]*noopener[^"]*"><img src="https://cdn.example.com/a.png" alt="Sale" width="728" height="90" align="top"></a>
    ~ <img src="/spot/impression\?t={{$Token}}" width="1" height="1" alt="" hidden></body></html>$
    !~ style
GET /spot/serve?placement=side&format=html -> 200
    ~ {{$::Document}}<iframe src="/spot/frame\?t={{$Token}}" width="300" height="250" [^>]*sandbox="allow-popups allow-popups-to-escape-sandbox" [^>]*></iframe><img src="/spot/impression\?t={{$Token}}"
    !~ allow-scripts|allow-same-origin| style=
GET /spot/serve?placement=text&format=html -> 200
    ~ {{$::Document}}<a class="spot-native" [^>]*><strong class="spot-title">Winter</strong> <span class="spot-body">Warm</span></a>



=== TEST 7: bad placements
--- config
--- steps
GET /spot/serve -> 400
    Content-Type: application/json
    Cache-Control: no-store
    ~ ^{"error":{"code":"missing_placement","message":"[^"]+"}}$
GET /spot/serve?placement= -> 400
    ~ "code":"missing_placement"
GET /spot/serve?placement=, -> 400
    ~ "code":"missing_placement"
GET /spot/serve?placement=nowhere -> 400
    ~ ^{"error":{"code":"unknown_placement","message":"there is no placement \\"nowhere\\""}}$
GET /spot/serve?placement=top,nowhere -> 400
    ~ "code":"unknown_placement"
GET /spot/serve?placement=top%00 -> 400
    ~ "code":"unknown_placement"
GET /spot/serve?placement=top,side&format=js -> 200
GET /spot/serve?placement=top,side&format=html -> 400
    Content-Type: text/html; charset=utf-8
    ~ ^<!-- [^<>]+ -->$
GET /spot/serve?format=html&placement=no--%3E%3Cscript%3E -> 400
    ~ ^<!-- there is no placement &quot;no--&gt;&lt;script&gt;&quot; -->$



=== TEST 8: too much of it
--- config
--- steps
GET /spot/serve?placement={{join ',', ('empty') x 64}} -> 200
    = {"ads":[]}
GET /spot/serve?placement={{join ',', ('empty') x 65}} -> 400
    ~ "code":"too_many_placements"
GET /spot/serve?placement=empty&{{join '&', map { "x$_=v" } 1 .. 255}} -> 200
    = {"ads":[]}
GET /spot/serve?placement=empty&{{join '&', map { "x$_=v" } 1 .. 256}} -> 400
    ~ "code":"too_many_parameters"
GET /spot/serve?placement=top&url={{'x' x 7000}} -> 200
    ~ "creative":31
GET /spot/serve?placement=top&url={{'x' x 9000}} -> 414



=== TEST 9: far too much of it, where nginx lets it through
--- config
    large_client_header_buffers 4 256k;
--- steps
GET /spot/serve?placement={{join ',', ('empty') x 10_000}} -> 400
    ~ "code":"too_many_placements"
GET /spot/serve?placement={{join ',', map { "p$_" } 1 .. 10_000}} -> 400
    ~ "code":"too_many_placements"
GET /spot/serve?placement=top&{{join '&', map { "kv.k$_=" . 'v' x 1100 } 1 .. 60}} -> 200
    ~ "creative":31
GET /spot/serve?placement=top&{{join '&', map { "kv.k$_=v" } 1 .. 6_500}} -> 400
    ~ "code":"too_many_parameters"
GET /spot/serve?placement=top&kv.{{'k' x 65_536}}=v -> 200
    ~ "creative":31
GET /spot/serve?placement=top&kv.k={{'%ff' x 21_845}} -> 400
    ~ "code":"bad_encoding"
GET /spot/serve?placement=top -> 200
    ~ "creative":31



=== TEST 10: bad format, callback, escapes and encoding
--- config
--- steps
GET /spot/serve?placement=top&format=xml -> 400
    ~ ^{"error":{"code":"bad_format","message":"format must be json, html or js"}}$
GET /spot/serve?placement=top&format= -> 400
    ~ "code":"bad_format"
GET /spot/serve?placement=top&format=JSON -> 400
    ~ "code":"bad_format"
GET /spot/serve?placement=top&format=js&callback=alert(1) -> 400
    ~ "code":"bad_callback"
    !~ alert
GET /spot/serve?placement=top&format=js&callback=1a -> 400
    ~ "code":"bad_callback"
GET /spot/serve?placement=top&format=js&callback=.a -> 400
    ~ "code":"bad_callback"
GET /spot/serve?placement=top&format=js&callback= -> 400
    ~ "code":"bad_callback"
GET /spot/serve?placement=top&format=js&callback=a%E2%80%A8 -> 400
    ~ "code":"bad_callback"
GET /spot/serve?placement=top&format=js&callback={{'a' x 65}} -> 400
    ~ "code":"bad_callback"
GET /spot/serve?placement=top&url=%zz -> 400
    ~ ^{"error":{"code":"bad_escape","message":"[^"]+"}}$
GET /spot/serve?placement=top&url=%4 -> 400
    ~ "code":"bad_escape"
GET /spot/serve?placement=top&url=% -> 400
    ~ "code":"bad_escape"
GET /spot/serve?placement=top&url=%ff -> 400
    ~ ^{"error":{"code":"bad_encoding","message":"[^"]+"}}$
GET /spot/serve?placement=top&%c0%af=1 -> 400
    ~ "code":"bad_encoding"
GET /spot/serve?placement=top&url=%ed%a0%80 -> 400
    ~ "code":"bad_encoding"
GET /spot/serve?%70lacement=t%6fp&url=%C3%A4+b&&=& -> 200
    ~ "creative":31



=== TEST 11: bad requests count nothing
--- config
--- steps
GET /spot/serve?placement=top,nowhere -> 400
GET /spot/serve?placement=top&format=xml -> 400
GET /status -> 200
    ~ "id":12,"campaign":7,"day":"[\d-]+","serves":0,
    ~ "events":{"written":0,



=== TEST 12: HEAD has the headers and counts nothing
--- config
--- steps
HEAD /spot/serve?placement=top -> 200
    Content-Type: application/json
    Cache-Control: no-store
    = 
HEAD /spot/serve?placement=top&format=html -> 200
    Content-Type: text/html; charset=utf-8
    = 
HEAD /spot/serve?placement=nowhere -> 400
    Content-Type: application/json
    = 
GET /status -> 200
    ~ "id":12,"campaign":7,"day":"[\d-]+","serves":0,
    ~ "events":{"written":0,



=== TEST 13: other methods
--- config
--- steps
POST /spot/serve?placement=top -> 405
    Allow: GET, HEAD
PUT /spot/serve?placement=top -> 405
    Allow: GET, HEAD
DELETE /spot/serve?placement=top -> 405
    Allow: GET, HEAD
OPTIONS /spot/serve?placement=top -> 405
    Allow: GET, HEAD
GET /status -> 200
    ~ "events":{"written":0,



=== TEST 14: ads_base: for the server, for a location, absolute, its default
--- config
    ads_base /b/;
    location = /x/one { ads_serve; }
    location = /x/two { ads_serve; ads_base https://ads.example.com:8443/spot/; }
--- steps
GET /x/one?placement=top -> 200
    ~ "impression_url":"/b/impression\?t={{$Token}}","click_url":"/b/click\?t={{$Token}}","viewable_url":"/b/viewable\?t=
GET /x/two?placement=top -> 200
    ~ "impression_url":"https://ads.example.com:8443/spot/impression\?t=
GET /x/two?placement=top&format=html -> 200
    ~ <a href="https://ads.example.com:8443/spot/click\?t=



=== TEST 15: the default of ads_base is the folder of the location
--- config
    location = /x/y/serve { ads_serve; }
    location = /serve { ads_serve; }
    location /z/ { ads_serve; }
    location = /named/serve { error_page 418 = @ads; return 418; }
    location @ads { ads_serve; }
--- steps
GET /x/y/serve?placement=top -> 200
    ~ "click_url":"/x/y/click\?t=
GET /serve?placement=top -> 200
    ~ "click_url":"/click\?t=
GET /z/a/b?placement=top -> 200
    ~ "click_url":"/z/click\?t=
GET /named/serve?placement=top -> 200
    ~ "click_url":"/click\?t=



=== TEST 16: a location whose name would leave the string
--- config
    location = '/od"d<b>/serve' { ads_serve; }
--- steps
GET /od%22d%3Cb%3E/serve?placement=top -> 200
    !~ "click_url":"/od"
GET /od%22d%3Cb%3E/serve?placement=top&format=html -> 200
    !~ href="/od"



=== TEST 17: a creative without a size takes that of its placement
--- config
--- catalog eval
::one_ad(placement => {width => 320, height => 50})
--- steps
GET /spot/serve?placement=top -> 200
    ~ "width":320,"height":50,



=== TEST 18: neither has a size
--- config
--- catalog eval
::one_ad()
--- steps
GET /spot/serve?placement=top -> 200
    ~ "width":0,"height":0,



=== TEST 19: another size than the placement's is not served
--- config
--- catalog eval
::one_ad(placement => {width => 320, height => 50}, creative => {width => 320, height => 51})
--- steps
GET /spot/serve?placement=top -> 200
    = {"ads":[]}



=== TEST 20: hostile strings stay strings
--- config
--- catalog eval
::one_ad(creative => {type => 'native', content => {title => $::Hostile, 'a"><b>' => $::Hostile}})
--- steps
GET /spot/serve?placement=top -> 200
    ~ "title":"\\u003c/script\\u003e\\u003cscript\\u003ealert\(\\"1\\"\)\\u003c/script\\u003e'\\u0026\\\\\\u2028\\u2029\\n"
    !~ [<>]
GET /spot/serve?placement=top&format=js -> 200
    !~ [<>\n]
    !~ \xe2\x80[\xa8\xa9]
GET /spot/serve?placement=top&format=html -> 200
    ~ >&lt;/script&gt;&lt;script&gt;alert\(&quot;1&quot;\)&lt;/script&gt;&#39;&amp;
    !~ <script|</script|<b>



=== TEST 21: hostile markup stays in its frame
--- config
--- catalog eval
::one_ad(creative => {content => {markup => qq("></iframe>$::Hostile)}})
--- steps
GET /spot/serve?placement=top&format=html -> 200
    ~ {{$::Document}}<iframe [^<>]*></iframe><img src="/spot/impression
    !~ script



=== TEST 22: what an image says stays in its attributes
--- config
--- catalog eval
::one_ad(creative => {type => 'image', content => {src => 'https://cdn.example/a.png?x=1&y=2', alt => $::Hostile}})
--- steps
GET /spot/serve?placement=top&format=html -> 200
    ~ <img src="https://cdn.example/a.png\?x=1&amp;y=2" alt="&lt;/script&gt;[^"<>]*"
    !~ <script



=== TEST 23: a draft
--- config
--- catalog eval
::one_ad(campaign => {status => 'draft'})
--- steps
GET /spot/serve?placement=top -> 200
    = {"ads":[]}



=== TEST 24: a paused campaign
--- config
--- catalog eval
::one_ad(campaign => {status => 'paused'})
--- steps
GET /spot/serve?placement=top -> 200
    = {"ads":[]}



=== TEST 25: completed and archived
--- config
--- catalog eval
::catalog({placements => [{id => 'top'}], campaigns => [map { {id => $_, status => $_ == 1 ? 'completed' : 'archived', ad_groups => [{id => $_, creatives => [{id => $_, type => 'html', content => {markup => 'x'}, click_url => 'https://a.example/'}]}]} } 1, 2]})
--- steps
GET /spot/serve?placement=top -> 200
    = {"ads":[]}



=== TEST 26: a paused ad group, in an active campaign
--- config
--- catalog eval
::one_ad(group => {status => 'paused'})
--- steps
GET /spot/serve?placement=top -> 200
    = {"ads":[]}



=== TEST 27: a paused creative, in an active group
--- config
--- catalog eval
::one_ad(creative => {status => 'paused'})
--- steps
GET /spot/serve?placement=top -> 200
    = {"ads":[]}



=== TEST 28: tiers: the house only when nobody else is there
--- config
--- catalog eval
::catalog({placements => [{id => 'top'}], campaigns => [{id => 1, ad_groups => [map { {id => $_, priority => (qw(house remnant sponsorship standard))[$_ - 1], creatives => [{id => $_, type => 'html', content => {markup => 'x'}, click_url => 'https://a.example/'}]} } 1 .. 4]}]})
--- steps
GET /spot/serve?placement=top,top,top,top,top -> 200
    ~ "creative":3,.*"creative":4,.*"creative":2,.*"creative":1,
    !~ (?:"creative".*){5}



=== TEST 29: a sub-request through SSI
--- config
    location = /page { ssi on; default_type text/html; root html; try_files /page.html =404; }
    location = /none { ssi on; default_type text/html; root html; try_files /none.html =404; }
--- user_files
>>> page.html
<i><!--#include virtual="/spot/serve?placement=top&format=html" --></i><b><!--#include virtual="/spot/serve?placement=side&format=html" --></b>
>>> none.html
<i><!--#include virtual="/spot/serve?placement=empty&format=html" --></i>
--- steps
GET /page -> 200
    ~ ^<i><a href="/spot/click\?t=.*<img src="/spot/impression\?t={{$Token}}"[^>]*></i><b><iframe .*</b>\n$
    !~ <html|<body|doctype html><html
GET /none -> 200
    ~ ^<i></i>\n$
GET /status -> 200
    ~ "events":{"written":2,



=== TEST 30: keep-alive and pipelining
--- config
--- pipelined_requests eval
[ 'GET /spot/serve?placement=top', "GET /spot/serve?placement=side\nabc", 'GET /spot/serve?placement=nowhere',
  "GET /spot/serve?placement=text" ]
--- error_code eval
[ 200, 200, 400, 200 ]
--- response_body_like eval
[ '"creative":31', '"creative":41', 'unknown_placement', '"creative":51' ]



=== TEST 31: HTTP/1.0
--- config
--- steps
GET /spot/serve?placement=top HTTP/1.0 -> 200
    ~ "creative":31



=== TEST 32: the body of a request is thrown away
--- config
--- request eval
[ "GET /spot/serve?placement=top\n" . 'x' x 200_000, "GET /spot/serve?placement=top\n5\r\nhello\r\n0\r\n\r\n" ]
--- more_headers eval
[ '', 'Transfer-Encoding: chunked' ]
--- error_code eval
[ 200, 200 ]
--- response_body_like eval
[ '"creative":31', '"creative":31' ]



=== TEST 33: the rest of a body comes after the answer
--- config
--- request eval
[ [ "GET /spot/serve?placement=top\nabc", { value => 'def', delay_before => 0.05 } ], 'GET /spot/serve?placement=side' ]
--- error_code eval
[ 200, 200 ]
--- response_body_like eval
[ '"creative":31', '"creative":41' ]



=== TEST 31: absolute=1: the scheme and the host of the request
--- config
    location = /x/based { ads_serve; ads_base https://ads.example.com:8443/spot/; }
--- steps
GET /spot/serve?placement=top&absolute=1 -> 200
    > Host: News.example.com:8080
    ~ "impression_url":"http://News.example.com:8080/spot/impression\?t={{$Token}}","click_url":"http://News.example.com:8080/spot/click\?t={{$Token}}","viewable_url":"http://News.example.com:8080/spot/viewable\?t=
GET /spot/serve?placement=top&absolute=1&format=js -> 200
    > Host: [2001:db8::1]:8080
    ~ "click_url":"http://\[2001:db8::1\]:8080/spot/click\?t=
GET /spot/serve?placement=top&absolute=1&format=html -> 200
    > Host: a.example
    ~ <a href="http://a.example/spot/click\?t=
GET /spot/serve?placement=top&absolute=0 -> 200
    ~ "click_url":"/spot/click\?t=
GET /x/based?placement=top&absolute=1 -> 200
    ~ "click_url":"https://ads.example.com:8443/spot/click\?t=



=== TEST 32: absolute=1: what a client says of a proxy before us is not believed
--- config
--- steps
GET /spot/serve?placement=top&absolute=1 -> 200
    > Host: a.example
    > X-Forwarded-Host: evil.example
    > X-Forwarded-Proto: https
    > Forwarded: host=evil.example;proto=https
    ~ "click_url":"http://a.example/spot/click\?t=
    !~ evil



=== TEST 33: absolute=1: a host that would leave the string, and none
--- config
--- steps
GET /spot/serve?placement=top&absolute=1 -> 400
    > Host: a"b.example
    ~ ^{"error":{"code":"bad_origin","message":"[^"]+"}}$
GET /spot/serve?placement=top&absolute=1 -> 400
    > Host: a<b>.example
    ~ "code":"bad_origin"
GET /spot/serve?placement=top&absolute=1 -> 400
    > Host: a.example:0
    ~ "code":"bad_origin"
GET /spot/serve?placement=top&absolute=1 -> 400
    > Host: a.example:99999
    ~ "code":"bad_origin"
GET /spot/serve?placement=top -> 200
    > Host: a"b.example
    ~ "click_url":"/spot/click\?t=
GET /status -> 200
    ~ "id":12,"campaign":7,"day":"[\d-]+","serves":1,



=== TEST 34: ads_origin: what the operator says of a proxy before us
--- config
    location = /x/fixed { ads_serve; ads_origin https://news.example.com; }
    location = /x/told  { ads_serve; ads_origin $http_x_forwarded_proto://$http_x_forwarded_host; }
    location = /x/map   { ads_serve; ads_origin $http_x_origin; }
--- steps
GET /x/fixed?placement=top&absolute=1 -> 200
    ~ "click_url":"https://news.example.com/x/click\?t=
GET /x/fixed?placement=top -> 200
    ~ "click_url":"/x/click\?t=
GET /x/told?placement=top&absolute=1 -> 200
    > X-Forwarded-Proto: https
    > X-Forwarded-Host: shop.example:8443
    ~ "click_url":"https://shop.example:8443/x/click\?t=
GET /x/told?placement=top&absolute=1 -> 400
    > X-Forwarded-Proto: javascript
    > X-Forwarded-Host: shop.example
    ~ "code":"bad_origin"
GET /x/told?placement=top&absolute=1 -> 400
    > X-Forwarded-Proto: https
    > X-Forwarded-Host: shop.example/evil
    ~ "code":"bad_origin"
GET /x/map?placement=top&absolute=1 -> 200
    > Host: a.example
    ~ "click_url":"http://a.example/x/click\?t=



=== TEST 35: nosniff on whatever has a body
--- config
    location = /health { ads_status health; }
--- steps
GET /spot/serve?placement=top -> 200
    X-Content-Type-Options: nosniff
GET /spot/serve?placement=top&format=js -> 200
    X-Content-Type-Options: nosniff
GET /spot/serve?placement=top&format=html -> 200
    X-Content-Type-Options: nosniff
GET /spot/serve?placement=nowhere -> 400
    X-Content-Type-Options: nosniff
GET /spot/impression?t={{ token('impression', serve => 1) }} -> 200
    Content-Type: image/gif
    X-Content-Type-Options: nosniff
GET /status -> 200
    X-Content-Type-Options: nosniff
GET /status?format=prometheus -> 200
    X-Content-Type-Options: nosniff
GET /health -> 200
    X-Content-Type-Options: nosniff



=== TEST 36: a frame of markup without a size takes that of its placement
--- config
--- catalog eval
::one_ad(placement => {width => 320, height => 50})
--- steps
GET /spot/serve?placement=top&format=html -> 200
    ~ <iframe src="[^"]*" width="320" height="50" title=



=== TEST 37: neither has a size
--- config
--- catalog eval
::one_ad()
--- steps
GET /spot/serve?placement=top&format=html -> 200
    ~ <iframe src="[^"]*" width="100%" title=



=== TEST 38: the parts of a native ad have an order, however the catalog is sorted
--- config
--- catalog eval
::one_ad(creative => {type => 'native', content => {body => 'b', cta => 'c', image => '/i.png', title => 't'}})
--- steps
GET /spot/serve?placement=top&format=html -> 200
    ~ ><img class="spot-image" src="/i.png" alt=""> <strong class="spot-title">t</strong> <span class="spot-body">b</span> <span class="spot-cta">c</span></a>
