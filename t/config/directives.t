# Every directive: accepted arguments, and the messages for invalid ones. A message names the
# directive, the value, and what is allowed.

use lib 't/lib';
use AdsTest;
use AdsTest::Ads;

$ENV{TEST_NGINX_SECRET}   = write_temp('secret', secret_text(1), 0600);
$ENV{TEST_NGINX_CATALOG}  = write_temp('catalog.json', catalog_text());
$ENV{TEST_NGINX_BAD}      = write_temp('bad.json', '{"placements": [{"id": "top", "widht": 1}], "campaigns": [{"id": 0}]}');
$ENV{TEST_NGINX_NO_JSON}  = write_temp('no.json', "{\n  \"version\": 1,\n}");
$ENV{TEST_NGINX_LARGE}    = write_temp('large.json', catalog({
    placements => [ { id => 'top' } ],
    campaigns  => [ { id => 1, ad_groups => [ { id => 1, creatives => [ map { {
        id => $_, type => 'html', content => { markup => 'x' x 60_000 . $_ }, click_url => 'https://a.example/' } } 1 .. 40 ] } ] } ],
}));

directive_blocks(
    ads_zone    => 't002 8m',
    ads_spool   => 'logs/spool',
    ads_catalog => 'file $TEST_NGINX_CATALOG',
    ads_secret  => '$TEST_NGINX_SECRET',
);

plan tests => 171;
no_shuffle();
run_tests();

__DATA__

=== TEST 1: the module is loaded and not used
--- config
    location = /x { return 200 "plain"; }
--- request
GET /x
--- response_body: plain
--- no_error_log
ads:



=== TEST 2: its directives stand there, but nothing switches it on
--- config
    location = /x { return 200 "plain"; }
--- http_config
    ads_spool   logs/spool;
    ads_catalog file no-such-file;
    ads_secret  no-such-file;
--- request
GET /x
--- response_body: plain



=== TEST 3: the smallest configuration
--- ads
--- request
GET /spot/serve?placement=top
--- response_body_like: "creative":31



=== TEST 4: every directive with all of its parameters
--- ads
ads_state     logs/state dedupe=1m;
ads_spool     logs/spool segment=64k;
ads_token_ttl 30m click=12h conversion=400d;
ads_base      https://ads.example.com/spot/;
ads_origin    https://$host:8443;
--- config
    location = /spot/serve { ads_serve; }
    location = /t { ads_track; }
    location = /i { ads_track impression; }
    location = /v { ads_track viewable; }
    location = /c { ads_track click; }
    location = /n { ads_track conversion; }
    location = /s { ads_status; }
    location = /d { ads_status detail; }
--- request eval
[ 'GET /spot/serve?placement=top', map { "GET /$_" } qw(t i v c n s d) ]
--- error_code eval
[ 200, 400, 400, 400, 400, 400, 200, 200 ]



=== TEST 5: ads_zone: no size
--- ads
ads_zone t002 big;
--- must_die
--- error_log
ads: invalid value "big" in "ads_zone": must be a size of at least 4m in



=== TEST 6: ads_zone: too small
--- ads
ads_zone t002 100k;
--- must_die
--- error_log
ads: invalid value "100k" in "ads_zone": must be a size of at least 4m in



=== TEST 7: ads_zone: twice
--- ads
+ads_zone t002b 4m;
--- must_die
--- error_log
"ads_zone" directive is duplicate in



=== TEST 8: ads_zone: the smallest there is serves
--- ads
ads_zone  t002small 4m;
ads_state logs/state-small dedupe=64k;
--- request
GET /spot/serve?placement=top
--- error_code: 200



=== TEST 9: ads_zone: a name without a size
--- ads
ads_zone t002;
--- must_die
--- error_log
invalid number of arguments in "ads_zone" directive



=== TEST 10: ads_zone: the name of another module's zone
--- ads
limit_req_zone $binary_remote_addr zone=t002:8m rate=1r/s;
--- must_die
--- error_log
"t002" is already declared for a different use



=== TEST 11: ads_state: an unknown parameter
--- ads
ads_state logs/state size=1m;
--- must_die
--- error_log
ads: invalid parameter "size=1m" in "ads_state": must be "dedupe=SIZE" in



=== TEST 12: ads_state: bad sizes
--- ads
ads_state logs/state dedupe=many;
--- must_die
--- error_log
ads: invalid parameter "dedupe=many" in "ads_state": must be a size of at least 64k in



