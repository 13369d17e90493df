# nginx-ads scheduler, on a real PostgreSQL with a clock that the test sets: each task's effect,
# independence of the tasks when one fails, and four schedulers at once, some of which are killed in
# the middle of a task: each task runs once for each due time.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::UNIX ();
use JSON::PP ();
use Socket qw(SOCK_DGRAM);
use Test::More;

use AdsTest::Command;
use AdsTest::Postgres;
use AdsTest::Process qw(alive slow spawn);

my $pg  = AdsTest::Postgres->new;
my $dir = in_folder();

my $db;

sub tick { return run('scheduler', 'tick', @_) }
sub json { return JSON::PP->new->utf8->decode(shift) }

# A database whose clock is set by the test.
sub fresh {
    my ($name, $at) = @_;
    $db = $pg->database($name);
    $db->migrate;
    $ENV{ADS_DATABASE} = $db->conninfo;
    $db->run(<<"SQL");
CREATE TABLE public.clock (at timestamptz NOT NULL);
INSERT INTO public.clock VALUES ('$at');
GRANT SELECT ON public.clock TO PUBLIC;
CREATE OR REPLACE FUNCTION ads.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM public.clock';
SQL
    return;
}

sub clock { return $db->run("UPDATE public.clock SET at = '$_[0]'") }
sub later { return $db->run("UPDATE public.clock SET at = at + interval '$_[0]'") }
sub statuses { return join ' ', $db->column('SELECT id || status::text FROM ads.campaigns ORDER BY id') }

# ---- what the tasks do -----------------------------------------------------------------

subtest 'campaigns start and end' => sub {
    fresh('lives', '2026-11-16T12:00:10Z');
    $db->run(<<'SQL');
INSERT INTO ads.campaigns (id, status, starts_at, ends_at) VALUES
    (1, 'scheduled', '2026-11-16T12:00:00Z', '2026-11-16T13:00:00Z'), (2, 'scheduled', '2026-11-16T12:01:00Z', NULL),
    (3, 'draft', '2026-11-01T00:00:00Z', NULL), (4, 'active', NULL, '2026-11-16T12:00:00Z'),
    (5, 'paused', NULL, '2026-11-16T12:00:00Z'), (6, 'scheduled', '2026-11-01T00:00:00Z', '2026-11-02T00:00:00Z'),
    (7, 'scheduled', NULL, NULL);
SQL
    my $ear = $db->session;
    $ear->run('LISTEN ads_catalog');
    is tick(), 0, 'a tick' or diag $err;
    is statuses(), '1active 2scheduled 3draft 4completed 5paused 6completed 7active', 'starts and ends due campaigns, not drafts';
    like $err, qr/^\S+Z \[lifecycle\] activate-campaigns: 3 activated \(1, 6, 7\)$/m,  'it is logged';
    like $err, qr/^\S+Z \[lifecycle\] complete-campaigns: 2 completed \(4, 6\)$/m,     'with counts';
    like $err, qr/^\S+Z \[daily-reset\] daily-budget-reset: \d+ reset/m,              'also the day';
    like $out, qr/^6 tasks done, \d+ changes, 0 failed$/, 'and summed up';
    is scalar($ear->notified), 'ads_catalog', 'nodes are notified';
    is $db->value(q{SELECT string_agg(row_id || (before ->> 'status') || '-' || (after ->> 'status'), ' ' ORDER BY after ->> 'status', row_id) FROM ads.audit_log WHERE actor = 'scheduler'}),
        '1scheduled-active 6scheduled-active 7scheduled-active 4active-completed 6active-completed', 'the log has actor and action';
    my $version = $db->value('SELECT ads.catalog_version()');
    tick();
    is "$exit$err$out", "00 tasks done, 0 changes, 0 failed\n", 'nothing is due, nothing is said';
    later('30 s');
    tick();
    like $out, qr/^0 tasks/, 'nor within the interval';
    clock('2026-11-16T12:00:59Z');
    $db->run('DELETE FROM ads.scheduler_runs');
    tick('--verbose');
    like $err, qr/complete-campaigns: nothing to do/, '--verbose shows runs without changes';
    is $db->value('SELECT ads.catalog_version()'), $version, 'the version of the catalog stays';
    is_deeply [ $ear->notified ], [], 'and nothing is reported';
    clock('2026-11-16T12:01:00Z');
    tick('--json');
    is_deeply [ @{ json($out) }{ qw(runs changes failures) } ], [ 2, 1, 0 ], 'a minute later it is the next ones turn';
    is statuses(), '1active 2active 3draft 4completed 5paused 6completed 7active', 'to the second';
    clock('2026-11-16T18:00:00Z');
    tick('--verbose');
    is scalar(() = $err =~ /activate-campaigns/g), 1, 'what was missed is caught up once';
    is statuses(), '1completed 2active 3draft 4completed 5paused 6completed 7active', 'with all it is for';
};

