package AdsTest::Http;

=head1 NAME

AdsTest::Http - the small HTTP/1.x client of the test runner

=head1 SYNOPSIS

    use AdsTest::Http;

    my $conn = AdsTest::Http->new(port => $port);        # one keep-alive connection
    my $res  = $conn->request('GET', '/x', { Host => 'a.example' });
    print $res->{status}, $res->{headers}{'content-type'}, $res->{body};

    # the layer below, used for tests in the data format
    my $bits = AdsTest::Http::build_request($text, $more_headers, 'close', 'localhost');
    my $got  = AdsTest::Http::exchange(port => $port, bits => $bits, timeout => 3);
    my $res  = AdsTest::Http::parse_response($got->{raw});

=head1 DESCRIPTION

A response is a hash: C<status>, C<reason>, C<raw_headers> (status line
included), C<headers> (lower-case name to value, repeated headers joined with
", "), C<header_list> (lower-case name to a list of values), C<body> (chunked
encoding removed), C<left> (bytes after the response), C<error> (what is wrong
with the framing, or undef) and C<complete>.

Nothing in here sleeps: reads and writes wait in select() with a deadline, and
C<wait_closed> waits for a state of the kernel's socket table.

=cut

use strict;
use warnings;

use Errno qw(EAGAIN EINTR EINPROGRESS);
use IO::Socket::INET ();
use Socket qw(SOL_SOCKET SO_ERROR);
use Time::HiRes qw(time);

use AdsTest::Clock ();

# A pause of at most $seconds; for polling loops only.
sub pause {
    my ($seconds) = @_;
    select undef, undef, undef, $seconds;
    return;
}

sub _connect {
    my ($addr, $port, $timeout) = @_;

    my $sock = IO::Socket::INET->new(
        PeerAddr => $addr,
        PeerPort => $port,
        Proto    => 'tcp',
        Timeout  => $timeout,
    ) or return (undef, "cannot connect to $addr:$port: " . ($@ || $!));
    $sock->blocking(0);
    binmode $sock;
    return $sock;
}