=== TEST 13: ads_state: too small a size
--- ads
ads_state logs/state dedupe=1k;
--- must_die
--- error_log
ads: invalid parameter "dedupe=1k" in "ads_state": must be a size of at least 64k in



=== TEST 14: ads_state: an empty path
--- ads
ads_state "";
--- must_die
--- error_log
ads: invalid value "" in "ads_state": must be the path of a folder in



=== TEST 15: ads_state: twice
--- ads
ads_state logs/state;
+ads_state logs/other;
--- must_die
--- error_log
"ads_state" directive is duplicate in



=== TEST 16: ads_state: a folder that cannot be made
--- ads
ads_state logs/not/there;
--- must_die
--- error_log eval
[ qr{ads: ads_state: cannot create the folder "\S+/logs/not/there" \(2: No such file or directory\)} ]



=== TEST 17: ads_state: a file that is no state is set aside
--- ads
ads_state html/state_cache;
--- user_files
>>> state_cache/state
This is not what it should be.
--- request
GET /spot/serve?placement=top
--- error_code: 200
--- grep_error_log eval
qr{ads: "\S+/html/state_cache/state" cannot be used: it \w+ .*; it was moved to "\S+/state\.bad-\d+" and counting starts anew}
--- grep_error_log_out eval
qr/\Aads: .* counting starts anew\n\z/



=== TEST 18: ads_spool: an unknown parameter
--- ads
ads_spool logs/spool dedupe=1m;
--- must_die
--- error_log
ads: invalid parameter "dedupe=1m" in "ads_spool": must be "segment=SIZE" in



=== TEST 19: ads_spool: a bad size
--- ads
ads_spool logs/spool segment=63k;
--- must_die
--- error_log
ads: invalid parameter "segment=63k" in "ads_spool": must be a size of at least 64k in



=== TEST 20: ads_spool: an empty path
--- ads
ads_spool "";
--- must_die
--- error_log
ads: invalid value "" in "ads_spool": must be the path of a folder in



=== TEST 21: ads_spool: twice
--- ads
+ads_spool logs/other;
--- must_die
--- error_log
"ads_spool" directive is duplicate in



=== TEST 22: ads_catalog: an unknown source
--- ads
ads_catalog url https://example.com/catalog.json;
--- must_die
--- error_log
ads: invalid value "url" in "ads_catalog": must be "file PATH" or "postgres" in



=== TEST 23: ads_catalog: a path alone
--- ads
ads_catalog conf/catalog.json;
--- must_die
--- error_log
ads: invalid value "conf/catalog.json" in "ads_catalog": must be "file PATH" or "postgres" in



=== TEST 24: ads_catalog: a file that is not there
--- ads
ads_catalog file no-such.json;
--- must_die
--- error_log eval
[ qr{ads: cannot read ads_catalog "\S+/conf/no-such\.json": No such file or directory in} ]



=== TEST 25: ads_catalog: a folder
--- ads
ads_catalog file .;
--- must_die
--- error_log eval
[ qr{ads: cannot read ads_catalog "\S+": Is a directory in} ]



=== TEST 26: ads_catalog: twice
--- ads
+ads_catalog file $TEST_NGINX_CATALOG;
--- must_die
--- error_log
"ads_catalog" directive is duplicate in



=== TEST 27: ads_catalog: faults are named by their JSON paths
--- ads
ads_catalog file $TEST_NGINX_BAD;
--- must_die
--- error_log eval
[ qr{ads: catalog "\S+/bad\.json": \$\.placements\[0\]: unknown key "widht"; did you mean "width"\?}, qr{ads: catalog "\S+/bad\.json": \$\.campaigns\[0\]\.id: },
  qr{ads: ads_catalog "\S+/bad\.json" has 2 errors in} ]



=== TEST 28: ads_catalog: no JSON
--- ads
ads_catalog file $TEST_NGINX_NO_JSON;
--- must_die
--- error_log eval
[ qr{ads: catalog "\S+/no\.json": \$: line 3, column \d+: }, qr{ads: ads_catalog "\S+/no\.json" has 1 error in} ]



=== TEST 29: ads_catalog: too large for its zone
--- ads
ads_zone    t002 4m;
ads_catalog file $TEST_NGINX_LARGE;
--- must_die
--- error_log eval
[ qr{ads: the compiled catalog has \d{7} bytes, zone "t002" holds \d{7}: set ads_zone to at least \d+m$}m ]