subtest 'budgets' => sub {
    fresh('budgets', '2026-11-16T12:00:00Z');
    $db->run(<<'SQL');
INSERT INTO ads.campaigns (id, status, budget_type, budget_micro, hard_cap, budget_spent_micro) VALUES
    (1, 'active', 'lifetime', 1000000, 1.2, 0), (2, 'active', 'lifetime', 1000000, 1.2, 999999),
    (3, 'active', 'daily', 1000000, 1.2, 0), (4, 'active', 'lifetime', 5, 1.2, 7), (5, 'paused', 'lifetime', 5, 1.2, 7),
    (6, 'active', NULL, NULL, NULL, 0);
INSERT INTO ads.daily_spend (campaign_id, day, ad_group_id, spend_micro) VALUES
    (1, '2026-11-15', 1, 600000), (1, '2026-11-16', 1, 400000), (3, '2026-11-16', 1, 9000000), (6, '2026-11-16', 1, 9000000);
SQL
    tick();
    is statuses(), '1paused 2active 3active 4paused 5paused 6active', 'a spent lifetime budget pauses, a daily one does not';
    like $err, qr/pause-over-budget: 2 paused \(1, 4\)/, 'and is logged';
    $db->run('UPDATE ads.campaigns SET budget_micro = 2000000 WHERE id IN (1, 5)');
    later('4 min');
    tick();
    is statuses(), '1paused 2active 3active 4paused 5paused 6active', 'not before its time';
    later('1 min');
    tick();
    is statuses(), '1active 2active 3active 4paused 5paused 6active', 'a top-up resumes what was paused here, nothing else';
    like $err, qr/pause-over-budget: 1 resumed \(1\)/, 'which is logged';
    # Campaign 4 is changed by hand: the scheduler no longer changes it.
    $db->run(q{UPDATE ads.campaigns SET status = 'active' WHERE id = 4; UPDATE ads.campaigns SET status = 'paused' WHERE id = 4;
        UPDATE ads.campaigns SET budget_micro = 2000000 WHERE id = 4});
    later('5 min');
    tick();
    is statuses(), '1active 2active 3active 4paused 5paused 6active', 'a campaign paused by hand stays paused';
    my %target = map { @$_ } $db->query('SELECT campaign_id, target_micro FROM ads.campaign_days');
    is_deeply [ @target{ 1, 3, 6 } ], [ 13334, 1000000, undef ], 'the books know what the day may spend';
};

