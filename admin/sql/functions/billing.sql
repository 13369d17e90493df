-- What a fleet bills: each event against the account of the node that served, in the transaction
-- that stores it. The rules are those of src/core/rights/grantor.hpp.

-- The walls that these events count against, with the event's place in the list, from 1. Pixels
-- belong to the day of their serve, clicks and conversions to the day they arrive, as in
-- ads.daily_spend. An event that only counts is a serve: it has happened, and is never late.
CREATE OR REPLACE FUNCTION ads.walls_of_events(
    in_type int2[], in_at int8[], in_issued int8[], in_campaign int8[], in_ad_group int8[], in_price int8[],
    in_node int8[], in_invalid int2[])
RETURNS ads.billed_walls
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    WITH e AS MATERIALIZED (
        SELECT u.n, u.type, u.campaign, u.ad_group, u.price, u.node, g.cap_on,
               ads.day_number((to_timestamp((CASE WHEN u.type < 3 THEN u.issued ELSE u.at END)::float8 / 1000)
                               AT TIME ZONE coalesce(c.timezone, 'UTC'))::date) AS day
        FROM (SELECT generate_series(1, cardinality(in_type)) AS n, unnest(in_type) AS type, unnest(in_at) AS at,
                     unnest(in_issued) AS issued, unnest(in_campaign) AS campaign, unnest(in_ad_group) AS ad_group,
                     unnest(in_price) AS price, unnest(in_node) AS node, unnest(in_invalid) AS invalid) u
        LEFT JOIN ads.ad_groups g ON g.id = u.ad_group
        LEFT JOIN ads.campaigns c ON c.id = u.campaign
        WHERE u.invalid = 0 AND u.type >= 0),
    p AS (
        SELECT e.n, 1::int2 AS kind, e.ad_group AS id, e.day, e.node, 1::int8 AS amount, e.type = 0 AS counts
        FROM e WHERE e.type = CASE e.cap_on WHEN 'serve' THEN 0 ELSE 1 END
        UNION ALL
        SELECT e.n, 2::int2, e.ad_group, e.day, e.node, 1, false FROM e WHERE e.type = 3
        UNION ALL
        SELECT e.n, 3::int2, e.campaign, e.day, e.node, e.price, false FROM e WHERE e.price > 0)
    SELECT (array_agg(p.n), array_agg(w.kind), array_agg(w.id), array_agg(w.day), array_agg(p.node),
            array_agg(p.amount), array_agg(p.counts))::ads.billed_walls
    FROM p JOIN ads.fleet_walls w ON w.kind = p.kind AND w.id = p.id AND w.day IN (0, p.day)
$$;

-- Events whose order decides which of them are billed: some of their walls may have too little left
-- for all. The places of these in the list.
CREATE OR REPLACE FUNCTION ads.contested_events(walls ads.billed_walls)
RETURNS int[] STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    WITH p AS MATERIALIZED (
        SELECT p.*, f.node IS NOT NULL AS open
        FROM unnest(walls.places, walls.kinds, walls.ids, walls.days, walls.nodes, walls.amounts, walls.counts)
             AS p (place, kind, id, day, node, amount, counts)
        LEFT JOIN ads.fleet_nodes f ON f.node = p.node AND f.closed_at IS NULL),
    s AS (
        SELECT p.kind, p.id, p.day, CASE WHEN p.open THEN p.node END AS node, sum(p.amount) AS amount
        FROM p WHERE NOT p.counts GROUP BY 1, 2, 3, 4),
    contested AS (
        SELECT s.kind, s.id, s.day, s.node FROM s
        LEFT JOIN ads.fleet_accounts a ON a.kind = s.kind AND a.id = s.id AND a.day = s.day AND a.node = s.node
        WHERE s.node IS NOT NULL AND coalesce(a.billed + s.amount > greatest(0, a.got - a.gave), true)
        UNION ALL
        SELECT s.kind, s.id, s.day, s.node FROM s
        JOIN ads.fleet_walls w ON w.kind = s.kind AND w.id = s.id AND w.day = s.day
        WHERE s.node IS NULL AND s.amount > w.units - w.settled - (
            SELECT coalesce(sum(greatest(x.got - x.gave, x.billed)), 0) FROM ads.fleet_accounts x
            WHERE x.kind = s.kind AND x.id = s.id AND x.day = s.day)),
    -- Nodes hold more than there is.
    exhausted AS (
        SELECT s.kind, s.id, s.day FROM (SELECT s.kind, s.id, s.day, sum(s.amount) AS amount FROM s GROUP BY 1, 2, 3) s
        JOIN ads.fleet_walls w ON w.kind = s.kind AND w.id = s.id AND w.day = s.day
        WHERE s.amount > w.highest - w.settled - (
            SELECT coalesce(sum(x.billed), 0) FROM ads.fleet_accounts x
            WHERE x.kind = s.kind AND x.id = s.id AND x.day = s.day))
    SELECT coalesce(array_agg(DISTINCT p.place), '{}')
    FROM (SELECT c.kind, c.id, c.day, c.node, false AS whole FROM contested c
          UNION ALL SELECT e.kind, e.id, e.day, NULL, true FROM exhausted e) c
    JOIN p ON p.kind = c.kind AND p.id = c.id AND p.day = c.day AND (c.whole OR p.node = c.node OR NOT p.open)
    WHERE NOT p.counts
