package AdsTest::Block;

=head1 NAME

AdsTest::Block - makes the requests of one block and has the results checked

=head1 DESCRIPTION

    my $run = AdsTest::Block->new(block => $block, name => $name, set => \%settings);
    $run->attach($server, $log_position);
    $run->requests($repeat);            # once per repeat_each
    $run->must_die($server, $repeats);  # instead, when the server must not start
    $run->explain;                      # after a failure

=cut

use strict;
use warnings;

use Test::More ();
use Time::HiRes qw(time);

use AdsTest::Check ();
use AdsTest::Expand qw(expand);
use AdsTest::Http ();
use AdsTest::Process qw(slow status_text wait_until);

# Code of a section, away from the lexicals below.
sub run_code {
    my ($block, $section) = @_;
    my $code = $block->$section;
    return unless defined $code && length $code;
    eval "package main; no strict; $code";
    die "$section: $@" if $@;
    return;
}

sub new {
    my ($class, %o) = @_;
    return bless { body_checks => [], %o, position => 0, start => 0 }, $class;
}

sub attach {
    my ($self, $server, $from) = @_;
    $self->{server}       = $server;
    $self->{start}        = $self->{position} = $from;
    $self->{access_start} = $from ? -s $server->path('logs/access.log') // 0 : 0;
    return;
}

