# Tracking: what each request is answered, and what it counts. The tokens are
# made here, so that their layout is checked from the outside, too.

use lib 't/lib';
use AdsTest;
use AdsTest::Ads;

ads_blocks(zone => 't004');
no_long_string();

# What follows the version of a GIF: 1 x 1, transparent.
our $Pixel = '^GIF89a\x01\x00\x01\x00.{32}\x3b$';

sub counts {
    my ($group, %c) = @_;
    my @all = map { "\"$_\":" . ($c{$_} // 0) . ',' } qw(serves anonymous impressions viewables clicks conversions);
    my $spend = $c{spend} // '0.0';
    return "\"id\":$group,\"campaign\":\\d+,\"day\":\"[\\d-]+\"," . join('', @all) . "\"spend_cents\":\Q$spend\E,";
}

sub totals {
    my (%t) = @_;
    return '"events":{' . join ',', map { "\"$_\":" . ($t{$_} // 0) } qw(written duplicate invalid dropped expired rejected);
}

# A catalog in which creative 61 is paused, 62 archived with its campaign, and 63 has every macro.
sub statuses {
    my $creative = sub { { id => $_[0], type => 'html', content => { markup => 'x' }, click_url => "https://a.example/$_[0]", @_[ 1 .. $#_ ] } };
    return catalog({
        placements => [ { id => 'top' } ],
        campaigns  => [
            { id => 7, ad_groups => [ { id => 12, creatives => [ $creative->(61, status => 'paused'),
                $creative->(63, click_url => 'https://a.example/?i={click_id}&c={campaign}&g={ad_group}&r={creative}&p={placement}') ] } ] },
            { id => 8, status => 'archived', ad_groups => [ { id => 13, creatives => [ $creative->(62) ] } ] },
        ],
    });
}

plan tests => 445;
run_tests();

__DATA__

=== TEST 1: an impression: GET, replayed, POST, HEAD
--- config
--- steps
GET /spot/impression?t={{token('impression', serve => 1, price => 250_000)}} -> 200
    Content-Type: image/gif
    Content-Length: 43
    Cache-Control: no-store
    ~ {{$Pixel}}
GET /spot/impression?t={{token('impression', serve => 1, price => 250_000)}} -> 200
    Content-Length: 43
    ~ {{$Pixel}}
POST /spot/impression?t={{token('impression', serve => 1, price => 250_000)}} -> 204
    = 
POST /spot/impression?t={{token('impression', serve => 2, price => 250_000)}} -> 204
    !Content-Type
    = 
HEAD /spot/impression?t={{token('impression', serve => 3, price => 250_000)}} -> 200
    Content-Type: image/gif
    Content-Length: 43
    Cache-Control: no-store
    = 
GET /status -> 200
    ~ {{counts(12, impressions => 2, spend => '0.5')}}
    ~ {{totals(written => 2, duplicate => 2)}}
GET /spot/impression?t={{token('impression', serve => 3, price => 250_000)}} -> 200
GET /status -> 200
    ~ {{counts(12, impressions => 3, spend => '0.75')}}



=== TEST 2: a viewable
--- config
--- steps
GET /spot/viewable?t={{token('viewable', serve => 1, price => 7)}} -> 200
    Content-Type: image/gif
    Cache-Control: no-store
    ~ {{$Pixel}}
GET /spot/viewable?t={{token('viewable', serve => 1, price => 7)}} -> 200
    ~ {{$Pixel}}
POST /spot/viewable?t={{token('viewable', serve => 2)}} -> 204
    = 
HEAD /spot/viewable?t={{token('viewable', serve => 3)}} -> 200
    = 
GET /status -> 200
    ~ {{counts(12, viewables => 2, spend => '0.000007')}}
    ~ {{totals(written => 2, duplicate => 1)}}



=== TEST 3: a click
--- config
--- steps
GET /spot/click?t={{token('click', serve => 1, ad_group => 13, creative => 41, price => 40_000_000)}} -> 302
    Location: https://acme.example/side
    Cache-Control: no-store
GET /spot/click?t={{token('click', serve => 1, ad_group => 13, creative => 41, price => 40_000_000)}} -> 302
    Location: https://acme.example/side
POST /spot/click?t={{token('click', serve => 2, ad_group => 13, creative => 41)}} -> 204
    !Location
    = 
HEAD /spot/click?t={{token('click', serve => 3, ad_group => 13, creative => 41)}} -> 302
    Location: https://acme.example/side
    = 
GET /status -> 200
    ~ {{counts(13, clicks => 2, spend => '40.0')}}
    ~ {{totals(written => 2, duplicate => 1)}}



=== TEST 4: a conversion
--- config
--- steps
GET /spot/conversion?t={{token('conversion', serve => 1, campaign => 8, ad_group => 14, creative => 51, price => 500_000_000)}} -> 200
    Content-Type: image/gif
    Cache-Control: no-store
    ~ {{$Pixel}}
GET /spot/conversion?t={{token('conversion', serve => 1, campaign => 8, ad_group => 14, creative => 51, price => 500_000_000)}} -> 200
    ~ {{$Pixel}}
POST /spot/conversion?t={{token('conversion', serve => 2, campaign => 8, ad_group => 14, creative => 51)}} -> 204
    = 
HEAD /spot/conversion?t={{token('conversion', serve => 3, campaign => 8, ad_group => 14, creative => 51)}} -> 200
    = 
GET /status -> 200
    ~ {{counts(14, conversions => 2, spend => '500.0')}}
    ~ {{totals(written => 2, duplicate => 1)}}



=== TEST 5: the types of one serve do not stand in each other's way
--- config
--- steps
GET /spot/impression?t={{token('impression', serve => 5)}} -> 200
GET /spot/viewable?t={{token('viewable', serve => 5)}} -> 200
GET /spot/click?t={{token('click', serve => 5)}} -> 302
GET /spot/conversion?t={{token('conversion', serve => 5)}} -> 200
GET /status -> 200
    ~ {{counts(12, impressions => 1, viewables => 1, clicks => 1, conversions => 1)}}
    ~ {{totals(written => 4)}}



=== TEST 6: other methods
--- config
--- steps
PUT /spot/impression?t={{token('impression')}} -> 405
    Allow: GET, HEAD, POST
DELETE /spot/click?t={{token('click')}} -> 405
    Allow: GET, HEAD, POST
OPTIONS /spot/conversion -> 405
    Allow: GET, HEAD, POST
PATCH /spot/viewable -> 405
    Allow: GET, HEAD, POST
GET /status -> 200
    ~ {{totals()}}



=== TEST 7: the body of a beacon is thrown away
--- config
--- request eval
[ "POST /spot/impression?t=" . ::token('impression', serve => 1) . "\n" . 'x' x 100_000, 'GET /status' ]
--- error_code eval
[ 204, 200 ]
--- response_body_like eval
[ '^$', '"impressions":1,' ]



=== TEST 8: type= in the query
--- config
--- steps
GET /spot/track?type=impression&t={{token('impression', serve => 1)}} -> 200
    Content-Type: image/gif
GET /spot/track?t={{token('viewable', serve => 1)}}&type=viewable -> 200
    Content-Type: image/gif
GET /spot/track?type=click&t={{token('click', serve => 1)}} -> 302
GET /spot/track?type=conversion&t={{token('conversion', serve => 1)}} -> 200
    Content-Type: image/gif
POST /spot/track?type=impression&t={{token('impression', serve => 2)}} -> 204
GET /spot/track?t={{token('impression', serve => 3)}} -> 400
    Content-Type: application/json
    ~ ^{"error":{"code":"bad_type","message":"[^"]+"}}$
GET /spot/track?type=serve&t={{token('serve', serve => 3)}} -> 400
    ~ "code":"bad_type"
GET /spot/track?type=Click&t={{token('click', serve => 3)}} -> 400
    ~ "code":"bad_type"
GET /spot/track?type=click&t={{token('impression', serve => 3)}} -> 400
    ~ "code":"wrong_type"
GET /spot/impression?type=click&t={{token('click', serve => 3)}} -> 400
    ~ "code":"wrong_type"
GET /status -> 200
    ~ {{counts(12, impressions => 2, viewables => 1, clicks => 1, conversions => 1)}}



=== TEST 9: malformed
--- config
--- steps
GET /spot/impression -> 400
    Content-Type: application/json
    Cache-Control: no-store
    ~ ^{"error":{"code":"malformed","message":"[^"]+"}}$
GET /spot/impression?t= -> 400
    ~ "code":"malformed"
GET /spot/impression?t={{substr token('impression'), 1}} -> 400
    ~ "code":"malformed"
GET /spot/impression?t={{token('impression')}}A -> 400
    ~ "code":"malformed"
GET /spot/impression?t={{substr token('impression'), 0, 95}}%2B -> 400
    ~ "code":"malformed"
GET /spot/impression?t={{substr token('impression'), 0, 95}}= -> 400
    ~ "code":"malformed"
GET /spot/impression?t={{'A' x 96}} -> 400
    ~ "code":"bad_version"
GET /spot/impression?t={{token('impression', version => 2)}} -> 400
    ~ "code":"bad_version"
GET /spot/impression?t=%zz -> 400
    ~ "code":"bad_escape"
GET /spot/click?t={{substr token('click'), 1}} -> 400
    !Location
    ~ "code":"malformed"
POST /spot/conversion?t=x -> 400
HEAD /spot/conversion?t=x -> 400
    = 
GET /status -> 200
    ~ {{counts(12)}}
    ~ "written":0,



=== TEST 10: a bit flipped anywhere
--- config
--- request eval
[ (map { 'GET /spot/impression?t=' . ::flip(::token('impression', serve => 1), $_ * 8 + $_ % 8) } 0 .. 71), 'GET /status' ]
--- error_code eval
[ (400) x 72, 200 ]
--- response_body_like eval
[ 'bad_version', 'bad_mac', 'unknown_key', ('bad_mac') x 69, '"impressions":0,.*"written":0,.*"rejected":72' ]



=== TEST 11: a token for another type
--- config
--- steps
GET /spot/impression?t={{token('viewable', serve => 1)}} -> 400
    ~ ^{"error":{"code":"wrong_type","message":"[^"]+"}}$
GET /spot/viewable?t={{token('impression', serve => 1)}} -> 400
    ~ "code":"wrong_type"
GET /spot/click?t={{token('impression', serve => 1)}} -> 400
    !Location
    ~ "code":"wrong_type"
GET /spot/conversion?t={{token('click', serve => 1)}} -> 400
    ~ "code":"wrong_type"
GET /spot/impression?t={{token('serve', serve => 1)}} -> 400
    ~ "code":"wrong_type"
GET /spot/impression?t={{token(9, serve => 1)}} -> 400
    ~ "code":"malformed"
GET /status -> 200
    ~ {{counts(12)}}
    ~ {{totals(rejected => 6)}}



=== TEST 12: a key that we don't have, and another key's signature
--- config
--- steps
GET /spot/impression?t={{token('impression', key => 3)}} -> 400
    ~ ^{"error":{"code":"unknown_key","message":"[^"]+"}}$
GET /spot/impression?t={{token('impression', key => 0)}} -> 400
    ~ "code":"unknown_key"
GET /spot/impression?t={{token('impression', key => 1, signed_by => 2)}} -> 400
    ~ "code":"bad_mac"
GET /spot/impression?t={{token('impression', key => 2)}} -> 200
GET /status -> 200
    ~ {{totals(written => 1, rejected => 3)}}



=== TEST 13: paused and archived creatives are still there
--- config
--- catalog eval: ::statuses()
--- steps
GET /spot/click?t={{token('click', serve => 1, creative => 61)}} -> 302
    Location: https://a.example/61
GET /spot/impression?t={{token('impression', serve => 1, creative => 61)}} -> 200
GET /spot/click?t={{token('click', serve => 2, campaign => 8, ad_group => 13, creative => 62)}} -> 302
    Location: https://a.example/62
GET /status -> 200
    ~ {{counts(12, impressions => 1, clicks => 1)}}
    ~ {{counts(13, clicks => 1)}}



=== TEST 14: every macro that the catalog accepts is filled in
--- config
--- catalog eval: ::statuses()
--- steps
GET /spot/click?t={{token('click', serve => 1, creative => 63)}} -> 302
    Location: https://a.example/?i={{token('conversion', serve => 1, creative => 63)}}&c=7&g=12&r=63&p=top



=== TEST 15: {click_id} is a conversion token of the serve, and works
--- config
--- steps
GET /spot/click?t={{token('click', serve => 9, campaign => 8, ad_group => 14, creative => 51, placement => 'text', agent => 77)}} -> 302
    Location: https://acme.example/winter?id={{token('conversion', serve => 9, campaign => 8, ad_group => 14, creative => 51, placement => 'text', agent => 77, price => 500_000_000)}}
GET /spot/click?t={{token('click', serve => 9, campaign => 8, ad_group => 14, creative => 51, placement => 'text', agent => 77)}} -> 302
    Location: https://acme.example/winter?id={{token('conversion', serve => 9, campaign => 8, ad_group => 14, creative => 51, placement => 'text', agent => 77, price => 500_000_000)}}
GET /spot/conversion?t={{token('conversion', serve => 9, campaign => 8, ad_group => 14, creative => 51, placement => 'text', agent => 77, price => 500_000_000)}} -> 200
    Content-Type: image/gif
GET /status -> 200
    ~ {{counts(14, clicks => 1, conversions => 1, spend => '500.0')}}
    ~ {{totals(written => 2, duplicate => 1)}}



=== TEST 16: the click id is signed with the key of the click
--- config
--- steps
GET /spot/click?t={{token('click', key => 2, serve => 9)}} -> 302
    Location: https://acme.example/autumn?c={{token('conversion', key => 2, serve => 9)}}



=== TEST 17: the target never comes from the query
--- config
--- steps
GET /spot/click?url=https://evil.example/&t={{token('click', serve => 1, ad_group => 13, creative => 41)}}&click_url=//evil.example&redirect=https://evil.example -> 302
    Location: https://acme.example/side
GET /spot/click?t={{token('click', serve => 1, ad_group => 13, creative => 41)}}&t=https://evil.example/ -> 302
    Location: https://acme.example/side
GET /spot/click?t={{token('click', serve => 1, ad_group => 13, creative => 41)}}%0d%0aLocation:%20https://evil.example -> 400
    !Location



=== TEST 18: the first key signs, all verify
--- config
--- keys: 2 1
--- steps
GET /spot/serve?placement=top -> 200
    ~ "impression_url":"/spot/impression\?t=AQEC.*"click_url":"/spot/click\?t=AQMC
GET /spot/impression?t={{token('impression', key => 2)}} -> 200
GET /spot/impression?t={{token('impression', key => 1)}} -> 200
GET /spot/click?t={{token('click', key => 1, serve => 4)}} -> 302
GET /spot/conversion?t={{token('conversion', key => 1, serve => 4)}} -> 200



=== TEST 19: the old key is gone
--- config
--- keys: 2
--- steps
GET /spot/impression?t={{token('impression', key => 2)}} -> 200
GET /spot/impression?t={{token('impression', key => 1)}} -> 400
    ~ "code":"unknown_key"



=== TEST 20: an invalid serve's events are kept and not billed
--- config
--- steps
GET /spot/impression?t={{token('impression', serve => 1, flags => 2, price => 250_000)}} -> 200
GET /spot/click?t={{token('click', serve => 1, flags => 2, ad_group => 13, creative => 41, price => 40_000_000)}} -> 302
    Location: https://acme.example/side
GET /status -> 200
    ~ "id":12,"campaign":7,[^}]*"spend_cents":0\.0,
    ~ {{totals(written => 2, invalid => 2)}}



=== TEST 21: pipelined copies of one token are one event
--- config
--- pipelined_requests eval
[ ('GET /spot/impression?t=' . ::token('impression', serve => 1)) x 5, 'GET /status' ]
--- error_code eval
[ (200) x 6 ]
--- response_body_like eval
[ ($::Pixel) x 5, '"impressions":1,.*"written":1,"duplicate":4,' ]



=== TEST 22: creative, ad group and campaign that do not belong together; unknown flags
--- config
--- steps
GET /spot/impression?t={{token('impression', serve => 1, ad_group => 13, price => 250_000)}} -> 200
GET /spot/impression?t={{token('impression', serve => 2, campaign => 8, price => 250_000)}} -> 200
GET /spot/impression?t={{token('impression', serve => 3, ad_group => 99, price => 250_000)}} -> 200
GET /spot/click?t={{token('click', serve => 4, creative => 41, price => 40_000_000)}} -> 302
    Location: https://acme.example/side
GET /status -> 200
    ~ {{counts(12)}}
    ~ {{totals(written => 4, invalid => 4)}}
    ~ "invalid":{"mismatch":4}
GET /spot/click?t={{token('click', serve => 5, creative => 41, ad_group => 13, price => 40_000_000)}} -> 302
GET /spot/impression?t={{token('impression', serve => 6, flags => 8, price => 250_000)}} -> 400
    ~ "code":"malformed"
GET /status -> 200
    ~ "id":13,"campaign":7,[^}]*"spend_cents":40\.0,
    ~ {{totals(written => 5, invalid => 4, rejected => 1)}}
