package AdsTest::Origin;

=head1 NAME

AdsTest::Origin - an upstream in the hands of the test, and the client at the other end

=head1 SYNOPSIS

    my $origin = AdsTest::Origin->new;           # its port goes into proxy_pass
    my $got = $origin->page($ngx, '/proxied/x', parts => ['<html>', '</html>']);
    $got->{request};                             # what nginx asked, as text
    $got->{response};                            # see AdsTest::Http

    my $session = $origin->begin($ngx, '/proxied/x');
    $session->send('<p>');                       # returns when nginx has read it
    $session->seen(qr/<p>/);                     # waits until the client has it
    my $response = $session->end;

=head1 DESCRIPTION

Each part of the answer is read by nginx on its own: between them the only worker answers other
requests. The connection ends with the answer.

=cut

use strict;
use warnings;

use IO::Socket::INET ();
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(time);

use AdsTest::Http ();

sub new {
    my ($class) = @_;
    my $listen = IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1') or die "cannot listen: $@";
    return bless { listen => $listen }, $class;
}

sub port { return $_[0]{listen}->sockport }

sub page {
    my ($self, $ngx, $path, %o) = @_;
    my $session = $self->begin($ngx, $path, %o);
    $session->send($_) for @{ $o{parts} };
    return { request => $session->{request}, response => $session->end };
}

# Options: headers of the request (a hash), status and head of the answer.
sub begin {
    my ($self, $ngx, $path, %o) = @_;
    my $client = AdsTest::Http->new(port => $ngx->port);
    my %headers = (Host => 'localhost', %{ $o{headers} // {} });
    $client->send_raw("GET $path HTTP/1.1\r\n" . join('', map { "$_: $headers{$_}\r\n" } sort keys %headers) . "\r\n");
    my $peer = $self->{listen}->accept or die "no connection: $!";
    $peer->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1);
    my $request = '';
    until ($request =~ /\r\n\r\n/) {
        sysread $peer, $request, 65536, length $request or die 'nginx asks for nothing';
    }
    my $session = bless { client => $client, peer => $peer, request => $request, control => $self->{control}{ $ngx->port } //= $ngx->connection }, 'AdsTest::Origin::Session';
    my $head = $o{head} // "Content-Type: text/html\r\n";
    syswrite $peer, "HTTP/1.1 " . ($o{status} // '200 OK') . "\r\nConnection: close\r\n$head\r\n" or die "cannot send: $!";
    $session->wait_read;
    return $session;
}

package AdsTest::Origin::Session;

use AdsTest::Process qw(wait_until);

sub send {
    my ($self, $text) = @_;
    while (length $text) {
        my $sent = syswrite $self->{peer}, $text or die "cannot send: $!";
        substr $text, 0, $sent, '';
    }
    $self->wait_read;
    return;
}

# What was sent before the first request is handled in the same turn of the event loop at the
# latest, and the second is handled in a later one.
sub wait_read {
    my ($self) = @_;
    $self->{control}->request('GET', '/nothing') for 1 .. 2;
    return;
}

# Waits until what the client has of the answer matches.
sub seen {
    my ($self, $pattern) = @_;
    my $client = $self->{client};
    wait_until {
        my $win = '';
        vec($win, fileno $client->{sock}, 1) = 1;
        sysread $client->{sock}, $client->{buffer}, 65536, length $client->{buffer} if select($win, undef, undef, 0.01) > 0;
        $client->{buffer} =~ $pattern;
    } 30, "the client to see $pattern";
    return 1;
}

sub end {
    my ($self) = @_;
    close delete $self->{peer};
    return $self->{client}->read_response;
}

1;