sub _seconds {
    my ($text) = @_;
    return undef unless defined $text;
    my ($number, $unit) = $text =~ /^\s*([\d.]+)\s*(ms|s)?\s*$/ or die "bad time \"$text\"\n";
    return ($unit // 's') eq 'ms' ? $number / 1000 : $number;
}

# --- building requests ------------------------------------------------------

# The exchanges of the block: ({ bits => [...], responses => n, heads => [...] }, ...)
sub _exchanges {
    my ($self) = @_;
    my $block = $self->{block};

    if (defined(my $raw = $block->raw_request)) {
        my @bits = map { { value => $_ } } ref $raw eq 'ARRAY' ? @$raw : $raw;
        return { bits => \@bits, responses => 1, heads => [ $bits[0]{value} =~ /^\s*HEAD\s/ ? 1 : 0 ], raw => 1 };
    }

    if (my $list = $block->pipelined_requests) {
        die "pipelined_requests has to be a list\n" unless ref $list eq 'ARRAY';
        my ($text, @heads) = ('');
        for my $i (0 .. $#$list) {
            my $connection = $i < $#$list ? 'keep-alive' : 'close';
            my $request    = expand($list->[$i]);
            $text .= $_->{value} for @{ $self->_build($request, $i, $connection) };
            push @heads, $request =~ /^\s*HEAD\s/ ? 1 : 0;
        }
        return { bits => [ { value => $text } ], responses => scalar @$list, heads => \@heads };
    }

    my $request = $block->request // die "there is no request section\n";
    my @requests = ref $request eq 'ARRAY' ? @$request : $request;
    my @exchanges;
    for my $i (0 .. $#requests) {
        my $bits = $self->_build($requests[$i], $i, 'close');
        push @exchanges, { bits => $bits, responses => 1, heads => [ $bits->[0]{value} =~ /^HEAD\s/ ? 1 : 0 ] };
    }
    return @exchanges;
}

sub _build {
    my ($self, $request, $i, $connection) = @_;
    my $headers = $self->{block}->more_headers;
    if (ref $headers eq 'ARRAY') {
        $headers = $headers->[$i] // die "more_headers has nothing for request $i\n";
    }
    if (!ref $request) {
        1 while $request =~ s/\A(?:\s+|#[^\n]*\n)//;
    }
    return AdsTest::Http::build_request($request, $headers, $connection,
        $self->{block}->server_name // $self->{set}{server_name});
}

# --- running ----------------------------------------------------------------

sub requests {
    my ($self, $repeat) = @_;
    my $block     = $self->{block};
    my @exchanges = $self->_exchanges;
    my $many      = @exchanges > 1 || defined $block->pipelined_requests;
    my $index     = 0;

    for my $exchange (@exchanges) {
        my $got  = $self->_exchange($exchange);
        my $left = $got->{raw};
        for my $is_head (@{ $exchange->{heads} }) {
            my $c = { block => $block, name => $self->{name}, index => $index, repeat => $repeat, many => $many };
            if (!defined $block->ignore_response) {
                my $res = AdsTest::Http::parse_response($left, $is_head);
                $left = $res->{left};
                AdsTest::Check::response($c, $res);
                $self->_framing($c, $res, $got) if defined $res->{status};
                $_->($block, $res->{body}, $index, $repeat, 0) for @{ $self->{body_checks} };
            }
            AdsTest::Http::pause($block->wait) if $block->wait;
            $self->_logs($c);
            $index++;
        }
        if (length $left && !$exchange->{raw} && !defined $block->ignore_response) {
            Test::More::fail("$self->{name} - no bytes after the response");
            Test::More::diag('  they are: ' . _visible($left));
        }
    }
    return;
}

sub _exchange {
    my ($self, $exchange) = @_;
    my $block   = $self->{block};
    my $port    = $self->{set}{client_port};
    my $timeout = (_seconds(scalar $block->timeout) // $self->{set}{timeout}) * (defined $block->abort ? 1 : slow());
    my $stop    = $block->shutdown;

    my $got = AdsTest::Http::exchange(
        addr         => $self->{set}{server_addr},
        port         => $port,
        bits         => $exchange->{bits},
        timeout      => $timeout,
        middle_delay => scalar $block->raw_request_middle_delay,
        defined $stop ? (shutdown => $stop =~ /(\d+)/ ? $1 : 1) : (),
    );
    push @{ $self->{seen} }, [ join('', map { $_->{value} } @{ $exchange->{bits} }), $got ];

    if ($got->{state} eq 'timeout' && !defined $block->abort) {
        Test::More::fail("$self->{name} - the server closes the connection within ${timeout}s");
    }
    elsif ($got->{state} eq 'error' && !defined $block->abort) {
        Test::More::fail("$self->{name} - $got->{error}");
    }
    AdsTest::Http::wait_closed($port, $got->{client_port}, slow()) if $got->{client_port};
    return $got;
}

sub _framing {
    my ($self, $c, $res, $got) = @_;
    return if !defined $res->{error} || defined $self->{block}->abort || $got->{state} eq 'timeout';
    Test::More::fail("$c->{name} - the response is complete (request $c->{index})");
    Test::More::diag("  $res->{error}");
    return;
}

# Complete lines of the error log after the current position; moves it.
sub _new_lines {
    my ($self) = @_;
    my $from = $self->{set}{accumulate} ? $self->{start} : $self->{position};
    my $text = $self->{server}->error_log($from);
    $text =~ s/[^\n]*\z//;
    $self->{next_position} = $from + length $text;
    return [ split /^/, $text ];
}

# A line that is expected may come a little later than the response.
sub _logs {
    my ($self, $c) = @_;
    my $lines;
    wait_until {
        $lines = $self->_new_lines;
        return !AdsTest::Check::missing_in_error_log($c, $lines);
    } 1;
    $self->{position} = $self->{next_position};
    AdsTest::Check::error_log($c, $lines);

    my $block = $c->{block};
    return if defined $block->ignore_response || !(defined $block->access_log || defined $block->no_access_log);
    my $text = AdsTest::Nginx::slurp($self->{server}->path('logs/access.log'), $self->{access_start}) // '';
    AdsTest::Check::access_log($c, [ split /^/, $text ]);
    return;
}

sub must_die {
    my ($self, $server, $repeats) = @_;
    my ($block, $name) = @$self{qw(block name)};
    $self->attach($server, 0);

    for my $repeat (0 .. $repeats - 1) {
        my $result = $server->launch;
        my $status = $result->{exit};
        $self->{stderr} = $result->{stderr};
        $server->stop if !defined $status;
        if (!defined $status || $status & 127) {
            Test::More::fail("$name - nginx refuses to start");
            Test::More::diag(defined $status ? '  it crashed: ' . status_text($status) : '  it started');
        }
        elsif ($block->must_die =~ /^\s*(\d+)\s*$/) {
            Test::More::is($status >> 8, $1, "$name - nginx refuses to start with code $1");
        }
        else {
            Test::More::isnt($status, 0, "$name - nginx refuses to start");
        }
        $self->_logs({ block => $block, name => $name, index => 0, repeat => $repeat, many => 0 });
        delete $server->{exit_status};
    }
    return;
}

# --- after a failure --------------------------------------------------------

sub _visible {
    my ($text) = @_;
    my $rest = length($text) - 1500;
    $text = substr($text, 0, 1500) if $rest > 0;
    $text =~ s/([^\t\n\r\x20-\x7e])/sprintf '\\x%02x', ord $1/ge;
    $text =~ s/\r//g;
    $text .= "\n... $rest bytes more" if $rest > 0;
    return $text;
}

sub explain {
    my ($self) = @_;
    my @text = ("$self->{name}: failed");
    for my $seen (@{ $self->{seen} // [] }) {
        my ($request, $got) = @$seen;
        push @text, 'request:', _visible($request), "response ($got->{state}):", _visible($got->{raw});
    }
    push @text, 'stderr of nginx:', $self->{stderr} if length($self->{stderr} // '');
    my $server = $self->{server} // AdsTest::Runner::server();
    if ($server) {
        my $tail = $server->log_tail(25, $self->{start});
        push @text, 'end of error.log (without debug lines):', length $tail ? $tail : '(nothing)';
    }
    Test::More::diag(join "\n", map { "  $_" } map { split /\n/ } @text);
    return;
}

1;