=== TEST 30: ads_base: no slash at the end
--- ads
ads_base /spot;
--- must_die
--- error_log
ads: invalid value "/spot" in "ads_base": must be a path such as /spot/ or a URL such as https://ads.example.com/spot/, ending in a slash in



=== TEST 31: ads_base: not a path, and no scheme of ours
--- ads
ads_base javascript:alert(1)/;
--- must_die
--- error_log
ads: invalid value "javascript:alert(1)/" in "ads_base": must be a path such as /spot/



=== TEST 32: ads_base: another host by the scheme of the page
--- ads
ads_base //evil.example/;
--- must_die
--- error_log
ads: invalid value "//evil.example/" in "ads_base": must be a path such as /spot/



=== TEST 33: ads_base: what would leave a string
--- ads
ads_base '/a"b/';
--- must_die
--- error_log
must be a path such as /spot/



=== TEST 34: ads_base: twice
--- ads
ads_base /a/;
+ads_base /b/;
--- must_die
--- error_log
"ads_base" directive is duplicate in



=== TEST 35: ads_track: no event
--- ads
--- config
    location = /t { ads_track view; }
--- must_die
--- error_log
ads: invalid value "view" in "ads_track": must be impression, viewable, click or conversion, or absent to take the type= of the query in



=== TEST 36: ads_track: a serve is not tracked
--- ads
--- config
    location = /t { ads_track serve; }
--- must_die
--- error_log
ads: invalid value "serve" in "ads_track": must be impression, viewable, click or conversion



=== TEST 37: ads_status: an unknown parameter
--- ads
--- config
    location = /s { ads_status full; }
--- must_die
--- error_log
ads: invalid parameter "full" in "ads_status": must be "detail" or "health" in



=== TEST 38: ads_serve has no parameter
--- ads
--- config
    location = /s { ads_serve top; }
--- must_die
--- error_log
invalid number of arguments in "ads_serve" directive



=== TEST 39: a handler stands in a location
--- ads
--- config
    ads_serve;
--- must_die
--- error_log
"ads_serve" directive is not allowed here



=== TEST 40: two handlers in a location
--- ads
--- config
    location = /t { ads_track click; ads_serve; }
--- must_die
--- error_log
ads: "ads_serve" is not allowed here: the location already has a handler in



=== TEST 41: a handler twice
--- ads
--- config
    location = /t { ads_track click; ads_track impression; }
--- must_die
--- error_log
ads: "ads_track" is not allowed here: the location already has a handler in



=== TEST 42: a handler of ours beside one of nginx
--- ads
--- config
    location = /t { empty_gif; ads_status; }
--- must_die
--- error_log
ads: "ads_status" is not allowed here: the location already has a handler in



=== TEST 43: ads_serve without ads_zone
--- ads
-ads_zone
--- must_die
--- error_log
ads: "ads_serve" requires "ads_zone" in the http block in



=== TEST 44: ads_track without ads_catalog
--- ads
-ads_catalog
--- config
    location = /t { ads_track; }
--- must_die
--- error_log
ads: "ads_track" requires "ads_catalog" in the http block in



=== TEST 45: ads_status without ads_spool
--- ads
-ads_spool
--- config
    location = /t { ads_status; }
--- must_die
--- error_log
ads: "ads_status" requires "ads_spool" in the http block in



=== TEST 46: ads_serve without ads_secret
--- ads
-ads_secret
--- must_die
--- error_log
ads: "ads_serve" requires "ads_secret" in the http block in



=== TEST 47: ads_zone alone
--- ads
-ads_secret
-ads_spool
-ads_catalog
--- config
--- must_die
--- error_log
ads: "ads_zone" requires "ads_catalog" in the http block in



=== TEST 48: directives of the http block do not stand in a server
--- config
    ads_zone t002 8m;
--- must_die
--- error_log
"ads_zone" directive is not allowed here



=== TEST 49: ads_catalog: two paths
--- ads
ads_catalog file a.json b.json;
--- must_die
--- error_log
ads: "ads_catalog file" must have one path in



=== TEST 50: ads_catalog postgres needs ads_postgres
--- ads
ads_catalog postgres;
--- must_die
--- error_log
ads: "ads_catalog postgres" requires "ads_postgres" in the http block in



