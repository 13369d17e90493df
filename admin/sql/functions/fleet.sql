-- Rights of the nodes of a fleet. The rules are those of src/core/rights: grantor.hpp and
-- admission.hpp say why; a test compares both.
--
-- Locks are taken in this order: the node, ads.ingest() (only where walls are made), the limits,
-- the walls in the order of their keys. An account is written only under the lock of its wall.

CREATE OR REPLACE FUNCTION ads.day_number(day date) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT day - date '2025-12-31'
$$;

-- The limits that these walls have in the catalog, null where there is none, and their present day.
CREATE OR REPLACE FUNCTION ads.catalog_walls(in_kind int2[], in_id int8[], in_day int4[])
RETURNS TABLE (kind int2, id int8, day int4, units int8, today int4)
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT l.kind, l.id, l.day,
           CASE WHEN l.kind = 3 AND l.day > 0 AND c.budget_type = 'daily' THEN c.budget_micro
                WHEN l.kind = 3 AND l.day = 0 AND c.budget_type = 'lifetime' THEN c.budget_micro
                WHEN l.kind = 1 AND l.day > 0 THEN g.daily_impression_cap
                WHEN l.kind = 2 AND l.day > 0 THEN g.daily_click_cap
                WHEN l.kind = 1 AND l.day = 0 AND g.goal_on = 'impressions' THEN g.goal_count
                WHEN l.kind = 2 AND l.day = 0 AND g.goal_on = 'clicks' THEN g.goal_count
           END::int8,
           ads.day_number((ads.now() AT TIME ZONE c.timezone)::date)
    FROM unnest(in_kind, in_id, in_day) AS l (kind, id, day)
    LEFT JOIN ads.ad_groups g ON l.kind < 3 AND g.id = l.id
    JOIN ads.campaigns c ON c.id = CASE WHEN l.kind = 3 THEN l.id ELSE g.campaign_id END
$$;

-- What was stored of a wall's limit, of all nodes.
CREATE OR REPLACE FUNCTION ads.stored_of_wall(in_kind int2, in_id int8, in_day int4) RETURNS bigint
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT CASE WHEN in_kind = 4 THEN 0 WHEN in_kind = 3 THEN (
        SELECT greatest(coalesce(sum(s.spend_micro), 0),
                        CASE WHEN in_day = 0 THEN (SELECT c.budget_spent_micro FROM ads.campaigns c WHERE c.id = in_id) END)
        FROM ads.daily_spend s
        WHERE s.campaign_id = in_id AND (in_day = 0 OR s.day = date '2025-12-31' + in_day))
    ELSE (
        SELECT coalesce(sum(CASE WHEN in_kind = 2 THEN s.clicks WHEN g.cap_on = 'serve' THEN s.serves
                                 ELSE s.impressions END), 0)
        FROM ads.ad_groups g JOIN ads.daily_spend s ON s.campaign_id = g.campaign_id AND s.ad_group_id = g.id
        WHERE g.id = in_id AND (in_day = 0 OR s.day = date '2025-12-31' + in_day))
    END::bigint
$$;

-- The same, of what one node served, from the events themselves: their ids begin with the time of the
-- serve. It reads all events of the wall, and is called once for a node that joins.
CREATE OR REPLACE FUNCTION ads.stored_of_node(in_node int8, in_kind int2, in_id int8, in_day int4) RETURNS bigint
STABLE LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    zone text;
    of_campaign bigint;
    counted ads.event_type[];
    stored bigint;