$$;

-- Adds what is billed to the accounts, of closed nodes to what is settled. Beyond what a node holds
-- it is granted to it, so the caller has to know that it is free.
CREATE OR REPLACE FUNCTION ads.add_to_accounts(walls ads.billed_walls) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    INSERT INTO ads.fleet_accounts AS a (kind, id, day, node, got, gave, billed)
    SELECT p.kind, p.id, p.day, p.node, coalesce(sum(p.amount) FILTER (WHERE NOT p.counts), 0), 0, sum(p.amount)
    FROM unnest(walls.kinds, walls.ids, walls.days, walls.nodes, walls.amounts, walls.counts) AS p (kind, id, day, node, amount, counts)
    JOIN ads.fleet_nodes f ON f.node = p.node AND f.closed_at IS NULL
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (kind, id, day, node) DO UPDATE SET billed = a.billed + excluded.billed,
        got = CASE WHEN excluded.got > 0 AND a.billed + excluded.billed > greatest(0, a.got - a.gave)
                   THEN a.gave + a.billed + excluded.billed ELSE a.got END;

    UPDATE ads.fleet_walls w SET settled = w.settled + s.amount
    FROM (SELECT p.kind, p.id, p.day, sum(p.amount) AS amount
          FROM unnest(walls.kinds, walls.ids, walls.days, walls.nodes, walls.amounts) AS p (kind, id, day, node, amount)
          LEFT JOIN ads.fleet_nodes f ON f.node = p.node AND f.closed_at IS NULL
          WHERE f.node IS NULL GROUP BY 1, 2, 3) s
    WHERE w.kind = s.kind AND w.id = s.id AND w.day = s.day;

    -- Only what is never late can exceed a limit.
    IF true = ANY (walls.counts) THEN
        UPDATE ads.fleet_walls w SET over = true
        FROM (SELECT DISTINCT p.kind, p.id, p.day
              FROM unnest(walls.kinds, walls.ids, walls.days, walls.counts) AS p (kind, id, day, counts) WHERE p.counts) p
        WHERE w.kind = p.kind AND w.id = p.id AND w.day = p.day AND NOT w.over AND w.units < w.settled + (
            SELECT coalesce(sum(greatest(x.got - x.gave, x.billed)), 0) FROM ads.fleet_accounts x
            WHERE x.kind = p.kind AND x.id = p.id AND x.day = p.day);
    END IF;
END $$;

-- Bills events by their parts, as ads.walls_of_events() returns them, and returns the places of those
-- that are late: an event is billed to all of its walls or to none.
CREATE OR REPLACE FUNCTION ads.bill_events(walls ads.billed_walls)
RETURNS int[] LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    contested int[];
    late int[] := '{}';
    part ads.billed_walls;
BEGIN
    PERFORM FROM ads.fleet_walls w
    WHERE (w.kind, w.id, w.day) IN (
        SELECT p.kind, p.id, p.day FROM unnest(walls.kinds, walls.ids, walls.days) AS p (kind, id, day))
    ORDER BY w.kind, w.id, w.day FOR NO KEY UPDATE;
    contested := ads.contested_events(walls);

    SELECT array_agg(p.place), array_agg(p.kind), array_agg(p.id), array_agg(p.day), array_agg(p.node),
           array_agg(p.amount), array_agg(p.counts)
    INTO part
    FROM unnest(walls.places, walls.kinds, walls.ids, walls.days, walls.nodes, walls.amounts, walls.counts)
         AS p (place, kind, id, day, node, amount, counts)
    WHERE p.place <> ALL (contested);
    IF part.places IS NOT NULL THEN
        PERFORM ads.add_to_accounts(part);
    END IF;

    FOR part IN
        SELECT array_agg(p.place), array_agg(p.kind), array_agg(p.id), array_agg(p.day), array_agg(p.node),
               array_agg(p.amount), array_agg(p.counts)
        FROM unnest(walls.places, walls.kinds, walls.ids, walls.days, walls.nodes, walls.amounts, walls.counts)
             AS p (place, kind, id, day, node, amount, counts)
        WHERE p.place = ANY (contested) GROUP BY p.place ORDER BY p.place
    LOOP
        PERFORM FROM unnest(part.kinds, part.ids, part.days, part.nodes, part.amounts, part.counts)
            AS p (kind, id, day, node, amount, counts)
        JOIN ads.fleet_walls w ON w.kind = p.kind AND w.id = p.id AND w.day = p.day
        LEFT JOIN ads.fleet_nodes f ON f.node = p.node AND f.closed_at IS NULL
        LEFT JOIN ads.fleet_accounts a ON a.kind = p.kind AND a.id = p.id AND a.day = p.day AND a.node = f.node
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(greatest(x.got - x.gave, x.billed)), 0) AS charged, coalesce(sum(x.billed), 0) AS billed
            FROM ads.fleet_accounts x WHERE x.kind = p.kind AND x.id = p.id AND x.day = p.day) o
        WHERE NOT p.counts
          AND (p.amount > w.highest - w.settled - o.billed
               OR ((f.node IS NULL OR coalesce(a.billed + p.amount > greatest(0, a.got - a.gave), true))
                   AND p.amount > w.units - w.settled - o.charged));
        IF FOUND THEN
            late := late || part.places[1];
        ELSE
            PERFORM ads.add_to_accounts(part);
        END IF;
    END LOOP;
    RETURN late;
