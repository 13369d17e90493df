package AdsTest::Redis;

=head1 NAME

AdsTest::Redis - a private Redis as an object

=head1 SYNOPSIS

    use lib 't/lib';
    use Test::More;
    use AdsTest::Redis;

    my $redis = AdsTest::Redis->new;          # or skips the whole file
    is $redis->call(SET => 'a', 1), 'OK';
    is_deeply $redis->call(HGETALL => 'h'), [];
    is $redis->error('NOPE'), "ERR unknown command 'NOPE' ...";
    done_testing;

=head1 OPTIONS OF new()

    settings => ['--cluster-enabled', 'yes']   more arguments of redis-server
    socket   => 1                              listens on a unix socket only

=head1 METHODS

    start, stop, restart             stop: SIGTERM; kill: SIGKILL
    sigstop, sigcont, kill
    port, address, dir, pid, log
    call(@command)                   the reply; dies with an error
    error(@command)                  the text of the error, or undef
    connect                          a connection of its own, with the same call and error

=cut

use strict;
use warnings;

use Carp qw(croak);
use File::Temp qw(tempdir);
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use Test::More ();

use AdsTest::Process qw(spawn alive wait_until free_port stopped);

my %Running;
END {
    local $?;
    kill KILL => $_ for grep { $Running{$_} == $$ } keys %Running;
}

sub new {
    my ($class, %o) = @_;
    Test::More::plan(skip_all => 'redis-server is not installed') if system('command -v redis-server >/dev/null') != 0;
    my $self = bless { %o, dir => tempdir('redis-XXXXXXXX', TMPDIR => 1, CLEANUP => 1) }, $class;
    chmod 0755, $self->{dir};
    $self->{port} = $o{socket} ? 0 : free_port();
    return $self->start;
}

sub port    { return $_[0]{port} }
sub dir     { return $_[0]{dir} }
sub pid     { return $_[0]{pid} }
sub address { my ($self) = @_; return $self->{port} ? "127.0.0.1:$self->{port}" : "unix:$self->{dir}/redis.sock" }

sub log {
    my ($self) = @_;
    open my $in, '<', "$self->{dir}/log" or return '';
    local $/;
    return scalar <$in>;
}

sub start {
    my ($self) = @_;
    my @command = (
        'redis-server', '--port', $self->{port}, '--bind', '127.0.0.1', '--unixsocket', "$self->{dir}/redis.sock", '--unixsocketperm', 777,
        '--dir', $self->{dir}, '--save', '', '--appendonly', 'no', '--daemonize', 'no', @{ $self->{settings} // [] },
    );
    $self->{pid} = spawn(\@command, {}, "$self->{dir}/log");
    $Running{ $self->{pid} } = $$;
    wait_until {
        croak "redis-server has ended:\n" . $self->log unless alive($self->{pid});
        my $c = eval { $self->connect };
        # Any reply says that it listens, also one that asks for a password.
        $c && defined eval { $c->_send('PING'); my @reply = $c->_read; 1 };
    } 30, 'redis-server';
    return $self;
}

sub _end {
    my ($self, $signal) = @_;
    my $pid = delete $self->{pid} or return $self;
    delete $self->{main};
    kill CONT => $pid;
    kill $signal => $pid;
    wait_until { !alive($pid) } 30, 'the end of redis-server';
    delete $Running{$pid};
    return $self;
}

sub stop    { return $_[0]->_end('TERM') }
sub kill    { return $_[0]->_end('KILL') }
sub restart { return $_[0]->stop->start }

sub sigstop {
    my ($self) = @_;
    CORE::kill STOP => $self->{pid};
    wait_until { stopped($self->{pid}) } 10, 'the stop of redis-server';
    return $self;
}

sub sigcont { my ($self) = @_; CORE::kill CONT => $self->{pid}; return $self }

sub DESTROY { local ($@, $?); $_[0]->_end('KILL') if $_[0]{pid} && ($Running{ $_[0]{pid} } // 0) == $$; return }

# --- commands ----------------------------------------------------------------

sub connect {
    my ($self) = @_;
    my $socket = $self->{port}
        ? IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}")
        : IO::Socket::UNIX->new(Peer => "$self->{dir}/redis.sock");
    croak "cannot connect to redis: $!" unless $socket;
    binmode $socket;
    return bless { socket => $socket }, 'AdsTest::Redis::Connection';
}

sub _main { my ($self) = @_; return $self->{main} //= $self->connect }
sub call  { my ($self, @command) = @_; return $self->_main->call(@command) }
sub error { my ($self, @command) = @_; return $self->_main->error(@command) }

package AdsTest::Redis::Connection;

sub _send {
    my ($self, @command) = @_;
    my $text = '*' . @command . "\r\n";
    $text .= '$' . length($_) . "\r\n$_\r\n" for @command;
    local $SIG{PIPE} = 'IGNORE';
    print { $self->{socket} } $text;
    $self->{socket}->flush;
    return;
}

# (value) or (undef, error)
sub _read {
    my ($self) = @_;
    local $/ = "\r\n";
    my $socket = $self->{socket};
    my $line   = <$socket> // die "redis has closed the connection\n";
    chomp $line;
    my ($kind, $rest) = $line =~ /^(.)(.*)$/s;
    return $rest           if $kind eq '+' || $kind eq ':';
    return (undef, $rest)  if $kind eq '-';
    return undef           if $rest < 0;
    return [ map { my ($value, $error) = $self->_read; defined $error ? "-$error" : $value } 1 .. $rest ] if $kind eq '*';
    my $data = '';
    read $socket, $data, $rest + 2 - length $data, length $data while length $data < $rest + 2;
    return substr $data, 0, $rest;
}

sub call {
    my ($self, @command) = @_;
    $self->_send(@command);
    my ($value, $error) = $self->_read;
    die "redis: $error\n" if defined $error;
    return $value;
}

sub error {
    my ($self, @command) = @_;
    $self->_send(@command);
    return ($self->_read)[1];
}

1;
