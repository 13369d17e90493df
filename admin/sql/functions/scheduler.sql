-- The tasks of "nginx-ads scheduler".

-- The clock of the schema. Tests replace it; only the owner of the schema can.
CREATE OR REPLACE FUNCTION ads.now() RETURNS timestamptz STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT pg_catalog.now()
$$;

-- ---- days and money -----------------------------------------------------------------

-- The start of a local day. If clocks go back over midnight, the first midnight counts; if they go
-- forward over midnight, the day begins with the jump.
CREATE OR REPLACE FUNCTION ads.day_start(day date, zone text) RETURNS timestamptz STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    start timestamptz := day::timestamp AT TIME ZONE zone;
BEGIN
    RETURN CASE WHEN ((start - interval '1 hour') AT TIME ZONE zone)::date = day
        THEN start - interval '1 hour' ELSE start END;
END $$;

-- The spend of a campaign: in total, or before a day.
CREATE OR REPLACE FUNCTION ads.spent(c ads.campaigns, before date DEFAULT NULL) RETURNS bigint STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT greatest(c.budget_spent_micro, coalesce(sum(s.spend_micro), 0))::bigint FROM ads.daily_spend s
    WHERE s.campaign_id = c.id AND (before IS NULL OR s.day < before)
$$;

-- The target spend of a day: a daily budget, or an equal part of the rest of a lifetime budget for each
-- remaining day. A campaign without an end date counts as having 30 days left.
CREATE OR REPLACE FUNCTION ads.day_target(c ads.campaigns, day date) RETURNS bigint STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT CASE c.budget_type
        WHEN 'daily' THEN c.budget_micro::bigint
        WHEN 'lifetime' THEN ceil(greatest(0, c.budget_micro - ads.spent(c, day)) / greatest(1,
            coalesce(ceil(extract(epoch FROM c.ends_at AT TIME ZONE c.timezone - day::timestamp) / 86400), 30)))::bigint
        END
$$;

-- ---- runs ---------------------------------------------------------------------------
-- A run is a task and the time it is due. Its row is written in the transaction that does its
-- work: if the process dies, neither remains.

CREATE OR REPLACE FUNCTION ads.scheduler_tasks() RETURNS TABLE (place int, task text, every interval) IMMUTABLE LANGUAGE sql AS $$
    VALUES (1, 'activate-campaigns', interval '60 s'), (2, 'complete-campaigns', interval '60 s'),
           (3, 'pause-over-budget', interval '300 s'), (4, 'check-experiments', interval '600 s'),
           (5, 'daily-budget-reset', NULL), (6, 'prune-expired-events', interval '24 h')
$$;

-- The campaigns whose local day has begun, but whose row in campaign_days is of an earlier day.
CREATE OR REPLACE FUNCTION ads.due_campaign_days() RETURNS TABLE (campaign_id bigint, day date, midnight timestamptz) STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT c.id, z.day, z.midnight
    FROM (SELECT zone, day, ads.day_start(day, zone) AS midnight
          FROM (SELECT t.zone, (ads.now() AT TIME ZONE t.zone)::date AS day
                FROM (SELECT DISTINCT timezone AS zone FROM ads.campaigns) t) d) z
         JOIN ads.campaigns c ON c.timezone = z.zone LEFT JOIN ads.campaign_days b ON b.campaign_id = c.id
    WHERE c.status IN ('scheduled', 'active', 'paused') AND coalesce(b.day < z.day, true)
$$;

-- Whether a run still has to be done.
CREATE OR REPLACE FUNCTION ads.is_run_open(in_task text, due timestamptz) RETURNS boolean STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM ads.scheduler_runs r WHERE r.task = in_task AND r.due_at = due
                       AND (r.finished_at IS NOT NULL OR r.retry_at > ads.now()))
$$;

-- The due time of the run to be done now, or null. Of missed runs only the last is done. Due times
-- are whole multiples of the interval, the same for all instances.
CREATE OR REPLACE FUNCTION ads.due_run(in_task text) RETURNS timestamptz STABLE LANGUAGE plpgsql
SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    every interval;
    due timestamptz;
BEGIN
    IF in_task = 'daily-budget-reset' THEN
        RETURN (SELECT min(s.midnight) FROM (SELECT DISTINCT midnight FROM ads.due_campaign_days()) s
                WHERE ads.is_run_open(in_task, s.midnight));
    END IF;
    SELECT t.every INTO every FROM ads.scheduler_tasks() t WHERE t.task = in_task;
    due := date_bin(every, ads.now(), 'epoch');
    -- If the clock goes back, nothing is repeated.
    RETURN CASE WHEN ads.is_run_open(in_task, due) AND due > coalesce(
        (SELECT max(r.due_at) FROM ads.scheduler_runs r WHERE r.task = in_task AND r.finished_at IS NOT NULL),
        '-infinity') THEN due END;
