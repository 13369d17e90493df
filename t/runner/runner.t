# The runner itself, on plain nginx: every section that the tests may use. The same file has to pass
# under Test::Nginx::Socket (TEST_NGINX_REAL=1) with the same number of tests. That failures are
# reported is tested in runner-meta.t.

use lib 't/lib';
use AdsTest;

repeat_each(2);
workers(2);
master_on();
no_long_string();
log_level('info');
env_to_nginx('ADS_RUNNER_TEST=yes');
config_preamble('        set $from_preamble "preamble";');

$ENV{TEST_NGINX_WORD} = 'expanded';

AdsTest->allow_sections('echo');
add_block_preprocessor(sub {
    my $block = shift;
    if (defined $block->echo) {
        $block->set_value(config  => 'location = /echo { return 200 "' . $block->echo . '"; }');
        $block->set_value(request => 'GET /echo');
    }
});

my $body_checks = 0;
add_response_body_check(sub { $body_checks++ });

plan tests => repeat_each() * 110 + 1;

run_tests();

ok $body_checks > 0, 'the response body checks ran';

__DATA__

=== TEST 1: status and body
--- config
    location = /hello { return 200 "hello\n"; }
--- request
GET /hello
--- response_body
hello
--- error_code: 200



=== TEST 2: defaults: method only, root location, a comment before the request
--- config
--- request
# the root location serves html/index.html
GET
--- response_body_like: It works!
--- response_headers
Content-Type: text/html



=== TEST 3: body through filters of Test::Base
--- config
    location = /x { return 200 "a b"; }
--- request
GET /x
--- response_body chomp
a b



=== TEST 4: body as a regex, and status as a regex
--- config
    location = /x { return 404 "nothing here"; }
--- request
GET /x
--- response_body eval
qr/^nothing \w+$/
--- error_code_like: ^40[34]$



=== TEST 5: body_unlike
--- config
    location = /x { return 200 "one two"; }
--- request
GET /x
--- response_body_unlike: three



=== TEST 6: headers: values, repeated ones, absent ones
--- config
    location = /x {
        add_header X-One "1";
        add_header X-Two "a";
        add_header X-Two "b";
        return 200 "x";
    }
--- request
GET /x
--- response_headers
X-One: 1
X-Two: a, b
Content-Length: 1
!X-Three
--- response_body: x



=== TEST 7: headers by pattern, raw headers
--- config
    location = /x { add_header X-Id "id-4711"; return 200 "x"; }
--- request
GET /x
--- response_headers_like
X-Id: id-\d+
Server: nginx.*
--- raw_response_headers_like: X-Id: id-\d+\r\n
--- raw_response_headers_unlike: X-Other



=== TEST 8: more_headers, also a Host of its own
--- config
    location = /x { return 200 "$http_x_a|$http_host|$http_connection"; }
--- request
GET /x
--- more_headers
# a comment
X-A: 1, 2
Host: other.example
--- response_body chomp
1, 2|other.example|close



=== TEST 9: POST with a body
--- config
    client_body_in_single_buffer on;
    location = /x {
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/back;
    }
    location = /back { return 200 "$request_method $content_length $http_content_type"; }
--- request
POST /x
a=1&b=2
--- more_headers
Content-Type: application/x-www-form-urlencoded
--- response_body chomp
POST 7 application/x-www-form-urlencoded



=== TEST 10: SKIP leaves a block out
--- SKIP
--- config
    no_such_directive;
--- request
GET /x



=== TEST 11: several requests, expectations as lists
--- config
    location /r { return 200 "$request_method $uri $http_x_n $content_length\n"; }
    location = /gone { add_header X-Gone yes always; return 410 "gone\n"; }
--- request eval
["GET /r/one", "POST /r/two\nhello", "GET /gone"]
--- more_headers eval
["X-N: 1", "X-N: 2", "X-N: 3"]
--- error_code eval
[200, 200, 410]
--- response_body eval
["GET /r/one 1 \n", "POST /r/two 2 5\n", qr/^gone/]
--- response_headers eval
["!X-Gone", "!X-Gone", "X-Gone: yes"]



=== TEST 12: pipelined requests
--- config
    location /p { return 200 "$uri $http_connection\n"; }
--- pipelined_requests eval
["GET /p/1", "GET /p/2", "GET /p/3"]
--- error_code eval
[200, 200, 200]
--- response_body eval
["/p/1 keep-alive\n", "/p/2 keep-alive\n", "/p/3 close\n"]



=== TEST 13: raw request in pieces
--- config
    location = /x { return 200 "$http_x_raw"; }
--- raw_request eval
["GET /x HTTP/1.1\r\nHost: a\r\nX-R", "aw: in pieces\r\nConnection: close\r\n", "\r\n"]
--- raw_request_middle_delay: 0.01
--- response_body: in pieces



=== TEST 14: a request in packets
--- config
    location = /x { proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/back; }
    location = /back { return 200 "$content_length"; }
--- request eval
[["POST /x\n", { value => "abc", delay_before => 0.01 }, "def"]]
--- response_body: 6



=== TEST 15: HEAD has no body
--- config
    location = /x { return 200 "not seen"; }
--- request
HEAD /x
--- response_headers
Content-Length: 8
--- response_body:



=== TEST 16: 204 and an empty gif
--- config
    location = /none { return 204; }
    location = /gif { empty_gif; }
--- request eval
["GET /none", "GET /gif"]
--- error_code eval
[204, 200]
--- response_body_like eval
['^$', '^GIF89a']



