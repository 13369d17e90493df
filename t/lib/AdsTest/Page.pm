package AdsTest::Page;

=head1 NAME

AdsTest::Page - the commands of a page of documentation, run as they stand there

=head1 SYNOPSIS

    my @blocks = blocks('docs/tutorial.md');
    my @said = run_blocks({ PORT => 8081 }, @blocks);    # { exit => 0, out => … }, …

=head1 DESCRIPTION

A block fenced with "```sh run" is one that a reader can run. All blocks of a page are of one shell, in the folder of the test, one after the
other; the first that fails ends it. The environment given first is added to that of the test.

=cut

use strict;
use warnings;

use Exporter 'import';
use File::Temp qw(tempdir);

our @EXPORT_OK = qw(blocks run_blocks);

sub blocks {
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!";
    local $/;
    return <$in> =~ /^```sh run\n(.*?)^```$/msg;
}

sub run_blocks {
    my ($reader, @blocks) = @_;
    local %ENV = (%ENV, %$reader);
    my $dir = tempdir('adstest-XXXXXXXX', TMPDIR => 1, CLEANUP => 1);
    my $script = '';
    for my $i (0 .. $#blocks) {
        open my $to, '>', "$dir/$i" or die $!;
        print {$to} $blocks[$i];
        close $to or die $!;
        $script .= "set -e\n. $dir/$i > $dir/$i.out 2>&1 < /dev/null\necho 0 > $dir/$i.exit\n";
    }
    system 'bash', '-c', $script;
    my $last = $? >> 8;
    return map { +{ exit => -e "$dir/$_.exit" ? 0 : $last || -1, out => -e "$dir/$_.out" ? slurp("$dir/$_.out") : 'not reached' } } 0 .. $#blocks;
}

sub slurp {
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!";
    local $/;
    return scalar <$in> // '';
}

1;
