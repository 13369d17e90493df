package AdsTest;

=head1 NAME

AdsTest - runs test files written in the data format of Test::Nginx::Socket

=head1 SYNOPSIS

    use lib 't/lib';
    use AdsTest;

    repeat_each(2);
    plan tests => repeat_each() * blocks() * 2;
    no_shuffle();
    run_tests();

    __DATA__

    === TEST 1: a location
    --- config
        location /hello { return 200 "hello\n"; }
    --- request
    GET /hello
    --- response_body
    hello

    $ prove -It/lib t/

=head1 TWO MODES

This is an implementation of our own, which needs Test::Base and nothing else
outside of perl. With C<TEST_NGINX_REAL=1> the same files run under the real
Test::Nginx::Socket, which must then be on @INC. Therefore a test file uses only
what is listed here; all of it has the same meaning there.

=head1 FUNCTIONS

From L<Test::Base>: blocks, plan, is, ok, like, diag, ... Settings: repeat_each,
workers, worker_connections, master_on, master_off, master_process_enabled,
log_level, timeout, no_shuffle, no_long_string, no_root_location, use_hup,
config_preamble, env_to_nginx, server_name, server_addr, server_port,
server_port_for_client, check_accum_error_log. Hooks: add_block_preprocessor,
add_response_body_check, add_cleanup_handler, add_test_cleanup_handler. Others:
run_tests, html_dir, server_root, is_str, bail_out.

C<< AdsTest->allow_sections(@names) >> declares sections that a preprocessor of
the test file consumes. Any other unknown section makes its block fail.

=head1 SECTIONS

=over

=item Server

config, http_config, main_config, post_main_config, server_name, log_level,
user_files, init, post_setup_server_root, must_die (empty or an exit code),
suppress_stderr. A block without config talks to the server of the block before.

=item Request

request (a text, or with C<eval> a list of texts, each of which may be a list of
packets), more_headers (text or list), pipelined_requests (list), raw_request
(text or list), raw_request_middle_delay, timeout, abort, shutdown, wait.

=item Response

error_code, error_code_like, response_body, response_body_like,
response_body_unlike, response_headers (C<!Name>: must be absent),
response_headers_like, raw_response_headers_like, raw_response_headers_unlike,
ignore_response. With several requests, each of them is a list.

=item Logs

error_log, no_error_log, grep_error_log with grep_error_log_out, access_log,
no_access_log. With several requests the error log is examined after each, and
only what is new in it.

=item Selection

skip_nginx, skip_eval, and of Test::Base: ONLY, SKIP, LAST and all filters.

=back

C<$TEST_NGINX_NAME> is replaced by the environment variable of that name in
config, http_config, main_config, post_main_config, user_files, response_body,
grep_error_log_out and pipelined_requests; C<$TEST_NGINX_RAND_PORT_1> and so on
by free ports; C<$ServerPort> and C<$ServerPortForClient> in response_body,
response_body_like and response_headers. Always set: C<TEST_NGINX_SERVROOT>,
C<TEST_NGINX_SERVER_ROOT> (the same), C<TEST_NGINX_HTML_DIR>, C<TEST_NGINX_PORT>,
C<TEST_NGINX_SERVER_PORT>. Directories that a test makes below the server root
must have a name that ends in C<_temp> or C<_cache>, or be below html or logs.

=head1 WHAT IS CHECKED BESIDES

When the server of a block has been stopped (with C<TEST_NGINX_USE_HUP>: when
the block is over, and at the end), a further test fails unless everything is
clean: no line at level crit, alert or emerg, no worker that ended on a signal
or with a code, no socket left open, no core file, no sanitizer or valgrind
report, a graceful exit with code 0. A line that matches a pattern of the
block's error_log or grep_error_log is expected, and so is emerg with must_die.
These tests show up only when they fail, so plans need not count them. They
don't exist in REAL mode.

