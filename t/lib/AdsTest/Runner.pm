package AdsTest::Runner;

=head1 NAME

AdsTest::Runner - our implementation of the data format; see L<AdsTest>

=head1 DESCRIPTION

Settings and hooks with the names that Test::Nginx::Socket has, and the life of
the server: a block with a config section gets a server of its own, which is
stopped when the next such block comes, or reloaded for it in HUP mode. Requests
are made by L<AdsTest::Block>, expectations compared by L<AdsTest::Check>.

=cut

use strict;
use warnings;

use File::Path qw(make_path remove_tree);
use List::Util qw(shuffle);
use Test::Base ();
use Test::More ();

use AdsTest::Block ();
use AdsTest::Check ();
use AdsTest::Conf ();
use AdsTest::Expand qw(expand);
use AdsTest::Nginx ();

our @ISA    = ('Test::Base');
our @EXPORT = qw(
    run_tests run_test repeat_each workers worker_connections master_on master_off
    master_process_enabled log_level timeout no_shuffle no_long_string
    no_root_location use_hup config_preamble env_to_nginx server_name server_addr
    server_port server_port_for_client check_accum_error_log
    add_block_preprocessor add_response_body_check add_cleanup_handler
    add_test_cleanup_handler html_dir server_root is_str bail_out
);

my %Known = map { $_ => 1 } qw(
    name description ONLY SKIP LAST
    config http_config main_config post_main_config server_name log_level user_files init
    post_setup_server_root must_die suppress_stderr request more_headers pipelined_requests
    raw_request raw_request_middle_delay timeout abort shutdown wait error_code error_code_like
    response_body response_body_like response_body_unlike response_headers response_headers_like
    raw_response_headers_like raw_response_headers_unlike ignore_response error_log no_error_log
    grep_error_log grep_error_log_out access_log no_access_log skip_nginx skip_eval
);

my $Root     = $ENV{TEST_NGINX_SERVROOT};
my $Valgrind = $ENV{TEST_NGINX_USE_VALGRIND};

