package AdsTest::Process;

=head1 NAME

AdsTest::Process - processes, ports and waiting, for AdsTest::Nginx

=head1 FUNCTIONS

    wait_until { CONDITION } $timeout, 'what for';

Polls until CONDITION is true and returns its value. After $timeout seconds
(times C<slow()>) it dies with the message, or returns false if none is given.

    free_port()                 a TCP port of 127.0.0.1 that nobody listens on
    spawn(\@command, \%env, $stderr_file)
    alive($pid, \%statuses)     false for zombies; reaps children of ours
    children($pid), title($pid)
    status_text($status)        "exit code 1", "signal 11"
    listening($port)            from the kernel's table: no connection is made
    adopt_orphans()             daemons started from here become our children
    slow()                      factor for every deadline, see AdsTest::Nginx

=cut

use strict;
use warnings;

use Carp qw(croak);
use Exporter 'import';
use Fcntl qw(:flock);
use File::Spec ();
use IO::Socket::INET ();
use POSIX qw(WNOHANG);
use Time::HiRes qw(time);

our @EXPORT_OK = qw(wait_until free_port spawn alive children title status_text slow adopt_orphans listening stopped);

sub slow {
    return $ENV{ADS_TEST_SLOW} if $ENV{ADS_TEST_SLOW};
    return $ENV{TEST_NGINX_USE_VALGRIND} ? 10 : $ENV{ADS_TEST_PRELOAD} ? 4 : 1;
}

sub wait_until(&;$$) {
    my ($condition, $timeout, $message) = @_;
    $timeout //= 5;
    # What must come may come late on a busy machine; only what need not come has its own time.
    $timeout = 60 if defined $message && $timeout >= 1 && $timeout < 60;
    my $deadline = time + $timeout * slow();
    my $pause    = 0.002;

    while (1) {
        my $value = $condition->();
        return $value if $value;
        if (time >= $deadline) {
            croak "timed out after ${timeout}s, waiting for $message" if defined $message;
            return $value;
        }
        select undef, undef, undef, $pause;
        $pause *= 1.5 if $pause < 0.05;
    }
}

# Below the usual range of ephemeral ports, so that no outgoing connection can
# take it meanwhile. A lock file, held until we end, keeps test files that run
# at the same time apart, also while their servers restart.
my %Reserved;

sub free_port {
    for (1 .. 500) {
        my $port = 10240 + int rand 22000;
        next if $Reserved{$port};
        my $file = File::Spec->tmpdir . "/adstest-port-$port.lock";
        open my $lock, '>>', $file or next;
        next unless flock $lock, LOCK_EX | LOCK_NB;
        my $sock = IO::Socket::INET->new(
            LocalAddr => '127.0.0.1',
            LocalPort => $port,
            Proto     => 'tcp',
            Listen    => 1,
            ReuseAddr => 1,
        );
        if (!$sock) {
            unlink $file;
            next;
        }
        close $sock;
        $Reserved{$port} = { lock => $lock, file => $file, owner => $$ };
        return $port;
    }
    croak 'cannot find a free port';
}

END {
    unlink map { $_->{file} } grep { $_->{owner} == $$ } values %Reserved;
}

# A probing connection would show up in the server's log.
sub listening {
    my ($port) = @_;
    my $entry = sprintf ':%04X [0-9A-F]{8}:0000 0A ', $port;
    open my $in, '<', '/proc/net/tcp' or return 1;
    while (my $line = <$in>) {
        return 1 if $line =~ $entry;
    }
    return 0;
}

sub spawn {
    my ($command, $env, $stderr_file) = @_;

    my $pid = fork // croak "cannot fork: $!";
    return $pid if $pid;

    # Standard output is the TAP stream: a server must not hold it open.
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP QUIT PIPE CHLD __DIE__ __WARN__);
    %ENV = (%ENV, %$env);
    if (   open(STDIN, '<', '/dev/null')
        && open(STDERR, '>>', $stderr_file)
        && open(STDOUT, '>&', \*STDERR))
    {
        no warnings 'exec';
        exec { $command->[0] } @$command;
        syswrite STDERR, "cannot execute $command->[0]: $!\n";
    }
    POSIX::_exit(127);
}

# Makes us the reaper of the daemons that we start: their status becomes known,
# and they don't stay zombies where process 1 is no init. Best effort.
sub adopt_orphans {
    my %prctl  = (x86_64 => 157, aarch64 => 167);
    my $number = $prctl{ (POSIX::uname())[4] } // return;
    return syscall($number, 36, 1, 0, 0, 0) == 0;    # PR_SET_CHILD_SUBREAPER
}

# State and parent of a process, from the kernel; empty when there is none.
sub _stat {
    my ($pid) = @_;
    open my $in, '<', "/proc/$pid/stat" or return;
    my $line = <$in> // return;
    return $line =~ /\)\s+(\S)\s+(\d+)[^)]*$/ ? ($1, $2) : ();
}

sub stopped { my ($state) = _stat($_[0]); return ($state // '') eq 'T' }

# True while the process runs. A child of ours is reaped, its status goes into
# %$statuses.
sub alive {
    my ($pid, $statuses) = @_;
    return 0 unless $pid;
    if ($statuses && exists $statuses->{$pid}) {
        return 0;
    }
    # The state first: what it calls dead can be reaped, also if it died just now.
    my ($state) = _stat($pid);
    local $?;
    if (waitpid($pid, WNOHANG) == $pid) {
        $statuses->{$pid} = $? if $statuses;
        return 0;
    }
    return defined $state && $state !~ /[ZX]/ ? 1 : 0;
}

sub children {
    my ($parent) = @_;
    opendir my $dir, '/proc' or return;
    my @found;
    for my $pid (grep { /^\d+$/ } readdir $dir) {
        my ($state, $ppid) = _stat($pid) or next;
        push @found, $pid if defined $ppid && $ppid == $parent && $state !~ /[ZX]/;
    }
    return sort { $a <=> $b } @found;
}

sub title {
    my ($pid) = @_;
    open my $in, '<', "/proc/$pid/cmdline" or return '';
    local $/;
    my $text = <$in> // '';
    $text =~ tr/\0/ /;
    $text =~ s/\s+$//;
    return $text;
}

sub status_text {
    my ($status) = @_;
    return 'status unknown' unless defined $status;
    return $status & 127 ? 'signal ' . ($status & 127) : 'exit code ' . ($status >> 8);
}

1;
