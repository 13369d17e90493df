# What depends on the time of a request: the start and the end of campaigns and ad
# groups, and the life of tokens.

use lib 't/lib';
use AdsTest::Clock;
use AdsTest;
use AdsTest::Ads;

ads_blocks(zone => 't019');
no_long_string();

# A date as the catalog writes it, so many seconds from noon.
sub at { return POSIX::strftime('%Y-%m-%dT%H:%M:%SZ', gmtime noon() / 1000 + $_[0]) }

# A catalog of one placement and one ad in it.
sub one_ad {
    my (%o) = @_;
    my $creative = { id => 1, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/' };
    my $group    = { id => 1, creatives => [$creative], %{ $o{group} // {} } };
    return catalog({ placements => [ { id => 'top' } ], campaigns => [ { id => 1, ad_groups => [$group], %{ $o{campaign} // {} } } ] });
}

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

plan tests => 191;
run_tests();

__DATA__

=== TEST 1: a scheduled campaign from its start, until its end
--- config
--- catalog eval
::one_ad(campaign => {status => 'scheduled', start => ::at(600), end => ::at(1200)})
--- steps
clock
GET /spot/serve?placement=top -> 200
    = {"ads":[]}
clock 540
GET /spot/serve?placement=top -> 200
    = {"ads":[]}
clock 600
GET /spot/serve?placement=top -> 200
    ~ "creative":1,
clock 1200
GET /spot/serve?placement=top -> 200
    = {"ads":[]}
clock 900
GET /spot/serve?placement=top -> 200
    ~ "creative":1,
clock reset



=== TEST 2: an active campaign, too, has a start and an end; its groups as well
--- config
--- catalog eval
::one_ad(campaign => {start => ::at(600)}, group => {start => ::at(1200), end => ::at(1800)})
--- steps
clock 900
GET /spot/serve?placement=top -> 200
    = {"ads":[]}
clock 1200
GET /spot/serve?placement=top -> 200
    ~ "creative":1,
clock 1800
GET /spot/serve?placement=top -> 200
    = {"ads":[]}
clock reset



=== TEST 3: from the future
--- config
--- steps
clock
GET /spot/impression?t={{token('impression', serve => 1, issued => noon() + 60_000)}} -> 200
GET /spot/impression?t={{token('impression', serve => 2, issued => noon() + 120_000)}} -> 400
    ~ ^{"error":{"code":"future","message":"[^"]+"}}$
GET /spot/click?t={{token('click', serve => 2, issued => noon() + 120_000)}} -> 400
    !Location
    ~ "code":"future"
GET /status -> 200
    ~ {{totals(written => 1, rejected => 2)}}
clock 60
GET /spot/impression?t={{token('impression', serve => 2, issued => noon() + 120_000)}} -> 200



=== TEST 4: expired: each type has its life
--- config
--- steps
clock 3500
GET /spot/impression?t={{token('impression', serve => 1)}} -> 200
GET /spot/viewable?t={{token('viewable', serve => 1)}} -> 200
clock 3601
GET /spot/impression?t={{token('impression', serve => 2)}} -> 410
    Content-Type: application/json
    Cache-Control: no-store
    ~ ^{"error":{"code":"expired","message":"[^"]+"}}$
POST /spot/impression?t={{token('impression', serve => 2)}} -> 410
GET /spot/viewable?t={{token('viewable', serve => 2)}} -> 410
    ~ "code":"expired"
HEAD /spot/impression?t={{token('impression', serve => 3)}} -> 410
    = 
GET /status -> 200
    ~ {{counts(12, impressions => 1, viewables => 1)}}
    ~ {{totals(written => 2, expired => 3)}}
GET /spot/click?t={{token('click', serve => 1, ad_group => 13, creative => 41)}} -> 302
clock 86300
GET /spot/click?t={{token('click', serve => 2, ad_group => 13, creative => 41)}} -> 302
clock 86401
GET /spot/click?t={{token('click', serve => 3, ad_group => 13, creative => 41)}} -> 302
    Location: https://acme.example/side
POST /spot/click?t={{token('click', serve => 3, ad_group => 13, creative => 41)}} -> 204
GET /spot/conversion?t={{token('conversion', serve => 1)}} -> 200
GET /status -> 200
    ~ {{totals(written => 5, expired => 5)}}
clock 2591900
GET /spot/conversion?t={{token('conversion', serve => 2)}} -> 200
clock 2592001
GET /spot/conversion?t={{token('conversion', serve => 3)}} -> 410
    ~ "code":"expired"
clock



=== TEST 5: a replay after its life is over stays uncounted
--- config
--- steps
clock
GET /spot/impression?t={{token('impression', serve => 1)}} -> 200
clock 3500
GET /spot/impression?t={{token('impression', serve => 1)}} -> 200
clock 3601
GET /spot/impression?t={{token('impression', serve => 1)}} -> 410
clock 10
GET /spot/impression?t={{token('impression', serve => 1)}} -> 200
GET /status -> 200
    ~ {{counts(12, impressions => 1)}}
    ~ {{totals(written => 1, duplicate => 2, expired => 1)}}



=== TEST 6: ads_token_ttl
--- http_config
    ads_token_ttl 100s click=200s conversion=300s;
--- config
--- steps
clock 150
GET /spot/impression?t={{token('impression', serve => 1)}} -> 410
GET /spot/click?t={{token('click', serve => 1)}} -> 302
GET /spot/conversion?t={{token('conversion', serve => 1)}} -> 200
clock 250
GET /spot/click?t={{token('click', serve => 2)}} -> 302
GET /spot/conversion?t={{token('conversion', serve => 2)}} -> 200
clock 350
GET /spot/conversion?t={{token('conversion', serve => 3)}} -> 410
GET /status -> 200
    ~ {{counts(12, clicks => 1, conversions => 2)}}
    ~ {{totals(written => 3, expired => 3)}}



=== TEST 7: a creative that is gone
--- config
--- steps
clock
GET /spot/impression?t={{token('impression', serve => 1, creative => 999)}} -> 410
    Content-Type: application/json
    ~ ^{"error":{"code":"gone","message":"[^"]+"}}$
GET /spot/click?t={{token('click', serve => 1, creative => 999)}} -> 410
    !Location
    ~ "code":"gone"
clock 86401
GET /spot/click?t={{token('click', serve => 1, creative => 999)}} -> 410
    !Location
clock
GET /status -> 200
    ~ {{counts(12)}}
    ~ "written":0,



=== TEST 8: an expired click, too, gives its click id
--- config
--- steps
clock 86401
GET /spot/click?t={{token('click', serve => 9)}} -> 302
    Location: https://acme.example/autumn?c={{token('conversion', serve => 9)}}
clock