# "Name: value" lines as written in a test => ("Name: value\r\n"..., chunked?)
sub header_lines {
    my ($text) = @_;
    my ($out, $chunked) = ('', 0);

    for my $line (split /\r?\n/, $text // '') {
        next if $line =~ /^\s*(?:#|$)/;
        my ($name, $value) = split /:\s*/, $line, 2;
        $value //= '';
        $chunked = 1 if lc $name eq 'transfer-encoding' && lc $value eq 'chunked';
        $out .= "$name: $value\r\n";
    }
    return ($out, $chunked);
}

# A request as written in a test ("METHOD [URL [VERSION]]", then the body) as
# bits to send: [{ value, delay_before }, ...]. $request is a string, or a list
# of packets, each a string or a { value, delay_before } hash. The packet that
# completes the request line carries the headers as well.
sub build_request {
    my ($request, $more_headers, $connection, $host) = @_;

    my @packets = map { ref $_ ? {%$_} : { value => $_ } } ref $request eq 'ARRAY' ? @$request : $request;
    my $first = shift @packets or die "the request is empty\n";
    while ($first->{value} !~ /\n/ && @packets) {
        $first->{value} .= (shift @packets)->{value};
    }

    my ($line, $body) = split /\n/, $first->{value}, 2;
    $line =~ s/\r$// if defined $line;
    my ($method, $url, $version, $extra) = split ' ', $line // '';
    die "the request line is empty\n" unless defined $method;
    die "the request line \"$line\" is not \"METHOD [URL [VERSION]]\"\n" if defined $extra;
    $url     //= '/';
    $version //= 'HTTP/1.1';
    AdsTest::Clock::used($url);
    $body    //= '';

    my ($headers, $chunked) = header_lines($more_headers);
    my $head = "$method $url $version\r\n";
    $head .= "Host: $host\r\n"             unless $headers =~ /^Host:/mi;
    $head .= "Connection: $connection\r\n" unless $headers =~ /^Connection/mi;
    $head .= $headers;

    # The length is ours to compute unless the test gives one; only then is the
    # white space around the body, an artefact of the data format, dropped.
    my @body = ({ value => $body }, @packets);
    my $content = join '', map { $_->{value} } @body;
    if (length $content && !$chunked && $headers !~ /^Content-Length:/mi) {
        $body[0]{value}  =~ s/^\s+//;
        $body[-1]{value} =~ s/\s+$//;
        $head .= 'Content-Length: ' . length(join '', map { $_->{value} } @body) . "\r\n";
    }

    $body[0]{value} = "$head\r\n$body[0]{value}";
    $body[0]{delay_before} = $first->{delay_before};
    return \@body;
}

# Sends the bits, reads until the server closes. "timeout" bounds the silence,
# not the whole exchange. Returns { raw, state, error, client_port } where state
# is "eof", "timeout" or "error".
sub exchange {
    my (%o) = @_;
    my $timeout = $o{timeout} // 3;
    my $got     = { raw => '', state => 'error' };

    local $SIG{PIPE} = 'IGNORE';
    my ($sock, $error) = _connect($o{addr} // '127.0.0.1', $o{port}, $timeout);
    if (!$sock) {
        $got->{error} = $error;
        return $got;
    }
    $got->{client_port} = $sock->sockport;

    my @bits    = @{ $o{bits} };
    my $out     = (shift @bits)->{value};
    my $writing = 1;
    my $send_at = 0;
    my $fd      = fileno $sock;

    while (1) {
        my ($rin, $win) = ('', '');
        vec($rin, $fd, 1) = 1;
        my $now  = time;
        my $wait = $timeout;
        if ($writing) {
            if ($send_at > $now) { $wait = $send_at - $now }
            else                 { vec($win, $fd, 1) = 1 }
        }
        my $n = select(my $r = $rin, my $w = $win, undef, $wait);
        next if $n < 0 && $!{EINTR};
        if ($n == 0) {
            next if $writing && $send_at > $now;
            $got->{state} = 'timeout';
            last;
        }

        if (vec($w, $fd, 1)) {
            my $bytes = syswrite $sock, $out;
            if (!defined $bytes) {
                # The server may have answered and closed early: read on.
                $writing = 0 unless $!{EAGAIN} || $!{EINTR};
            }
            else {
                substr($out, 0, $bytes) = '';
                if (!length $out) {
                    if (my $next = shift @bits) {
                        $out     = $next->{value};
                        $send_at = time + ($next->{delay_before} // $o{middle_delay} // 0);
                    }
                    else {
                        $writing = 0;
                        shutdown $sock, $o{shutdown} if defined $o{shutdown};
                    }
                }
            }
        }

        if (vec($r, $fd, 1)) {
            my $bytes = sysread $sock, $got->{raw}, 65536, length $got->{raw};
            if (!defined $bytes) {
                next if $!{EAGAIN} || $!{EINTR};
                $got->{error} = "read failed: $!";
                last;
            }
            if ($bytes == 0) {
                $got->{state} = 'eof';
                last;
            }
        }
    }

    CORE::close $sock;
    return $got;
}

# The first response in $raw; see DESCRIPTION. $at_eof: nothing more will come.
sub parse_response {
    my ($raw, $is_head, $at_eof) = @_;
    $at_eof //= 1;

    my $res = { headers => {}, header_list => {}, body => '', left => '', raw_headers => '', complete => 0 };
    if ($raw !~ /\A(.*?\r?\n)\r?\n/s) {
        $res->{error} = length $raw ? 'no end of the headers' : 'the response is empty';
        $res->{body}  = $raw;
        return $res;
    }
    $res->{raw_headers} = $1;
    my $rest = substr $raw, $+[0];

    my ($status_line, @lines) = split /\r?\n/, $res->{raw_headers};
    if ($status_line =~ m{^HTTP/\d\.\d (\d{3})(?: (.*))?$}) {
        @$res{qw(status reason)} = ($1, $2);
    }
    else {
        $res->{error} = "bad status line \"$status_line\"";
    }
    for my $line (@lines) {
        my ($name, $value) = split /\s*:\s*/, $line, 2;
        push @{ $res->{header_list}{ lc $name } }, $value // '';
    }
    for my $name (keys %{ $res->{header_list} }) {
        $res->{headers}{$name} = join ', ', @{ $res->{header_list}{$name} };
    }

    my $status = $res->{status} // 0;
    my $length = $res->{headers}{'content-length'};
    if ($is_head || $status == 204 || $status == 304 || $status =~ /^1/) {
        $res->{left}     = $rest;
        $res->{complete} = 1;
    }
    elsif (lc($res->{headers}{'transfer-encoding'} // '') eq 'chunked') {
        _parse_chunks($res, $rest);
    }
    elsif (defined $length && $length =~ /^\d+$/) {
        if (length $rest < $length) {
            $res->{body}  = $rest;
            $res->{error} = "body truncated: $length bytes announced, " . length($rest) . ' received';
        }
        else {
            $res->{body}     = substr $rest, 0, $length;
            $res->{left}     = substr $rest, $length;
            $res->{complete} = 1;
        }
    }
    else {
        $res->{body}     = $rest;
        $res->{complete} = $at_eof;
    }
    return $res;
}

sub _parse_chunks {
    my ($res, $raw) = @_;

    while ($raw =~ /\G[ \t]*([0-9A-Fa-f]+)[^\r\n]*\r\n/gc) {
        my $size = hex $1;
        if ($size == 0) {
            if ($raw =~ /\G(?:[^\r\n]+\r\n)*\r\n/gc) {
                $res->{left}     = substr $raw, pos $raw;
                $res->{complete} = 1;
                return;
            }
            last;
        }
        my $at = pos $raw;
        last if length($raw) < $at + $size + 2;
        if (substr($raw, $at + $size, 2) ne "\r\n") {
            $res->{error} = "no CRLF after a chunk of $size bytes";
            return;
        }
        $res->{body} .= substr $raw, $at, $size;
        pos($raw) = $at + $size + 2;
    }
    $res->{error} = 'chunked body without its last chunk';
    return;
}

# True once the server has closed its end of a connection: the kernel's table
# has no such socket, or one that no process holds (inode 0). nginx runs the log
# phase before it closes, so afterwards the logs of that request are complete.
sub server_has_closed {
    my ($server_port, $client_port) = @_;

    open my $in, '<', '/proc/net/tcp' or return 1;
    my $pair = sprintf ':%04X [0-9A-F]{8}:%04X ', $server_port, $client_port;
    while (my $line = <$in>) {
        next unless $line =~ $pair;
        return 0 if (split ' ', $line)[9] != 0;
    }
    return 1;
}

sub wait_closed {
    my ($server_port, $client_port, $timeout) = @_;
    my $deadline = time + $timeout;

    until (server_has_closed($server_port, $client_port)) {
        return 0 if time >= $deadline;
        pause(0.002);
    }
    return 1;
}

# --- keep-alive connection --------------------------------------------------

sub new {
    my ($class, %o) = @_;
    my ($sock, $error) = _connect($o{addr} // '127.0.0.1', $o{port}, $o{timeout} // 30);
    die "$error\n" unless $sock;
    return bless {
        sock    => $sock,
        port    => $o{port},
        timeout => $o{timeout} // 30,
        host    => $o{host} // 'localhost',
        buffer  => '',
    }, $class;
}

sub client_port { return $_[0]{client_port} //= $_[0]{sock}->sockport }

# One request and its response. $headers: a hash, or a list of pairs when names
# repeat. Dies when the connection fails or the response is not complete in time.
sub request {
    my ($self, $method, $path, $headers, $body) = @_;
    AdsTest::Clock::used($path);

    my @pairs = ref $headers eq 'ARRAY' ? @$headers : map { $_ => $headers->{$_} } sort keys %{ $headers // {} };
    my $text  = '';
    for (my $i = 0; $i < @pairs; $i += 2) {
        $text .= "$pairs[$i]: $pairs[$i + 1]\r\n";
    }
    $text = "Host: $self->{host}\r\n$text" unless $text =~ /^Host:/mi;
    $text .= 'Content-Length: ' . length($body) . "\r\n"
        if defined $body && $text !~ /^(?:Content-Length|Transfer-Encoding):/mi;

    $self->send_raw("$method $path HTTP/1.1\r\n$text\r\n" . ($body // ''));
    return $self->read_response($method eq 'HEAD');
}

sub send_raw {
    my ($self, $data) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $deadline = time + $self->{timeout};

    while (length $data) {
        my $left = $deadline - time;
        die "timed out while sending a request\n" if $left <= 0;
        my $win = '';
        vec($win, fileno $self->{sock}, 1) = 1;
        next if select(undef, $win, undef, $left) <= 0;
        my $bytes = syswrite $self->{sock}, $data;
        if (defined $bytes) { substr($data, 0, $bytes) = '' }
        elsif (!$!{EAGAIN} && !$!{EINTR}) { die "sending a request failed: $!\n" }
    }
    return;
}

sub read_response {
    my ($self, $is_head) = @_;
    my $deadline = time + $self->{timeout};

    while (1) {
        my $res = parse_response($self->{buffer}, $is_head, $self->{eof});
        if ($res->{complete}) {
            $self->{buffer} = $res->{left};
            return $res;
        }
        die "incomplete response: $res->{error}\n" if $self->{eof};

        my $left = $deadline - time;
        die "timed out while waiting for a response\n" if $left <= 0;
        my $rin = '';
        vec($rin, fileno $self->{sock}, 1) = 1;
        next if select($rin, undef, undef, $left) <= 0;
        my $bytes = sysread $self->{sock}, $self->{buffer}, 65536, length $self->{buffer};
        if (!defined $bytes) {
            die "reading a response failed: $!\n" unless $!{EAGAIN} || $!{EINTR};
        }
        elsif ($bytes == 0) {
            $self->{eof} = 1;
        }
    }
}

sub close {
    my ($self) = @_;
    $self->client_port if $self->{sock};
    CORE::close $self->{sock} if $self->{sock};
    delete $self->{sock};
    return;
}

1;
