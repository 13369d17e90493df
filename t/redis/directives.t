# ads_redis: what it accepts, and what it says to a bad argument.

use lib 't/lib';
use AdsTest;
use AdsTest::Ads;

$ENV{TEST_NGINX_SECRET}   = write_temp('secret', secret_text(1), 0600);
$ENV{TEST_NGINX_CATALOG}  = write_temp('catalog.json', catalog_text());
$ENV{TEST_NGINX_PASSWORD} = write_temp('password', "open\n", 0600);
$ENV{TEST_NGINX_PUBLIC}   = write_temp('public', "open\n", 0644);
$ENV{TEST_NGINX_EMPTY}    = write_temp('empty', "\n", 0600);

directive_blocks(
    ads_zone    => 't022 8m',
    ads_spool   => 'logs/spool',
    ads_catalog => 'file $TEST_NGINX_CATALOG',
    ads_secret  => '$TEST_NGINX_SECRET',
);

plan tests => 36;
no_shuffle();
run_tests();

__DATA__

=== TEST 1: all parameters
--- ads
+ads_redis 127.0.0.1:1 unix:/no/such/socket localhost user=ads password_file=$TEST_NGINX_PASSWORD timeout=20ms prefix=shop: on_error=no_ad tls server_name=redis.example;
--- request
GET /spot/serve?placement=top
--- response_body_like: "creative":31



=== TEST 2: twice
--- ads
+ads_redis 127.0.0.1;
+ads_redis 127.0.0.2;
--- must_die
--- error_log
"ads_redis" directive is duplicate in



=== TEST 3: no address
--- ads
+ads_redis timeout=5ms;
--- must_die
--- error_log
ads: invalid value "timeout=5ms" in "ads_redis": must begin with an address in



=== TEST 4: a bad address
--- ads
+ads_redis 127.0.0.1:99999;
--- must_die
--- error_log
ads: invalid value "127.0.0.1:99999" in "ads_redis": invalid port; must be HOST:PORT, an IP address, or unix:/PATH in



=== TEST 5: an unknown parameter
--- ads
+ads_redis 127.0.0.1 retries=3;
--- must_die
--- error_log
ads: invalid parameter "retries=3" in "ads_redis": must be cluster, user=NAME, password_file=FILE, tls, ca=FILE, cert=FILE, key=FILE, server_name=NAME, timeout=TIME, prefix=TEXT, on_error=local or on_error=no_ad in



=== TEST 6: a timeout that is none
--- ads
+ads_redis 127.0.0.1 timeout=0;
--- must_die
--- error_log
ads: invalid parameter "timeout=0" in "ads_redis": must be a time from 1ms to 1s in



=== TEST 7: a timeout that is too long
--- ads
+ads_redis 127.0.0.1 timeout=2s;
--- must_die
--- error_log
ads: invalid parameter "timeout=2s" in "ads_redis": must be a time from 1ms to 1s in



=== TEST 8: a quoted prefix with braces
--- ads
+ads_redis 127.0.0.1 "prefix={shop}";
--- must_die
--- error_log
ads: invalid parameter "prefix={shop}" in "ads_redis": must not contain braces in



=== TEST 9: on_error with another word
--- ads
+ads_redis 127.0.0.1 on_error=stop;
--- must_die
--- error_log
ads: invalid parameter "on_error=stop" in "ads_redis": must be cluster, user=NAME



=== TEST 10: a user without a password
--- ads
+ads_redis 127.0.0.1 user=ads;
--- must_die
--- error_log
ads: "user=" in "ads_redis" requires "password_file=" in



=== TEST 11: a password file that is missing
--- ads
+ads_redis 127.0.0.1 password_file=/no/such/file;
--- must_die
--- error_log
ads: cannot read password_file "/no/such/file" of ads_redis: No such file or directory in



=== TEST 12: a password file that all can read
--- ads
+ads_redis 127.0.0.1 password_file=$TEST_NGINX_PUBLIC;
--- must_die
--- error_log
of ads_redis is readable by other users: run chmod 600 on it in



=== TEST 13: a password file without a password
--- ads
+ads_redis 127.0.0.1 password_file=$TEST_NGINX_EMPTY;
--- must_die
--- error_log
of ads_redis is empty in



=== TEST 14: a certificate without tls
--- ads
+ads_redis 127.0.0.1 ca=/etc/ssl/ca.pem;
--- must_die
--- error_log
ads: "ca=", "cert=", "key=" and "server_name=" in "ads_redis" require "tls" in



=== TEST 15: tls to an address that is no name
--- ads
+ads_redis 127.0.0.1 tls;
--- must_die
--- error_log
ads: "tls" in "ads_redis" requires "server_name=" where the address is not a host name in



=== TEST 16: a certificate without a key
--- ads
+ads_redis 127.0.0.1 tls server_name=a cert=/etc/ssl/a.pem;
--- must_die
--- error_log
ads: "cert=" and "key=" in "ads_redis" require each other in



=== TEST 17: a cluster
--- ads
+ads_redis cluster 127.0.0.1:1 localhost prefix=shop: timeout=20ms;
--- request
GET /spot/serve?placement=top
--- response_body_like: "creative":31



=== TEST 18: a cluster on a socket
--- ads
+ads_redis cluster unix:/no/such/socket;
--- must_die
--- error_log
ads: "cluster" in "ads_redis" requires addresses of TCP: its servers tell of each other by address in