END $$;

-- Claims the due run until the end of the transaction; null if none is due or another instance is
-- doing it. Changes in the transaction are recorded with the scheduler as the actor.
CREATE OR REPLACE FUNCTION ads.claim_run(in_task text, in_instance text) RETURNS timestamptz LANGUAGE plpgsql
SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    place int;
    due timestamptz;
BEGIN
    SELECT t.place INTO place FROM ads.scheduler_tasks() t WHERE t.task = in_task;
    IF place IS NULL THEN
        RAISE EXCEPTION 'there is no task %', in_task USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT pg_try_advisory_xact_lock(1633972065, 100 + place) THEN
        RETURN NULL;
    END IF;
    due := ads.due_run(in_task);
    IF due IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO ads.scheduler_runs AS r (task, due_at, instance, started_at)
    VALUES (in_task, due, in_instance, clock_timestamp())
    ON CONFLICT (task, due_at) DO UPDATE SET instance = excluded.instance, started_at = excluded.started_at,
        attempts = r.attempts + 1, retry_at = NULL, error = NULL;
    PERFORM set_config('ads.actor', 'scheduler', true);
    RETURN due;
END $$;

CREATE OR REPLACE FUNCTION ads.finish_run(in_task text, due timestamptz, in_changed bigint) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    UPDATE ads.scheduler_runs SET finished_at = clock_timestamp(), changed = in_changed
    WHERE task = in_task AND due_at = due
$$;

-- Called after the transaction of the run was rolled back.
CREATE OR REPLACE FUNCTION ads.fail_run(in_task text, due timestamptz, in_instance text, in_error text) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    INSERT INTO ads.scheduler_runs AS r (task, due_at, instance, started_at, error, retry_at)
    VALUES (in_task, due, in_instance, clock_timestamp(), in_error, ads.now() + interval '30 s')
    ON CONFLICT (task, due_at) DO UPDATE SET instance = excluded.instance, started_at = excluded.started_at,
        error = excluded.error, retry_at = excluded.retry_at, attempts = r.attempts + 1
    WHERE r.finished_at IS NULL
$$;

-- ---- the work -----------------------------------------------------------------------
-- Each function returns the actions and the ids of the campaigns. A campaign that is being edited is
-- skipped until the next run. Triggers write the audit log and notify the nodes.

CREATE OR REPLACE FUNCTION ads.activate_campaigns() RETURNS TABLE (action text, what text) LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    WITH due AS MATERIALIZED (
        SELECT id FROM ads.campaigns
        WHERE status = 'scheduled' AND coalesce(starts_at <= ads.now(), true)
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED),
    done AS (UPDATE ads.campaigns c SET status = 'active' FROM due WHERE c.id = due.id RETURNING c.id)
    SELECT 'activated', id::text FROM done ORDER BY id
$$;

CREATE OR REPLACE FUNCTION ads.complete_campaigns() RETURNS TABLE (action text, what text) LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    WITH due AS MATERIALIZED (
        SELECT id FROM ads.campaigns WHERE status = 'active' AND ends_at <= ads.now()
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED),
    done AS (UPDATE ads.campaigns c SET status = 'completed' FROM due WHERE c.id = due.id RETURNING c.id)
    SELECT 'completed', id::text FROM done ORDER BY id
$$;

-- Lifetime budgets only: a daily budget is renewed at midnight, and nodes enforce it themselves. Only
-- campaigns that were paused here are resumed here.
CREATE OR REPLACE FUNCTION ads.pause_over_budget() RETURNS TABLE (action text, what text) LANGUAGE plpgsql
SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    over bigint[];
    back bigint[];
