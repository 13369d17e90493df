# Reloads under load: no request fails, no alert is logged, nothing leaks.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Load;

my $reloads = long() ? 100 : 40;
my $warm_up = 20;

# A document of some size, so that a compilation that is not given back shows.
my $ngx      = ads_nginx(workers => 2, catalog => catalog(groups => [ 1 .. 300 ]))->start;
my $template = template($ngx);
my $load     = AdsTest::Load->start($ngx, connections => 6, next => mixed($template, 4));
$load->wait_for(50);

my (@master, @workers);
for my $round (1 .. $reloads) {
    # Every other time with a new document: published, not only found equal.
    $ngx->write_file('catalog.json', catalog(groups => [ 1 .. 300 ], version => $round)) if $round % 2;
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

sub early_and_late {
    my ($rounds, $key) = @_;
    my @values = map { $_->{$key} } @{$rounds}[ $warm_up .. $#$rounds ];
    my $half = int @values / 2;
    return (median(@values[ 0 .. $half - 1 ]), median(@values[ @values - $half .. $#values ]));
}

# In kB for anon: an allocator's arenas differ by some pages, and the master's have their size
# only after some dozen reloads. A worker has open connections, and may be compiling in a
# thread at the moment it is looked at.
my %slack = (
    master => { anon => 256, maps => 2, fds => 0 },
    worker => { anon => 512, maps => 8, fds => 8 },
);

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

my $counted = 0;
$counted += $_->{impressions} for @{ status($ngx, '?limit=1000')->{ad_groups} };
is $counted, scalar keys %wanted, 'the counters say the same';

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
done_testing;
