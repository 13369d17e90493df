package AdsTest::Command;

=head1 NAME

AdsTest::Command - runs nginx-ads as a person would, in a folder of its own

=head1 SYNOPSIS

    use AdsTest::Command;

    my $dir = in_folder();
    write_file('catalog.json', '{}');
    is run('validate', 'catalog.json'), 1, 'is refused';
    like $err, qr/placements/, 'with a reason';

=head1 VARIABLES

    $home               where the test was begun
    $command            its path; the environment has nothing that would change what it says
    $exit, $out, $err   of the last one run; $exit may be "signal N"

=head1 FUNCTIONS

    in_folder()             a new temporary folder: where the test is from now on, its home
    run(@arguments)         returns $exit
    run_with($input, @arguments)    the same with something to read
    before(@arguments)      these come first each time
    read_file($name), write_file($name, $text or data, written as JSON)

=cut

use strict;
use warnings;

use Cwd qw(abs_path getcwd);
use Exporter 'import';
use File::Temp qw(tempdir);
use IPC::Open3 qw(open3);
use JSON::PP ();

our @EXPORT = qw($command $home $exit $out $err in_folder run run_with before read_file write_file);

our ($command, $home, $exit, $out, $err);
my @before;

$command = $ENV{ADS_COMMAND} || 'build/nginx-ads';
-x $command or die "$command is not built: run make cli\n";
$command = abs_path($command);
$home    = getcwd();

delete @ENV{qw(NO_COLOR COLUMNS ADS_DATABASE ADS_DATABASE_URL PGHOST PGPORT PGUSER PGDATABASE PGSERVICE PGOPTIONS
    XDG_CONFIG_HOME JOURNAL_STREAM NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID)};
$ENV{LC_ALL} = 'C';

sub in_folder {
    my $dir = tempdir(CLEANUP => 1);
    chdir $dir or die "$dir: $!\n";
    $ENV{HOME} = $dir;
    return $dir;
}

END { chdir $home }    # the folder goes only when nobody stands in it

sub before { return @before = @_ }

# Its output is in files, so that neither side waits for the other.
sub run_with {
    my ($input, @arguments) = @_;
    write_file('.in', $input);
    open my $in,     '<', '.in'  or die "$!\n";
    open my $to,     '>', '.out' or die "$!\n";
    open my $to_err, '>', '.err' or die "$!\n";
    my $pid = open3('<&' . fileno $in, '>&' . fileno $to, '>&' . fileno $to_err, $command, @before, @arguments);
    waitpid $pid, 0;
    $exit = $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
    ($out, $err) = map { read_file($_) } '.out', '.err';
    return $exit;
}

sub run { return run_with('', @_) }

sub read_file {
    my ($name) = @_;
    open my $file, '<:raw', $name or die "$name: $!\n";
    local $/ = undef;
    return <$file> // '';
}

sub write_file {
    my ($name, $text) = @_;
    open my $file, '>:raw', $name or die "$name: $!\n";
    print {$file} ref $text ? JSON::PP->new->canonical->utf8->encode($text) : $text or die "$name: $!\n";
    close $file or die "$name: $!\n";
    return;
}

1;
