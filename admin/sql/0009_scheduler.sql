-- What happens by itself: the tasks of "nginx-ads scheduler", the verdicts of
-- experiments, forecasts and reports.

-- The clock of all that. Tests replace it; only the owner of the schema can.
CREATE FUNCTION ads.now() RETURNS timestamptz STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT pg_catalog.now()
$$;

-- ---- tables -------------------------------------------------------------------------
-- Without foreign keys, as events are: the catalog can be emptied as a whole.

-- A turn that failed has an error, is not finished, and is tried again at retry_at.
ALTER TABLE ads.scheduler_runs
    ADD COLUMN attempts int NOT NULL DEFAULT 1,
    ADD COLUMN retry_at timestamptz;

-- The day that a campaign's books are at. Its figures are in daily_spend.
CREATE TABLE ads.campaign_books (
    campaign_id        ads.id PRIMARY KEY,
    day                date NOT NULL,           -- in the campaign's time zone
    opened_at          timestamptz NOT NULL,
    target_micro       bigint,                  -- what this day may spend; null: no budget
    spent_before_micro bigint NOT NULL          -- before this day
);

-- Who was paused because its budget was spent, and by nobody else.
CREATE TABLE ads.budget_pauses (
    campaign_id ads.id PRIMARY KEY,
    paused_at   timestamptz NOT NULL
);

-- The least p-value that a variant had against the first one, at any look.
CREATE TABLE ads.experiment_looks (
    experiment_id ads.id NOT NULL,
    creative_id   ads.id NOT NULL,
    p             double precision NOT NULL CHECK (p BETWEEN 0 AND 1),
    looked_at     timestamptz NOT NULL,
    PRIMARY KEY (experiment_id, creative_id)
);

-- Somebody else has decided on the campaign: a top-up leaves it alone.
CREATE FUNCTION ads.forget_pause() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    DELETE FROM ads.budget_pauses WHERE campaign_id = OLD.id;
    IF TG_OP = 'DELETE' THEN
        DELETE FROM ads.campaign_books WHERE campaign_id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_pause AFTER UPDATE OF status ON ads.campaigns
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION ads.forget_pause();
CREATE TRIGGER forget_books AFTER DELETE ON ads.campaigns
    FOR EACH ROW EXECUTE FUNCTION ads.forget_pause();

-- ---- days and money -----------------------------------------------------------------

-- When a local day begins. Where clocks go back over midnight it comes twice, and
-- the first one counts; where they go forward over it the day begins with the jump.
CREATE FUNCTION ads.day_start(day date, zone text) RETURNS timestamptz STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    start timestamptz := day::timestamp AT TIME ZONE zone;
BEGIN
    RETURN CASE WHEN ((start - interval '1 hour') AT TIME ZONE zone)::date = day
        THEN start - interval '1 hour' ELSE start END;
END $$;

-- What a campaign has spent, of all days or of those before one.
CREATE FUNCTION ads.spent(c ads.campaigns, before date DEFAULT NULL) RETURNS bigint STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT greatest(c.budget_spent_micro, coalesce(sum(s.spend_micro), 0))::bigint FROM ads.daily_spend s
    WHERE s.campaign_id = c.id AND (before IS NULL OR s.day < before)
$$;

-- What a day may spend: all of a daily budget, an even share of what is left of a
-- lifetime's; without an end it is to last for 30 days.
CREATE FUNCTION ads.day_target(c ads.campaigns, day date) RETURNS bigint STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT CASE c.budget_type
        WHEN 'daily' THEN c.budget_micro::bigint
        WHEN 'lifetime' THEN ceil(greatest(0, c.budget_micro - ads.spent(c, day)) / greatest(1,
            coalesce(ceil(extract(epoch FROM c.ends_at AT TIME ZONE c.timezone - day::timestamp) / 86400), 30)))::bigint
        END
$$;

