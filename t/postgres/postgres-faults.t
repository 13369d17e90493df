# Faults of PostgreSQL, one after another, under load: serving never fails, and afterwards each
# answered event is stored once.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Load;
use AdsTest::Ledger;
use AdsTest::Postgres;

my $during = long() ? 3000 : 200;    # answers while a fault lasts
my $kills  = long() ? 200  : 15;     # backends that die in the middle of a batch
my $rate   = long() ? 1000 : 300;    # requests a second
my $batch  = 100;
my $workers = 2;

my $seed = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

my $pg = AdsTest::Postgres->new(settings => { max_connections => 20, log_connections => 'on' });
$pg->migrate;
# Not a superuser: connections are reserved for those.
$pg->run('CREATE ROLE edge LOGIN IN ROLE ads_edge');
my $conninfo = $pg->conninfo(user => 'edge');

my $ngx = ads_nginx(workers => $workers, catalog => catalog(limits => 1), http => qq{ads_postgres "$conninfo" batch=$batch interval=100ms timeout=2s;})->start;
my $ledger   = AdsTest::Ledger->new($pg, $ngx)->add_paths('/spot/serve?');
my $template = template($ngx);
my $ours     = q{application_name = 'nginx-ads'};

sub error_like {
    my ($pattern, $what) = @_;
    my $last = '';
    my $seen = wait_until { ($last = shipping($ngx)->{error} // '') =~ $pattern } 40;
    ok $seen, "$what: the status tells it" or diag "error: $last";
    return;
}

sub stored { return $pg->value('SELECT count(*) FROM ads.ad_events') }

# The number of logins of the node.
sub logins { return scalar(() = $pg->log =~ /connection authorized: user=edge .*application_name=nginx-ads/g) }

# The fault begins, is detected, lasts for a number of responses, and ends. Everything written until
# then is stored soon after, while the load continues.
sub fault {
    my ($what, %o) = @_;
    my $load = AdsTest::Load->start($ngx, connections => 8, next => paced(mixed($template, 10), $rate));
    $load->wait_for(50);
    wait_until { !shipping($ngx)->{error} } 40, "$what: all well at first";
    $o{begin}->();
    error_like($o{error}, $what) if $o{error};
    $load->wait_for($during);
    $o{meanwhile}->($load) if $o{meanwhile};
    my $written = status($ngx)->{events}{written};
    $o{end}->();
    ok wait_until(sub { stored() >= $written }, 90), "$what: what was written meanwhile is stored"
        or diag stored() . " of $written";
    ok wait_until(sub { !shipping($ngx)->{error} }, 60), "$what: the status is clean again" or diag shipping($ngx)->{error};
    my $result = $load->stop;
    is scalar @{ $result->{failed} }, 0, "$what: no request failed" or diag $result->{failed}[0][1];
    $ledger->add($result);
    drained($ngx) if long();
    $ledger->closes($what, drained => long());
    return;
}

# --- not there ----------------------------------------------------------------

fault('down', begin => sub { $pg->stop }, error => qr/PostgreSQL|connection|No such file/, end => sub { $pg->start });

fault('crash', begin => sub { $pg->crash }, error => qr/connection|No such file/, end => sub { $pg->start });

# A backend dies: PostgreSQL terminates all others and recovers.
fault(
    'crash of a backend',
    begin => sub {
        my $backend = $pg->session;
        my $log     = length $pg->log;
        kill KILL => $backend->backend;
        wait_until { substr($pg->log, $log) =~ /database system is ready/ } 30, 'the recovery';
    },
    end => sub { },
);

# --- there, but no answer --------------------------------------------------------

fault('hung', begin => sub { $pg->sigstop }, error => qr/timed out|timeout/, end => sub { $pg->sigcont });

# Slower than the timeout of a full batch.
fault(
    'slow',
    begin => sub {
        $pg->run(<<'SQL');
CREATE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.03); RETURN NEW; END';
CREATE TRIGGER dawdle BEFORE INSERT ON ads.ad_events FOR EACH ROW EXECUTE FUNCTION public.dawdle();
SQL
    },
    error     => qr/timed out/,
    meanwhile => sub {
        my $before = stored();
        ok wait_until(sub { stored() >= $before + $batch }, 60), 'slow: but it continues';
        my $backends = $pg->value("SELECT count(*) FROM pg_stat_activity WHERE $ours");
        cmp_ok $backends, '<=', 3 * $workers, 'slow: no crowd of backends';
    },
    # The trigger stays: dropping it would need a lock that the writers hold.
    end => sub {
        $pg->run(q{CREATE OR REPLACE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'});
    },
);

# A lock is held longer than the timeout. The client that gave up leaves a backend behind that still
# waits for the lock, until its lock_timeout of 5 s.
{
    my ($holder, $log);
    fault(
        'lock',
        begin => sub {
            $log    = length $pg->log;
            $holder = $pg->session;
            $holder->run('BEGIN; LOCK TABLE ads.ad_events IN ACCESS EXCLUSIVE MODE');
        },
        error     => qr/timed out|lock timeout/,
        meanwhile => sub {
            my $before = logins();
            wait_until { logins() >= $before + $workers } 60, 'further attempts';
            ok wait_until(sub { substr($pg->log, $log) =~ /canceling statement due to lock timeout/ }, 60), 'lock: a backend gives up waiting';
            my $backends = $holder->value("SELECT count(*) FROM pg_stat_activity WHERE $ours");
            cmp_ok $backends, '<=', 4 * $workers, 'lock: no crowd of backends that wait for it';
        },
        end => sub { $holder->run('COMMIT'); $holder->close },
    );
}

# --- there, but no use -------------------------------------------------------------

fault(
    'read-only',
    begin => sub {
        $pg->run('ALTER SYSTEM SET default_transaction_read_only = on');
        $pg->run('SELECT pg_reload_conf()');
        wait_until { $pg->value('SHOW default_transaction_read_only') eq 'on' } 10, 'the setting';
        $pg->kill_backends($ours);
    },
    error => qr/read-only transaction/,
    end   => sub {
        $pg->run('SET default_transaction_read_only = off; ALTER SYSTEM RESET default_transaction_read_only');
        $pg->run('SELECT pg_reload_conf()');
    },
);

{
    my @guests;
    fault(
        'no connections left',
        begin => sub {
            wait_until {
                $pg->kill_backends($ours);
                while (my $guest = eval { $pg->session(user => 'edge') }) { push @guests, $guest }
                return (shipping($ngx)->{error} // '') =~ /remaining connection slots|too many clients/;
            } 40;
        },
        error => qr/remaining connection slots|too many clients/,
        end   => sub { $_->close for splice @guests },
    );
}

fault(
    'backends killed in the middle of a batch',
    begin => sub {
        my $log = length $pg->log;
        $pg->run(<<"SQL");
DO \$\$
DECLARE
    hit int[] := '{}';    -- one that takes its time to die counts once
    victim int;
BEGIN
    WHILE cardinality(hit) < $kills LOOP
        PERFORM pg_stat_clear_snapshot();
        -- Not in its first batch: who never gets one through pauses for longer and longer.
        FOR victim IN SELECT pid FROM pg_stat_activity
                      WHERE $ours AND state = 'active' AND query LIKE '%ads.ingest%' AND pid <> ALL (hit)
                          AND query_start > backend_start + interval '250 ms' LOOP
            PERFORM pg_terminate_backend(victim);
            hit := hit || victim;
        END LOOP;
        PERFORM pg_sleep(0.0005);
    END LOOP;
END \$\$
SQL
        ok wait_until(sub { $kills <= (() = substr($pg->log, $log) =~ /terminating connection due to administrator command/g) }, 60),
            "$kills backends were killed";
    },
    end => sub { },
);

fault(
    'schema missing',
    begin => sub { $pg->run('ALTER SCHEMA ads RENAME TO away') },
    error => qr/schema "ads" does not exist|ads\.\w+.* does not exist/,
    end   => sub { $pg->run('ALTER SCHEMA away RENAME TO ads') },
);

# --- the end ---------------------------------------------------------------------------

drained($ngx);
$ledger->closes('in the end', drained => 1, walls => 1);
is shipping($ngx)->{quarantined}, 0, 'nothing was taken for bad data';
is status($ngx)->{events}{dropped}, 0, 'nothing was dropped';
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
done_testing;