subtest 'events that are too old' => sub {
    fresh('prune', '2026-11-16T12:00:00Z');
    $db->run(qq{SELECT ads.make_partition('ad_events', '$_-01T00:00:00Z')}) for qw(2025-09 2025-10 2025-11);
    $db->run(qq{SELECT ads.make_partition('event_claims', '$_-01T00:00:00Z')}) for qw(2026-06 2026-07 2026-08);
    my $parts = sub {
        return join ' ', $db->column(q{SELECT substr(c.relname, 1, 8) || right(c.relname, 7) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent IN ('ads.ad_events'::regclass, 'ads.event_claims'::regclass) AND c.relname < 'event_claims_2026_09' ORDER BY 1});
    };
    tick();
    like $err, qr/^\S+Z \[scheduler\] prune-expired-events: 3 dropped \(ad_events_2025_09, event_claims_2026_06, event_claims_2026_07\)/m,
        'go with their partitions' or diag $err;
    is $parts->() =~ s/ad_event20(?!25)\d\d_\d\d //gr, 'ad_event2025_10 ad_event2025_11 event_cl2026_08', 'after 395 days, claims after three months';
    clock('2027-02-01T00:00:00Z');
    tick('--keep-events', 365);
    like $err, qr/dropped \(ad_events_2025_10, ad_events_2025_11, .*made \(.*_2027_0\d/, 'another time to keep, and the next ones are made';
    is $db->error('SELECT ads.prune_events(5)')->{state}, '22023', 'hardly anybody means five days';
};

subtest 'a failing task' => sub {
    fresh('failing', '2026-11-16T12:00:00Z');
    is tick(), 0, 'all is well';
    $db->run(q{CREATE FUNCTION public.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'out of order'; END $$;
        INSERT INTO ads.campaigns (id, status, ends_at) VALUES (1, 'active', '2026-11-16T12:00:30Z'), (2, 'scheduled', NULL);
        CREATE TRIGGER no BEFORE UPDATE ON ads.campaigns FOR EACH ROW WHEN (NEW.status = 'completed') EXECUTE FUNCTION public.no()});
    clock('2026-11-16T12:05:00Z');
    is tick(), 3, 'makes the exit code 3';
    like $err, qr/^\S+Z \[lifecycle\] complete-campaigns failed and will be retried: out of order/m, 'is logged';
    is statuses(), '1active 2active', 'and does not stop the others';
    run('scheduler', 'status', '--json');
    my %status = map { $_->{task} => $_ } @{ json($out)->{tasks} };
    is $status{'complete-campaigns'}{last_run}, '2026-11-16T12:00:00Z', 'it keeps its last run time';
    like $status{'complete-campaigns'}{error}, qr/out of order/, 'and has an error';
    is $status{'complete-campaigns'}{next_due}, '2026-11-16T12:05:30Z', 'and is tried again in half a minute';
    is $status{'activate-campaigns'}{last_run}, '2026-11-16T12:05:00Z', 'the others went on';
    is $status{'activate-campaigns'}{changed}, 1, 'with their counts';
    run('scheduler', 'status');
    like $out, qr/^task +every +last run +changed +next due +by\nactivate-campaigns +60 s /, 'for people it is a table';
    like $out, qr/^! complete-campaigns failed at \S+, 1 attempt: out of order/m, 'with errors below';
    is tick(), 0, 'not tried before' or diag $err;
    later('30 s');
    is tick(), 3, 'then it is';
    is $db->value(q{SELECT attempts FROM ads.scheduler_runs WHERE task = 'complete-campaigns' AND finished_at IS NULL}), 2, 'and counted';
    $db->run('DROP TRIGGER no ON ads.campaigns');
    later('30 s');
    is tick(), 0, 'until it works';
    is statuses(), '1completed 2active', 'in the end it is done';
    run('scheduler', 'status');
    unlike $out, qr/^!/m, 'and forgotten';
};

# ---- who may, and what is wrong ------------------------------------------------------------

subtest 'rights and mistakes' => sub {
    $pg->run("CREATE ROLE $_ LOGIN IN ROLE ads_$_") for qw(admin report);
    fresh('rights', '2026-11-16T12:00:00Z');
    $db->run(q{INSERT INTO ads.campaigns (id, status) VALUES (1, 'scheduled')});
    is tick('--database', $db->conninfo(user => 'admin')), 0, 'an admin may' or diag $err;
    like $out, qr/^6 tasks done/, 'do all of it';
    later('1 day');
    is tick('--database', $db->conninfo(user => 'report')), 3, 'a report may not';
    like $err, qr/permission denied/, 'and it is reported';
    is run('scheduler', 'status', '--database', $db->conninfo(user => 'report')), 0, 'but sees the status' or diag $err;
    for my $case (
        [ 2, qr/requires one of the commands/,                       'scheduler' ],
        [ 2, qr/did you mean "status"/,                           'scheduler', 'statu' ],
        [ 2, qr/must be a time from 10ms to 60m such as 30s, not "0s"/, 'scheduler', 'run', '--tick', '0s' ],
        [ 2, qr/must be a whole number from 31 to 36500/,         'scheduler', 'tick', '--keep-events', '5' ],
        [ 2, qr/--database is not a conninfo/,                       'scheduler', 'run', '--database', 'x' ],
        [ 3, qr/cannot reach PostgreSQL/,                         'scheduler', 'tick', '--database', 'host=/nowhere' ],
        )
    {
        my ($code, $message, @arguments) = @$case;
        is run(@arguments), $code, "exit code $code: @arguments";
        like $err, $message, 'with a sentence';
    }
    my $empty = $pg->database('empty');
    is tick('--database', $empty->conninfo), 3, 'without a schema';
    like $err, qr/Run "nginx-ads migrate" first/, 'there is a remedy';
};

# ---- the daemon ----------------------------------------------------------------------------

my %daemons;    # name => pid

sub daemon {
    my ($name, @options) = @_;
    my %env = (ADS_DATABASE => $db->conninfo . " application_name=$name");
    $daemons{$name} = spawn([ $command, 'scheduler', 'run', '--instance', $name, @options ], \%env, "$dir/$name.log");
    return $daemons{$name};
}

sub stop {
    my ($name, $signal) = @_;
    my $pid = delete $daemons{$name} or return;
    my %status;
    kill $signal // 'TERM', $pid;
    wait_until { !alive($pid, \%status) } 20, "$name to end";
    return $status{$pid} // $?;
}
END { kill KILL => values %daemons if %daemons }

subtest 'a service' => sub {
    fresh('service', '2026-11-16T12:00:00Z');
    my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "$dir/notify") or die $!;
    local @ENV{ qw(NOTIFY_SOCKET WATCHDOG_USEC) } = ("$dir/notify", 200_000);
    daemon('service', '--tick', '60m');
    my @said;
    $socket->blocking(0);
    wait_until {
        my $text;
        push @said, $text if defined recv $socket, $text, 100, 0;
        @said >= 5;
    } 20, 'news';
    is $said[0], 'READY=1', 'it is ready';
    is_deeply [ @said[ 1 .. 4 ] ], [ ('WATCHDOG=1') x 4 ], 'it lives, also between ticks';
    wait_until { $db->value('SELECT count(*) FROM ads.scheduler_runs') >= 5 } 20, 'work';
    stop('service');
    my $log = read_file("$dir/service.log");
    like $log, qr/^\S+Z \[scheduler\] started as service, a tick every 60m$/m, 'the log says that it started';
    like $log, qr/^\S+Z \[scheduler\] stopped after 1 tick: \d tasks, \d+ changes?, 0 failed$/m, 'and stopped, cleanly';

    daemon('patient', '--tick', '50ms');
    wait_until { $db->value(q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'patient'}) } 20, 'a connection';
    $pg->restart;
    $db->run(q{INSERT INTO ads.campaigns (id, status) VALUES (1, 'scheduled')});
    later('1 min');
    wait_until { statuses() eq '1active' } 20, 'the campaign to start';
    pass 'a database that went away is found again';
    stop('patient', 'INT');
    like read_file("$dir/patient.log"), qr/\[scheduler\] .*\n(?:.*\n)*.*\[scheduler\] connected to PostgreSQL again/, 'which is logged';
};