-- ---- turns --------------------------------------------------------------------------
-- A turn is a task and the time it is due. The row of a turn is written in the
-- transaction that does its work: whoever dies in the middle leaves neither.

CREATE FUNCTION ads.scheduler_tasks() RETURNS TABLE (place int, task text, every interval) IMMUTABLE LANGUAGE sql AS $$
    VALUES (1, 'activate-campaigns', interval '60 s'), (2, 'complete-campaigns', interval '60 s'),
           (3, 'pause-over-budget', interval '300 s'), (4, 'check-experiments', interval '600 s'),
           (5, 'daily-budget-reset', NULL), (6, 'prune-expired-events', interval '24 h')
$$;

-- The campaigns whose books are at an older day than their clocks.
CREATE FUNCTION ads.stale_books() RETURNS TABLE (campaign_id bigint, day date, midnight timestamptz) STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT c.id, z.day, z.midnight
    FROM (SELECT zone, day, ads.day_start(day, zone) AS midnight
          FROM (SELECT t.zone, (ads.now() AT TIME ZONE t.zone)::date AS day
                FROM (SELECT DISTINCT timezone AS zone FROM ads.campaigns) t) d) z
         JOIN ads.campaigns c ON c.timezone = z.zone LEFT JOIN ads.campaign_books b ON b.campaign_id = c.id
    WHERE c.status IN ('scheduled', 'active', 'paused') AND coalesce(b.day < z.day, true)
$$;

-- Whether a turn is still to be done.
CREATE FUNCTION ads.turn_open(in_task text, due timestamptz) RETURNS boolean STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM ads.scheduler_runs r WHERE r.task = in_task AND r.due_at = due
                       AND (r.finished_at IS NOT NULL OR r.retry_at > ads.now()))
$$;

-- When the turn is due that should be done now, or null. Of turns that were missed
-- only the last is left. Turns stand at whole multiples of their interval, the same
-- for all instances.
CREATE FUNCTION ads.due_turn(in_task text) RETURNS timestamptz STABLE LANGUAGE plpgsql
SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    every interval;
    due timestamptz;
BEGIN
    IF in_task = 'daily-budget-reset' THEN
        RETURN (SELECT min(s.midnight) FROM (SELECT DISTINCT midnight FROM ads.stale_books()) s
                WHERE ads.turn_open(in_task, s.midnight));
    END IF;
    SELECT t.every INTO every FROM ads.scheduler_tasks() t WHERE t.task = in_task;
    due := date_bin(every, ads.now(), 'epoch');
    -- A clock that went back repeats nothing.
    RETURN CASE WHEN ads.turn_open(in_task, due) AND due > coalesce(
        (SELECT max(r.due_at) FROM ads.scheduler_runs r WHERE r.task = in_task AND r.finished_at IS NOT NULL),
        '-infinity') THEN due END;
END $$;

-- Takes the turn that is due, until the end of the transaction; null if there is
-- none or somebody else is at it. What the transaction then does is the scheduler's.
CREATE FUNCTION ads.claim_turn(in_task text, in_instance text) RETURNS timestamptz LANGUAGE plpgsql
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
    due := ads.due_turn(in_task);
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

CREATE FUNCTION ads.finish_turn(in_task text, due timestamptz, in_changed bigint) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    UPDATE ads.scheduler_runs SET finished_at = clock_timestamp(), changed = in_changed
    WHERE task = in_task AND due_at = due
$$;

-- After the turn's own transaction was rolled back.
CREATE FUNCTION ads.fail_turn(in_task text, due timestamptz, in_instance text, in_error text) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    INSERT INTO ads.scheduler_runs AS r (task, due_at, instance, started_at, error, retry_at)
    VALUES (in_task, due, in_instance, clock_timestamp(), in_error, ads.now() + interval '30 s')
    ON CONFLICT (task, due_at) DO UPDATE SET instance = excluded.instance, started_at = excluded.started_at,
        error = excluded.error, retry_at = excluded.retry_at, attempts = r.attempts + 1
    WHERE r.finished_at IS NULL
