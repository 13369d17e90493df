# A runner that cannot fail proves nothing: small test files are generated and run by a child perl,
# and their failures must be reported. Also AdsTest::Nginx, the object for tests with several
# processes.

use strict;
use warnings;
use lib 't/lib';

use File::Spec ();
use File::Temp qw(tempdir);
use Test::More;
use Time::HiRes qw(time);

use AdsTest::Nginx qw(wait_until free_port alive);

plan skip_all => 'tests of our own runner' if $ENV{TEST_NGINX_REAL};

# What the generated files set themselves.
delete @ENV{grep { /^TEST_NGINX_(?:USE_|SERVROOT|SERVER_|PORT|NO_|VERBOSE|LOAD)/ } keys %ENV};

my $lib = File::Spec->rel2abs('t/lib');
my $dir = tempdir(CLEANUP => 1);
my $seq = 0;

# Runs Perl code as a test file; returns (exit status, output).
sub run_file {
    my ($code, %env) = @_;
    my $file = "$dir/" . ++$seq . '.t';
    mkdir "$dir/tmp";
    open my $out, '>', $file or die $!;
    print {$out} $code;
    close $out or die $!;
    local %ENV = (%ENV, TMPDIR => "$dir/tmp", %env);
    my $text = `'$^X' '-I$lib' '$file' 2>&1`;
    return ($?, $text);
}

# Blocks without their "=== TEST": run in this order, without a plan.
sub run_blocks {
    my ($head, $blocks, %env) = @_;
    my $n = 0;
    my $data = join "\n", map { '=== TEST ' . ++$n . ": block\n$_" } @$blocks;
    return run_file("use AdsTest;\nplan 'no_plan';\nno_shuffle();\n$head\nrun_tests();\n__DATA__\n$data", %env);
}

# The lines about block $n that are not ok.
sub not_ok {
    my ($text, $n) = @_;
    return grep { /TEST $n:/ } $text =~ /^(not ok .*)$/mg;
}

my $get = "--- config\nlocation = /x { add_header X-A 1; return 200 \"body\"; }\n--- request\nGET /x\n";

# --- expectations that are not met --------------------------------------------

{
    my @cases = (
        'status'                  => "$get--- error_code: 404",
        'status by pattern'       => "$get--- error_code_like: ^5",
        'body'                    => "$get--- response_body: other",
        'body like'               => "$get--- response_body_like: other",
        'body unlike'             => "$get--- response_body_unlike: bod",
        'header value'            => "$get--- response_headers\nX-A: 2",
        'header missing'          => "$get--- response_headers\nX-B: 2",
        'header present'          => "$get--- response_headers\n!X-A",
        'header like'             => "$get--- response_headers_like\nX-A: [a-z]",
        'raw headers like'        => "$get--- raw_response_headers_like: X-B",
        'raw headers unlike'      => "$get--- raw_response_headers_unlike: X-A",
        'error_log'               => "$get--- error_log\nnever logged",
        'no_error_log'            => "$get--- log_level: debug\n--- no_error_log\nhttp request line",
        'grep_error_log'          => "$get--- grep_error_log: never\n--- grep_error_log_out\nnever",
        'access_log'              => "$get--- access_log\nnever logged",
        'no_access_log'           => "$get--- no_access_log\nGET /x",
        'must_die that lives'     => "$get--- must_die",
        'must_die, other code'    => "--- config\nbogus;\n--- must_die: 7",
        'refused configuration'   => "--- config\nbogus;\n--- request\nGET /x",
        'unknown section'         => "$get--- eror_code: 200",
        'unsupported time'        => "$get--- timeout: soon",
        'a request that times out' => "--- config\nlocation = /x { limit_rate 1; }\n--- user_files eval\n"
            . "[['x', 'y' x 20000]]\n--- request\nGET /x\n--- timeout: 50ms",
        'second of two requests'  => "--- config\n--- request eval\n['GET /', 'GET /no']\n"
            . "--- error_code eval\n[200, 200]",
        'second of the pipeline'  => "--- config\nlocation /p { return 200 \$uri; }\n--- pipelined_requests eval\n"
            . "['GET /p1', 'GET /p2']\n--- response_body eval\n['/p1', '/p1']",
        'an unset variable'       => "--- config\nset \$a \$TEST_NGINX_NOT_SET;\n--- request\nGET /",
        'init that dies'          => "$get--- init\ndie 'no'",
        'no list for two requests' => "--- config\n--- request eval\n['GET /', 'GET /']\n--- error_code: 200",
    );
    my (@names, @blocks);
    while (my ($name, $block) = splice @cases, 0, 2) {
        push @names,  $name;
        push @blocks, $block;
    }
    push @blocks, "$get--- response_body: body";
    my ($status, $text) = run_blocks("log_level('info');", \@blocks);
    isnt $status, 0, 'a file with failures fails';
    for my $n (1 .. @names) {
        ok scalar not_ok($text, $n), "seen: $names[$n - 1]";
    }
    is_deeply [ not_ok($text, scalar @blocks) ], [], 'the good block behind them passes';
    like $text, qr/got: +'200'\n.*expected: +'404'/, 'expected and received are shown';
    like $text, qr/TEST 1: block: failed\n.*request:\n.*GET \/x HTTP.*response \(eof\)/s, 'so is the exchange';
    like $text, qr/end of error\.log.*unknown directive "bogus"/s, 'so is the end of the log';
}