# A tick is 30 s and tasks are due every minute, so everything is done within 90 s.
subtest 'no start and no end is late' => sub {
    my ($from, $minutes) = ('2026-10-25T00:30:00Z', $ENV{ADS_TEST_LONG} ? 240 : 20);
    fresh('late', $from);
    $db->run(<<"SQL");
INSERT INTO ads.campaigns (id, status, timezone, starts_at, ends_at)
SELECT n, 'scheduled', zones[1 + n % 5], timestamptz '$from' + n * interval '47 s', timestamptz '$from' + n * interval '47 s' + interval '5 min 13 s'
FROM generate_series(1, ($minutes - 8) * 60 / 47) n, (SELECT ARRAY['UTC', 'Europe/Berlin', 'America/Havana', 'Asia/Kolkata', 'Pacific/Apia'] AS zones) z;
CREATE TABLE public.changes (campaign_id bigint, status text, at timestamptz DEFAULT ads.now());
CREATE FUNCTION public.log_change() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
    INSERT INTO public.changes VALUES (NEW.id, NEW.status);
    RETURN NULL;
END \$\$;
CREATE TRIGGER log AFTER UPDATE OF status ON ads.campaigns FOR EACH ROW EXECUTE FUNCTION public.log_change();
SQL
    my $view = $db->session;
    daemon("s$_", '--tick', '50ms') for 1 .. 2;
    for my $n (0 .. $minutes * 2) {
        $view->run("UPDATE public.clock SET at = timestamptz '$from' + $n * interval '30 s'");
        wait_until { !$view->value('SELECT count(*) FROM ads.scheduler_tasks() WHERE ads.due_run(task) IS NOT NULL') } 60, "step $n";
    }
    stop($_) for sort keys %daemons;
    is_deeply [ $db->query(q{SELECT c.id, d.due, d.status, x.at FROM ads.campaigns c CROSS JOIN LATERAL (VALUES ('active', c.starts_at), ('completed', c.ends_at)) d (status, due)
        LEFT JOIN public.changes x ON x.campaign_id = c.id AND x.status = d.status
        WHERE x.at IS NULL OR NOT x.at BETWEEN d.due AND d.due + interval '90 s' ORDER BY 1, 2}) ], [], 'each within 90 s of its second';
    is $db->value('SELECT count(*) FROM public.changes'), 2 * $db->value('SELECT count(*) FROM ads.campaigns'), 'and once';
};