BEGIN
    SELECT c.timezone, c.id, CASE WHEN in_kind = 2 THEN '{click}'
                                  WHEN in_kind = 3 THEN enum_range(NULL::ads.event_type)
                                  WHEN g.cap_on = 'serve' THEN '{serve}' ELSE '{impression}' END
    INTO zone, of_campaign, counted
    FROM ads.campaigns c LEFT JOIN ads.ad_groups g ON in_kind < 3 AND g.id = in_id
    WHERE c.id = CASE WHEN in_kind = 3 THEN in_id ELSE g.campaign_id END;
    IF zone IS NULL OR in_kind = 4 THEN
        RETURN 0;
    END IF;
    SELECT coalesce(sum(CASE WHEN in_kind = 3 THEN e.price_micro ELSE 1 END), 0) INTO stored
    FROM ads.ad_events e
    WHERE e.campaign_id = of_campaign AND e.type = ANY (counted) AND e.node = in_node AND e.invalid IS NULL
      AND (in_kind = 3 OR e.ad_group_id = in_id)
      AND (in_day = 0 OR e."timestamp" >= ads.day_start(date '2025-12-31' + in_day, zone))
      AND (in_day = 0 OR in_day = ads.day_number((CASE WHEN e.type < 'click'
          THEN to_timestamp(('x' || left(replace(e.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
          ELSE e."timestamp" END AT TIME ZONE zone)::date));
    RETURN stored;
END $$;

-- A node that comes with use of its own: it has used as much as it says to have got. What is stored
-- of that moves from what is settled to its account. The caller has the locks of the walls.
CREATE OR REPLACE FUNCTION ads.open_accounts(in_node int8, in_kind int2[], in_id int8[], in_day int4[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    l record;
    moved bigint;
BEGIN
    FOR l IN
        SELECT w.kind, w.id, w.day, coalesce(a.billed, 0) AS billed
        FROM unnest(in_kind, in_id, in_day) AS n (kind, id, day)
        JOIN ads.fleet_walls w ON w.kind = n.kind AND w.id = n.id AND w.day = n.day
        LEFT JOIN ads.fleet_accounts a ON a.kind = w.kind AND a.id = w.id AND a.day = w.day AND a.node = in_node
        WHERE a.told IS NOT TRUE AND w.settled > 0
    LOOP
        moved := ads.stored_of_node(in_node, l.kind, l.id, l.day) - l.billed;
        CONTINUE WHEN moved <= 0;
        INSERT INTO ads.fleet_accounts AS a (kind, id, day, node, got, gave, billed)
        VALUES (l.kind, l.id, l.day, in_node, 0, 0, moved)
        ON CONFLICT (kind, id, day, node) DO UPDATE SET billed = a.billed + moved;
        UPDATE ads.fleet_walls w SET settled = greatest(0, w.settled - moved)
        WHERE w.kind = l.kind AND w.id = l.id AND w.day = l.day;
    END LOOP;
END $$;

-- After a change of the catalog: the limits of the walls that are open, and which of them are
-- exceeded. A limit that was removed stays as one that cannot be reached: what is billed meanwhile
-- counts when it returns.
CREATE OR REPLACE FUNCTION ads.refresh_fleet_limits() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    version text := ads.catalog_version();
    kinds int2[];
    ids int8[];
    days int4[];
BEGIN
    PERFORM FROM ads.fleet_limits l WHERE l.catalog_version <> version FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT array_agg(w.kind), array_agg(w.id), array_agg(w.day) INTO kinds, ids, days
    FROM (SELECT v.kind, v.id, v.day FROM ads.fleet_walls v
          WHERE v.told_at IS NULL AND (v.day = 0 OR v.day >= ads.day_number(ads.now()::date) - 2)
          ORDER BY v.kind, v.id, v.day FOR NO KEY UPDATE) w;
    UPDATE ads.fleet_walls w SET units = coalesce(c.units, 1::int8 << 60),
        highest = greatest(w.highest, coalesce(c.units, 1::int8 << 60)),
        over = coalesce(c.units, 1::int8 << 60) < w.settled + (
            SELECT coalesce(sum(greatest(a.got - a.gave, a.billed)), 0) FROM ads.fleet_accounts a
            WHERE a.kind = w.kind AND a.id = w.id AND a.day = w.day)
    FROM ads.catalog_walls(kinds, ids, days) c
    WHERE c.kind = w.kind AND c.id = w.id AND c.day = w.day AND (c.day = 0 OR c.day >= c.today - 1)
      AND coalesce(c.units, 1::int8 << 60) <> w.units;
    UPDATE ads.fleet_limits SET catalog_version = version;
END $$;

-- A node's call. With `in_next` it asks to be accepted with its state, which has known the
-- instances `in_known`, and has no walls. Otherwise each wall has the registers of the node, what it
-- needs now and what it would like to have ahead, and its quantum and limit in the node's catalog.
--
-- {"admission": "accepted", "active": 3, "grants": [[kind, id, day, got, free, rest], …],
--  "wanted_back": [[kind, id, day], …], "newest": 17}; admission is "stale" or "refused" without the
-- rest.
--
-- The protocol is the number of the node's version of this call: the present one or the one before
-- it, so that nodes can be upgraded one after the other.
--   2  the answer has the number of the newest verdict on the node's serves (ads.verdicts)
--   1  it has not; the node asks for verdicts after each call
CREATE OR REPLACE FUNCTION ads.rights(
    in_node int8, in_instance int8, in_next int8, in_known int8[], in_sequence int8, in_nonce int8, in_protocol int4,
    in_about jsonb, in_kind int2[], in_id int8[], in_day int4[], in_got int8[], in_gave int8[], in_need int8[],
    in_ahead int8[], in_quantum int8[], in_limit int8[])
RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
    moment CONSTANT timestamptz := ads.now();
    own_catalog CONSTANT boolean := coalesce(in_about ->> 'catalog', 'postgres') = 'postgres';
    file_time CONSTANT int8 := CASE WHEN NOT own_catalog THEN coalesce((in_about ->> 'catalog_time')::int8, 0) END;
    total CONSTANT int := cardinality(in_kind);
    n ads.fleet_nodes;
    active_nodes int8[];
    others_denied boolean;
    new_kind int2[];
    new_id int8[];
    new_day int4[];
    new_units int8[];
    new_quantum int8[];
    grants jsonb;
    wanted_back jsonb;
BEGIN
    IF in_protocol NOT IN (1, 2) THEN
        RAISE EXCEPTION 'unsupported protocol % of a node: must be 1 or 2', in_protocol USING ERRCODE = 'feature_not_supported';
    END IF;
    IF NOT coalesce(total = ALL (ARRAY[
            cardinality(in_id), cardinality(in_day), cardinality(in_got), cardinality(in_gave), cardinality(in_need),
            cardinality(in_ahead), cardinality(in_quantum), cardinality(in_limit)])
        AND 1 <= ALL (in_kind) AND 4 >= ALL (in_kind) AND 1 <= ALL (in_id) AND 0 <= ALL (in_day) AND 16383 >= ALL (in_day)
        AND 0 <= ALL (in_got) AND 0 <= ALL (in_gave) AND 0 <= ALL (in_need) AND 0 <= ALL (in_ahead)
        AND 1::int8 << 60 >= ALL (in_got || in_gave || in_need || in_ahead || in_quantum || in_limit)
        AND 1 <= ALL (in_quantum) AND 0 <= ALL (in_limit), false) THEN
        RAISE EXCEPTION 'the arrays must have the same length, and no null or value out of range'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    -- Whether the node is accepted.
    SELECT * INTO n FROM ads.fleet_nodes f WHERE f.node = in_node FOR NO KEY UPDATE;
    IF in_next <> 0 THEN
        IF n.node IS NULL THEN
            INSERT INTO ads.fleet_nodes (node, instance, protocol, joined_at, seen_at)
            VALUES (in_node, 0, in_protocol, moment, moment) ON CONFLICT DO NOTHING;
            SELECT * INTO n FROM ads.fleet_nodes f WHERE f.node = in_node FOR NO KEY UPDATE;
        END IF;
        -- With an equal sequence only one of several copies finds an instance that it knows. With a
        -- smaller one this copy lacks what another has used since.
        IF n.closed_at IS NOT NULL OR n.sequence > in_sequence
                OR NOT (n.instance = 0 OR n.instance = in_next OR n.instance = ANY (in_known)) THEN
            RETURN '{"admission": "refused"}';
        END IF;
        n.instance := in_next;
    ELSE
        IF n.node IS NULL OR n.closed_at IS NOT NULL OR n.instance = 0 OR n.instance <> in_instance THEN
            RETURN '{"admission": "refused"}';
        END IF;
        IF in_sequence < n.sequence THEN
            RETURN '{"admission": "stale"}';
        END IF;
        IF in_sequence = n.sequence AND in_nonce <> n.nonce THEN
            RETURN '{"admission": "refused"}';
        END IF;
        n.sequence := in_sequence;
        n.nonce := in_nonce;
    END IF;
    UPDATE ads.fleet_nodes f SET instance = n.instance, sequence = n.sequence, nonce = n.nonce, protocol = in_protocol,
        about = in_about, seen_at = greatest(f.seen_at, moment)
    WHERE f.node = in_node;
    SELECT coalesce(array_agg(f.node), '{}') INTO active_nodes FROM ads.fleet_nodes f
    WHERE f.closed_at IS NULL AND f.seen_at > moment - interval '5 s';

    -- Walls that nobody has asked for before. What is stored by now is settled: ads.ingest() must not
    -- store more of it while they are made.
    IF total > 0 THEN
        SELECT array_agg(l.kind), array_agg(l.id), array_agg(l.day), array_agg(l.quantum), array_agg(l.units)
        INTO new_kind, new_id, new_day, new_quantum, new_units
        FROM unnest(in_kind, in_id, in_day, in_quantum, in_limit) AS l (kind, id, day, quantum, units)
        WHERE NOT EXISTS (SELECT FROM ads.fleet_walls w WHERE w.kind = l.kind AND w.id = l.id AND w.day = l.day);
    END IF;
    IF new_kind IS NOT NULL THEN
        SELECT array_agg(l.kind), array_agg(l.id), array_agg(l.day), array_agg(l.quantum), array_agg(l.units)
        INTO new_kind, new_id, new_day, new_quantum, new_units
        FROM (SELECT c.kind, c.id, c.day, l.quantum, c.units
              FROM unnest(new_kind, new_id, new_day, new_quantum) AS l (kind, id, day, quantum)
              JOIN ads.catalog_walls(new_kind, new_id, new_day) c USING (kind, id, day)
              WHERE own_catalog AND c.kind < 4 AND c.units IS NOT NULL AND (c.day = 0 OR abs(c.day - c.today) <= 1)
              UNION ALL
              SELECT l.kind, l.id, l.day, l.quantum, l.units
              FROM unnest(new_kind, new_id, new_day, new_quantum, new_units) AS l (kind, id, day, quantum, units)
              -- The zone is not known: its day is at most one from that of UTC.
              WHERE (NOT own_catalog OR l.kind = 4) AND (l.day = 0 OR abs(l.day - ads.day_number(moment::date)) <= 2)) l;
    END IF;
    IF new_kind IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock(1633972065, 2);
        INSERT INTO ads.fleet_walls (kind, id, day, units, highest, quantum, settled, told_at)
        SELECT l.kind, l.id, l.day, l.units, l.units, l.quantum, ads.stored_of_wall(l.kind, l.id, l.day),
               CASE WHEN l.kind = 4 THEN 0 ELSE file_time END
        FROM unnest(new_kind, new_id, new_day, new_quantum, new_units) AS l (kind, id, day, quantum, units)
        ORDER BY l.kind, l.id, l.day
        ON CONFLICT DO NOTHING;
    END IF;
    IF own_catalog THEN
        PERFORM ads.refresh_fleet_limits();
    END IF;

    IF total > 0 THEN
        PERFORM FROM ads.fleet_walls w JOIN unnest(in_kind, in_id, in_day) AS l (kind, id, day)
            ON w.kind = l.kind AND w.id = l.id AND w.day = l.day
        ORDER BY w.kind, w.id, w.day FOR NO KEY UPDATE OF w;
        UPDATE ads.fleet_walls w SET quantum = l.quantum, units = coalesce(l.units, w.units),
            highest = greatest(w.highest, l.units),
            told_at = CASE WHEN l.units IS NULL THEN w.told_at ELSE coalesce(file_time, 0) END
        FROM (SELECT l.kind, l.id, l.day, l.quantum,
                     CASE WHEN v.kind = 4 OR v.told_at <= file_time THEN l.units END AS units
              FROM unnest(in_kind, in_id, in_day, in_quantum, in_limit) AS l (kind, id, day, quantum, units)
              JOIN ads.fleet_walls v ON v.kind = l.kind AND v.id = l.id AND v.day = l.day) l
        WHERE w.kind = l.kind AND w.id = l.id AND w.day = l.day AND (w.quantum <> l.quantum OR w.units <> l.units);

        IF EXISTS (
            SELECT FROM unnest(in_kind, in_id, in_day, in_got) AS l (kind, id, day, got)
            WHERE l.got > 0 AND NOT EXISTS (
                SELECT FROM ads.fleet_accounts a
                WHERE a.kind = l.kind AND a.id = l.id AND a.day = l.day AND a.node = in_node AND a.told)) THEN
            PERFORM ads.open_accounts(in_node, array_agg(l.kind), array_agg(l.id), array_agg(l.day))
            FROM unnest(in_kind, in_id, in_day, in_got) AS l (kind, id, day, got) WHERE l.got > 0;
        END IF;

        WITH book AS (
            SELECT l.kind, l.id, l.day, l.got, l.need, l.ahead, w.units, w.settled, w.quantum, w.over,
                   coalesce(a.got, 0) AS own_got, greatest(coalesce(a.gave, 0), l.gave) AS own_gave,
                   coalesce(a.billed, 0) AS own_billed, o.charged, o.billed, o.denied
            FROM unnest(in_kind, in_id, in_day, in_got, in_gave, in_need, in_ahead)
                 AS l (kind, id, day, got, gave, need, ahead)
            JOIN ads.fleet_walls w ON w.kind = l.kind AND w.id = l.id AND w.day = l.day
            LEFT JOIN ads.fleet_accounts a ON a.kind = l.kind AND a.id = l.id AND a.day = l.day AND a.node = in_node
            CROSS JOIN LATERAL (
                SELECT coalesce(sum(greatest(x.got - x.gave, x.billed)), 0)::int8 AS charged,
                       coalesce(sum(x.billed), 0)::int8 AS billed,
                       coalesce(bool_or(x.denied > 0 AND x.node = ANY (active_nodes)), false) AS denied
                FROM ads.fleet_accounts x
                WHERE x.kind = l.kind AND x.id = l.id AND x.day = l.day AND x.node <> in_node) o),
        free AS (
            -- A register that is behind ours: an earlier answer was lost, and what it granted comes now.
            SELECT b.*, b.got < b.own_got AS late, greatest(b.got, b.own_got) AS new_got,
                   b.units - b.settled - b.charged - greatest(greatest(b.got, b.own_got) - b.own_gave, b.own_billed) AS free
            FROM book b),
        granted AS (
            SELECT f.*, CASE WHEN f.late OR f.free <= 0 OR f.free < f.quantum THEN 0
                        ELSE least(f.need + CASE WHEN f.denied THEN 0 ELSE f.ahead END, f.free,
                                   greatest(f.quantum, f.free / (2 * cardinality(active_nodes)))) END AS n
            FROM free f),
        done AS (
            SELECT g.*, g.units - g.settled - g.charged - greatest(g.new_got + g.n - g.own_gave, g.own_billed) AS left_free
            FROM granted g),
        written AS (
            INSERT INTO ads.fleet_accounts AS a (kind, id, day, node, got, gave, denied, told)
            SELECT d.kind, d.id, d.day, in_node, d.new_got + d.n, d.own_gave,
                   greatest(0, d.need - CASE WHEN d.late THEN d.own_got - d.got ELSE d.n END), true
            FROM done d
            ON CONFLICT (kind, id, day, node)
            DO UPDATE SET got = excluded.got, gave = excluded.gave, denied = excluded.denied, told = true
            WHERE (a.got, a.gave, a.denied, a.told)
                  IS DISTINCT FROM (excluded.got, excluded.gave, excluded.denied, true)),
        flagged AS (
            UPDATE ads.fleet_walls w SET over = NOT w.over FROM done d
            WHERE w.kind = d.kind AND w.id = d.id AND w.day = d.day AND d.over <> (d.left_free < 0))
        SELECT jsonb_agg(jsonb_build_array(d.kind, d.id, d.day, d.new_got + d.n, d.left_free,
                         greatest(0, d.units - d.settled - d.billed - d.own_billed)))
        INTO grants FROM done d;
    END IF;

    -- Walls of which others need more while this node may have idle rights: of which more is held than
    -- was billed, as only that becomes free when it is returned.
    IF EXISTS (SELECT FROM ads.fleet_walls v WHERE v.over) OR EXISTS (
            SELECT FROM ads.fleet_accounts x
            WHERE x.denied > 0 AND x.node <> in_node AND x.node = ANY (active_nodes)) THEN
        SELECT jsonb_agg(jsonb_build_array(w.kind, w.id, w.day) ORDER BY w.kind, w.id, w.day) INTO wanted_back
        FROM ads.fleet_accounts a
        JOIN ads.fleet_walls w ON w.kind = a.kind AND w.id = a.id AND w.day = a.day
        CROSS JOIN LATERAL (
            SELECT w.units - w.settled - sum(greatest(x.got - x.gave, x.billed)) AS free,
                   bool_or(x.denied > 0 AND x.node <> in_node AND x.node = ANY (active_nodes)) AS denied
            FROM ads.fleet_accounts x WHERE x.kind = a.kind AND x.id = a.id AND x.day = a.day) o
        WHERE a.node = in_node AND (a.day = 0 OR a.day >= ads.day_number(moment::date) - 2) AND a.got - a.gave > a.billed
          AND (w.over OR EXISTS (
              SELECT FROM ads.fleet_accounts x
              WHERE x.kind = a.kind AND x.id = a.id AND x.day = a.day AND x.denied > 0 AND x.node <> in_node))
          AND (o.free < 0 OR (o.denied AND o.free < w.quantum));
    END IF;

    RETURN jsonb_build_object('admission', 'accepted', 'active', cardinality(active_nodes),
                              'grants', coalesce(grants, '[]'), 'wanted_back', coalesce(wanted_back, '[]'))
        || CASE WHEN in_protocol < 2 THEN '{}' ELSE jsonb_build_object('newest', coalesce(
               (SELECT c.newest FROM ads.fleet_cursors c WHERE c.node = in_node), 0)) END;
END $$;

-- Closes the account of a node that does not come back: what was billed stays so, and the rest is free.
-- Its later calls are refused. Returns what is free by that. ads.ingest() must not bill it meanwhile.
CREATE OR REPLACE FUNCTION ads.forget_node(in_node int8)
RETURNS TABLE (kind int2, id int8, day int4, freed int8)
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    PERFORM FROM ads.fleet_nodes f WHERE f.node = in_node AND f.closed_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(1633972065, 2);
    PERFORM FROM ads.fleet_walls w
    WHERE (w.kind, w.id, w.day) IN (SELECT a.kind, a.id, a.day FROM ads.fleet_accounts a WHERE a.node = in_node)
    ORDER BY w.kind, w.id, w.day FOR NO KEY UPDATE;
    UPDATE ads.fleet_walls w SET settled = w.settled + a.billed,
        over = w.over AND w.units < w.settled + a.billed + (
            SELECT coalesce(sum(greatest(x.got - x.gave, x.billed)), 0) FROM ads.fleet_accounts x
            WHERE x.kind = w.kind AND x.id = w.id AND x.day = w.day AND x.node <> in_node)
    FROM ads.fleet_accounts a
    WHERE a.node = in_node AND w.kind = a.kind AND w.id = a.id AND w.day = a.day;
    UPDATE ads.fleet_nodes f SET closed_at = ads.now() WHERE f.node = in_node;
    INSERT INTO ads.audit_log (actor, action, table_name, row_id)
    VALUES (coalesce(nullif(current_setting('ads.actor', true), ''), session_user), 'forget', 'fleet_nodes', in_node::text);
    RETURN QUERY DELETE FROM ads.fleet_accounts a WHERE a.node = in_node
        RETURNING a.kind, a.id, a.day, greatest(0, a.got - a.gave - a.billed);
END $$;
