# kill -9 of workers at random moments under load: no event that was answered is lost, none is in
# the spool twice, the counters match, replays are not counted.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Ledger;
use AdsTest::Load;

my $kills       = long() ? 50 : 8;
my $connections = 12;
my $seed        = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

my $ngx      = ads_nginx(workers => 2, catalog => catalog(limits => 1))->start;
my $template = template($ngx);
my $load     = AdsTest::Load->start($ngx, connections => $connections, next => pixels($template));
my @killed;
for (1 .. $kills) {
    $load->wait_for(20 + int rand 200);
    my @workers = $ngx->worker_pids;
    push @killed, $ngx->kill_worker(pid => $workers[ rand @workers ]);
}
$load->wait_for(50);
my $result = $load->stop;
await_recovery($ngx, @killed);

# --- lost 0, doubled 0 ----------------------------------------------------------

my @answered = map { $_->[0] } @{ $result->{answered} };
my @failed   = map { $_->[0] } @{ $result->{failed} };
note @answered . ' answered, ' . @failed . ' failed';
is scalar(grep { $_->[1] != 200 } @{ $result->{answered} }), 0, 'every answer is 200';
cmp_ok scalar @failed, '<=', $kills * $connections, 'only requests of killed workers failed';

# The events on disk, without the serve that provided the template.
sub impressions {
    my $spool = spool($ngx);
    is $spool->{torn} + $spool->{damaged}, 0, 'all segments are whole';
    return { map { $_ => $spool->{events}{$_} } grep { /^impression/ } keys %{ $spool->{events} } };
}

my $before = impressions();
my @lost    = grep { !$before->{ event_of($_) } } @answered;
my @doubled = grep { $before->{$_} > 1 } keys %$before;
is scalar @lost,    0, 'no answered event is lost' or diag "lost: @lost[0 .. ($#lost < 4 ? $#lost : 4)]";
is scalar @doubled, 0, 'no event is in the spool twice' or diag "doubled: @doubled";

# --- the counters -----------------------------------------------------------------

my $counted = group($ngx, 12)->{impressions};
my $unique  = keys %$before;
my $written = status($ngx)->{events}{written} - 1;
diag "$kills kills: $unique events in the spool, $counted counted, $written written";
# A worker counts what it has written, one event at a time: a kill can lose one count.
cmp_ok $counted, '<=', $unique, 'nothing is counted that is not in the spool';
cmp_ok $counted, '>=', $unique - $kills, 'a kill loses one count at most';
cmp_ok $written, '<=', $unique, 'nor is it in the total';
cmp_ok $written, '>=', $unique - $kills, 'which a kill makes less by one at most';
is sprintf('%.6f', group($ngx, 12)->{spend_cents}), sprintf('%.6f', $counted * 0.25), 'spend is what was counted';

# --- replays ------------------------------------------------------------------------

my $replay = AdsTest::Load->start($ngx, connections => $connections, next => each_of(@answered))->wait_end;
is scalar(grep { $_->[1] == 200 } @{ $replay->{answered} }), scalar @answered, 'each replay is answered with 200';
is group($ngx, 12)->{impressions}, $counted, 'replays of all answered tokens count nothing';
is_deeply [ same_events(impressions(), $before) ], [], 'and write nothing';

# A client that got no response repeats its request: afterwards the event is stored once.
$replay = AdsTest::Load->start($ngx, connections => $connections, next => each_of(@failed))->wait_end;
is scalar(grep { $_->[1] == 200 } @{ $replay->{answered} }), scalar @failed, 'each retry is answered with 200';
my %all = map { event_of($_) => 1 } @answered, @failed;
is_deeply [ same_events(impressions(), \%all) ], [], 'after the retries every event is there exactly once';
walls_agree($ngx, 'after the retries', serves => 1, impressions => scalar keys %all, lost => scalar @failed);

$ngx->stop;
is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'no other alert, clean exit';
done_testing;
