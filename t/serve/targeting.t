# Targeting, a dimension at a time: devices, places, languages, key-values,
# URLs, sizes and types, and all of them at once.

use lib 't/lib';
use AdsTest;
use AdsTest::Ads;

ads_blocks(zone => 't011');
no_long_string();

# A page with room for every group: who is eligible is served, in any order.
our $Page = 'placement=' . join ',', ('top') x 16;
our $All  = "/spot/serve?$Page";

# Group N with the creative N for each pair of N and its targeting.
sub groups {
    my (%targeting) = @_;
    my @groups = map {
        {   id        => $_,
            targeting => $targeting{$_},
            creatives => [ { id => $_, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/' } ],
        }
    } sort { $a <=> $b } keys %targeting;
    return catalog({ placements => [ { id => 'top' } ], campaigns => [ { id => 1, ad_groups => \@groups } ] });
}

# A pattern for an answer with these creatives and no other.
sub only {
    my @ids = @_ or return '^\{"ads":\[\]\}$';
    my $any = join '|', @ids;
    return '^' . join('', map { "(?=.*\"creative\":$_,)" } @ids) . "(?!.*\"creative\":(?!(?:$any),))";
}

my %Agent = (
    windows  => 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
    mac      => 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15',
    iphone   => 'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
    pixel    => 'Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36',
    ipad     => 'Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
    galaxy   => 'Mozilla/5.0 (Linux; Android 13; SM-X906C) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
    tizen    => 'Mozilla/5.0 (SMART-TV; LINUX; Tizen 7.0) AppleWebKit/537.36 (KHTML, like Gecko) 94.0.4606.31/7.0 TV Safari/537.36',
    bravia   => 'Mozilla/5.0 (Linux; Android 12; BRAVIA 4K VH2) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
    google   => 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
    phonebot => 'Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36 (compatible; Googlebot/2.1)',
);
sub agent { return $Agent{ $_[0] } }

our $Devices = groups(
    1 => { devices => ['desktop'] }, 2 => { devices => ['mobile'] }, 3 => { devices => ['tablet'] }, 4 => { devices => ['tv'] },
    5 => { devices => ['bot'] }, 6 => {}, 7 => { devices => [ 'desktop', 'tv' ] },
);
our $Places = groups(
    1 => { geos => ['US'] }, 2 => { geos => ['US-CA'] }, 3 => { geos => [ 'US', '!US-AK' ] }, 4 => { geos => ['!US'] },
    5 => { geos => ['!US-AK'] }, 6 => {}, 7 => { geos => ['DE'] }, 8 => { geos => [ 'US-CA', 'US-NY', 'DE-BY' ] },
);
our $Languages = groups(
    1 => { languages => ['en'] }, 2 => { languages => ['pt'] }, 3 => { languages => ['pt-BR'] }, 4 => { languages => ['zh'] },
    5 => { languages => ['zh-Hant'] }, 6 => { languages => ['zh-Hant-TW'] }, 7 => {}, 8 => { languages => [ 'de', 'fr' ] },
);
our $Keys = groups(
    1 => { keys => { section => [ 'sports', 'politics' ] } }, 2 => { keys => { section => ['arts'] } },
    3 => { keys => { section => ['sports'], color => ['red'] } }, 4 => {}, 5 => { keys => { segment => ['vip'] } },
    6 => { keys => { section => ["\x{fc}ber uns"] } },
);
# More names than any index of them holds.
our $ManyKeys = groups(
    (map { $_ => { keys => { "k$_" => ["v$_"] } } } 1 .. 13), 14 => { keys => { map { ("k$_" => [ "v$_", 'x' ]) } 1 .. 13 } },
);
# Compiled patterns look at whole words of memory, which valgrind takes for a
# fault.
my $Nojit = $ENV{TEST_NGINX_USE_VALGRIND} ? '(*NO_JIT)' : '';
sub patterns { return [ map { $Nojit . $_ } @_ ] }

our $Urls = groups(
    1 => { urls => { include => patterns('^https://example\.com/news/') } },
    2 => { urls => { exclude => patterns('/private/') } },
    3 => { urls => { include => patterns('^https://example\.com/news/', '^https://example\.org/'), exclude => patterns('[?&]noads=1') } },
    4 => {},
    5 => { urls => { include => patterns("stra\x{df}e") } },
);
# The engine gives up after some steps: neither included nor let pass.
our $Slow = groups(
    (map { $_ => { urls => { include => patterns("(a+)+[bc]{$_}") } } } 1 .. 8),
    (map { $_ => { urls => { exclude => patterns('(?:a|a?)+[de]{' . ($_ - 8) . '}') } } } 9 .. 15), 16 => {},
);
our $Sizes = catalog({
    placements => [
        { id => 'banner', width => 728, height => 90, types => [ 'image', 'html' ] }, { id => 'any' },
        { id => 'text', types => ['native'] }, { id => 'box', width => 300, height => 250 },
    ],
    campaigns => [ { id => 1, ad_groups => [
        map { { id => $_->{id}, creatives => [ { type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/', %$_ } ] } }
            { id => 1, width => 728, height => 90 },
            { id => 2, width => 728, height => 90, type => 'image', content => { src => 'https://a.example/a.png' } },
            { id => 3, width => 300, height => 250 },
            { id => 4 },
            { id => 5, type => 'native', content => { title => 'x' } },
            { id => 6, width => 90, height => 728 },
    ] } ],
});
our $Everything = groups(
    1 => {
        devices => ['mobile'], geos => ['DE'], languages => ['de'], keys => { section => ['sports'] },
        urls => { include => patterns('^https://a\.example/') }, placements => ['top'],
    },
);
our $Consent = 'consent_preferences=%7B%22analytics%22%3Atrue%7D';

plan tests => 234;
run_tests();

__DATA__

=== TEST 1: devices by the user agent
--- config
--- catalog eval: $::Devices
--- steps
GET {{$All}} -> 200
    > User-Agent: {{agent("windows")}}
    ~ {{only(1, 6, 7)}}
GET {{$All}} -> 200
    > User-Agent: {{agent("mac")}}
    ~ {{only(1, 6, 7)}}
GET {{$All}} -> 200
    > User-Agent: {{agent("iphone")}}
    ~ {{only(2, 6)}}
GET {{$All}} -> 200
    > User-Agent: {{agent("pixel")}}
    ~ {{only(2, 6)}}
GET {{$All}} -> 200
    > User-Agent: {{agent("ipad")}}
    ~ {{only(3, 6)}}
GET {{$All}} -> 200
    > User-Agent: {{agent("galaxy")}}
    ~ {{only(3, 6)}}
GET {{$All}} -> 200
    > User-Agent: {{agent("tizen")}}
    ~ {{only(4, 6, 7)}}
GET {{$All}} -> 200
    > User-Agent: {{agent("bravia")}}
    ~ {{only(4, 6, 7)}}
GET {{$All}} -> 200
    > User-Agent: {{agent("google")}}
    ~ {{only(5, 6)}}
GET {{$All}} -> 200
    > User-Agent: {{agent("phonebot")}}
    ~ {{only(5, 6)}}
GET {{$All}} -> 200
    ~ {{only(1, 6, 7)}}
GET {{$All}} -> 200
    > User-Agent: {{'x' x 3000}} Googlebot
    ~ {{only(1, 6, 7)}}



=== TEST 2: ads_device says it, or else the user agent
--- config
    location = /device { ads_serve; ads_device $arg_device; }
--- catalog eval: $::Devices
--- steps
GET /device?{{$Page}}&device=tv -> 200
    > User-Agent: {{agent("iphone")}}
    ~ {{only(4, 6, 7)}}
GET /device?{{$Page}}&device=desktop -> 200
    > User-Agent: {{agent("iphone")}}
    ~ {{only(1, 6, 7)}}
GET /device?{{$Page}}&device=tablet -> 200
    ~ {{only(3, 6)}}
GET /device?{{$Page}}&device=mobile -> 200
    ~ {{only(2, 6)}}
GET /device?{{$Page}}&device=bot -> 200
    ~ {{only(5, 6)}}
GET /device?{{$Page}}&device=TV -> 200
    > User-Agent: {{agent("iphone")}}
    ~ {{only(2, 6)}}
GET /device?{{$Page}}&device=toaster -> 200
    > User-Agent: {{agent("ipad")}}
    ~ {{only(3, 6)}}
GET /device?{{$Page}} -> 200
    > User-Agent: {{agent("google")}}
    ~ {{only(5, 6)}}



=== TEST 3: places
--- config
    location = /geo { ads_serve; ads_geo $arg_geo; }
--- catalog eval: $::Places
--- steps
GET /geo?{{$Page}}&geo=US -> 200
    ~ {{only(1, 3, 5, 6)}}
GET /geo?{{$Page}}&geo=US- -> 200
    ~ {{only(1, 3, 5, 6)}}
GET /geo?{{$Page}}&geo=US-CA -> 200
    ~ {{only(1, 2, 3, 5, 6, 8)}}
GET /geo?{{$Page}}&geo=us-ca -> 200
    ~ {{only(1, 2, 3, 5, 6, 8)}}
GET /geo?{{$Page}}&geo=US-AK -> 200
    ~ {{only(1, 6)}}
GET /geo?{{$Page}}&geo=uS-aK -> 200
    ~ {{only(1, 6)}}
GET /geo?{{$Page}}&geo=US-TX -> 200
    ~ {{only(1, 3, 5, 6)}}
GET /geo?{{$Page}}&geo=US-NY -> 200
    ~ {{only(1, 3, 5, 6, 8)}}
GET /geo?{{$Page}}&geo=DE -> 200
    ~ {{only(4, 5, 6, 7)}}
GET /geo?{{$Page}}&geo=DE-BY -> 200
    ~ {{only(4, 5, 6, 7, 8)}}
GET /geo?{{$Page}}&geo=FR -> 200
    ~ {{only(4, 5, 6)}}



=== TEST 4: a place that is not known, or is none
--- config
    location = /geo { ads_serve; ads_geo $arg_geo; }
--- catalog eval: $::Places
--- steps
GET /geo?{{$Page}} -> 200
    ~ {{only(4, 5, 6)}}
GET /geo?{{$Page}}&geo=- -> 200
    ~ {{only(4, 5, 6)}}
GET /geo?{{$Page}}&geo=USA -> 200
    ~ {{only(4, 5, 6)}}
GET /geo?{{$Page}}&geo=U -> 200
    ~ {{only(4, 5, 6)}}
GET /geo?{{$Page}}&geo=-CA -> 200
    ~ {{only(4, 5, 6)}}
GET /geo?{{$Page}}&geo=US-CALIFORNIA -> 200
    ~ {{only(4, 5, 6)}}
GET {{$All}}&geo=US -> 200
    ~ {{only(4, 5, 6)}}



=== TEST 5: a place of two variables, and one that a location changes
--- config
    ads_geo $http_x_country-$http_x_region;
    location = /here { ads_serve; ads_geo DE; }
--- catalog eval: $::Places
--- steps
GET {{$All}} -> 200
    > X-Country: US
    > X-Region: CA
    ~ {{only(1, 2, 3, 5, 6, 8)}}
GET {{$All}} -> 200
    > X-Country: US
    ~ {{only(1, 3, 5, 6)}}
GET {{$All}} -> 200
    > X-Region: CA
    ~ {{only(4, 5, 6)}}
GET {{$All}} -> 200
    ~ {{only(4, 5, 6)}}
GET /here?{{$Page}} -> 200
    > X-Country: US
    ~ {{only(4, 5, 6, 7)}}



=== TEST 6: languages: the first that is wanted, and what it is a part of
--- config
--- catalog eval: $::Languages
--- steps
GET {{$All}} -> 200
    > Accept-Language: en-US,en;q=0.9,pt;q=0.8
    ~ {{only(1, 7)}}
GET {{$All}} -> 200
    > Accept-Language: pt-BR, pt;q=0.5
    ~ {{only(2, 3, 7)}}
GET {{$All}} -> 200
    > Accept-Language: PT-br
    ~ {{only(2, 3, 7)}}
GET {{$All}} -> 200
    > Accept-Language: pt
    ~ {{only(2, 7)}}
GET {{$All}} -> 200
    > Accept-Language: pt-PT
    ~ {{only(2, 7)}}
GET {{$All}} -> 200
    > Accept-Language: zh-Hant-TW
    ~ {{only(4, 5, 6, 7)}}
GET {{$All}} -> 200
    > Accept-Language: zh-hant-HK
    ~ {{only(4, 5, 7)}}
GET {{$All}} -> 200
    > Accept-Language: zh-Hans
    ~ {{only(4, 7)}}
GET {{$All}} -> 200
    > Accept-Language: fr;q=0.7
    ~ {{only(7, 8)}}
GET {{$All}} -> 200
    > Accept-Language: eng
    ~ {{only(7)}}
GET {{$All}} -> 200
    > Accept-Language: *
    ~ {{only(7)}}
GET {{$All}} -> 200
    > Accept-Language: {{'en-' x 20}}
    ~ {{only(7)}}
GET {{$All}} -> 200
    ~ {{only(7)}}



=== TEST 7: ads_language says it, regardless of the browser
--- config
    location = /lang { ads_serve; ads_language $arg_lang; }
--- catalog eval: $::Languages
--- steps
GET /lang?{{$Page}}&lang=de -> 200
    > Accept-Language: en
    ~ {{only(7, 8)}}
GET /lang?{{$Page}}&lang=pt_BR -> 200
    ~ {{only(2, 3, 7)}}
GET /lang?{{$Page}} -> 200
    > Accept-Language: en
    ~ {{only(7)}}



=== TEST 8: key-values of the query
--- config
--- catalog eval: $::Keys
--- steps
GET {{$All}} -> 200
    ~ {{only(4)}}
GET {{$All}}&kv.section=sports -> 200
    ~ {{only(1, 4)}}
GET {{$All}}&kv.section=sp%6frts -> 200
    ~ {{only(1, 4)}}
GET {{$All}}&kv.section=politics&kv.color=red -> 200
    ~ {{only(1, 4)}}
GET {{$All}}&kv.section=sports&kv.color=red -> 200
    ~ {{only(1, 3, 4)}}
GET {{$All}}&kv.section=arts&kv.section=sports -> 200
    ~ {{only(1, 2, 4)}}
GET {{$All}}&kv.section=nothing&kv.section=arts&kv.section=other -> 200
    ~ {{only(2, 4)}}
GET {{$All}}&kv.section=%C3%BCber+uns -> 200
    ~ {{only(4, 6)}}
GET {{$All}}&kv.section=SPORTS -> 200
    ~ {{only(4)}}
GET {{$All}}&kv.section= -> 200
    ~ {{only(4)}}
GET {{$All}}&section=sports&kv.Section=sports -> 200
    ~ {{only(4)}}
GET {{$All}}&kv.segment=vip -> 200
    ~ {{only(4, 5)}}



=== TEST 9: key-values of the server: the query cannot overrule them
--- config
    ads_key section $arg_s;
    ads_key segment $arg_seg personal;
    location = /none { ads_serve; ads_key color red; }
--- catalog eval: $::Keys
--- steps
GET {{$All}}&s=arts -> 200
    ~ {{only(2, 4)}}
GET {{$All}}&s=arts&kv.section=sports -> 200
    ~ {{only(2, 4)}}
GET {{$All}}&kv.section=sports -> 200
    ~ {{only(4)}}
GET {{$All}}&s=sports&kv.color=red -> 200
    ~ {{only(1, 3, 4)}}
GET {{$All}}&seg=vip -> 200
    ~ {{only(4)}}
GET {{$All}}&seg=vip -> 200
    > Cookie: {{$Consent}}
    ~ {{only(4, 5)}}
GET {{$All}}&kv.segment=vip -> 200
    ~ {{only(4)}}
GET {{$All}}&kv.segment=vip -> 200
    > Cookie: {{$Consent}}
    ~ {{only(4)}}
GET {{$All}}&seg=vip -> 200
    > Cookie: consent_preferences=%7B%22analytics%22%3Afalse%7D
    ~ {{only(4)}}
GET /none?{{$Page}}&kv.section=sports&s=arts -> 200
    ~ {{only(1, 3, 4)}}



=== TEST 10: more names of keys than there are rows for
--- config
--- catalog eval: $::ManyKeys
--- steps
GET {{$All}}&kv.k1=v1 -> 200
    ~ {{only(1)}}
GET {{$All}}&kv.k13=v13&kv.k9=v9 -> 200
    ~ {{only(9, 13)}}
GET {{$All}}&kv.k13=v1 -> 200
    ~ {{only()}}
GET {{$All}}&{{join '&', map { "kv.k$_=v$_" } 1 .. 13}} -> 200
    ~ {{only(1 .. 14)}}
GET {{$All}}&{{join '&', map { "kv.k$_=x" } 1 .. 13}} -> 200
    ~ {{only(14)}}
GET {{$All}}&{{join '&', map { "kv.k$_=v$_" } 1 .. 12}} -> 200
    ~ {{only(1 .. 12)}}



=== TEST 11: no more key-values than are allowed
--- config
--- catalog eval: $::Keys
--- steps
GET {{$All}}&{{join '&', map { "kv.n$_=v" } 1 .. 63}}&kv.section=arts -> 200
    ~ {{only(2, 4)}}
GET {{$All}}&{{join '&', map { "kv.n$_=v" } 1 .. 64}}&kv.section=arts -> 400
    ~ ^{"error":{"code":"too_many_keys",



=== TEST 12: the URL of the page, from the query or the referrer
--- config
--- catalog eval: $::Urls
--- steps
GET {{$All}}&url=https://example.com/news/1 -> 200
    ~ {{only(1, 2, 3, 4)}}
GET {{$All}} -> 200
    > Referer: https://example.com/news/1
    ~ {{only(1, 2, 3, 4)}}
GET {{$All}}&url=https://example.org/private/ -> 200
    > Referer: https://example.com/news/1
    ~ {{only(3, 4)}}
GET {{$All}}&url=https%3A%2F%2Fexample.org%2F%3Fnoads%3D1 -> 200
    ~ {{only(2, 4)}}
GET {{$All}}&url=https://example.com/sports/ -> 200
    ~ {{only(2, 4)}}
GET {{$All}}&url=HTTPS://EXAMPLE.COM/news/ -> 200
    ~ {{only(2, 4)}}
GET {{$All}}&url=/stra%C3%9Fe -> 200
    ~ {{only(2, 4, 5)}}
GET {{$All}} -> 200
    > Referer: https://a.example/stra{{"\xc3\x9f"}}e
    ~ {{only(2, 4, 5)}}
GET {{$All}} -> 200
    ~ {{only(2, 4)}}
GET {{$All}}&url= -> 200
    > Referer: https://example.com/news/1
    ~ {{only(1, 2, 3, 4)}}



=== TEST 13: a referrer that is not UTF-8 is none
--- config
--- catalog eval: $::Urls
--- steps
GET {{$All}} -> 200
    > Referer: https://example.com/news/{{"\xff"}}/private/
    ~ {{only(2, 4)}}
GET {{$All}} -> 200
    > Referer: https://example.com/news/{{"\xed\xa0\x80"}}
    ~ {{only(2, 4)}}
GET {{$All}} -> 200
    > Referer: https://example.com/news/{{"\xc3"}}
    ~ {{only(2, 4)}}



=== TEST 14: patterns that would never end are given up, and then match neither way
--- config
    ads_explain on;
    large_client_header_buffers 4 16k;
--- catalog eval: $::Slow
--- timeout: 3
--- steps
GET {{$All}}&url={{'a' x 7000}} -> 200
    ~ {{only(16)}}
GET {{$All}}&debug=1 -> 200
    > Referer: {{'a' x 7000}}
    ~ {{only(16)}}
    ~ "ad_group":1,"reason":"url"
    ~ "ad_group":9,"reason":"url"
GET {{$All}}&url=aabbbbbbbb -> 200
    ~ {{only(1 .. 16)}}
GET {{$All}}&url=aae -> 200
    ~ {{only(10 .. 16)}}



=== TEST 15: sizes and types
--- config
--- catalog eval: $::Sizes
--- steps
GET /spot/serve?placement={{join ',', ('banner') x 8}} -> 200
    ~ {{only(1, 2, 4)}}
GET /spot/serve?placement={{join ',', ('any') x 8}} -> 200
    ~ {{only(1 .. 6)}}
GET /spot/serve?placement={{join ',', ('text') x 8}} -> 200
    ~ {{only(5)}}
GET /spot/serve?placement={{join ',', ('box') x 8}} -> 200
    ~ {{only(3, 4, 5)}}



=== TEST 16: of a group's creatives, those that fit
--- config
--- catalog eval
::catalog({placements => [{id => 'top', width => 10, height => 10}], campaigns => [{id => 1, ad_groups => [{id => 1, creatives => [map { {id => $_, type => 'html', content => {markup => 'x'}, click_url => 'https://a.example/', width => $_ == 3 ? 10 : 20, height => 10, status => 'active'} } 1 .. 5]}]}]})
--- steps
GET {{$All}} -> 200
    ~ {{only(3)}}



=== TEST 17: every dimension has to match
--- config
    ads_geo $arg_geo;
--- catalog eval: $::Everything
--- steps
GET {{$All}}&geo=DE&kv.section=sports&url=https://a.example/ -> 200
    > User-Agent: {{agent("iphone")}}
    > Accept-Language: de
    ~ {{only(1)}}
GET {{$All}}&geo=DE&kv.section=sports&url=https://a.example/ -> 200
    > User-Agent: {{agent("ipad")}}
    > Accept-Language: de
    ~ {{only()}}
GET {{$All}}&geo=AT&kv.section=sports&url=https://a.example/ -> 200
    > User-Agent: {{agent("iphone")}}
    > Accept-Language: de
    ~ {{only()}}
GET {{$All}}&geo=DE&kv.section=sports&url=https://a.example/ -> 200
    > User-Agent: {{agent("iphone")}}
    > Accept-Language: en
    ~ {{only()}}
GET {{$All}}&geo=DE&kv.section=arts&url=https://a.example/ -> 200
    > User-Agent: {{agent("iphone")}}
    > Accept-Language: de
    ~ {{only()}}
GET {{$All}}&geo=DE&kv.section=sports&url=https://b.example/ -> 200
    > User-Agent: {{agent("iphone")}}
    > Accept-Language: de
    ~ {{only()}}