=== TEST 51: ads_catalog postgres: an unknown parameter
--- ads
ads_catalog postgres every=3s;
+ads_postgres "dbname=ads";
--- must_die
--- error_log
ads: invalid parameter "every=3s" in "ads_catalog": must be "poll=TIME" or "listen=CONNINFO" in



=== TEST 52: ads_catalog postgres: no time
--- ads
ads_catalog postgres poll=soon;
+ads_postgres "dbname=ads";
--- must_die
--- error_log
ads: invalid parameter "poll=soon" in "ads_catalog": must be a time, such as poll=30s in



=== TEST 53: ads_catalog postgres: listen is a connection string
--- ads
ads_catalog postgres listen=somewhere;
+ads_postgres "dbname=ads";
--- must_die
--- error_log
ads: invalid connection string in "ads_catalog": missing "=" after "somewhere" in connection info string; must be like



=== TEST 54: ads_postgres: no connection string
--- ads
+ads_postgres "hots=127.0.0.1";
--- must_die
--- error_log
ads: invalid connection string in "ads_postgres": invalid connection option "hots"; must be like



=== TEST 55: ads_postgres: an empty one
--- ads
+ads_postgres "";
--- must_die
--- error_log
ads: invalid connection string in "ads_postgres": it is empty; must be like



=== TEST 56: ads_postgres: twice
--- ads
+ads_postgres "dbname=ads";
+ads_postgres "dbname=more";
--- must_die
--- error_log
"ads_postgres" directive is duplicate in



=== TEST 57: ads_postgres: an unknown parameter
--- ads
+ads_postgres "dbname=ads" size=3;
--- must_die
--- error_log
ads: invalid parameter "size=3" in "ads_postgres": must be "batch=NUMBER", "connections=NUMBER", "interval=TIME" or "timeout=TIME" in



=== TEST 58: ads_postgres: a batch of none
--- ads
+ads_postgres "dbname=ads" batch=0;
--- must_die
--- error_log
ads: invalid parameter "batch=0" in "ads_postgres": must be batch=1 to batch=10000 in



=== TEST 59: ads_postgres: no time
--- ads
+ads_postgres "dbname=ads" interval=often;
--- must_die
--- error_log
ads: invalid parameter "interval=often" in "ads_postgres": must be a time, such as 200ms or 30s in



=== TEST 60: ads_spool: a segment that is too large
--- ads
ads_spool logs/spool segment=65m;
--- must_die
--- error_log
ads: invalid parameter "segment=65m" in "ads_spool": must be at most 64m in



=== TEST 61: ads_origin: with a path
--- ads
ads_origin https://ads.example.com/;
--- must_die
--- error_log
ads: invalid value "https://ads.example.com/" in "ads_origin": must be a scheme and a host such as https://example.com, optionally with a port, without a path in



=== TEST 62: ads_origin: no scheme
--- ads
ads_origin ads.example.com;
--- must_die
--- error_log
ads: invalid value "ads.example.com" in "ads_origin": must be a scheme and a host such as https://example.com



=== TEST 63: ads_tag: a folder without the script
--- ads
--- config
    location /spot/tag { ads_tag logs/nothing; }
--- must_die
--- error_log eval
qr{ads: "ads_tag" cannot read "[^"]*/logs/nothing/tag\.js": No such file or directory; "make install" puts it into "/usr/share/nginx-ads" in}



=== TEST 64: ads_tag: two folders
--- ads
--- config
    location /spot/tag { ads_tag one two; }
--- must_die
--- error_log
ads: unknown parameter "two" in "ads_tag": must be a folder or element=NAME in



=== TEST 65: ads_tag: an element that HTML has itself
--- ads
--- config
    location /spot/tag { ads_tag element=aside; }
--- must_die
--- error_log
ads: invalid value "element=aside" in "ads_tag": must be the name of a custom element, like element=page-spot in



=== TEST 66: ads_slots_css: a name that SVG has taken
--- ads
--- config
    location /spot/slots.css { ads_slots_css element=font-face; }
--- must_die
--- error_log
ads: invalid value "element=font-face" in "ads_slots_css": must be the name of a custom element, like element=page-spot in



=== TEST 67: ads_slots_css: an unknown parameter
--- ads
--- config
    location /spot/slots.css { ads_slots_css top; }
