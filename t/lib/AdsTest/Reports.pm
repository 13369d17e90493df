package AdsTest::Reports;

=head1 NAME

AdsTest::Reports - what must not be in logs; sanitizer and valgrind reports

=head1 DESCRIPTION

An object stands for a private directory into which one nginx (and its workers)
writes its reports. C<bad_lines($text, $allow)> is a plain function: the lines
of an error log that make a test fail.

=cut

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Spec ();

sub new {
    my ($class, $dir) = @_;
    return bless { dir => File::Spec->rel2abs($dir), seen => {} }, $class;
}

# Environment for nginx: the options given by the user with a private log_path.
sub environment {
    my ($self) = @_;
    return unless grep { defined $ENV{$_} } qw(ADS_TEST_PRELOAD ASAN_OPTIONS UBSAN_OPTIONS);
    make_path($self->{dir});
    my %env;
    for my $name (qw(ASAN UBSAN)) {
        my @options = grep { length && !/^log_path=/ } split /[:,\s]+(?=\w+=)/, $ENV{"${name}_OPTIONS"} // '';
        $env{"${name}_OPTIONS"} = join ':', @options, "log_path=$self->{dir}/" . lc $name;
    }
    return %env;
}

# $options: 1, or options in addition to ours.
sub valgrind_command {
    my ($self, $options) = @_;
    make_path($self->{dir});
    my @command = (
        'valgrind',         '-q',
        '--tool=memcheck',  '--leak-check=full',
        '--num-callers=40', '--show-leak-kinds=definite',
        '--gen-suppressions=all', '--errors-for-leak-kinds=definite',
        "--log-file=$self->{dir}/valgrind.%p",
    );
    my $suppressions = File::Spec->rel2abs(dirname(__FILE__) . '/../valgrind.supp');
    push @command, "--suppressions=$suppressions" if -e $suppressions;
    push @command, split ' ', $options unless $options =~ /^\d+$/;
    return @command;
}

# The texts of reports that were not returned before.
sub found {
    my ($self, $stderr_file) = @_;
    my @found;
    for my $file (sort glob "$self->{dir}/*.*") {
        next if $self->{seen}{$file} || !-s $file;
        my $text = _slurp($file);
        next unless $text =~ /^(?:==\d+==)?\s*\S/m && $text =~ /[^=\d\s]/;
        $self->{seen}{$file} = 1;
        push @found, $text;
    }
    if (defined $stderr_file && !$self->{seen}{$stderr_file}) {
        my $text = _slurp($stderr_file);
        if ($text =~ /(?:ERROR|WARNING): \w+Sanitizer|: runtime error: |Assertion .* failed/) {
            $self->{seen}{$stderr_file} = 1;
            push @found, $text;
        }
    }
    return @found;
}

sub _slurp {
    my ($file) = @_;
    open my $in, '<:raw', $file or return '';
    local $/;
    return scalar(<$in>) // '';
}

# Lines at level crit and above, crashed workers, workers that end with a code,
# sockets left open. A line that matches one of @$allow (a string is looked up
# literally) is expected.
sub bad_lines {
    my ($text, $allow) = @_;
    my @allow = map { ref $_ ? $_ : qr/\Q$_\E/ } @{ $allow // [] };
    my @bad;
    for my $line (split /\n/, $text) {
        next unless $line =~ m{
            ^\d{4}/\d\d/\d\d [ ] [\d:]+ [ ] \[(?: (alert|emerg|crit) | notice | info | warn | error )\] [ ] (.*)
        }x;
        my ($level, $message) = ($1, $2);
        next unless $level
            || $message =~ /\bexited on signal \d/
            || $message =~ /\bexited with (?:fatal )?code [1-9]/
            || $message =~ /\bopen socket \#\d/;
        next if grep { $line =~ $_ } @allow;
        push @bad, $line;
    }
    return @bad;
}

1;
