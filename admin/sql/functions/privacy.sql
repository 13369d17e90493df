-- Access and erasure of personal data: "nginx-ads privacy".
--
-- A person is a session (the value of a cookie) or a user, whose pseudonyms, one for each key, the
-- command computes. To a user belong the sessions that were seen with it as well: their rows
-- without a user, but no rows of another user.

CREATE OR REPLACE FUNCTION ads.sessions_of(users text[]) RETURNS SETOF text STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT DISTINCT e.session_id FROM ads.ad_events e WHERE e.user_id = ANY (users) AND e.session_id <> 'anonymous'
$$;

-- The rows of a session, or of a user and those sessions, as one object each.
CREATE OR REPLACE FUNCTION ads.export_person(session text, users text[], linked text[]) RETURNS TABLE (kind text, fact json)
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

-- Events are changed to what they would be without consent, so that their sums still match the
-- roll-ups. Trials get a random name, so that no verdict changes.
CREATE OR REPLACE FUNCTION ads.erase_person(session text, users text[], linked text[]) RETURNS TABLE (events bigint, trials bigint)
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

-- Records that an erasure was done and its size, but not of whom.
CREATE OR REPLACE FUNCTION ads.note_privacy(in_action text, details jsonb) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    INSERT INTO ads.audit_log (actor, action, table_name, row_id, after)
    VALUES (coalesce(nullif(current_setting('ads.actor', true), ''), session_user), in_action, 'persons', '', details)
$$;

-- From now on, events of the person that were recorded earlier are stored without the person. To be
-- called and committed before the person's rows are searched for: it waits for the batches that are
-- being stored, whose rows are then found; later batches see what it wrote. "linked" are the
-- sessions of a user: only their events without a user are meant.
CREATE OR REPLACE FUNCTION ads.mark_erased(session text, users text[], linked text[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1633972065, 2);
    INSERT INTO ads.erasures AS e (kind, digest, erased_at)
    SELECT DISTINCT p.kind, sha256(convert_to(p.name, 'UTF8')), clock_timestamp()
    FROM (SELECT 'session' AS kind, session AS name
          UNION ALL SELECT 'user', unnest(users)
          UNION ALL SELECT 'linked', unnest(linked)) p
    WHERE p.name IS NOT NULL AND p.name NOT IN ('', 'anonymous')
    ON CONFLICT (digest, kind) DO UPDATE SET erased_at = greatest(e.erased_at, excluded.erased_at);
END $$;