# --- logs that are not clean -------------------------------------------------

my $log_line = "--- init\nopen my \$o, '>>', \"\$ENV{TEST_NGINX_SERVROOT}/logs/error.log\" or die;\n"
    . "print {\$o} \"2026/01/01 00:00:00 LINE\\n\"; close \$o;\n";

for my $hup (0, 1) {
    my $mode = $hup ? 'HUP' : 'restart';
    my @lines = (
        '[alert] 1#1: strange',
        '[crit] 1#1: strange',
        '[emerg] 1#1: strange',
        '[notice] 1#1: worker process 12 exited with code 2',
        '[notice] 1#1: worker process 12 exited on signal 11',
        '[error] 1#1: open socket #3 left in connection 4',
    );
    my @blocks = map { $get . ($log_line =~ s/LINE/$_/r) } @lines;
    my $bad    = @blocks;
    push @blocks, $get . ($log_line =~ s/LINE/[alert] 1#1: strange/r) . "--- error_log\nstrange";
    push @blocks, $get . ($log_line =~ s/LINE/[debug] 1#1: header: [alert]/r);
    push @blocks, $get . ($log_line =~ s/LINE/[notice] 1#1: worker process 12 exited with code 0/r);
    my ($status, $text) = run_blocks("log_level('info');", \@blocks, TEST_NGINX_USE_HUP => $hup);
    isnt $status, 0, "$mode: a log that is not clean makes the file fail";
    for my $n (1 .. $bad) {
        ok scalar(grep { /the server is clean/ } not_ok($text, $n)), "$mode: seen: $lines[$n - 1]";
    }
    for my $n ($bad + 1 .. @blocks) {
        is_deeply [ not_ok($text, $n) ], [], "$mode: an expected or harmless line passes ($n)";
    }
}

{
    my $kill = "--- init\nuse AdsTest::Process;\n"
        . "my (\$pid) = do { local \@ARGV = \"\$ENV{TEST_NGINX_SERVROOT}/logs/nginx.pid\"; <> };\nchomp \$pid;\n";
    my $worker = $kill . "my (\$w) = AdsTest::Process::children(\$pid);\nkill KILL => \$w;\n"
        . "AdsTest::Process::wait_until {\n"
        . "my (\$n) = AdsTest::Process::children(\$pid); \$n && \$n != \$w } 5, 'respawn';\n";
    my ($status, $text) = run_blocks("log_level('info'); master_on();",
        [ "$get$worker", "$get$worker--- error_log\nexited on signal 9" ]);
    ok scalar(grep { /the server is clean/ } not_ok($text, 1)), 'seen: a worker that crashes';
    like $text, qr/exited on signal 9/, 'with its log line';
    is_deeply [ not_ok($text, 2) ], [], 'unless the block expects it';

    ($status, $text) = run_blocks('', [ "$get$kill" . "kill KILL => \$pid;\n--- error_code:", $get ]);
    isnt $status, 0, 'a server that crashes makes the file fail';
    ok scalar not_ok($text, 1), 'seen: a single process that crashes';
    is_deeply [ not_ok($text, 2) ], [], 'the next block has a new server';

    my $report = "--- init\nmkdir \"\$ENV{TEST_NGINX_SERVROOT}/logs/reports\";\n"
        . "open my \$o, '>', \"\$ENV{TEST_NGINX_SERVROOT}/logs/reports/asan.99\" or die;\n"
        . "print {\$o} \"==99==ERROR: AddressSanitizer: heap-use-after-free\\n\"; close \$o;\n";
    ($status, $text) = run_blocks('', ["$get$report"], ASAN_OPTIONS => 'detect_leaks=0');
    isnt $status, 0, 'a sanitizer report makes the file fail';
    like $text, qr/^#\s+==99==ERROR: AddressSanitizer: heap-use/m, 'and is shown';
}

# --- modes and plans ----------------------------------------------------------

{
    my $note = "--- init\nopen my \$i, '<', \"\$ENV{TEST_NGINX_SERVROOT}/logs/nginx.pid\" or die; my \$p = <\$i>;\n"
        . "print STDOUT \"# pid \$p\";\n";
    my @blocks = map {
        "--- config\nlocation = /x { return 200 \"v$_\"; }\n--- request\nGET /x\n--- response_body: v$_\n$note"
    } 1 .. 4;
    for my $hup (0, 1) {
        my ($status, $text) = run_blocks('workers(2); $| = 1;', \@blocks, TEST_NGINX_USE_HUP => $hup);
        is $status, 0, "HUP $hup: passes" or diag $text;
        my %pids = map { $_ => 1 } $text =~ /^# pid (\d+)/mg;
        is keys %pids, $hup ? 1 : 4, "HUP $hup: number of servers";
    }
    my $bogus = "--- config\nbogus;\n--- request\nGET /x";
    my ($status, $text) = run_blocks('', [ $blocks[0], $bogus, $blocks[2] ], TEST_NGINX_USE_HUP => 1);
    ok scalar not_ok($text, 2), 'seen: a reload that is refused';
    is_deeply [ not_ok($text, 3) ], [], 'the next block is reloaded again';

    my $data = join "\n", map { "=== TEST $_: block\n$blocks[$_ - 1]" } 1 .. 4;
    my $head = "use AdsTest;\nrepeat_each(2);\n";
    ($status, $text) = run_file($head . "plan tests => repeat_each() * blocks() * 2;\nrun_tests();\n__DATA__\n$data");
    is $status, 0, 'a plan in the classic style' or diag $text;
    like $text, qr/^1\.\.16$/m, 'with its count';
    ($status) = run_file($head . "plan tests => 15;\nrun_tests();\n__DATA__\n$data");
    isnt $status, 0, 'a wrong plan fails';
    ($status, $text) = run_file("use AdsTest 'no_plan';\nrun_tests();\n__DATA__\n$data\n--- ONLY\n");
    like $text, qr/^1\.\.2$/m, 'ONLY runs one block';
}

# --- nothing is left behind ---------------------------------------------------

for my $end ('die "on purpose";', 'kill TERM => $$; select undef, undef, undef, 10;', 'exit 3;') {
    my ($status, $text) = run_file(<<"EOT");
use strict; use Test::More; use AdsTest::Nginx; \$| = 1;
my \$ngx = AdsTest::Nginx->new(server => 'return 200 "x";')->start;
print '# pids ', join(' ', \$ngx->master_pid, \$ngx->worker_pids), "\\n";
$end
EOT
    isnt $status, 0, "a test that ends with $end";
    my ($pids) = $text =~ /^# pids (\d.*)$/m;
    ok defined $pids, 'had a server' or diag $text;
    is_deeply [ grep { alive($_) } split ' ', $pids // '' ], [], 'which is gone';
}
is_deeply [ glob "$dir/tmp/*" ], [], 'no temporary files are left';

# --- AdsTest::Nginx -------------------------------------------------------------

{
    my $ngx = AdsTest::Nginx->new(
        workers => 2,
        daemon  => 1,
        server  => 'location /x { return 200 "v1 $request_method"; }',
    )->start;
    my $res = $ngx->get('/x', { 'X-A' => 1 });
    is $res->{status}, 200, 'get: status';
    is $res->{body}, 'v1 GET', 'get: body';
    is $res->{headers}{'content-type'}, 'text/plain', 'get: headers';
    is $ngx->post('/x', 'a=b')->{body}, 'v1 POST', 'post';
    like $ngx->url('/x'), qr{^http://127\.0\.0\.1:\d+/x$}, 'url';

    my $conn = $ngx->connection;
    is $conn->request('GET', '/x')->{body}, 'v1 GET', "keep-alive request $_" for 1 .. 2;
    $conn->close;

    my @old = $ngx->worker_pids;
    is @old, 2, 'two workers';
    $ngx->reload(server => 'location /x { return 200 "v2"; }', wait_old => 1);
    is $ngx->get('/x')->{body}, 'v2', 'reload: new configuration';
    is_deeply [ grep { alive($_) } @old ], [], 'reload: old workers are gone';
    like $ngx->reload(server => 'bogus;', expect_fail => 1), qr/unknown directive "bogus"/, 'a refused reload';
    ok !eval { $ngx->reload(server => 'bogus;'); 1 }, '... dies unless expected';
    $ngx->reload(server => 'location /x { return 200 "v3"; }');

    my $killed = $ngx->kill_worker;
    ok !alive($killed), 'kill_worker';
    is $ngx->worker_pids, 2, 'the worker is replaced';
    is scalar(grep { /exited on signal 9/ } $ngx->check_log), 1, 'check_log has it';

    my $master = $ngx->master_pid;
    my $new    = $ngx->upgrade_start;
    isnt $new, $master, 'upgrade: a new master';
    is $ngx->upgrade_rollback, $master, 'upgrade: rolled back';
    isnt $ngx->upgrade, $master, 'upgrade: done';
    ok !alive($master), 'upgrade: the old master is gone';
    is $ngx->get('/x')->{body}, 'v3', 'upgrade: serves';
    is $ngx->stop, 'QUIT', 'stop: graceful';
    is_deeply [ $ngx->problems(allow => [ 'exited on signal 9', qr/unknown directive/ ]) ], [], 'no other problems';
}

{
    my $ngx = AdsTest::Nginx->new(conf => <<'EOC');
http {
    access_log off;
    server { listen 127.0.0.1:%%PORT%%; location / { return 200 one; } }
    server { listen 127.0.0.1:%%PORT_two%%; location / { return 200 two; } }
}
EOC
    $ngx->start;
    is $ngx->get('/')->{body}, 'one', 'a whole configuration';
    is $ngx->connection(port => $ngx->port('two'))->request('GET', '/')->{body}, 'two', 'a second port';
    $ngx->kill_all;
    ok scalar $ngx->problems, 'a killed server is a problem';

    $ngx = AdsTest::Nginx->new(server => 'bogus;');
    ok !eval { $ngx->start; 1 }, 'a bad configuration does not start';
    like $@, qr/exit code 1.*unknown directive/s, 'with the reason';

    my $began = time;
    ok !wait_until { 0 } 0.05, undef;
    ok !eval { wait_until { 0 } 0.05, 'the impossible'; 1 }, 'wait_until dies';
    like $@, qr/waiting for the impossible/, 'with its message';
    ok time - $began < 5 * AdsTest::Nginx::slow(), 'in time';
    isnt free_port(), free_port(), 'free_port never returns a port twice';
}

# --- the shipped module and the test clock --------------------------------------

{
    my %env   = (TEST_NGINX_LOAD_MODULES => '/shipped/ngx_http_ads_module.so /other.so', ADS_TEST_MODULE => $0);
    my $start = "my \$ngx = AdsTest::Nginx->new(server => 'location = /clock { return 200; }', modules => [])->start;\n";
    my $shown = "ok 1, \$ENV{TEST_NGINX_LOAD_MODULES};\n";
    my $self  = File::Spec->rel2abs($0);

    my ($status, $text) = run_file("use Test::More;\nuse AdsTest::Nginx;\n$shown${start}done_testing;\n", %env);
    like $text, qr{^ok 1 - /shipped/ngx_http_ads_module\.so /other\.so$}m, 'a test file runs against the shipped module';
    is $status, 0, 'without a declaration' or diag $text;
    ($status, $text) = run_file("use Test::More;\nuse AdsTest::Nginx;\n$start\$ngx->get('/clock?set=1');\npass;\ndone_testing;\n", %env);
    isnt $status, 0, 'a file that moves the clock without a declaration fails';
    like $text, qr/use AdsTest::Clock;/, 'with what to declare';
    ($status, $text) = run_blocks("use AdsTest::Ads;\nads_blocks(zone => 'x');", ["--- config\n--- steps\nclock\n"], %env);
    isnt $status, 0, 'so does a step that does';
    like $text, qr/use AdsTest::Clock;/, 'with the same message';
    ($status, $text) = run_file("use Test::More;\nuse AdsTest::Ads;\nnoon();\npass;\ndone_testing;\n", %env);
    isnt $status, 0, 'so does a file that asks for the time of the test clock';

    ($status, $text) = run_file("use Test::More;\nuse AdsTest::Clock;\nuse AdsTest::Nginx;\n$shown$start\$ngx->get('/clock?set=1');\ndone_testing;\n", %env);
    is $status, 0, 'with a declaration it may' or diag $text;
    like $text, qr{^ok 1 - \Q$self\E /other\.so$}m, 'and runs against the test build';
    ($status, $text) = run_file("use Test::More;\nuse AdsTest::Clock;\npass;\ndone_testing;\n", %env);
    isnt $status, 0, 'a declaration without a use fails';
    like $text, qr/never moves the clock/, 'and says so';
    ($status, $text) = run_file("use Test::More;\nuse AdsTest::Clock;\npass;\ndone_testing;\n", %env, ADS_TEST_MODULE => '/none');
    like $text, qr/ADS_TEST_MODULE/, 'without a test build nothing runs';
    ($status, $text) = run_file("use AdsTest;\nuse AdsTest::Clock;\n", %env);
    like $text, qr/must come before/, 'the declaration comes first';
}

# --- prove: nothing is run again, and skips are listed --------------------------

{
    my $prove = sub {
        my ($code) = @_;
        open my $out, '>', "$dir/prove.t" or die $!;
        print {$out} $code;
        close $out or die $!;
        unlink "$dir/skips";
        local %ENV = (%ENV, ADS_TEST_SKIPS => "$dir/skips", PERL5LIB => $lib);
        my $text = `prove --harness AdsTest::Harness '$dir/prove.t' 2>&1`;
        return ($?, $text);
    };
    my ($status, $text) = $prove->("use Test::More; subtest a => sub { SKIP: { skip 'no such machine', 2 } ok 1 }; ok 1; done_testing;");
    is $status, 0, 'a skip is not a failure';
    like $text, qr/^SKIPPED.*\n  \S+prove\.t: no such machine \(2 tests\)$/m, 'but listed at the end';
    like AdsTest::Nginx::slurp("$dir/skips"), qr/^\S+prove\.t: no such machine/, 'and kept for the end of make test';
    ($status, $text) = $prove->("use Test::More; plan skip_all => 'not here';");
    like $text, qr/^SKIPPED.*\n  \S+prove\.t: not here$/m, 'so is a whole file';
    ($status, $text) = $prove->("use Test::More; ok 1; done_testing;");
    unlike $text, qr/SKIPPED/, 'without skips there is no list';

    # Fails the first time only.
    ($status, $text) = $prove->("use Test::More; ok -e '$dir/ran'; open my \$x, '>', '$dir/ran'; done_testing;");
    isnt $status, 0, 'a test that fails once has failed';
    open my $in, '<', File::Spec->rel2abs('Makefile') or die "Makefile: $!";
    my ($rule) = do { local $/; <$in> } =~ /^(nginx-tests:.*?)\n\n/ms;
    unlike $rule, qr/state=failed|\|\|/, 'and make nginx-tests runs nothing again';
}

done_testing;