$$;

-- ---- the work -----------------------------------------------------------------------
-- Each returns what it did to whom. A campaign that somebody is editing waits for the
-- next turn. Audit and news for the edge are the triggers' (0001), if a row changes.

CREATE FUNCTION ads.activate_campaigns() RETURNS TABLE (action text, what text) LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    WITH due AS MATERIALIZED (
        SELECT id FROM ads.campaigns
        WHERE status = 'scheduled' AND coalesce(starts_at <= ads.now(), true)
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED),
    done AS (UPDATE ads.campaigns c SET status = 'active' FROM due WHERE c.id = due.id RETURNING c.id)
    SELECT 'activated', id::text FROM done ORDER BY id
$$;

CREATE FUNCTION ads.complete_campaigns() RETURNS TABLE (action text, what text) LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    WITH due AS MATERIALIZED (
        SELECT id FROM ads.campaigns WHERE status = 'active' AND ends_at <= ads.now()
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED),
    done AS (UPDATE ads.campaigns c SET status = 'completed' FROM due WHERE c.id = due.id RETURNING c.id)
    SELECT 'completed', id::text FROM done ORDER BY id
$$;

-- Lifetime budgets only: a daily one is there again tomorrow, and the edge stops at
-- it by itself. Only what was paused here is resumed here.
CREATE FUNCTION ads.pause_over_budget() RETURNS TABLE (action text, what text) LANGUAGE plpgsql
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
    UPDATE ads.campaigns SET status = 'active' WHERE id = ANY (back);  -- the trigger forgets the pause
    RETURN QUERY SELECT 'paused', id::text FROM unnest(over) AS o (id)
        UNION ALL SELECT 'resumed', id::text FROM unnest(back) AS b (id);
END $$;

-- The campaigns whose day began at that moment.
CREATE FUNCTION ads.reset_days(due timestamptz) RETURNS TABLE (action text, what text) LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    WITH done AS (
        INSERT INTO ads.campaign_books AS b (campaign_id, day, opened_at, target_micro, spent_before_micro)
        SELECT s.campaign_id, s.day, ads.now(), ads.day_target(c, s.day), ads.spent(c, s.day)
        FROM ads.stale_books() s JOIN ads.campaigns c ON c.id = s.campaign_id
        WHERE s.midnight = due
        ORDER BY s.campaign_id
        ON CONFLICT (campaign_id) DO UPDATE SET day = excluded.day, opened_at = excluded.opened_at,
            target_micro = excluded.target_micro, spent_before_micro = excluded.spent_before_micro
        WHERE b.day < excluded.day
        RETURNING campaign_id)
    SELECT 'reset', campaign_id::text FROM done ORDER BY campaign_id
$$;

-- As in 0002, by the clock of this file.
CREATE OR REPLACE FUNCTION ads.ensure_partitions(months_ahead int DEFAULT 3) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET lock_timeout = '5s'
SET client_min_messages = warning AS $$
DECLARE
    this_month timestamp := date_trunc('month', ads.now() AT TIME ZONE 'UTC');
    made text;
    swept bigint;
BEGIN
    IF months_ahead IS NULL OR months_ahead NOT BETWEEN 0 AND 60 THEN
        RAISE EXCEPTION 'months_ahead must be 0 to 60, not %', months_ahead
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(1633972065, 1);
    FOR i IN -2 .. months_ahead LOOP
        made := ads.make_partition('event_claims', (this_month + make_interval(months => i)) AT TIME ZONE 'UTC');
        IF made IS NOT NULL THEN
            RETURN NEXT made;
        END IF;
        CONTINUE WHEN i = -2;
        made := ads.make_partition('ad_events', (this_month + make_interval(months => i)) AT TIME ZONE 'UTC');
        IF made IS NOT NULL THEN
            RETURN NEXT made;
        END IF;
    END LOOP;

    -- Keeps catalog_edits short. What is swept stays counted, so that the version
    -- does not change.
    WITH old AS (
        DELETE FROM ads.catalog_edits
        WHERE id < (SELECT id FROM ads.catalog_edits ORDER BY id DESC OFFSET 999 LIMIT 1)
        RETURNING 1)
    SELECT count(*) INTO swept FROM old;
    IF swept > 0 THEN
        UPDATE ads.catalog_edits_swept SET edits = edits + swept;
    END IF;
