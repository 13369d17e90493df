# The catalog is edited ten times a second under load: no request fails, no response mixes two
# versions, the last edit is soon live in every worker, and memory does not grow.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(time);
use AdsTest::Load;

my $edits   = long() ? 1000 : 60;
my $workers = 4;
my @groups  = (12, 101 .. 400);
my $ngx     = ads_nginx(workers => $workers, http => 'keepalive_timeout 1h;', catalog => catalog(groups => \@groups, version => 1))->start;

# A connection to each worker.
my %conn = %{ $ngx->each_worker };
my @pids = sort { $a <=> $b } keys %conn;

my $version = 1;

# Renamed into place, so no reader sees half of it. The number of groups changes too.
sub edit {
    $version++;
    my @some  = @groups[ 0 .. $#groups - $version % 50 ];
    my $draft = $ngx->write_file('catalog.new', catalog(groups => \@some, version => $version));
    rename $draft, $ngx->path('catalog.json') or die "rename: $!";
    return;
}

# The version of a response; undef if it mixes two or has none.
sub version_of {
    my ($status, $body) = @_;
    my %versions = map { $_ => 1 } $body =~ m{[ /]v(\d+)}g;
    return $status == 200 && keys %versions == 1 ? (keys %versions)[0] : undef;
}

sub served_by {
    my ($pid) = @_;
    my $res = $conn{$pid}->request('GET', '/spot/serve?placement=top');
    return version_of(@$res{qw(status body)}) // die "$res->{status} $res->{body}";
}

sub zone_used { return status($ngx, '?limit=0')->{zone}{used} }

# Ten edits a second, each at its due time.
sub edit_all {
    my ($count) = @_;
    my $began = time;
    for my $n (1 .. $count) {
        edit();
        my $due = $began + $n / 10;
        select undef, undef, undef, $due - time if $due > time;
    }
    return time - $began;
}

sub all_live {
    my ($name) = @_;
    my $written = time;
    # At most 2 s on an idle machine; here other processes may use the processors.
    for my $pid (@pids) {
        ok scalar(wait_until { served_by($pid) == $version } 60), "$name: the last edit is live in each worker";
    }
    diag sprintf '%s: live everywhere %.2f s after the last write', $name, time - $written;
    return;
}

my $load = AdsTest::Load->start(
    $ngx,
    connections => 4,
    keepalive   => 1,
    next        => serves(),
    check       => sub { return defined version_of(@_[ 1, 2 ]) ? undef : 'torn: ' . substr $_[2], 0, 200 },
);
$load->wait_for(200);

# One round first, so that everything is allocated.
edit_all(int $edits / 4 + 5);
all_live('warm');
my %before = map { $_ => memory($_) } @pids;
my $zone   = zone_used();
my $first  = status($ngx, '?limit=0')->{catalog}{generation};

my $took = edit_all($edits);
all_live('edits');
my $status = status($ngx, '?limit=0');
my $published = $status->{catalog}{generation} - $first;
diag sprintf '%d edits in %.1f s, %d of them published', $edits, $took, $published;
cmp_ok $published, '>=', $edits / 20, 'edits were published meanwhile, not only the last';
is $status->{catalog}{error}, undef, 'no error';
is $status->{catalog}{waits_for_pid}, undef, 'nothing waits';

my $result = $load->stop;
is scalar @{ $result->{failed} }, 0, 'no request failed, no answer is torn'
    or diag join "\n", map { $_->[1] } @{ $result->{failed} }[ 0 .. 3 ];
is scalar @{ $result->{closed} }, 0, 'no connection was closed';
cmp_ok scalar @{ $result->{answered} }, '>', 1000, 'there was load: ' . @{ $result->{answered} } . ' answers';

# --- nothing grows -----------------------------------------------------------

cmp_ok abs(zone_used() - $zone), '<', $zone / 5, 'the zone: two catalogs, as before' or diag 'before ' . $zone . ', after ' . zone_used();
for my $pid (@pids) {
    my $after = memory($pid);
    my $more  = $after->{anon} - $before{$pid}{anon};
    cmp_ok $more, '<', 4096, "worker: $more kB more of its own";
    cmp_ok $after->{rss} - $before{$pid}{rss}, '<', 8192, 'worker: resident memory';
    cmp_ok $after->{maps} - $before{$pid}{maps}, '<', 16, 'worker: no maps more';
}

# --- an edit that is wrong, in between ---------------------------------------

$ngx->write_file('catalog.json', '{"version": 1, "placements": [');
ok scalar(wait_until { status($ngx, '?limit=0')->{catalog}{error} } 60), 'a broken edit is refused';
is served_by($_), $version, 'what was there is served on' for @pids;
edit();
all_live('repaired');
is status($ngx, '?limit=0')->{catalog}{error}, undef, 'no error any more';

$_->close for values %conn;
is_deeply [ sort { $a <=> $b } $ngx->worker_pids ], \@pids, 'the workers are the same';
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
done_testing;