my %Set = (
    repeat_each        => 1,
    workers            => 1,
    worker_connections => 64,
    master             => lc($ENV{TEST_NGINX_MASTER_PROCESS} // 'off') eq 'on',
    log_level          => $ENV{TEST_NGINX_LOG_LEVEL} || 'debug',
    timeout            => $ENV{TEST_NGINX_TIMEOUT} || 3,
    no_shuffle         => $ENV{TEST_NGINX_NO_SHUFFLE},
    hup                => $ENV{TEST_NGINX_USE_HUP},
    root_location      => 1,
    preamble           => '',
    env                => [],
    server_name        => 'localhost',
    server_addr        => '127.0.0.1',
    port               => $ENV{TEST_NGINX_SERVER_PORT},
    client_port        => $ENV{TEST_NGINX_CLIENT_PORT} || $ENV{TEST_NGINX_SERVER_PORT},
    accumulate         => $ENV{TEST_NGINX_CHECK_ACCUM_ERR_LOG},
);
my (@Preprocessors, @BodyChecks, @CleanupHandlers, @TestCleanupHandlers);

# --- the functions of a test file -------------------------------------------

sub _setting {
    my ($name, @value) = @_;
    $Set{$name} = $value[0] if @value;
    return $Set{$name};
}

sub repeat_each (@)            { return _setting('repeat_each', @_) }
sub workers (@)                { return _setting('workers', @_) }
sub worker_connections (@)     { return _setting('worker_connections', @_) }
sub log_level (@)              { return _setting('log_level', @_) }
sub timeout (@)                { return _setting('timeout', @_) }
sub server_name (@)            { return _setting('server_name', @_) }
sub server_addr (@)            { return _setting('server_addr', @_) }
sub server_port (@)            { return _setting('port', @_) }
sub server_port_for_client (@) { return _setting('client_port', @_) }
sub config_preamble ($)        { return _setting('preamble', @_) }
sub master_on ()               { return _setting('master', 1) }
sub master_off ()              { return _setting('master', 0) }
sub no_shuffle ()              { return _setting('no_shuffle', 1) }
sub use_hup ()                 { return _setting('hup', 1) }
sub no_root_location ()        { return _setting('root_location', 0) }
sub check_accum_error_log ()   { return _setting('accumulate', 1) }
sub no_long_string ()          { return 1 }
sub html_dir ()                { return "$Root/html" }
sub server_root ()             { return $Root }

sub master_process_enabled (@) {
    _setting('master', $_[0] ? 1 : 0) if @_;
    return $Set{master} ? 'on' : 'off';
}

sub env_to_nginx (@) {
    push @{ $Set{env} }, map { /\s/ ? "'$_'" : $_ } @_;
    return;
}

sub add_block_preprocessor (&)   { unshift @Preprocessors,       $_[0]; return }
sub add_response_body_check ($)  { push @BodyChecks,             $_[0]; return }
sub add_cleanup_handler ($)      { unshift @CleanupHandlers,     $_[0]; return }
sub add_test_cleanup_handler ($) { unshift @TestCleanupHandlers, $_[0]; return }

sub is_str (@) {
    my ($got, $expected, $name) = @_;
    return Test::More::like($got, $expected, $name) if ref $expected eq 'Regexp';
    return Test::Base::is($got, $expected, $name);
}

sub bail_out (@) {
    _retire();
    Test::More::BAIL_OUT(join '', @_);
}

# --- the server -------------------------------------------------------------

my $Server;         # the running AdsTest::Nginx
my $ServerName;     # the block that it was made for
my @Expected;       # regexes of log lines that its blocks announce
my @ExpectedOld;    # those of the configuration before, in HUP mode
my $Checked = 0;    # so far the error log has been judged
my $Version;

sub server { return $Server }

# A test that exists only when it fails.
sub _verdict {
    my ($name, @problems) = @_;
    return unless @problems;
    Test::More::fail("$name - the server is clean");
    for my $problem (@problems) {
        my @lines = split /\n/, $problem;
        @lines = (@lines[ 0 .. 199 ], '...') if @lines > 200;
        Test::More::diag(join "\n", map { "  $_" } @lines);
    }
    return;
}

sub _judge_running {
    return unless $Server;
    my @problems = $Server->check_log(from => $Checked, allow => [ @ExpectedOld, @Expected ]);
    push @problems, $Server->reports;
    push @problems, 'the server has gone' unless $Server->is_running;
    $Checked = $Server->log_size;
    _verdict($ServerName, @problems);
    return;
}

# Stops the server and judges what it left.
sub _retire {
    my $server = $Server or return;
    undef $Server;
    $server->stop;
    _verdict($ServerName, $server->problems(from => $Checked, allow => [ @ExpectedOld, @Expected ]));
    @Expected = @ExpectedOld = ();
    $Checked = 0;
    return;
}

# Empties the server root. In HUP mode the running server needs the rest.
sub _reset_root {
    my ($running) = @_;
    my $marker = "$Root/conf/.adstest";

    if (-d $Root && !-e $marker && grep { !m{/\.\.?$} } glob "$Root/* $Root/.*") {
        die "$Root was not made by this runner: remove it, or choose another TEST_NGINX_SERVROOT\n";
    }
    if ($running) {
        remove_tree("$Root/conf", "$Root/html", glob "$Root/*_temp $Root/*_cache");
    }
    else {
        remove_tree($Root);
    }
    make_path(map { "$Root/$_" } qw(conf html logs));
    _write($marker, '');
    _write("$Root/html/index.html", "<html><body>It works!</body></html>\n");
    return;
}

sub _write {
    my ($file, $text) = @_;
    (my $dir = $file) =~ s{/[^/]*$}{};
    make_path($dir);
    open my $out, '>:raw', $file or die "cannot write $file: $!\n";
    print {$out} $text;
    close $out or die "cannot write $file: $!\n";
    return;
}

sub _write_user_files {
    my ($block) = @_;
    my $files = $block->user_files // return;

    if (!ref $files) {
        my @list;
        for my $line (split /^/, $files) {
            if ($line =~ /^>>> (\S+)(?:\s+(\S+))?/) { push @list, [ $1, '', $2 ] }
            elsif (@list) { $list[-1][1] .= $line }
        }
        $files = \@list;
    }
    for my $file (@$files) {
        my ($name, $text, $date) = @$file;
        my $path = $name =~ m{^/} ? $name : "$Root/html/$name";
        _write($path, expand($text // ''));
        next unless $date;
        local $ENV{TZ} = 'GMT';
        system('touch', '-t', $date, $path) == 0 or die "touch -t $date $path failed\n";
    }
    return;
}

sub _write_configuration {
    my ($block, $master) = @_;
    my $text = AdsTest::Conf::for_block(
        prefix             => $Root,
        port               => $Set{port},
        workers            => $master ? $Set{workers} : 0,
        modules            => [ AdsTest::Conf::modules() ],
        log_file           => "$Root/logs/error.log",
        log_level          => $block->log_level // $Set{log_level},
        pid_file           => "$Root/logs/nginx.pid",
        env                => $Set{env},
        worker_connections => $Set{worker_connections},
        server_name        => $block->server_name // $Set{server_name},
        preamble           => $Set{preamble},
        root_location      => $Set{root_location},
        main               => expand(scalar $block->main_config),
        post_main          => expand(scalar $block->post_main_config),
        http               => expand(scalar $block->http_config),
        server             => expand(scalar $block->config),
    );
    AdsTest::Block::run_code($block, 'post_setup_server_root');
    _write_user_files($block);
    return $text;
}

sub _new_server {
    my ($block, $hup) = @_;
    _reset_root(0);
    my $master = ($Set{master} || $hup) && !$Valgrind;
    my $text   = _write_configuration($block, $master);
    return AdsTest::Nginx->new(
        prefix   => $Root,
        port     => $Set{port},
        workers  => $master ? $Set{workers} : 0,
        raw_conf => $text,
        valgrind => defined $block->must_die ? 0 : $Valgrind,
    );
}

# A server with the block's configuration; returns where in the error log the
# part of this block begins.
sub _serve {
    my ($block, $name) = @_;
    my $hup = $Set{hup} && !$Valgrind;

    if ($Server && $hup && $Server->is_running) {
        _judge_running();
        _reset_root(1);
        @ExpectedOld = @Expected;
        @Expected    = ();
        $ServerName  = $name;
        my $from = $Server->log_size;
        $Server->reload(raw_conf => _write_configuration($block, 1), wait_old => 1);
        return $from;
    }
    _retire();
    my $server = _new_server($block, $hup);
    ($Server, $ServerName) = ($server, $name);
    $server->start;
    return 0;
}

# --- blocks -----------------------------------------------------------------

sub _failures {
    return scalar grep { !$_ } Test::More->builder->summary;
}

sub _nginx_version {
    if (!defined $Version) {
        my $binary = AdsTest::Conf::binary();
        my $text   = `'$binary' -v 2>&1`;
        $Version = $text =~ m{/(\d+)\.(\d+)\.(\d+)} ? $1 * 1e6 + $2 * 1e3 + $3 : 0;
    }
    return $Version;
}

# (number of tests, reason) when the block is to be skipped
sub _skip {
    my ($block) = @_;

    if (defined(my $spec = $block->skip_eval)) {
        my ($count, $code) = $spec =~ /^\s*(\d+)\s*:\s*(.*)/s or die "bad skip_eval: $spec\n";
        my $skip = eval "package main; no strict; $code";
        die "skip_eval: $@" if $@;
        return ($count, 'skip_eval') if $skip;
    }
    if (defined(my $spec = $block->skip_nginx)) {
        my ($count, $op, $x, $y, $z, $why) = $spec =~ /^\s*(\d+)\s*:\s*([<>]=?)\s*(\d+)\.(\d+)\.(\d+)\s*(?::\s*(.*))?$/
            or die "bad skip_nginx: $spec\n";
        my $order = _nginx_version() <=> $x * 1e6 + $y * 1e3 + $z;
        my $skip  = $op =~ /</ ? $order < 0 : $order > 0;
        $skip ||= $order == 0 if $op =~ /=/;
        return ($count, $why || "nginx version $op $x.$y.$z") if $skip;
    }
    return;
}

sub _check_sections {
    my ($block) = @_;
    for my $section (@{ $block->{_section_order}[0] // [] }) {
        die "unknown or unsupported section \"$section\"\n"
            unless $Known{$section} || $AdsTest::ExtraSections{$section};
    }
    return;
}

sub run_test ($) {
    my ($block) = @_;
    my $name   = $block->name;
    my $before = _failures();
    my $run    = AdsTest::Block->new(block => $block, name => $name, set => \%Set, body_checks => \@BodyChecks);

    my $done = eval { _run_block($block, $name, $run); 1 };
    if (!$done) {
        my ($first, $rest) = split /\n/, "$@", 2;
        Test::More::fail("$name - $first");
        Test::More::diag($rest) if defined $rest && length $rest;
    }
    $run->explain if _failures() > $before;
    return;
}

sub _run_block {
    my ($block, $name, $run) = @_;

    _check_sections($block);
    AdsTest::Expand::new_block();
    ($AdsTest::Expand::ServerPort, $AdsTest::Expand::ServerPortForClient) = @Set{qw(port client_port)};

    if (my ($count, $why) = _skip($block)) {
        for (1 .. $Set{repeat_each}) {
        SKIP: { Test::More::skip("$name - $why", $count) }
        }
        return;
    }
    if (defined $block->must_die) {
        _retire();
        my $server = _new_server($block, 0);
        $run->must_die($server, $Set{repeat_each});
        _verdict($name, $server->problems(allow => [ AdsTest::Check::expected_lines($block) ]));
        return;
    }

    my $from = $Server ? $Server->log_size : 0;
    if (defined $block->config) {
        $from = _serve($block, $name);
    }
    elsif (!$Server) {
        die "no config section, and no server of a block before\n";
    }
    push @Expected, AdsTest::Check::expected_lines($block);

    AdsTest::Block::run_code($block, 'init');
    $run->attach($Server, $from);
    for my $repeat (0 .. $Set{repeat_each} - 1) {
        _write_user_files($block) if $repeat;
        $run->requests($repeat);
    }
    return;
}

sub _cleanup {
    $_->() for splice @CleanupHandlers;
    if ($ENV{TEST_NGINX_NO_CLEAN} && $Server) {
        _judge_running();
        return;
    }
    _retire();
    return;
}

sub run_tests () {
    my @blocks = Test::Base::blocks();
    @blocks = shuffle @blocks unless $Set{no_shuffle};

    for my $block (@blocks) {
        $_->($block) for @Preprocessors;
        $block->set_value(name => "$0 " . $block->name);
        run_test($block);
        $_->($block) for @TestCleanupHandlers;
    }
    _cleanup();
    return;
}

1;
