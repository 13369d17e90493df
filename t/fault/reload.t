# Reloads under load: no request fails, no alert is logged, nothing leaks.
use strict;
use warnings;

use lib 't/lib';
use List::Util qw(max min);
use Test::More;
use AdsTest::Load;

my $reloads = long() ? 100 : 40;
my $warm_up = 20;

# A large document, so that a leaked compilation is noticeable.
my $document = catalog(groups => [ 1 .. 2000 ]);
my $ngx      = ads_nginx(workers => 2, zone => '16m', catalog => $document)->start;
my $template = template($ngx);
my $load     = AdsTest::Load->start($ngx, connections => 6, next => mixed($template, 4));
$load->wait_for(50);

my (@master, @workers);
for my $round (1 .. $reloads) {
    # Every other time with a new document, so that it is published rather than found equal.
    $ngx->write_file('catalog.json', catalog(groups => [ 1 .. 2000 ], version => $round)) if $round % 2;
    $ngx->reload(wait_old => 1);
    $load->wait_for(60);
    push @master, memory($ngx->master_pid);
    my @each = map { memory($_) } $ngx->worker_pids;
    push @workers, { map { my $k = $_; $k => median(map { $_->{$k} } @each) } qw(anon rss maps fds) };
}
my $result = $load->stop;

is scalar @{ $result->{failed} }, 0, "$reloads reloads: no request failed" or show_failed();
is scalar(grep { $_->[1] != 200 } @{ $result->{answered} }), 0, 'every answer is 200';
note scalar(@{ $result->{answered} }) . ' answers';

sub show_failed {
    my @failed = @{ $result->{failed} };
    diag "$_->[1]: $_->[0]" for @failed[ 0 .. ($#failed < 9 ? $#failed : 9) ];
    return;
}

# --- nothing leaks ------------------------------------------------------------

# The maximum of the first third after the warm-up and the minimum of the last: a leak grows in each
# round, memory kept by the allocator varies.
sub early_and_late {
    my ($rounds, $key) = @_;
    my @values = map { $_->{$key} } @{$rounds}[ $warm_up .. $#$rounds ];
    my $third = int @values / 3;
    return (max(@values[ 0 .. $third - 1 ]), min(@values[ @values - $third .. $#values ]));
}

# In kB for anonymous memory. A worker has open connections, and the keeper may be compiling at the
# moment of the measurement.
my %slack = (
    master => { anon => 512, maps => 2, fds => 0 },
    worker => { anon => 512, maps => 8, fds => 8 },
);
# Between the two thirds every other reload publishes: one leaked copy of each document would add
# this much.
my $lost = length($document) / 1024 * ($reloads - $warm_up) / 3 / 2;
cmp_ok $lost, '>', 2 * $slack{master}{anon}, 'a document that leaks would show' or diag "$lost kB";

for ([ master => \@master ], [ worker => \@workers ]) {
    my ($who, $rounds) = @$_;
    for my $key (qw(anon maps fds)) {
        my ($early, $late) = early_and_late($rounds, $key);
        my $slack = $slack{$who}{$key};
        ok $late <= $early + $slack, "$who: $key is flat" or diag "$early, later $late";
        note "$who $key: $early, later $late";
    }
    note "$who rss: " . join ' ', early_and_late($rounds, 'rss');
}

# --- the ledger -----------------------------------------------------------------

my %wanted;
$wanted{ event_of($_->[0]) }++ for grep { $_->[0] =~ /impression/ } @{ $result->{answered} };
$ngx->reload(wait_old => 1);
my $spool = spool($ngx);
my %impressions = map { $_ => $spool->{events}{$_} } grep { /^impression/ } keys %{ $spool->{events} };
is_deeply [ same_events(\%impressions, \%wanted) ], [], 'each answered pixel is in the spool once';
is $spool->{torn} + $spool->{damaged}, 0, 'all segments are whole';

my $group = unpack 'x22 V', $template;    # of all pixels
is group($ngx, $group)->{impressions}, scalar keys %wanted, 'the counters say the same';

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
done_testing;