=== TEST 17: chunked response
--- config
    location = /x { sub_filter foo barbar; sub_filter_types *; root $TEST_NGINX_HTML_DIR; }
--- user_files
>>> x
one foo two
--- request
GET /x
--- response_headers
Transfer-Encoding: chunked
!Content-Length
--- response_body
one barbar two



=== TEST 18: http_config, main_config, environment and ports in texts
--- main_config
    worker_shutdown_timeout 5s;
--- http_config
    map $uri $mapped { default "$TEST_NGINX_WORD"; }
--- config
    location = /x { return 200 "$mapped $from_preamble $server_port\n"; }
--- request
GET /x
--- response_headers
Content-Type: text/plain
--- response_body
expanded preamble $ServerPort



=== TEST 19: a second port
--- http_config
    server {
        listen 127.0.0.1:$TEST_NGINX_RAND_PORT_1;
        return 200 "second $server_port";
    }
--- config
    location = /x { proxy_pass http://127.0.0.1:$TEST_NGINX_RAND_PORT_1/; }
--- request
GET /x
--- response_body_like: ^second \d+$



=== TEST 20: user files, below directories, with expansion
--- user_files
>>> a/b.txt
word: $TEST_NGINX_WORD
>>> c.txt 202001020304.05
dated
--- config
--- request eval
["GET /a/b.txt", "GET /c.txt"]
--- response_headers eval
["Content-Type: text/plain", "Last-Modified: Thu, 02 Jan 2020 03:04:05 GMT"]
--- response_body eval
["word: expanded\n", "dated\n"]



=== TEST 21: user files as a list
--- user_files eval
[["d.txt", "listed\n"]]
--- config
--- request
GET /d.txt
--- response_body
listed



=== TEST 22: error_log and no_error_log
--- config
    location = /x { rewrite_log on; root $TEST_NGINX_HTML_DIR; }
    location = /missing { root $TEST_NGINX_HTML_DIR; }
--- request
GET /missing
--- error_code: 404
--- error_log
open()
No such file or directory
--- no_error_log
[alert]
[crit]



=== TEST 23: error_log by regex, and a list
--- config
    location = /missing { root $TEST_NGINX_HTML_DIR; }
--- request
GET /missing
--- error_code: 404
--- error_log eval
["open()", qr/\(2: No such file/]



=== TEST 24: the log is examined after each request, what is new in it
--- config
    location = /missing { root $TEST_NGINX_HTML_DIR; }
    location = /absent { root $TEST_NGINX_HTML_DIR; }
--- request eval
["GET /missing", "GET /absent"]
--- error_code eval
[404, 404]
--- error_log eval
qr/open\(\) .* failed/



=== TEST 25: grep_error_log
--- config
    location = /missing { root $TEST_NGINX_HTML_DIR; }
--- request
GET /missing
--- error_code: 404
--- grep_error_log eval
qr/request: "GET \S+/
--- grep_error_log_out
request: "GET /missing



=== TEST 26: access_log and no_access_log
--- config
    location = /seen { return 200 "x"; }
--- request
GET /seen
--- access_log
"GET /seen HTTP/1.1" 200
--- no_access_log
"GET /other



=== TEST 27: a configuration that must be refused
--- config
    location = /x { no_such_directive on; }
--- request
GET /x
--- must_die
--- error_log
[emerg]
unknown directive "no_such_directive"
--- suppress_stderr



=== TEST 28: ... with its exit code
--- config
    location = /x { return; }
--- request
GET /x
--- must_die: 1
--- error_log
invalid number of arguments in "return" directive
--- no_error_log
[alert]
--- suppress_stderr



=== TEST 29: abort: the client gives up
--- http_config
    upstream silent { server 127.0.0.1:$TEST_NGINX_SERVER_PORT; }
--- config
    location = /x { limit_rate 1; root $TEST_NGINX_HTML_DIR; }
--- user_files eval
[["x", "y" x 20000]]
--- request
GET /x
--- timeout: 100ms
--- abort
--- ignore_response
--- wait: 0.05
--- no_error_log
[error]



=== TEST 30: shutdown after the request
--- config
    location = /x { return 200 "still here"; }
--- request
GET /x
--- shutdown: 1
--- response_body: still here



=== TEST 31: skip_nginx
--- skip_nginx: 2: > 1.0.0
--- config
    no_such_directive;
--- request
GET /x
--- response_body: never



=== TEST 32: skip_nginx that does not apply
--- skip_nginx: 2: < 1.0.0
--- config
    location = /x { return 200 "run"; }
--- request
GET /x
--- response_body: run



=== TEST 33: skip_eval
--- skip_eval: 2: 1 + 1 == 2
--- config
    no_such_directive;
--- request
GET /x
--- response_body: never



=== TEST 34: init runs before the requests
--- init
    open my $out, '>', "$ENV{TEST_NGINX_HTML_DIR}/init.txt" or die $!;
    print {$out} "made by init\n";
    close $out;
--- config
--- request
GET /init.txt
--- response_body
made by init



=== TEST 35: a block preprocessor
--- echo: made by the preprocessor
--- response_body: made by the preprocessor



=== TEST 36: log_level and server_name of a block
--- log_level: debug
--- server_name: block.example
--- config
    location = /x { return 200 "$server_name"; }
--- request
GET /x
--- response_body: block.example
--- error_log
[debug]



=== TEST 37: post_main_config, timeout with room
--- post_main_config
    worker_rlimit_nofile 256;
--- config
    location = /x { return 200 "in time"; }
--- request
GET /x
--- timeout: 5
--- response_body: in time