=head1 ENVIRONMENT

    TEST_NGINX_REAL           run under Test::Nginx::Socket
    TEST_NGINX_BINARY         the executable
    TEST_NGINX_LOAD_MODULES   modules to load, separated by blanks
    TEST_NGINX_USE_HUP        one nginx for the file, HUP between blocks
    TEST_NGINX_USE_VALGRIND   1, or options: daemon and master off, and the file
                              fails on any error and any definite leak.
                              Suppressions: t/lib/valgrind.supp. Wins over HUP.
    TEST_NGINX_SERVROOT       default: a private temporary directory
    TEST_NGINX_PORT           default: a free port of 127.0.0.1
    TEST_NGINX_TIMEOUT        seconds (3)
    TEST_NGINX_LOG_LEVEL      default: debug
    TEST_NGINX_NO_SHUFFLE     keep the order of the blocks
    TEST_NGINX_NO_CLEAN       leave the last server and its files
    TEST_NGINX_VERBOSE        show debug lines in failure output
    TEST_NGINX_WORKER_USER    "user" of the workers
    ADS_TEST_PRELOAD          LD_PRELOAD for nginx (sanitizer runtimes)
    ADS_TEST_SLOW             factor for every deadline
    ASAN_OPTIONS, UBSAN_OPTIONS   passed on; log_path is replaced

=cut

use strict;
use warnings;

use File::Path qw(remove_tree);
use File::Spec ();
use File::Temp qw(tempdir);

use AdsTest::Conf ();
use AdsTest::Process ();

my $TempDir;
my $Owner = $$;
our %ExtraSections;

sub is_real { return $ENV{TEST_NGINX_REAL} ? 1 : 0 }

sub allow_sections {
    my ($class, @names) = @_;
    @ExtraSections{@names} = (1) x @names;
    return;
}

# Before either implementation is loaded: both read these when they load.
sub _prepare_environment {
    if (!$ENV{TEST_NGINX_SERVROOT}) {
        $TempDir = tempdir('adstest-XXXXXXXX', TMPDIR => 1);
        $ENV{TEST_NGINX_SERVROOT} = "$TempDir/servroot";
    }
    $ENV{TEST_NGINX_SERVROOT}    = File::Spec->rel2abs($ENV{TEST_NGINX_SERVROOT});
    $ENV{TEST_NGINX_SERVER_ROOT} = $ENV{TEST_NGINX_SERVROOT};
    $ENV{TEST_NGINX_HTML_DIR}    = "$ENV{TEST_NGINX_SERVROOT}/html";

    $ENV{TEST_NGINX_PORT} = $ENV{TEST_NGINX_SERVER_PORT} || $ENV{TEST_NGINX_PORT} || AdsTest::Process::free_port();
    $ENV{TEST_NGINX_SERVER_PORT}  = $ENV{TEST_NGINX_PORT};
    $ENV{TEST_NGINX_BINARY}       = AdsTest::Conf::binary();
    $ENV{TEST_NGINX_LOAD_MODULES} = join ' ', AdsTest::Conf::modules() if defined $ENV{TEST_NGINX_LOAD_MODULES};
    return;
}

sub import {
    my ($class, @args) = @_;
    my $target = 'AdsTest::Runner';

    _prepare_environment() unless $INC{'AdsTest/Runner.pm'} || $INC{'Test/Nginx/Socket.pm'};
    if (is_real()) {
        $target = 'Test::Nginx::Socket';
        AdsTest::Process::adopt_orphans();    # it polls its daemons with waitpid
        $ENV{TEST_NGINX_LD_PRELOAD} //= $ENV{ADS_TEST_PRELOAD} if defined $ENV{ADS_TEST_PRELOAD};
    }
    (my $file = "$target.pm") =~ s{::}{/}g;
    require $file;

    # Test::Base's import looks at its caller, which has to be the test file.
    @_ = ($target, @args);
    goto &{ $target->can('import') };
}

# Runs after the END blocks of what import() loads.
END {
    if (defined $TempDir && $Owner == $$) {
        local ($?, $@, $!);
        remove_tree($TempDir) unless $ENV{TEST_NGINX_NO_CLEAN};
    }
}

1;
