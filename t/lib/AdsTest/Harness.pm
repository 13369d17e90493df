package AdsTest::Harness;

=head1 NAME

AdsTest::Harness - a TAP::Harness that ends with a list of what was skipped

=head1 DESCRIPTION

For C<prove --harness AdsTest::Harness>. prove itself says nothing of a skipped
subtest. Each skip, of a file, a test or a subtest, is one line at the end, and
is appended to the file that C<ADS_TEST_SKIPS> names.

=cut

use strict;
use warnings;

use parent 'TAP::Harness';

sub new {
    my ($class, @args) = @_;
    my $self = $class->SUPER::new(@args);
    my @skips;
    $self->callback(made_parser => sub {
        my ($parser, $job) = @_;
        my $file = $job->[0];
        $parser->callback(ALL => sub {
            my ($result) = @_;
            push @skips, "$file: $1" if $result->raw =~ /^(?:\s*ok\b|1\.\.0\b).*?#\s*skip\S*\s+(.+)/i;
        });
    });
    $self->callback(after_runtests => sub { _report(@skips) });
    return $self;
}

sub _report {
    my (@skips) = @_;
    my (%times, @order);
    $times{$_}++ or push @order, $_ for @skips;
    my @lines = map { $times{$_} > 1 ? "$_ ($times{$_} tests)" : $_ } @order;
    print "\nSKIPPED, so not tested here:\n", map { "  $_\n" } @lines if @lines;
    return unless $ENV{ADS_TEST_SKIPS};
    open my $out, '>>', $ENV{ADS_TEST_SKIPS} or die "$ENV{ADS_TEST_SKIPS}: $!\n";
    print {$out} map { "$_\n" } @lines;
    close $out or die "$ENV{ADS_TEST_SKIPS}: $!\n";
    return;
}

1;
