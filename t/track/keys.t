# The key ring, and how long what it signs lives: what is accepted, and what is
# said to a bad argument.

use lib 't/lib';
use AdsTest;
use AdsTest::Ads;

$ENV{TEST_NGINX_SECRET}   = write_temp('secret', secret_text(1), 0600);
$ENV{TEST_NGINX_CATALOG}  = write_temp('catalog.json', catalog_text());
$ENV{TEST_NGINX_OPEN}     = write_temp('open', secret_text(1), 0644);
$ENV{TEST_NGINX_GROUP}    = write_temp('group', secret_text(1), 0640);
$ENV{TEST_NGINX_NO_KEYS}  = write_temp('no-keys', "# nothing but a comment\n\n", 0600);
$ENV{TEST_NGINX_SHORT}    = write_temp('short', "1 " . substr(key(1), 2) . "\n", 0600);
$ENV{TEST_NGINX_NO_HEX}   = write_temp('no-hex', "# keys\n1 " . ('xy' x 32) . "\n", 0600);
$ENV{TEST_NGINX_TWICE}    = write_temp('twice', secret_text(1, 1), 0600);
$ENV{TEST_NGINX_BAD_ID}   = write_temp('bad-id', '256 ' . key(1) . "\n", 0600);
$ENV{TEST_NGINX_ZEROES}   = write_temp('zeroes', '1 ' . ('0' x 64) . "\n", 0600);
$ENV{TEST_NGINX_EXAMPLE}  = write_temp('example', '1 ' . ('0123456789ABCDEF' x 4) . "\n", 0600);
$ENV{TEST_NGINX_RING}     = write_temp('ring', "# new\n9 " . uc(key(9)) . "  # signs\n\n" . secret_text(1), 0600);

directive_blocks(
    ads_zone    => 't009 8m',
    ads_spool   => 'logs/spool',
    ads_catalog => 'file $TEST_NGINX_CATALOG',
    ads_secret  => '$TEST_NGINX_SECRET',
);

plan tests => 37;
no_shuffle();
run_tests();

__DATA__

=== TEST 1: one life is enough, in any order
--- ads
ads_token_ttl conversion=1s click=1s;
--- request
GET /spot/serve?placement=top
--- error_code: 200



=== TEST 2: a key ring with comments, upper case and several keys
--- ads
ads_secret $TEST_NGINX_RING;
--- request
GET /spot/serve?placement=top
--- response_body_like eval
qr{impression\?t=AQEJ}



=== TEST 3: ads_secret: a file that is not there
--- ads
ads_secret no-such-file;
--- must_die
--- error_log eval
[ qr{ads: cannot read ads_secret "\S+/conf/no-such-file": No such file or directory; create one with "nginx-ads key generate" in} ]



=== TEST 4: ads_secret: others may read it
--- ads
ads_secret $TEST_NGINX_OPEN;
--- must_die
--- error_log eval
[ qr{ads: ads_secret "\S+/open" is readable by other users: run chmod 600 on it in} ]



=== TEST 5: ads_secret: the group may read it
--- ads
ads_secret $TEST_NGINX_GROUP;
--- must_die
--- error_log eval
[ qr{ads: ads_secret "\S+/group" is readable by other users: run chmod 600 on it in} ]



=== TEST 6: ads_secret: no key
--- ads
ads_secret $TEST_NGINX_NO_KEYS;
--- must_die
--- error_log eval
[ qr{ads: ads_secret "\S+/no-keys": no key found: create one with "nginx-ads key generate" in} ]



=== TEST 7: ads_secret: too short a key
--- ads
ads_secret $TEST_NGINX_SHORT;
--- must_die
--- error_log eval
[ qr{ads: ads_secret "\S+/short": line 1: a key must have at least 64 hex digits in} ]



=== TEST 8: ads_secret: no hex digits
--- ads
ads_secret $TEST_NGINX_NO_HEX;
--- must_die
--- error_log eval
[ qr{ads: ads_secret "\S+/no-hex": line 2: a key must consist of hex digits in} ]



=== TEST 9: ads_secret: an id twice
--- ads
ads_secret $TEST_NGINX_TWICE;
--- must_die
--- error_log eval
[ qr{ads: ads_secret "\S+/twice": line 2: duplicate key id 1 in} ]



=== TEST 10: ads_secret: an id out of range
--- ads
ads_secret $TEST_NGINX_BAD_ID;
--- must_die
--- error_log eval
[ qr{ads: ads_secret "\S+/bad-id": line 1: a key id must be a number from 1 to 255 in} ]



=== TEST 11: ads_secret: a key of zeroes
--- ads
ads_secret $TEST_NGINX_ZEROES;
--- must_die
--- error_log eval
[ qr{ads: ads_secret "\S+/zeroes": line 1: the key is a single repeated byte: create one with "nginx-ads key generate" in} ]



=== TEST 12: ads_secret: a key from a document, whatever its case
--- ads
ads_secret $TEST_NGINX_EXAMPLE;
--- must_die
--- error_log eval
[ qr{ads: ads_secret "\S+/example": line 1: the key is an example from the documentation: create one with "nginx-ads key generate" in} ]



=== TEST 13: ads_secret: twice
--- ads
+ads_secret $TEST_NGINX_SECRET;
--- must_die
--- error_log
"ads_secret" directive is duplicate in



=== TEST 14: ads_secret: the key itself is never logged
--- ads
ads_secret $TEST_NGINX_TWICE;
--- must_die
--- no_error_log eval
[ key(1) ]



=== TEST 15: ads_token_ttl: no time
--- ads
ads_token_ttl soon;
--- must_die
--- error_log
ads: invalid value "soon" in "ads_token_ttl": must be a time from 1s to 400d in



=== TEST 16: ads_token_ttl: too short
--- ads
ads_token_ttl 1h click=999ms;
--- must_die
--- error_log
ads: invalid value "click=999ms" in "ads_token_ttl": must be a time from 1s to 400d in



=== TEST 17: ads_token_ttl: too long
--- ads
ads_token_ttl conversion=401d;
--- must_die
--- error_log
ads: invalid value "conversion=401d" in "ads_token_ttl": must be a time from 1s to 400d in



=== TEST 18: ads_token_ttl: an unknown parameter
--- ads
ads_token_ttl 1h serve=1h;
--- must_die
--- error_log
ads: invalid parameter "serve=1h" in "ads_token_ttl": must be "click=TIME" or "conversion=TIME" in



=== TEST 19: ads_token_ttl: twice
--- ads
ads_token_ttl 1h;
+ads_token_ttl 2h;
--- must_die
--- error_log
"ads_token_ttl" directive is duplicate in