# ---- four of them, for days ------------------------------------------------------------------

# Clocks go back in New York and Havana (over midnight) on 1 November.
subtest 'each task once, whoever does it' => sub {
    my ($from, $hours, $step) = $ENV{ADS_TEST_LONG} ? ('2026-10-27T00:00:00Z', 168, 10) : ('2026-10-31T20:00:00Z', 42, 60);
    my $steps = $hours * 60 / $step;
    fresh('four', $from);
    $db->run(<<"SQL");
INSERT INTO ads.campaigns (id, status, timezone)
SELECT 1000 + n, 'active', zone FROM unnest(ARRAY['UTC', 'America/New_York', 'America/Havana', 'Asia/Kolkata',
    'Pacific/Kiritimati', 'Australia/Lord_Howe', 'Europe/Berlin']) WITH ORDINALITY AS z (zone, n);
INSERT INTO ads.campaigns (id, status, starts_at, ends_at)
SELECT n, 'scheduled', timestamptz '$from' + n * interval '1 h', timestamptz '$from' + (n + 3) * interval '1 h'
FROM generate_series(1, $hours - 4) n;
CREATE TABLE public.turns (task text, due_at timestamptz, instance text, at timestamptz DEFAULT ads.now());
CREATE TABLE public.resets (campaign_id bigint, day date, at timestamptz DEFAULT ads.now());
CREATE TABLE public.slow (seconds float NOT NULL);
INSERT INTO public.slow VALUES (0);
CREATE FUNCTION public.log_run() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
    INSERT INTO public.turns VALUES (NEW.task, NEW.due_at, NEW.instance);
    PERFORM pg_sleep(seconds) FROM public.slow WHERE seconds > 0;
    RETURN NULL;
END \$\$;
CREATE FUNCTION public.log_reset() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
    INSERT INTO public.resets VALUES (NEW.campaign_id, NEW.day);
    RETURN NULL;
END \$\$;
CREATE TRIGGER log AFTER UPDATE OF finished_at ON ads.scheduler_runs FOR EACH ROW EXECUTE FUNCTION public.log_run();
CREATE TRIGGER log AFTER INSERT OR UPDATE ON ads.campaign_days FOR EACH ROW EXECUTE FUNCTION public.log_reset();
SQL
    my $view = $db->session;
    my ($killed, $serial) = (0, 4);
    daemon("s$_", '--tick', '100ms') for 1 .. 4;
    for my $n (0 .. $steps) {
        my $kill = $n % 10 == 5;
        $view->run('UPDATE public.slow SET seconds = 1') if $kill;
        $view->run("UPDATE public.clock SET at = timestamptz '$from' + $n * interval '$step min'");
        if ($kill) {
            # The work is done, but not committed.
            my $victim = wait_until {
                $view->value(q{SELECT application_name FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = 'four' LIMIT 1})
            } 20, 'somebody at work';
            stop($victim, 'KILL');
            $killed++;
            $view->run('UPDATE public.slow SET seconds = 0');
            daemon('s' . ++$serial, '--tick', '100ms');
        }
        wait_until { !$view->value('SELECT count(*) FROM ads.scheduler_tasks() WHERE ads.due_run(task) IS NOT NULL') } 60, "step $n";
    }
    is stop($_) >> 8, 0, "$_ ends" for sort keys %daemons;
    note sprintf 'simulated %d h in %d steps, %d schedulers killed, %d turns', $hours, $steps, $killed,
        $db->value('SELECT count(*) FROM public.turns');

    is $db->value('SELECT count(*) FROM (SELECT FROM public.turns GROUP BY task, due_at HAVING count(*) > 1) x'), 0, 'no turn is done twice';
    is $db->value(qq{SELECT count(*) FROM generate_series(0, $steps) n, ads.scheduler_tasks() t
        WHERE t.every IS NOT NULL AND NOT EXISTS (SELECT FROM public.turns d WHERE d.task = t.task
            AND d.due_at = date_bin(t.every, timestamptz '$from' + n * interval '$step min', 'epoch'))}), 0, 'and none is left out';
    is $db->value(q{SELECT count(*) FROM ads.scheduler_runs WHERE finished_at IS NULL OR error IS NOT NULL}), 0, 'nor half done';
    cmp_ok $db->value('SELECT count(DISTINCT instance) FROM public.turns'), '>', 2, 'several have worked';
    is $db->value(q{SELECT count(*) FROM (SELECT row_id FROM ads.audit_log WHERE actor = 'scheduler' AND after ->> 'status' = 'active'
        AND before ->> 'status' = 'scheduled' GROUP BY 1 HAVING count(*) = 1) x}), $hours - 4, 'each campaign was started once';
    is $db->value(q{SELECT count(*) FROM (SELECT row_id FROM ads.audit_log WHERE actor = 'scheduler' AND after ->> 'status' = 'completed'
        GROUP BY 1 HAVING count(*) = 1) x}), $hours - 4, 'and ended once';
    is $db->value('SELECT count(*) FROM (SELECT FROM public.resets GROUP BY campaign_id, day HAVING count(*) > 1) x'), 0, 'no day is begun twice';
    # Every campaign that is always active: each local day of the simulation, within a step of its
    # midnight.
    is_deeply [ $db->query(qq{
        WITH seen AS (SELECT c.id, c.timezone, (at AT TIME ZONE c.timezone)::date AS day, min(at) AS first
            FROM ads.campaigns c, generate_series(timestamptz '$from', timestamptz '$from' + $steps * interval '$step min', interval '$step min') at
            WHERE c.id > 1000 GROUP BY 1, 2, 3)
        SELECT s.timezone, s.day, s.first, r.at FROM seen s FULL JOIN public.resets r ON r.campaign_id = s.id AND r.day = s.day
        WHERE coalesce(s.id, r.campaign_id) > 1000 AND s.first IS DISTINCT FROM r.at ORDER BY 1, 2}) ], [],
        'a day begins at midnight in each time zone, also where clocks change';
    is $db->value(q{SELECT count(*) FROM public.turns WHERE task = 'daily-budget-reset' AND due_at = '2026-11-01T04:00:00Z'}), 1,
        'New York and Havana share the midnight from which a day of 25 hours begins';
    is $db->value(q{SELECT count(*) FROM public.turns WHERE task = 'daily-budget-reset' AND due_at = '2026-11-02T05:00:00Z'}), 1, 'and the next';
};

done_testing;