--- must_die
--- error_log
ads: unknown parameter "top" in "ads_slots_css": must be element=NAME in



=== TEST 68: ads_frame: without a catalog
--- ads
-ads_catalog
--- config
    location /spot/frame { ads_frame; }
--- must_die
--- error_log
ads: "ads_frame" requires "ads_catalog" in the http block in



=== TEST 69: ads_frame: another handler
--- ads
--- config
    location /spot/frame { ads_serve; ads_frame; }
--- must_die
--- error_log
ads: "ads_frame" is not allowed here: the location already has a handler in



=== TEST 70: ads_frame_origin: with a path
--- ads
+ads_frame_origin https://frames.example/ advertiser=acme;
--- must_die
--- error_log
ads: invalid value "https://frames.example/" in "ads_frame_origin": must be like https://frames.example.net, optionally with a port, without a path in



=== TEST 71: ads_frame_origin: an unknown parameter
--- ads
+ads_frame_origin https://frames.example acme;
--- must_die
--- error_log
ads: invalid parameter "acme" in "ads_frame_origin": must be advertiser=NAME in



=== TEST 72: ads_frame_origin: without advertisers
--- ads
+ads_frame_origin https://frames.example;
--- must_die
--- error_log
invalid number of arguments in "ads_frame_origin" directive



=== TEST 73: ads_frame_origin: a server of pages by root
--- ads
+ads_frame_origin https://frames.example:8443 advertiser=acme;
+server { server_name a.example frames.example; listen 127.0.0.1:1; root /srv; location = /spot/frame { ads_frame; } }
--- must_die
--- error_log
ads: invalid value "https://frames.example:8443" in "ads_frame_origin": the server "frames.example" serves pages; must be a host that has only ads_frame, ads_track and "return" in



=== TEST 74: ads_frame_origin: a location with files
--- ads
+ads_frame_origin https://frames.example:8443 advertiser=acme;
+server { server_name a.example frames.example; listen 127.0.0.1:1; location = /spot/frame { ads_frame; } location /a/ { location /a/b/ { alias /srv/; } } }
--- must_die
--- error_log
ads: invalid value "https://frames.example:8443" in "ads_frame_origin": the server "frames.example" serves pages; must be a host that has only ads_frame, ads_track and "return" in



=== TEST 75: ads_frame_origin: a proxy behind a regular expression
--- ads
+ads_frame_origin https://frames.example:8443 advertiser=acme;
+server { server_name a.example frames.example; listen 127.0.0.1:1; location ~ x { proxy_pass http://127.0.0.1:1; } }
--- must_die
--- error_log
ads: invalid value "https://frames.example:8443" in "ads_frame_origin": the server "frames.example" serves pages; must be a host that has only ads_frame, ads_track and "return" in



=== TEST 76: ads_frame_origin: a server that shows frames and nothing else
--- ads
+ads_frame_origin https://frames.example advertiser=acme;
+server { server_name frames.example; listen 127.0.0.1:$TEST_NGINX_SERVER_PORT; location = /spot/frame { ads_frame; } location = /spot/click { ads_track click; } location / { return 404; } }
--- request
GET /spot/serve?placement=top
--- response_body_like: "creative":31



=== TEST 77: ads_fleet: an invalid name
--- ads
+ads_fleet name=web/1;
--- must_die
--- error_log
ads: invalid parameter "name=web/1" in "ads_fleet": must have 1 to 64 letters, digits, ".", "_" or "-" in



=== TEST 78: ads_fleet: no name
--- ads
+ads_fleet on_error=share;
--- must_die
--- error_log
ads: "ads_fleet" must have "name=NAME" in



=== TEST 79: ads_fleet: an unknown policy
--- ads
+ads_fleet name=web1 on_error=guess;
--- must_die
--- error_log
ads: invalid parameter "on_error=guess" in "ads_fleet": must be "name=NAME", "on_error=stop", "on_error=share" or "run=PATH" in



=== TEST 80: ads_fleet needs ads_state
--- ads
+ads_fleet name=web1;
+ads_postgres "dbname=ads";
--- must_die
--- error_log
ads: "ads_fleet" requires "ads_state" in the http block in



=== TEST 81: ads_fleet needs ads_postgres
--- ads
+ads_fleet name=web1;
+ads_state logs/state dedupe=1m;
--- must_die
--- error_log
ads: "ads_fleet" requires "ads_postgres" in the http block in
