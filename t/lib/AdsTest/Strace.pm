package AdsTest::Strace;

=head1 NAME

AdsTest::Strace - strace on a process, for faults and for a record of its system calls

=head1 SYNOPSIS

    my $strace = AdsTest::Strace->attach($pid, '-e', 'trace=write', '-e', 'inject=write:delay_enter=300000');
    ...
    $strace->detach;
    my $calls = $strace->text;

C<attach> skips the whole test file, loudly, where there is no strace or it may not be used. It
returns when all threads of the process are traced.

=cut

use strict;
use warnings;

use Carp qw(croak);
use File::Temp ();
use POSIX ();
use Test::More ();

use AdsTest::Process qw(alive wait_until);

sub available {
    return scalar grep { -x "$_/strace" } split /:/, $ENV{PATH};
}

sub attach {
    my ($class, $process, @options) = @_;
    Test::More::plan(skip_all => 'SKIPPED: this test needs strace') unless available();
    my $self = bless { process => $process, file => File::Temp->new, owner => $$ }, $class;
    my $said = File::Temp->new;
    $self->{pid} = fork // croak "cannot fork: $!";
    if ($self->{pid} == 0) {
        open STDERR, '>', "$said";
        exec 'strace', '-f', '-q', '-o', "$self->{file}", @options, '-p', $process or POSIX::_exit(127);
    }
    my $traced = sub {
        my @threads = glob "/proc/$process/task/*/status";
        return @threads && !grep { (_slurp($_) // '') !~ /^TracerPid:\s+$self->{pid}$/m } @threads;
    };
    wait_until { $traced->() || !alive($self->{pid}) } 60;
    if (!$traced->()) {
        my $why = _slurp("$said") // '';
        $self->detach;
        Test::More::plan(skip_all => "SKIPPED: strace does not work here: $why") if $why =~ /not permitted/;
        croak "strace: $why";
    }
    return $self;
}

sub detach {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    kill INT => $pid;
    waitpid $pid, 0;
    return;
}

sub text { my ($self) = @_; return _slurp("$self->{file}") // '' }

sub _slurp {
    my ($file) = @_;
    open my $in, '<:raw', $file or return undef;
    local $/;
    return scalar <$in>;
}

sub DESTROY {
    my ($self) = @_;
    return unless $self->{owner} == $$;
    local ($?, $@, $!);
    $self->detach;
    return;
}

1;
