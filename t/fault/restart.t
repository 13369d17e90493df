# All processes die and nginx starts again; a binary upgrade; an upgrade that is reverted. Counters,
# dedupe and tokens continue, nothing is counted twice.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Ledger;
use AdsTest::Load;

my $crashes = long() ? 10 : 2;
my $ngx      = ads_nginx(workers => 2, daemon => 1, catalog => catalog(limits => 1))->start;
my $template = template($ngx);
my (@answered, @failed);    # paths of all runs

sub load { return AdsTest::Load->start($ngx, connections => 6, next => pixels($template)) }

sub keep {
    my ($result) = @_;
    push @answered, map { $_->[0] } @{ $result->{answered} };
    push @failed,   map { $_->[0] } @{ $result->{failed} };
    is scalar(grep { $_->[1] != 200 } @{ $result->{answered} }), 0, 'every answer is 200';
    return;
}

sub impressions {
    my $events = spool($ngx)->{events};
    return { map { $_ => $events->{$_} } grep { /^impression/ } keys %$events };
}

# Each answered event is stored once and counted once, and replays change nothing.
sub ledger {
    my ($what, $slack) = @_;
    my $events  = impressions();
    my @lost    = grep { !$events->{ event_of($_) } } @answered;
    my @doubled = grep { $events->{$_} > 1 } keys %$events;
    is scalar @lost,    0, "$what: no answered event is lost";
    is scalar @doubled, 0, "$what: none is in the spool twice";
    my $counted = group($ngx, 12)->{impressions};
    my $unique  = keys %$events;
    cmp_ok $counted, '<=', $unique, "$what: nothing is counted that is not in the spool";
    cmp_ok $counted, '>=', $unique - $slack, "$what: a worker that was killed lost one count at most";
    note "$what: " . @answered . ' answered, ' . @failed . " failed, $unique in the spool, $counted counted";

    my $replay = AdsTest::Load->start($ngx, connections => 6, next => each_of(@answered))->wait_end;
    is scalar(grep { $_->[1] == 200 } @{ $replay->{answered} }), scalar @answered, "$what: replays are answered";
    is group($ngx, 12)->{impressions}, $counted, "$what: and count nothing";
    is_deeply [ same_events(impressions(), $events) ], [], "$what: and write nothing";
    walls_agree($ngx, $what, serves => group($ngx, 12)->{serves}, impressions => $unique, lost => scalar @failed);
    return;
}

# --- everything is killed ---------------------------------------------------------

my $slack = 0;
for my $round (1 .. $crashes) {
    my $load = load();
    $load->wait_for(200 + int rand 300);
    my @workers = $ngx->worker_pids;
    $ngx->kill_all;
    keep($load->stop);
    $slack += @workers;

    # As after a power failure in the middle of a write.
    my ($open) = @{ spool($ngx)->{open} };
    ok $open, 'a segment is open after the crash';
    my $whole = -s $open;
    open my $out, '>>:raw', $open or die "$open: $!";
    print {$out} pack 'L< L< a20', 150, 12345, 'torn';
    close $out;

    $ngx->start;
    await_recovery($ngx, @workers);
    (my $closed = $open) =~ s/\.open$/.seg/;
    is -s $closed, $whole, 'the torn tail is cut';
    is spool($ngx)->{torn} + spool($ngx)->{damaged}, 0, 'all segments are whole';
    ledger("crash $round", $slack);
}

# At the worst moment: an event is written and not yet counted.
my $victim  = stop_unanswered($ngx, $template);
my @workers = $ngx->worker_pids;
$ngx->kill_all;
$victim->{conn}->close;
$ngx->start;
await_recovery($ngx, @workers);
is impressions()->{ event_of($victim->{path}) }, 1, 'written before the crash';
push @answered, $victim->{path};
ledger('crash before the count', $slack);

# --- a binary upgrade ---------------------------------------------------------------

sub no_failures {
    my ($result, $what) = @_;
    is scalar @{ $result->{failed} }, 0, "$what: no request failed"
        or diag join "\n", map { "$_->[1]: $_->[0]" } @{ $result->{failed} }[ 0 .. 4 ];
    return keep($result);
}

my $old  = $ngx->master_pid;
my $load = load();
$load->wait_for(100);
$ngx->upgrade_start;
isnt $ngx->master_pid, $old, 'a new master runs beside the old one';
$load->wait_for(500);
$ngx->upgrade_finish;
$load->wait_for(100);
no_failures($load->stop, 'upgrade');
ledger('upgrade', $slack);

# --- one that is taken back, with an edit meanwhile -----------------------

$load = load();
$load->wait_for(100);
$old = $ngx->master_pid;
$ngx->upgrade_start;
$load->wait_for(300);
# Both have their own zone and publish the edit; new groups get one slot each.
my $from = $ngx->log_size;
$ngx->write_file('catalog.json', catalog(groups => [ 12, 101 .. 140 ], version => 2, limits => 1));
wait_until { 2 == (() = $ngx->error_log($from) =~ /published, generation/g) } 10, 'both to publish';
my $serves = AdsTest::Load->start($ngx, connections => 6, next => serves());
$serves->wait_for(500);
$ngx->upgrade_rollback;
$load->wait_for(100);
$serves = $serves->stop;
is scalar @{ $serves->{failed} }, 0, 'rollback: no serve failed';
no_failures($load->stop, 'rollback');
is $ngx->master_pid, $old, 'the old master serves alone';
ledger('rollback', $slack);

my $in_spool = grep { /^serve/ } keys %{ spool($ngx)->{events} };
my $in_state = 0;
$in_state += $_->{serves} for @{ status($ngx)->{ad_groups} };
is $in_state, $in_spool, 'the serves of new groups are all counted, by both';

$ngx->stop;
is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'no other alert, clean exit';
done_testing;