END $$;

-- What the nodes that served are to know of these events: see ads.verdicts(). A node's cursor is locked
-- until the end of the transaction, so verdicts become visible in the order of their numbers.
-- Nothing is said of events that were invalid when they came (`asked_invalid`).
-- `repeated` are events that their own node sent as valid though they are stored: it has counted
-- them, and another one's record of them has been judged.
DROP FUNCTION IF EXISTS ads.note_verdicts(
    uuid[], int2[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int2[], int8, uuid[]);
CREATE OR REPLACE FUNCTION ads.note_verdicts(
    in_id uuid[], in_type int2[], in_at int8[], in_issued int8[], in_serve int8[], in_campaign int8[],
    in_ad_group int8[], in_price int8[], in_node int8[], asked_invalid int2[], in_invalid int2[], in_recorder int8,
    repeated uuid[])
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    verdicts ads.fleet_verdicts[];
BEGIN
    SELECT array_agg(ROW(v.*)::ads.fleet_verdicts) INTO verdicts FROM (
        SELECT e.node, 0::int8, e.id, e.serve, e.type, e.issued, e.at, e.campaign, e.ad_group, e.price, in_recorder,
               CASE e.invalid WHEN 0 THEN 'confirmed' ELSE 'late' END
        FROM unnest(in_id, in_type, in_at, in_issued, in_serve, in_campaign, in_ad_group, in_price, in_node,
                    asked_invalid, in_invalid)
             AS e (id, type, at, issued, serve, campaign, ad_group, price, node, asked, invalid)
        JOIN ads.fleet_nodes f ON f.node = e.node AND f.closed_at IS NULL
        WHERE e.type > 0 AND e.asked = 0 AND (e.invalid <> 0 OR in_recorder NOT IN (0, e.node))
        UNION ALL
        SELECT v.node, 0, v.event, v.serve, v.type, v.issued, v.at, v.campaign_id, v.ad_group_id, v.price_micro,
               in_recorder, 'duplicate'
        FROM ads.fleet_verdicts v
        WHERE v.event = ANY (repeated) AND v.verdict <> 'duplicate' AND v.recorder NOT IN (in_recorder, -1)
          AND NOT EXISTS (SELECT FROM ads.fleet_verdicts d WHERE d.event = v.event AND d.verdict = 'duplicate')) v;
    IF verdicts IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO ads.fleet_cursors AS c (node, newest)
    SELECT v.node, count(*) FROM unnest(verdicts) v GROUP BY 1 ORDER BY 1
    ON CONFLICT (node) DO UPDATE SET newest = c.newest + excluded.newest;
    INSERT INTO ads.fleet_verdicts
    SELECT v.node, c.newest + 1 - row_number() OVER (PARTITION BY v.node ORDER BY v.n DESC), v.event, v.serve, v.type,
           v.issued, v.at, v.campaign_id, v.ad_group_id, v.price_micro, v.recorder, v.verdict
    FROM unnest(verdicts) WITH ORDINALITY AS v (node, number, event, serve, type, issued, at, campaign_id, ad_group_id,
                                                price_micro, recorder, verdict, n)
    JOIN ads.fleet_cursors c ON c.node = v.node;
END $$;

-- What became of a node's serves, from its cursor on: events that other nodes recorded ("confirmed"),
-- events for which nothing was left ("late"), and events that it recorded after another one
-- ("duplicate"). A cursor of -T begins with the serves that were issued at T, in ms.
CREATE OR REPLACE FUNCTION ads.verdicts(in_node int8, in_after int8, in_max int4) RETURNS jsonb
STABLE LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
    WITH v AS MATERIALIZED (
        SELECT * FROM ads.fleet_verdicts f
        WHERE f.node = in_node AND f.number > greatest(in_after, 0) AND (in_after >= 0 OR f.issued >= -in_after)
        ORDER BY f.number LIMIT in_max)
    SELECT jsonb_build_object(
        'next', coalesce((SELECT max(v.number) FROM v), greatest(in_after, 0)),
        'rows', coalesce((
            SELECT jsonb_agg(jsonb_build_object(
                'cursor', v.number, 'serve', v.serve, 'type', v.type, 'issued', v.issued, 'at', v.at,
                'campaign', v.campaign_id, 'ad_group', v.ad_group_id, 'price', v.price_micro,
                'node_recorded', v.recorder, 'verdict', v.verdict) ORDER BY v.number)
            FROM v), '[]'))
$$;
