# kill -9 of workers and shipping keepers, under load, with reloads, a stop and a crash of
# everything in between: each answered event is stored once, and the roll-ups match the events.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Load;
use AdsTest::Ledger;
use AdsTest::Postgres;

my $kills       = long() ? 60  : 8;
my $rate        = long() ? 800 : 400;    # requests a second
my $workers     = 2;
my $connections = 8;
my $seed        = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

my $pg = AdsTest::Postgres->new;
$pg->migrate;
# Batches are slow, so that most moments are in the middle of one.
$pg->run(<<'SQL');
CREATE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.04 * random()); RETURN NULL; END';
CREATE TRIGGER dawdle AFTER INSERT ON ads.ad_events FOR EACH STATEMENT EXECUTE FUNCTION public.dawdle();
SQL
my $conninfo = $pg->conninfo;
my $session  = $pg->session;

my $ngx = ads_nginx(workers => $workers, catalog => catalog(limits => 1), http => qq{ads_postgres "$conninfo" batch=100 interval=20ms timeout=5s;})->start;
my $ledger   = AdsTest::Ledger->new($pg, $ngx)->add_paths('/spot/serve?');
my $template = template($ngx);
my (@retries, @answered, $load);

sub busy {
    return $session->value(
        q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nginx-ads' AND state = 'active' AND query LIKE '%ads.ingest%'});
}

sub load_on { $load = AdsTest::Load->start($ngx, connections => $connections, next => paced(mixed($template, 10), $rate)); return }

sub load_off {
    my $result = $load->stop;
    $ledger->add($result);
    push @answered, map { $_->[0] } @{ $result->{answered} };
    push @retries, map { $_->[0] } @{ $result->{failed} };
    return;
}

# --- the kills ------------------------------------------------------------------

my %then = map { $_ => 'reload' } grep { $_ % (long() ? 7 : 3) == 0 } 1 .. $kills;
$then{ int $kills / 2 } = 'stop';
$then{ $kills - 1 } = 'crash';
my %done = (kill => 0);

load_on();
for my $n (1 .. $kills) {
    $load->wait_for(20 + int rand 150);
    my @victims = ($ngx->worker_pids, $ngx->old_worker_pids);
    $ngx->kill_worker(pid => $victims[ rand @victims ]);
    # Every other time the keeper is killed as well, in the middle of a batch.
    if ($n % 2) {
        wait_until { busy() } 10;
        $ngx->kill_keeper;
        $done{keeper}++;
    }
    $done{kill}++;
    my $what = $then{$n} // next;
    $done{$what}++;
    if ($what eq 'reload') {
        $load->wait_for(int rand 50);
        $ngx->reload;
        next;
    }
    load_off();
    if ($what eq 'stop') { is $ngx->stop, 'QUIT', 'all of it stops' }
    else                 { $ngx->kill_all }
    $ngx->start;
    load_on();
}
$load->wait_for(50);
load_off();
note join ', ', map { "$done{$_} x $_" } sort keys %done;
is $done{kill}, $kills, "$kills workers were killed";
cmp_ok scalar @retries, '<=', $kills * $connections, 'only requests of killed workers failed';

# --- the ledger ---------------------------------------------------------------------

# A keeper that died while it waited for a response.
my $broken = () = $pg->log =~ /could not send data to client|unexpected EOF on client connection/g;
note "$broken backends lost their keeper in the middle of a batch";
cmp_ok $broken, '>', 0, 'some died in the middle of a batch';

drained($ngx, 120);
$ledger->closes('killed', drained => 1, walls => 1);
my $shipping = shipping($ngx);
note "$shipping->{shipped} shipped, $shipping->{repeated} repeated";
cmp_ok $shipping->{repeated}, '>', 0, 'some were sent twice';
is $shipping->{quarantined}, 0, 'nothing is in quarantine';
is status($ngx)->{events}{dropped}, 0, 'nothing was dropped';

# Clients that got no response repeat their requests, and so do others.
my @pixels = grep { m{/impression\?} } @answered;
my @again  = ((grep { m{/impression\?} } @retries), @pixels[ 0 .. ($#pixels < 999 ? $#pixels : 999) ]);
my $before = $pg->value('SELECT count(*) FROM ads.ad_events');
my $replay = AdsTest::Load->start($ngx, connections => $connections, next => each_of(@again))->wait_end;
is scalar @{ $replay->{failed} }, 0, 'no retry fails';
$ledger->add($replay);
drained($ngx);
$ledger->closes('asked again', drained => 1, walls => 1);
cmp_ok $pg->value('SELECT count(*) FROM ads.ad_events') - $before, '<=', scalar @retries, 'only what had no answer is new';

$session->close;
is $ngx->stop, 'QUIT', 'it stops';
is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'no other alert, clean exit';
done_testing;