END $$;

-- Drops the months that are over for longer than the days to keep, and makes the
-- next ones. Claims are kept for three whole months, more than twice the longest
-- life of a token; without a partition an event that is later still is refused,
-- not counted twice.
CREATE FUNCTION ads.prune_events(keep_days int DEFAULT 395) RETURNS TABLE (action text, what text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    month constant timestamp := date_trunc('month', ads.now() AT TIME ZONE 'UTC');
    part record;
    bound text;
    past timestamptz;
BEGIN
    IF keep_days IS NULL OR keep_days NOT BETWEEN 31 AND 36500 THEN
        RAISE EXCEPTION 'events must be kept for 31 to 36500 days, not %', keep_days
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR part IN
        SELECT p.relname AS parent, c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
        WHERE p.oid IN ('ads.ad_events'::regclass, 'ads.event_claims'::regclass) ORDER BY c.relname
    LOOP
        bound := substring(part.bounds FROM 'TO \(''([^'']+)''\)');
        CONTINUE WHEN bound IS NULL;
        IF part.parent = 'event_claims' THEN
            past := to_timestamp(('x' || left(replace(bound, '-', ''), 12))::bit(48)::bigint / 1000.0);
            CONTINUE WHEN past > (month - interval '3 months') AT TIME ZONE 'UTC';
        ELSE
            past := bound::timestamptz;
            CONTINUE WHEN past > ads.now() - make_interval(days => keep_days);
        END IF;
        EXECUTE format('DROP TABLE ads.%I', part.name);
        action := 'dropped';
        what := part.name;
        RETURN NEXT;
    END LOOP;
    RETURN QUERY SELECT 'made', m FROM ads.ensure_partitions() AS e (m);
    -- The last turn of a task stays, it tells when the next one is due.
    DELETE FROM ads.scheduler_runs r WHERE r.due_at < ads.now() - interval '30 days'
        AND EXISTS (SELECT FROM ads.scheduler_runs n
                    WHERE n.task = r.task AND n.due_at > r.due_at AND n.finished_at IS NOT NULL);
END $$;

-- All but check-experiments, whose statistics are the command's.
CREATE FUNCTION ads.do_turn(in_task text, due timestamptz, keep_days int) RETURNS TABLE (action text, what text)
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

-- The last turn that was done, the last error if it is newer, and the next turn.
CREATE FUNCTION ads.scheduler_status() RETURNS TABLE (
    task text, every_seconds bigint, due_at timestamptz, finished_at timestamptz, seconds double precision,
    instance text, changed bigint, next_due timestamptz, error text, failed_at timestamptz, attempts int)
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT t.task, extract(epoch FROM t.every)::bigint, done.due_at, done.finished_at,
           extract(epoch FROM done.finished_at - done.started_at)::double precision, done.instance, done.changed,
           coalesce(ads.due_turn(t.task),
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

-- ---- experiments --------------------------------------------------------------------

-- The variants in the order of their creatives; the first is what the others are
-- compared with. A trial is a session's first impression.
CREATE FUNCTION ads.experiment_arms(experiment bigint) RETURNS TABLE (
    creative_id bigint, name text, share double precision, trials bigint, successes bigint, previous_p double precision)
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT v.creative_id, k.name, v.share, coalesce(t.trials, 0), coalesce(t.successes, 0), coalesce(l.p, 1)
    FROM ads.variants v JOIN ads.creatives k ON k.id = v.creative_id
    LEFT JOIN (SELECT t.creative_id, count(*) AS trials, count(t.first_success) AS successes
               FROM ads.experiment_trials t WHERE t.experiment_id = experiment AND t.first_impression IS NOT NULL
               GROUP BY t.creative_id) t ON t.creative_id = v.creative_id
    LEFT JOIN ads.experiment_looks l ON l.experiment_id = v.experiment_id AND l.creative_id = v.creative_id
    WHERE v.experiment_id = experiment
    ORDER BY v.creative_id
$$;

CREATE FUNCTION ads.note_look(experiment bigint, creative bigint, seen double precision) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    INSERT INTO ads.experiment_looks AS l VALUES (experiment, creative, seen, ads.now())
    ON CONFLICT (experiment_id, creative_id)
    DO UPDATE SET p = least(l.p, excluded.p), looked_at = excluded.looked_at
$$;

CREATE FUNCTION ads.start_experiment(experiment bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    e ads.experiments;
    other bigint;
BEGIN
    SELECT * INTO e FROM ads.experiments WHERE id = experiment FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no experiment %', experiment USING ERRCODE = 'no_data_found';
    END IF;
    IF e.status <> 'draft' THEN
        RAISE EXCEPTION 'experiment % is %, and only a draft can be started', experiment, e.status
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT id INTO other FROM ads.experiments WHERE ad_group_id = e.ad_group_id AND status = 'running';
    IF FOUND THEN
        RAISE EXCEPTION 'experiment % runs in ad group % already: stop it first', other, e.ad_group_id
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    DELETE FROM ads.experiment_looks WHERE experiment_id = experiment;
    UPDATE ads.experiments SET status = 'running' WHERE id = experiment;
END $$;

-- Ends it, with why in the log. A winner gets the traffic of all variants: their
-- weights, and the others none. Creatives that were no variants keep theirs.
CREATE FUNCTION ads.end_experiment(experiment bigint, chosen bigint, why jsonb) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    e ads.experiments;
    total bigint;
BEGIN
    SELECT * INTO e FROM ads.experiments WHERE id = experiment FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no experiment %', experiment USING ERRCODE = 'no_data_found';
    END IF;
    IF e.status <> 'running' THEN
        RAISE EXCEPTION 'experiment % is %, not running', experiment, e.status
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF chosen IS NOT NULL AND NOT EXISTS (SELECT FROM ads.variants WHERE experiment_id = experiment AND creative_id = chosen)
    THEN
        RAISE EXCEPTION 'creative % is no variant of experiment %', chosen, experiment
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE ads.experiments SET status = 'completed', winner = chosen WHERE id = experiment;
    -- A winner that is not active would leave nothing to show.
    IF EXISTS (SELECT FROM ads.creatives WHERE id = chosen AND status = 'active') THEN
        SELECT least(1000000, greatest(1, sum(k.weight))) INTO total
        FROM ads.variants v JOIN ads.creatives k ON k.id = v.creative_id WHERE v.experiment_id = experiment;
        UPDATE ads.creatives k SET weight = CASE WHEN k.id = chosen THEN total ELSE 0 END
        FROM ads.variants v WHERE v.experiment_id = experiment AND k.id = v.creative_id;
    END IF;
    INSERT INTO ads.audit_log (actor, action, table_name, row_id, after)
    VALUES (coalesce(nullif(current_setting('ads.actor', true), ''), session_user), 'verdict', 'experiments',
            experiment::text, why);
END $$;

-- ---- forecast and reports -----------------------------------------------------------
-- From the roll-ups: valid events only, but for the column invalid. Money is cents.

-- The last 168 hours by the campaign's local days.
CREATE FUNCTION ads.recent_spend(campaign bigint) RETURNS TABLE (day date, spend_cents numeric) STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT (h.hour AT TIME ZONE c.timezone)::date, ads.cents(sum(h.price_micro)::bigint)
    FROM ads.campaigns c JOIN ads.event_hours h ON h.campaign_id = c.id
    WHERE c.id = campaign AND h.invalid = '' AND h.hour > ads.now() - interval '168 h' AND h.hour <= ads.now()
    GROUP BY 1 ORDER BY 1
$$;

-- The average is over the last 168 hours, or as many of them as the campaign has been
-- running, but a day at least. A lifetime budget is spent at that rate until it is
-- gone or the flight ends; a daily one is there again every day: of it the forecast
-- says how much of it is delivered.
CREATE FUNCTION ads.forecast(campaign bigint) RETURNS TABLE (
    campaign_id bigint, name text, status text, timezone text, budget_type text, budget_cents numeric, spent_cents numeric,
    average_daily_spend numeric, days_remaining numeric, exhaustion_date date, projected_total_spend numeric,
    will_exhaust_early boolean, days_to_end numeric, delivery numeric)
STABLE LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
#variable_conflict use_column
DECLARE
    c ads.campaigns;
    spent bigint;
    recent bigint;
    first_hour timestamptz;
    days numeric;
    rate numeric;
    to_end numeric;
    gone timestamptz;
BEGIN
    SELECT * INTO c FROM ads.campaigns WHERE id = campaign;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    spent := ads.spent(c);
    SELECT coalesce(sum(h.price_micro) FILTER (WHERE h.hour > ads.now() - interval '168 h'), 0), min(h.hour)
    INTO recent, first_hour
    FROM ads.event_hours h WHERE h.campaign_id = c.id AND h.invalid = '' AND h.hour <= ads.now();
    days := least(7, greatest(1, extract(epoch FROM ads.now() - coalesce(c.starts_at, first_hour, ads.now())) / 86400));
    rate := recent / days;
    IF c.ends_at IS NOT NULL THEN  -- greatest() takes null for nothing
        to_end := greatest(0, extract(epoch FROM c.ends_at - ads.now()) / 86400);
    END IF;

    campaign_id := c.id;
    name := c.name;
    status := c.status;
    timezone := c.timezone;
    budget_type := c.budget_type;
    budget_cents := ads.cents(c.budget_micro);
    spent_cents := ads.cents(spent);
    average_daily_spend := round(rate / 1000000, 2);
    days_to_end := round(to_end, 2);
    projected_total_spend := round((spent + rate * coalesce(to_end, 0)) / 1000000, 2);
    will_exhaust_early := false;
    IF c.budget_type = 'daily' THEN
        delivery := CASE WHEN c.budget_micro > 0 THEN round(rate / c.budget_micro, 4) END;
    ELSIF c.budget_type = 'lifetime' AND rate > 0 THEN
        days_remaining := round(greatest(0, c.budget_micro - spent) / rate, 2);
        -- Whoever asks in a thousand years is asked to come back.
        gone := ads.now() + make_interval(secs => least(days_remaining, 365000)::double precision * 86400);
        exhaustion_date := (gone AT TIME ZONE c.timezone)::date;
        will_exhaust_early := coalesce(gone < c.ends_at, false);
        projected_total_spend := CASE WHEN to_end IS NULL THEN greatest(budget_cents, spent_cents)
            ELSE least(projected_total_spend, greatest(budget_cents, spent_cents)) END;
        delivery := CASE WHEN c.budget_micro > 0 THEN round(projected_total_spend / budget_cents, 4) END;
    ELSIF c.budget_type = 'lifetime' THEN
        delivery := CASE WHEN c.budget_micro > 0 THEN round(spent_cents / budget_cents, 4) END;
    END IF;
    RETURN NEXT;
END $$;

-- Days and hours are those of the zone; of one that is not whole hours from UTC, an
-- hour belongs to the day it begins in.
CREATE FUNCTION ads.report(by text, since timestamptz, until timestamptz, campaign bigint DEFAULT NULL,
                           zone text DEFAULT 'UTC')
RETURNS TABLE (key text, name text, serves bigint, impressions bigint, viewables bigint, clicks bigint,
               conversions bigint, invalid bigint, spend_cents numeric)
STABLE LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF by NOT IN ('campaign', 'ad-group', 'creative', 'placement', 'country', 'device', 'day', 'hour') THEN
        RAISE EXCEPTION 'there is no report by %', by USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    SELECT g.key, coalesce(CASE by
               WHEN 'campaign' THEN (SELECT c.name FROM ads.campaigns c WHERE c.id = g.key::bigint)
               WHEN 'ad-group' THEN (SELECT a.name FROM ads.ad_groups a WHERE a.id = g.key::bigint)
               WHEN 'creative' THEN (SELECT k.name FROM ads.creatives k WHERE k.id = g.key::bigint)
               WHEN 'placement' THEN (SELECT p.name FROM ads.placements p WHERE p.id = g.key) END, '')::text,
           g.serves, g.impressions, g.viewables, g.clicks, g.conversions, g.invalid, ads.cents(g.micro)
    FROM (SELECT CASE by WHEN 'campaign' THEN h.campaign_id::text WHEN 'ad-group' THEN h.ad_group_id::text
                     WHEN 'creative' THEN h.creative_id::text WHEN 'placement' THEN h.placement
                     WHEN 'country' THEN h.country WHEN 'device' THEN h.device
                     WHEN 'day' THEN to_char(h.hour AT TIME ZONE zone, 'YYYY-MM-DD')
                     ELSE to_char(h.hour AT TIME ZONE zone, 'YYYY-MM-DD"T"HH24:MI') END AS key,
                 coalesce(sum(h.events) FILTER (WHERE h.type = 'serve' AND h.invalid = ''), 0)::bigint AS serves,
                 coalesce(sum(h.events) FILTER (WHERE h.type = 'impression' AND h.invalid = ''), 0)::bigint AS impressions,
                 coalesce(sum(h.events) FILTER (WHERE h.type = 'viewable' AND h.invalid = ''), 0)::bigint AS viewables,
                 coalesce(sum(h.events) FILTER (WHERE h.type = 'click' AND h.invalid = ''), 0)::bigint AS clicks,
                 coalesce(sum(h.events) FILTER (WHERE h.type = 'conversion' AND h.invalid = ''), 0)::bigint AS conversions,
                 coalesce(sum(h.events) FILTER (WHERE h.invalid <> ''), 0)::bigint AS invalid,
                 coalesce(sum(h.price_micro) FILTER (WHERE h.invalid = ''), 0)::bigint AS micro
          FROM ads.event_hours h
          WHERE h.hour >= since AND h.hour < until AND (campaign IS NULL OR h.campaign_id = campaign)
          GROUP BY 1) g
    ORDER BY CASE WHEN by IN ('day', 'hour') THEN g.key END, g.micro DESC, g.impressions DESC,
             length(g.key), g.key COLLATE "C";
END $$;

-- ---- rights -------------------------------------------------------------------------

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ads FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ads TO ads_admin;
GRANT SELECT, INSERT, UPDATE, DELETE ON ads.campaign_books, ads.budget_pauses, ads.experiment_looks TO ads_admin;
GRANT SELECT ON ads.campaign_books, ads.budget_pauses, ads.experiment_looks TO ads_report;
GRANT EXECUTE ON FUNCTION ads.now(), ads.moment_text(timestamptz), ads.spent(ads.campaigns, date), ads.day_start(date, text), ads.scheduler_tasks(),
    ads.stale_books(), ads.turn_open(text, timestamptz), ads.due_turn(text), ads.scheduler_status(),
    ads.experiment_arms(bigint), ads.recent_spend(bigint), ads.forecast(bigint),
    ads.report(text, timestamptz, timestamptz, bigint, text) TO ads_report;