BEGIN
    over := ARRAY(SELECT c.id FROM ads.campaigns c
        WHERE c.status = 'active' AND c.budget_type = 'lifetime' AND ads.spent(c) >= c.budget_micro
        ORDER BY c.id FOR NO KEY UPDATE SKIP LOCKED);
    back := ARRAY(SELECT c.id FROM ads.campaigns c JOIN ads.budget_pauses p ON p.campaign_id = c.id
        WHERE c.status = 'paused' AND coalesce(c.ends_at > ads.now(), true)
          AND (c.budget_type IS DISTINCT FROM 'lifetime' OR ads.spent(c) < c.budget_micro)
        ORDER BY c.id FOR NO KEY UPDATE OF c SKIP LOCKED);
    UPDATE ads.campaigns SET status = 'paused' WHERE id = ANY (over);
    INSERT INTO ads.budget_pauses SELECT id, ads.now() FROM unnest(over) AS o (id)
    ON CONFLICT (campaign_id) DO UPDATE SET paused_at = excluded.paused_at;
    UPDATE ads.campaigns SET status = 'active' WHERE id = ANY (back);  -- the trigger deletes the row in budget_pauses
    RETURN QUERY SELECT 'paused', id::text FROM unnest(over) AS o (id)
        UNION ALL SELECT 'resumed', id::text FROM unnest(back) AS b (id);
END $$;

-- Begins the day of the campaigns whose local midnight is `due`.
CREATE OR REPLACE FUNCTION ads.reset_days(due timestamptz) RETURNS TABLE (action text, what text) LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    WITH done AS (
        INSERT INTO ads.campaign_days AS b (campaign_id, day, opened_at, target_micro, spent_before_micro)
        SELECT s.campaign_id, s.day, ads.now(), ads.day_target(c, s.day), ads.spent(c, s.day)
        FROM ads.due_campaign_days() s JOIN ads.campaigns c ON c.id = s.campaign_id
        WHERE s.midnight = due
        ORDER BY s.campaign_id
        ON CONFLICT (campaign_id) DO UPDATE SET day = excluded.day, opened_at = excluded.opened_at,
            target_micro = excluded.target_micro, spent_before_micro = excluded.spent_before_micro
        WHERE b.day < excluded.day
        RETURNING campaign_id)
    SELECT 'reset', campaign_id::text FROM done ORDER BY campaign_id
$$;

-- All tasks except check-experiments, whose statistics are computed by the command.
CREATE OR REPLACE FUNCTION ads.run_task(in_task text, due timestamptz, keep_days int) RETURNS TABLE (action text, what text)
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    CASE in_task
        WHEN 'activate-campaigns' THEN RETURN QUERY SELECT * FROM ads.activate_campaigns();
        WHEN 'complete-campaigns' THEN RETURN QUERY SELECT * FROM ads.complete_campaigns();
        WHEN 'pause-over-budget' THEN RETURN QUERY SELECT * FROM ads.pause_over_budget();
        WHEN 'daily-budget-reset' THEN RETURN QUERY SELECT * FROM ads.reset_days(due);
        WHEN 'prune-expired-events' THEN RETURN QUERY SELECT * FROM ads.prune_events(keep_days);
    END CASE;
END $$;

-- The last finished run, the last error if it is newer, and the next run.
CREATE OR REPLACE FUNCTION ads.scheduler_status() RETURNS TABLE (
    task text, every_seconds bigint, due_at timestamptz, finished_at timestamptz, seconds double precision,
    instance text, changed bigint, next_due timestamptz, error text, failed_at timestamptz, attempts int)
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT t.task, extract(epoch FROM t.every)::bigint, done.due_at, done.finished_at,
           extract(epoch FROM done.finished_at - done.started_at)::double precision, done.instance, done.changed,
           coalesce(ads.due_run(t.task),
                    CASE WHEN t.every IS NOT NULL
                        THEN greatest(failed.retry_at, date_bin(t.every, ads.now(), 'epoch')
                             + CASE WHEN failed.retry_at IS NULL THEN t.every ELSE interval '0' END)
                    ELSE (SELECT min(ads.day_start((ads.now() AT TIME ZONE c.zone)::date + 1, c.zone))
                          FROM (SELECT DISTINCT timezone AS zone FROM ads.campaigns
                                WHERE status IN ('scheduled', 'active', 'paused')) c) END),
           failed.error, failed.started_at, failed.attempts
    FROM ads.scheduler_tasks() t
    LEFT JOIN LATERAL (SELECT * FROM ads.scheduler_runs r WHERE r.task = t.task AND r.finished_at IS NOT NULL
                       ORDER BY r.due_at DESC LIMIT 1) done ON true
    LEFT JOIN LATERAL (SELECT * FROM ads.scheduler_runs r WHERE r.task = t.task AND r.finished_at IS NULL
                       AND r.due_at > coalesce(done.due_at, '-infinity') ORDER BY r.due_at DESC LIMIT 1) failed ON true
    ORDER BY t.place
$$;
