package AdsTest::Check;

=head1 NAME

AdsTest::Check - the expectations of a block, compared with what was received

=head1 DESCRIPTION

Each function emits the tests of some sections, as many and under the same
conditions as Test::Nginx::Socket does, so that plans fit both. $c describes one
request of a block: block, name, index (of the request), repeat (of
repeat_each), many (several requests: expectations are lists).

=cut

use strict;
use warnings;

use Test::More ();

use AdsTest::Expand qw(expand expand_ports);

# Test::Base's is(): shows a difference of several lines as a diff.
sub _is {
    my ($got, $expected, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 2;
    return Test::Base::is($got, $expected, $name);
}

# The expectation for this request.
sub _of_request {
    my ($c, $section) = @_;
    my $value = $c->{block}->$section;
    if (ref $value eq 'ARRAY') {
        return $value->[ $c->{index} ];
    }
    die "with several requests, $section has to be a list\n" if $c->{many};
    return $value;
}

sub response {
    my ($c, $res) = @_;
    _status($c, $res);
    _raw_headers($c, $res);
    _headers($c, $res);
    _body($c, $res);
    return;
}

sub _status {
    my ($c, $res) = @_;
    my $block = $c->{block};
    my $name  = "$c->{name} - status code ok";
    my $code  = $res->{status} // '';

    if (defined $block->error_code_like) {
        my $pattern = _of_request($c, 'error_code_like');
        Test::More::like($code, qr/$pattern/sm, $name);
    }
    else {
        my $expected = defined $block->error_code ? _of_request($c, 'error_code') : 200;
        Test::More::is($code, $expected, $name);
    }
    return;
}

sub _raw_headers {
    my ($c, $res) = @_;
    my $block = $c->{block};

    if (defined $block->raw_response_headers_like) {
        my $pattern = _of_request($c, 'raw_response_headers_like');
        Test::More::like($res->{raw_headers}, qr/$pattern/s, "$c->{name} - raw response headers like");
    }
    if (defined $block->raw_response_headers_unlike) {
        my $pattern = _of_request($c, 'raw_response_headers_unlike');
        Test::More::unlike($res->{raw_headers}, qr/$pattern/s, "$c->{name} - raw response headers unlike");
    }
    return;
}

# "Name: value" and "!Name" lines => list of [name, value or undef]
sub _header_spec {
    my ($text) = @_;
    my %seen;
    my @spec;
    for my $line (split /\n/, $text // '') {
        $line =~ s/^\s+|\s+$//g;
        next unless length $line;
        my ($name, $value) = $line =~ /^!\s*(.*)/ ? ($1, undef) : split /\s*:\s*/, $line, 2;
        die "the header \"$name\" is listed twice\n" if $seen{$name}++;
        push @spec, [ $name, $line =~ /^!/ ? undef : $value // '' ];
    }
    return @spec;
}

sub _headers {
    my ($c, $res) = @_;
    my $block = $c->{block};

    if (defined $block->response_headers) {
        for my $header (_header_spec(_of_request($c, 'response_headers'))) {
            my ($name, $value) = @$header;
            if (defined $value) {
                my $got = $res->{headers}{ lc $name } // '';
                Test::More::is($got, expand_ports($value), "$c->{name} - header $name ok");
            }
            else {
                Test::More::unlike($res->{raw_headers}, qr/^\s*\Q$name\E\s*:/mi, "$c->{name} - header $name is absent");
            }
        }
    }
    elsif (defined $block->response_headers_like) {
        for my $header (_header_spec(_of_request($c, 'response_headers_like'))) {
            my ($name, $pattern) = @$header;
            my $got = $res->{headers}{ lc $name } // '';
            $pattern //= '';
            Test::More::like($got, qr/^$pattern$/, "$c->{name} - header $name like ok");
        }
    }
    return;
}

sub _body {
    my ($c, $res) = @_;
    my $block = $c->{block};
    my $where = "(repeat $c->{repeat}, request $c->{index})";

    if (defined $block->response_body) {
        my $expected = _of_request($c, 'response_body');
        if (ref $expected) {
            Test::More::like($res->{body}, $expected, "$c->{name} - response_body like $where");
        }
        else {
            $expected = expand(expand_ports($expected)) if defined $expected;
            _is($res->{body}, $expected, "$c->{name} - response_body $where");
        }
    }
    elsif (defined $block->response_body_like) {
        my $pattern = expand_ports(_of_request($c, 'response_body_like'));
        Test::More::like($res->{body}, qr/$pattern/s, "$c->{name} - response_body_like $where");
    }
    elsif (defined $block->response_body_unlike) {
        my $pattern = expand_ports(_of_request($c, 'response_body_unlike'));
        Test::More::unlike($res->{body}, qr/$pattern/s, "$c->{name} - response_body_unlike $where");
    }
    return;
}

# A section with patterns (lines of text, a regex, a list of both) as regexes
# with the text to show: ([regex, text], ...)
sub patterns {
    my ($value) = @_;
    return unless defined $value;
    my @list = ref $value eq 'ARRAY' ? @$value : ref $value ? $value : split /\n+/, $value;
    return map { [ ref $_ ? $_ : qr/\Q$_\E/, "$_" ] } @list;
}

sub must_match {
    my ($c, $value, $lines, $file) = @_;
    for my $pattern (patterns($value)) {
        my ($regex, $text) = @$pattern;
        Test::More::ok((grep { $_ =~ $regex } @$lines) > 0,
            "$c->{name} - \"$text\" is in $file (repeat $c->{repeat}, request $c->{index})");
    }
    return;
}

sub must_not_match {
    my ($c, $value, $lines, $file) = @_;
    for my $pattern (patterns($value)) {
        my ($regex, $text) = @$pattern;
        my @found = grep { $_ =~ $regex } @$lines;
        Test::More::ok(!@found, "$c->{name} - \"$text\" is not in $file (repeat $c->{repeat}, request $c->{index})")
            or Test::More::diag(map { "found: $_" } @found > 5 ? @found[ 0 .. 4 ] : @found);
    }
    return;
}

# What of the new error log lines this block still waits for; empty: nothing.
sub missing_in_error_log {
    my ($c, $lines) = @_;
    my @missing = grep {
        my $regex = $_->[0];
        !grep { $_ =~ $regex } @$lines
    } patterns($c->{block}->error_log);
    return 1 if @missing;
    return 0 unless defined $c->{block}->grep_error_log;
    my ($got, $expected) = _grep_error_log($c, $lines);
    return ref $expected ? $got !~ $expected : $got ne ($expected // '');
}

sub _grep_error_log {
    my ($c, $lines) = @_;
    my ($pattern, $expected) = map { ref $_ eq 'ARRAY' ? $_->[ $c->{repeat} ] : $_ }
        scalar $c->{block}->grep_error_log, scalar $c->{block}->grep_error_log_out;
    die "grep_error_log needs grep_error_log_out\n" unless defined $c->{block}->grep_error_log_out;
    $expected = expand($expected) if defined $expected && !ref $expected;

    my ($regex) = map { ref $_ ? $_ : qr/\Q$_\E/ } $pattern;
    my @matches = map { $_ =~ $regex ? substr($_, $-[0], $+[0] - $-[0]) : () } @$lines;
    my $got = join '', map { "$_\n" } grep { !/\n/ } @matches;
    return ($got, $expected);
}

sub error_log {
    my ($c, $lines) = @_;
    my $block = $c->{block};

    die "grep_error_log_out needs grep_error_log\n"
        if defined $block->grep_error_log_out && !defined $block->grep_error_log;
    if (defined $block->grep_error_log) {
        my ($got, $expected) = _grep_error_log($c, $lines);
        my $name = "$c->{name} - grep_error_log_out (repeat $c->{repeat}, request $c->{index})";
        if (ref $expected) { Test::More::like($got, $expected, $name) }
        else               { _is($got, $expected, $name) }
    }
    must_match($c, scalar $block->error_log, $lines, 'error.log');
    must_not_match($c, scalar $block->no_error_log, $lines, 'error.log');
    return;
}

sub access_log {
    my ($c, $lines) = @_;
    must_match($c, scalar $c->{block}->access_log, $lines, 'access.log');
    must_not_match($c, scalar $c->{block}->no_access_log, $lines, 'access.log');
    return;
}

# The lines a block announces, for the check of the whole log.
sub expected_lines {
    my ($block) = @_;
    my @regexes = map { $_->[0] } patterns(scalar $block->error_log), patterns(scalar $block->grep_error_log);
    push @regexes, qr/^\S+ \S+ \[emerg\] / if defined $block->must_die;
    return @regexes;
}

1;
