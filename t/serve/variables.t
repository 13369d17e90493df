# $ads_*: in the access log, in a header of the response, and through map.

use lib 't/lib';
use AdsTest;
use AdsTest::Ads;

ads_blocks(zone => 't006');
no_long_string();

our $Log = <<'EOC';
    log_format ads '<$uri c=$ads_campaign g=$ads_ad_group r=$ads_creative d=$ads_decision t=$ads_decision_time i=$ads_invalid>';
    access_log logs/access.log ads;
EOC

add_block_preprocessor(sub {
    my $block = shift;
    $block->set_value(http_config => $Log . ($block->http_config // '')) if defined $block->config;
});

plan tests => 82;
run_tests();

__DATA__

=== TEST 1: an ad
--- config
--- request
GET /spot/serve?placement=top
--- response_body_like: "creative":31
--- access_log eval
qr{^</spot/serve c=7 g=12 r=31 d=served t=0\.\d{6} i=->$}m



=== TEST 2: several ads, in their order
--- config
--- request
GET /spot/serve?placement=text,empty,top
--- response_body_like: "creative":51
--- access_log eval
qr{^</spot/serve c=8,7 g=14,12 r=51,31 d=served t=0\.\d{6} i=->$}m



=== TEST 3: no ad
--- config
--- request
GET /spot/serve?placement=empty
--- response_body: {"ads":[]}
--- access_log eval
qr{^</spot/serve c=- g=- r=- d=no_ad t=0\.\d{6} i=->$}m



=== TEST 4: no ad, as HTML
--- config
--- request
GET /spot/serve?placement=empty&format=html
--- error_code: 204
--- access_log eval
qr{^</spot/serve c=- g=- r=- d=no_ad t=0\.\d{6} i=->$}m



=== TEST 5: bad input
--- config
--- request
GET /spot/serve?placement=nowhere
--- error_code: 400
--- access_log
</spot/serve c=- g=- r=- d=unknown_placement t=- i=->



=== TEST 6: HEAD decides nothing
--- config
--- request
HEAD /spot/serve?placement=top
--- access_log
</spot/serve c=- g=- r=- d=- t=- i=->



=== TEST 7: another method
--- config
--- request
POST /spot/serve?placement=top
--- error_code: 405
--- access_log
</spot/serve c=- g=- r=- d=- t=- i=->



=== TEST 8: a location that is not ours
--- config
    location = /x { return 200 "x"; }
--- request
GET /x
--- response_body: x
--- access_log
</x c=- g=- r=- d=- t=- i=->



=== TEST 9: an invalid token
--- config
--- request
GET /spot/click?t=x
--- error_code: 400
--- access_log
</spot/click c=- g=- r=- d=malformed t=- i=->



=== TEST 10: a token
--- config
--- request eval
'GET /spot/impression?t=' . ::token('impression', issued => time * 1000)
--- access_log
</spot/impression c=7 g=12 r=31 d=counted t=- i=->



=== TEST 11: in a header: what becomes of tokens
--- config
    add_header X-Ads "c=$ads_campaign g=$ads_ad_group r=$ads_creative d=$ads_decision i=$ads_invalid" always;
--- steps
GET /spot/serve?placement=side,top -> 200
    X-Ads: c=7,7 g=13,12 r=41,31 d=served i=
GET /spot/impression?t={{token('impression', serve => 1)}} -> 200
    X-Ads: c=7 g=12 r=31 d=counted i=
GET /spot/impression?t={{token('impression', serve => 1)}} -> 200
    X-Ads: c=7 g=12 r=31 d=duplicate i=
POST /spot/viewable?t={{token('viewable', serve => 2, campaign => 8, ad_group => 14, creative => 51)}} -> 204
    X-Ads: c=8 g=14 r=51 d=counted i=
GET /spot/click?t={{token('click', serve => 3, ad_group => 13, creative => 41)}} -> 302
    X-Ads: c=7 g=13 r=41 d=counted i=
GET /spot/conversion?t={{token('conversion', serve => 4)}} -> 200
    X-Ads: c=7 g=12 r=31 d=counted i=
GET /spot/impression?t={{token('impression', serve => 5, flags => 2)}} -> 200
    X-Ads: c=7 g=12 r=31 d=counted i=ignored
HEAD /spot/impression?t={{token('impression', serve => 6)}} -> 200
    X-Ads: c= g= r= d= i=
GET /spot/impression?t={{token('impression', creative => 999)}} -> 410
    X-Ads: c= g= r= d=gone i=
GET /spot/impression?t={{flip(token('impression'), 570)}} -> 400
    X-Ads: c= g= r= d=bad_mac i=
GET /spot/impression?t={{token('click')}} -> 400
    X-Ads: c= g= r= d=wrong_type i=
GET /spot/impression?t={{token('click', key => 3)}} -> 400
    X-Ads: c= g= r= d=unknown_key i=
GET /spot/impression?t={{token('impression', issued => server_time() + 3_600_000)}} -> 400
    X-Ads: c= g= r= d=future i=
GET /spot/impression?t={{token('impression', issued => server_time() - 4_000_000)}} -> 410
    X-Ads: c= g= r= d=expired i=
GET /spot/click?t={{token('click', issued => server_time() - 90_000_000)}} -> 302
    X-Ads: c= g= r= d=expired i=
GET /spot/track?type=x -> 400
    X-Ads: c= g= r= d=bad_type i=



=== TEST 12: map chooses what is logged
--- http_config
    map $ads_decision $is_served { served 1; default 0; }
    access_log logs/access.log ads if=$is_served;
--- config
    location = /a/serve { ads_serve; access_log logs/access.log ads if=$is_served; }
--- request
GET /a/serve?placement=top
--- access_log eval
qr{^</a/serve c=7 g=12 r=31 d=served }m



=== TEST 13: and what is not
--- config
    location = /a/serve { ads_serve; access_log logs/access.log ads if=$is_served; }
--- http_config
    map $ads_decision $is_served { served 1; default 0; }
--- request
GET /a/serve?placement=empty
--- no_access_log
</a/serve



=== TEST 14: a map that is asked before the decision does not spoil it
--- http_config
    map $ads_decision $known { "" none; default $ads_decision; }
--- config
    set $before $known;
    add_header X-Ads "$before $ads_decision" always;
--- request
GET /spot/serve?placement=top
--- response_headers
X-Ads: none served



=== TEST 15: a sub-request has its own
--- config
    location = /page { ssi on; default_type text/html; root html; try_files /page.html =404; }
    location = /sub/serve { ads_serve; log_subrequest on; access_log logs/access.log ads; }
--- user_files
>>> page.html
<!--#include virtual="/sub/serve?placement=top&format=html" -->
--- request
GET /page
--- response_body_like: impression
--- access_log eval
[ qr{^</sub/serve c=7 g=12 r=31 d=served t=0\.\d{6} i=->$}m, qr{^</page.html c=- g=- r=- d=- t=- i=->$}m ]
