# Nodes under load while they are killed, stopped and woken, lose their states, and PostgreSQL
# is stopped, hung and loses connections: no limit is exceeded, and what is missing at the end is
# what is shown as stranded. ADS_TEST_LONG: 20 storms of 3 minutes. ADS_TEST_SEED repeats one.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(time sleep);
use AdsTest::Fleet;
use AdsTest::Load;
use AdsTest::Nginx qw(wait_until);
use AdsTest::Process qw(slow);

my $storms  = $ENV{ADS_STORMS}        // (long() ? 20  : 1);
my $seconds = $ENV{ADS_STORM_SECONDS} // (long() ? 180 : 12);
my $nodes   = 4;
my %caps    = long() ? (1 => 7, 2 => 100, 3 => 1000, 4 => 10_000) : (1 => 7, 2 => 40, 3 => 100, 4 => 200);
my $cents   = long() ? 3000 : 60;    # one for each serve
my $seen    = long() ? 300 : 30;

my @Faults = qw(kill stop_keeper stop_all lose postgres_stop postgres_hang postgres_crash backends restart);

sub storm {
    my ($seed) = @_;
    srand $seed;
    my $fleet = AdsTest::Fleet->new(
        nodes  => $nodes,
        groups => { (map { $_ => { cap => $caps{$_} } } keys %caps), 5 => { cents => $cents }, 6 => { cap => $seen, cap_on => 'impression' } },
    )->start;
    my $pg = $fleet->pg;
    my @groups = 1 .. 6;
    $fleet->load($_, groups => \@groups, seed => $seed + $_, pause => long() ? 0 : 0.002) for 0 .. $nodes - 1;

    my %done;
    my $fault = sub {
        my ($what) = @_;
        $done{$what}++;
        my $i   = int rand $nodes;
        my $ngx = $fleet->node($i);
        if ($what eq 'kill') { $ngx->kill_all; sleep rand 1; $ngx->start }
        elsif ($what eq 'restart') { $ngx->stop; $ngx->start }
        elsif ($what eq 'stop_keeper') {
            my $pid = $ngx->keeper_pid or return;
            kill STOP => $pid;
            sleep(long() ? 1 + rand 20 : 1 + rand 3);
            kill CONT => $pid;
        }
        elsif ($what eq 'stop_all') {
            my @all = ($ngx->worker_pids, $ngx->keeper_pid // ());
            kill STOP => @all;
            sleep(long() ? 1 + rand 25 : 1 + rand 2);
            kill CONT => @all;
        }
        elsif ($what eq 'lose') { $ngx->kill_all; unlink $ngx->path('state/state'); $ngx->start }
        elsif ($what eq 'postgres_stop') { $pg->stop; sleep rand(long() ? 10 : 2); $pg->start }
        elsif ($what eq 'postgres_hang') { $pg->sigstop; sleep rand(long() ? 20 : 4); $pg->sigcont }
        elsif ($what eq 'postgres_crash') { $pg->crash; sleep rand 1; $pg->start }
        elsif ($what eq 'backends') { $pg->kill_backends(q{application_name = 'nginx-ads'}) }
        return;
    };

    my $end = time + $seconds;
    my @next = sort { rand() <=> 0.5 } @Faults;
    while (time < $end) {
        @next = sort { rand() <=> 0.5 } @Faults unless @next;
        $fault->(shift @next);
        sleep rand(long() ? 3 : 0.5);
    }
    note join ', ', map { "$_ x $done{$_}" } sort keys %done;

    # The storm is over: what can be reached is reached.
    $fleet->wait_mode($_, 'exact', 60) for 0 .. $nodes - 1;
    my $serves = sub { return $pg->value("SELECT count(*) FROM ads.ad_events WHERE ad_group_id = $_[0] AND type = 'serve'") };
    my %left;
    wait_until {
        %left = map { $_ => $caps{$_} - $serves->($_) - $fleet->stranded(1, $_) } keys %caps;
        return !grep { $_ > 0 } values %left;
    } (long() ? 600 : 120) * slow();
    $fleet->stop_loads;
    ok wait_until(sub { !grep { AdsTest::Load::status($_)->{spool}{segments} } $fleet->nodes }, 120), "seed $seed: all is stored";
    for my $group (sort keys %caps) {
        my $served   = $serves->($group);
        my $stranded = $fleet->stranded(1, $group);
        note "cap $caps{$group}: $served served, $stranded stranded";
        cmp_ok $served, '<=', $caps{$group}, "seed $seed: cap $caps{$group} is not exceeded";
        cmp_ok $served + $stranded, '>=', $caps{$group}, "seed $seed: what is missing of $caps{$group} is stranded";
    }
    my $billed = $pg->value(q{SELECT coalesce(sum(price_micro), 0) FROM ads.ad_events WHERE ad_group_id = 5 AND invalid IS NULL}) / 1e6;
    note sprintf 'budget %d: %d cents billed, %d stranded', $cents, $billed, $fleet->stranded(3, 105) / 1e6;
    cmp_ok $billed, '<=', $cents, "seed $seed: the budget is not exceeded";
    my $impressions = $pg->value(q{SELECT count(*) FROM ads.ad_events WHERE ad_group_id = 6 AND type = 'impression' AND invalid IS NULL});
    note "cap of impressions $seen: $impressions";
    cmp_ok $impressions, '<=', $seen, "seed $seed: the cap of impressions is not exceeded";
    $fleet->within_limits("seed $seed");
    for my $ngx ($fleet->nodes) {
        is $ngx->stop, 'QUIT', 'it stops';
        is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'no other alert';
    }
    return;
}

my $first = $ENV{ADS_TEST_SEED} // time ^ $$;
note "ADS_TEST_SEED=$first";
storm($first + $_) for 0 .. $storms - 1;
done_testing;
