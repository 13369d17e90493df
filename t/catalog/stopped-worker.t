# A stopped worker (SIGSTOP) keeps reading one catalog while others are edited: one edit may be
# published; later ones wait, and the log names the process they wait for. No reader sees a mix of
# two catalogs, and when the worker continues, the last edit is live everywhere.
use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use AdsTest::Load;

my $rounds  = long() ? 6 : 2;
my $version = 1;
my @groups  = (12, 101 .. 160);
my $ngx     = ads_nginx(workers => 2, catalog => catalog(groups => \@groups, version => 1))->start;

# A test of a condition that becomes true.
sub soon(&$) {
    my ($condition, $name) = @_;
    return ok scalar(&wait_until($condition, 60)), $name;
}

# A connection to each worker.
my %conn = %{ $ngx->each_worker };
is scalar keys %conn, 2, 'a connection to each worker';

sub edit {
    my ($to) = @_;
    $version = $to // $version + 1;
    # Renamed into place, so no reader sees half of it.
    my $draft = $ngx->write_file('catalog.new', catalog(groups => \@groups, version => $version));
    rename $draft, $ngx->path('catalog.json') or die "rename: $!";
    return $version;
}

# The version that a worker serves; all texts of a response are of the same one.
sub wrong {
    my (undef, $status, $body) = @_;
    my %versions = map { $_ => 1 } $body =~ m{[ /]v(\d+)}g;
    return $status == 200 && keys %versions == 1 ? undef : "status $status, versions " . join ',', sort keys %versions;
}

sub served_by {
    my ($pid) = @_;
    my $res = $conn{$pid}->request('GET', '/spot/serve?placement=top');
    my $wrong = wrong('', $res->{status}, $res->{body});
    die "$wrong\n$res->{body}\n" if $wrong;
    return ($res->{body} =~ m{[ /]v(\d+)})[0];
}

sub catalog_status {
    my ($pid) = @_;
    return JSON::PP::decode_json($conn{$pid}->request('GET', '/console/status')->{body})->{catalog};
}

# Each worker in turn.
my @pids = sort keys %conn;
is served_by($_), 1, "worker $_ reads the first catalog" for @pids;
for my $round (1 .. $rounds) {
    my ($stopped, $other) = @pids[ $round % 2, 1 - $round % 2 ];
    my $name = "round $round";
    # The load goes to the other worker: a stopped one accepts nothing.
    kill STOP => $stopped;
    my $load = AdsTest::Load->start($ngx, connections => 4, next => serves(), check => \&wrong);
    $load->wait_for(50);

    my $first = edit();
    soon { served_by($other) == $first } "$name: the first edit is published beside it";
    edit() for 1 .. 3;
    soon { catalog_status($other)->{waits_for_pid} } "$name: later ones wait";
    is catalog_status($other)->{waits_for_pid}, $stopped, "$name: for the stopped worker";
    $load->wait_for(200);
    is served_by($other), $first, "$name: what was published stays";

    kill CONT => $stopped;
    for my $pid ($stopped, $other) {
        soon { served_by($pid) == $version } "$name: then the last edit is live in worker $pid";
    }
    is catalog_status($other)->{waits_for_pid}, undef, "$name: and nothing waits";
    my $result = $load->stop;
    is scalar @{ $result->{failed} }, 0, "$name: no request failed, no answer is torn"
        or diag join "\n", map { $_->[1] } @{ $result->{failed} }[ 0 .. 3 ];
    note scalar(@{ $result->{answered} }) . ' answers';
}

# A waiting edit is reverted: nothing waits any more.
my ($stopped, $other) = @pids;
kill STOP => $stopped;
my $first = edit();
soon { served_by($other) == $first } 'an edit beside a stopped worker';
edit();
soon { catalog_status($other)->{waits_for_pid} } 'the next waits';
edit($first);
soon { !catalog_status($other)->{waits_for_pid} } 'it is taken back: nothing waits any more';
kill CONT => $stopped;
soon { served_by($stopped) == $first } 'the worker continues and follows';

# Stopped at any moment, possibly while publishing: nothing is blocked longer than the process is
# stopped, and no catalog is torn.
my $load = AdsTest::Load->start($ngx, connections => 4, next => serves(), check => \&wrong);
for my $round (1 .. (long() ? 40 : 6)) {
    my ($pid, $free) = rand() < 0.5 ? @pids : reverse @pids;
    edit();
    $load->wait_for(int rand 200);
    kill STOP => $pid;
    served_by($free) for 1 .. 20;    # all of the load may wait for the stopped one
    kill CONT => $pid;
}
for my $pid (@pids) {
    soon { served_by($pid) == $version } "after random stops worker $pid serves the last edit";
}
my $result = $load->stop;
is scalar @{ $result->{failed} }, 0, 'no request failed, no answer is torn';

$_->close for values %conn;
is_deeply [ sort $ngx->worker_pids ], \@pids, 'the workers are the same';
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
done_testing;
