-- The state of a fleet, for the command, the console and psql.

-- Each node: `silent` is how long ago it called. A node that has not called for 5 seconds is not
-- active; what it holds is stranded, and nobody else can have it.
CREATE OR REPLACE FUNCTION ads.fleet_status() RETURNS TABLE (
    node bigint, name text, version text, protocol int, catalog text, generation text, exactness text,
    joined_at timestamptz, seen_at timestamptz, silent interval, state text, walls bigint)
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT f.node, coalesce(f.about ->> 'name', ''), coalesce(f.about ->> 'version', ''), f.protocol,
           coalesce(f.about ->> 'catalog', ''), coalesce(f.about ->> 'generation', ''),
           coalesce(f.about ->> 'exactness', ''), f.joined_at, f.seen_at, ads.now() - f.seen_at,
           CASE WHEN f.closed_at IS NOT NULL THEN 'forgotten' WHEN f.seen_at > ads.now() - interval '5 s' THEN 'active'
                ELSE 'silent' END,
           (SELECT count(*) FROM ads.fleet_accounts a WHERE a.node = f.node AND a.got > a.gave
            AND (a.day = 0 OR a.day >= ads.day_number(ads.now()::date) - 1))
    FROM ads.fleet_nodes f
    ORDER BY f.closed_at IS NOT NULL, coalesce(f.about ->> 'name', ''), f.node
$$;

-- The walls of today, and those of all days: how much is used (stored), held by active nodes beside
-- that, stranded by silent ones, and free. `needed`: active nodes have refused requests for want of it.
CREATE OR REPLACE FUNCTION ads.fleet_wall_status() RETURNS TABLE (
    kind text, id bigint, name text, day date, units bigint, used bigint, held bigint, stranded bigint, free bigint,
    needed bigint, nodes jsonb)
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT ('{impressions,clicks,budget,anonymous}'::text[])[w.kind], w.id,
           coalesce(c.name, g.name, ''), CASE WHEN w.day > 0 THEN date '2025-12-31' + w.day END, w.units,
           (w.settled + o.billed)::bigint, o.held::bigint, o.stranded::bigint, (w.units - w.settled - o.charged)::bigint,
           o.needed::bigint, o.nodes
    FROM ads.fleet_walls w
    LEFT JOIN ads.ad_groups g ON w.kind <> 3 AND g.id = w.id
    LEFT JOIN ads.campaigns c ON w.kind = 3 AND c.id = w.id
    LEFT JOIN ads.campaigns z ON z.id = CASE WHEN w.kind = 3 THEN w.id ELSE g.campaign_id END
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(a.billed), 0) AS billed, coalesce(sum(greatest(a.got - a.gave, a.billed)), 0) AS charged,
               coalesce(sum(greatest(0, a.got - a.gave - a.billed)) FILTER (WHERE l.active), 0) AS held,
               coalesce(sum(greatest(0, a.got - a.gave - a.billed)) FILTER (WHERE NOT l.active), 0) AS stranded,
               coalesce(sum(a.denied) FILTER (WHERE l.active), 0) AS needed,
               coalesce(jsonb_agg(jsonb_build_object('node', a.node, 'name', coalesce(f.about ->> 'name', ''), 'active',
                   l.active, 'seen_at', ads.moment_text(f.seen_at), 'used', a.billed,
                   'held', greatest(0, a.got - a.gave - a.billed), 'needed', a.denied)
                   ORDER BY coalesce(f.about ->> 'name', ''), a.node), '[]') AS nodes
        FROM ads.fleet_accounts a JOIN ads.fleet_nodes f ON f.node = a.node
        CROSS JOIN LATERAL (SELECT f.seen_at > ads.now() - interval '5 s' AS active) l
        WHERE a.kind = w.kind AND a.id = w.id AND a.day = w.day) o
    WHERE w.day = 0 OR w.day = ads.day_number((ads.now() AT TIME ZONE coalesce(z.timezone, 'UTC'))::date)
    ORDER BY o.stranded > 0 DESC, o.needed > 0 DESC, w.kind, w.id, w.day
$$;

-- A node by its name or number, if there is one that is not forgotten. A machine that got a new
-- identity has the name of its old one: all are returned.
CREATE OR REPLACE FUNCTION ads.fleet_nodes_named(in_name text) RETURNS SETOF bigint
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT f.node FROM ads.fleet_nodes f
    WHERE f.closed_at IS NULL AND (f.node::text = in_name OR f.about ->> 'name' = in_name) ORDER BY f.node
$$;
