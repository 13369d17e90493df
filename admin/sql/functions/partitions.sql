-- Partitions of the event tables: created ahead of time, and dropped when they are old.

-- The smallest id of an event whose serve was issued at or after that time.
CREATE OR REPLACE FUNCTION ads.first_id(issued timestamptz) RETURNS uuid IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT rpad(lpad(to_hex((extract(epoch FROM issued) * 1000)::bigint), 12, '0'), 32, '0')::uuid
$$;

-- Creates what is missing of one table for the month that begins at that time. The table is created
-- alone and then attached: only that locks the parent, for a moment, with a lock that does not
-- block reads or writes.
CREATE OR REPLACE FUNCTION ads.make_partition(parent text, month timestamptz) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    name text := parent || to_char(month AT TIME ZONE 'UTC', '_YYYY_MM');
    after timestamptz := (month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC';
    low text;
    high text;
BEGIN
    IF EXISTS (SELECT FROM pg_inherits
               WHERE inhrelid = to_regclass('ads.' || name) AND inhparent = to_regclass('ads.' || parent)) THEN
        RETURN NULL;
    END IF;
    IF parent = 'event_claims' THEN
        low := ads.first_id(month);
        high := ads.first_id(after);
    ELSE
        low := to_char(month AT TIME ZONE 'UTC', 'YYYY-MM-DD') || ' 00:00:00+00';
        high := to_char(after AT TIME ZONE 'UTC', 'YYYY-MM-DD') || ' 00:00:00+00';
    END IF;
    EXECUTE format('CREATE TABLE IF NOT EXISTS ads.%I (LIKE ads.%I INCLUDING ALL)', name, parent);
    EXECUTE format('ALTER TABLE ads.%I ATTACH PARTITION ads.%I FOR VALUES FROM (%L) TO (%L)',
                   parent, name, low, high);
    RETURN name;
END $$;

-- Creates the partitions from the last month on, and returns their names. Callers take turns; a
-- caller that would wait for long fails with 55P03. Claims begin a month earlier, since a
-- conversion may arrive 30 days after its serve.
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

    -- Keeps catalog_edits short. Deleted edits remain counted, so the version does not change.
    WITH old AS (
        DELETE FROM ads.catalog_edits
        WHERE id < (SELECT id FROM ads.catalog_edits ORDER BY id DESC OFFSET 999 LIMIT 1)
        RETURNING 1)
    SELECT count(*) INTO swept FROM old;
    IF swept > 0 THEN
        UPDATE ads.catalog_edits_swept SET edits = edits + swept;
    END IF;
END $$;

-- Drops the months that ended more than the given number of days ago, and creates the next ones.
-- Claims are kept for three whole months, more than twice the longest lifetime of a token; an event
-- that is even later has no partition and is refused, rather than counted twice.
CREATE OR REPLACE FUNCTION ads.prune_events(keep_days int DEFAULT 395) RETURNS TABLE (action text, what text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    month constant timestamp := date_trunc('month', ads.now() AT TIME ZONE 'UTC');
    part record;
    bound text;
    past timestamptz;
    dropped bigint;
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
        dropped := pg_total_relation_size(to_regclass('ads.' || part.name));
        EXECUTE format('DROP TABLE ads.%I', part.name);
        INSERT INTO ads.audit_log (actor, action, table_name, row_id, before)
        VALUES (coalesce(nullif(current_setting('ads.actor', true), ''), session_user), 'drop', part.parent, part.name,
                jsonb_build_object('bytes', dropped, 'until', past, 'keep_days', keep_days));
        action := 'dropped';
        what := part.name;
        RETURN NEXT;
    END LOOP;
    RETURN QUERY SELECT 'made', m FROM ads.ensure_partitions() AS e (m);
    DELETE FROM ads.dead_pixels WHERE died_at < ads.now() - interval '90 days';
    -- Erasures are deleted when they are older than every claim; summaries of requests when no
    -- spool is likely to contain them any more.
    DELETE FROM ads.erasures WHERE erased_at < ads.now() - interval '3 months';
    DELETE FROM ads.request_summaries WHERE received_at < ads.now() - interval '3 months';
    -- Accounts of a fleet live as long as claims; verdicts until no node that was away needs them.
    DELETE FROM ads.fleet_accounts WHERE day BETWEEN 1 AND ads.day_number(ads.now()::date) - 93;
    DELETE FROM ads.fleet_walls WHERE day BETWEEN 1 AND ads.day_number(ads.now()::date) - 93;
    DELETE FROM ads.unseen_clicks WHERE happened_at < ads.now() - interval '8 days';
    DELETE FROM ads.fleet_verdicts WHERE at < (extract(epoch FROM ads.now()) - 8 * 86400) * 1000;
    DELETE FROM ads.fleet_nodes f WHERE f.closed_at < ads.now() - interval '3 months';
    -- The last run of a task is kept: it determines when the next one is due.
    DELETE FROM ads.scheduler_runs r WHERE r.due_at < ads.now() - interval '30 days'
        AND EXISTS (SELECT FROM ads.scheduler_runs n
                    WHERE n.task = r.task AND n.due_at > r.due_at AND n.finished_at IS NOT NULL);
END $$;
