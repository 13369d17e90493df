-- What is known of a person, and forgetting it: "nginx-ads privacy".
--
-- A person is a session, the value of a cookie, or a user, whose pseudonyms the command
-- knows how to make, one for each key. To a user belong the sessions that were seen with
-- it as well: what stands there without a user, but nothing of another user.

CREATE FUNCTION ads.sessions_of(users text[]) RETURNS SETOF text STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT DISTINCT e.session_id FROM ads.ad_events e WHERE e.user_id = ANY (users) AND e.session_id <> 'anonymous'
$$;

-- The rows of a session, or of a user and those sessions: an object for each.
CREATE FUNCTION ads.export_person(session text, users text[], linked text[]) RETURNS TABLE (kind text, fact json)
STABLE LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    IF session IS NOT NULL THEN
        RETURN QUERY SELECT 'events', row_to_json(e) FROM ads.ad_events e
            WHERE e.session_id = session AND session <> 'anonymous' ORDER BY e."timestamp", e.id;
    ELSE
        RETURN QUERY SELECT 'events', row_to_json(e) FROM ads.ad_events e
            WHERE e.user_id = ANY (users) OR (e.session_id = ANY (linked) AND e.user_id IS NULL)
            ORDER BY e."timestamp", e.id;
    END IF;
    RETURN QUERY SELECT 'trials', row_to_json(t) FROM ads.experiment_trials t
        WHERE t.session_id = session OR t.session_id = ANY (linked) ORDER BY t.experiment_id, t.session_id;
END $$;

-- Events become what they would be of somebody who did not consent, so that they stay
-- the sum of the roll-ups; trials get a name that nobody has, so that no verdict changes.
CREATE FUNCTION ads.erase_person(session text, users text[], linked text[]) RETURNS TABLE (events bigint, trials bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    IF session IS NOT NULL THEN
        UPDATE ads.ad_events e SET session_id = 'anonymous', user_id = NULL, metadata = '{}'
        WHERE e.session_id = session AND session <> 'anonymous';
    ELSE
        UPDATE ads.ad_events e SET session_id = 'anonymous', user_id = NULL, metadata = '{}'
        WHERE e.user_id = ANY (users) OR (e.session_id = ANY (linked) AND e.user_id IS NULL);
    END IF;
    GET DIAGNOSTICS events = ROW_COUNT;
    UPDATE ads.experiment_trials t SET session_id = 'erased-' || gen_random_uuid()
    WHERE t.session_id = session OR t.session_id = ANY (linked);
    GET DIAGNOSTICS trials = ROW_COUNT;
    RETURN NEXT;
END $$;

-- That it was done and how much it was, not of whom.
CREATE FUNCTION ads.note_privacy(in_action text, details jsonb) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    INSERT INTO ads.audit_log (actor, action, table_name, row_id, after)
    VALUES (coalesce(nullif(current_setting('ads.actor', true), ''), session_user), in_action, 'persons', '', details)
$$;

-- ---- retention ------------------------------------------------------------------------

-- As in 0009, but that the log tells of each: drops the months that are over for longer than the days to keep, and makes the
-- next ones. Claims are kept for three whole months, more than twice the longest
-- life of a token; without a partition an event that is later still is refused,
-- not counted twice.
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
    -- The last turn of a task stays, it tells when the next one is due.
    DELETE FROM ads.scheduler_runs r WHERE r.due_at < ads.now() - interval '30 days'
        AND EXISTS (SELECT FROM ads.scheduler_runs n
                    WHERE n.task = r.task AND n.due_at > r.due_at AND n.finished_at IS NOT NULL);
END $$;

-- ---- rights ---------------------------------------------------------------------------

REVOKE ALL ON FUNCTION ads.sessions_of(text[]), ads.export_person(text, text[], text[]),
    ads.erase_person(text, text[], text[]), ads.note_privacy(text, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ads.sessions_of(text[]), ads.export_person(text, text[], text[]),
    ads.erase_person(text, text[], text[]), ads.note_privacy(text, jsonb) TO ads_admin;
