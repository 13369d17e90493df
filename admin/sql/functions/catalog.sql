-- The catalog document, for nodes and for the command.

CREATE OR REPLACE FUNCTION ads.catalog_version() RETURNS text
STABLE SECURITY DEFINER
LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT (swept.edits + edits.count)::text || '.' || coalesce(edits.newest::text, '0')
    FROM ads.catalog_edits_swept swept,
         (SELECT count(*), (SELECT e.id FROM ads.catalog_edits e ORDER BY e.id DESC LIMIT 1) AS newest
          FROM ads.catalog_edits) edits
$$;

-- The head of the document: {"version" : 1, …}, with the currency if one is set.
CREATE OR REPLACE FUNCTION ads.document_head() RETURNS text STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT '{"version" : 1, ' || coalesce((SELECT '"currency" : "' || currency || '", ' FROM ads.settings), '')
$$;

-- The objects of the document, as catalog_parts() and campaign_document() return them. Without a
-- search path of their own: PostgreSQL inlines them.
CREATE OR REPLACE FUNCTION ads.placement_object(p ads.placements) RETURNS json STABLE LANGUAGE sql AS $$
    SELECT json_build_object('id', p.id, 'name', p.name, 'status', p.status, 'width', p.width, 'height', p.height,
        'types', p.types, 'select', p."select", 'floor_cents', ads.cents(p.floor_micro),
        'viewable', json_build_object('share', p.viewable_share, 'seconds', p.viewable_seconds))
$$;

CREATE OR REPLACE FUNCTION ads.creative_object(k ads.creatives) RETURNS json STABLE LANGUAGE sql AS $$
    SELECT json_strip_nulls(json_build_object('id', k.id, 'name', k.name, 'type', k.type, 'status', k.status,
        'weight', k.weight, 'width', k.width, 'height', k.height, 'content', k.content, 'click_url', k.click_url,
        'impression_url', k.impression_url))
$$;

CREATE OR REPLACE FUNCTION ads.ad_group_object(g ads.ad_groups, placements json, creatives json) RETURNS json
STABLE LANGUAGE sql AS $$
    SELECT json_build_object('id', g.id, 'name', g.name, 'status', g.status,
        'start', ads.moment_text(g.starts_at), 'end', ads.moment_text(g.ends_at),
        'priority', g.priority, 'weight', g.weight,
        'price', json_build_object('model', g.price_model, 'amount_cents', ads.cents(g.price_micro)),
        'pacing', json_build_object('strategy', g.strategy, 'cap_on', g.cap_on,
            'daily_impression_cap', g.daily_impression_cap, 'daily_click_cap', g.daily_click_cap,
            'goal', CASE WHEN g.goal_on IS NOT NULL THEN json_build_object(g.goal_on, g.goal_count) END),
        'frequency_caps', g.frequency_caps,
        'targeting', json_build_object('placements', coalesce(placements, '[]'), 'devices', g.devices,
            'geos', g.geos, 'schedule', g.schedule,
            'urls', json_build_object('include', g.include_urls, 'exclude', g.exclude_urls),
            'keys', g.keys, 'languages', g.languages),
        'category', g.category, 'exclusive', g.exclusive, 'together', g.together,
        'creatives', coalesce(creatives, '[]'))
$$;

CREATE OR REPLACE FUNCTION ads.campaign_object(c ads.campaigns, spent_micro bigint, ad_groups json) RETURNS json
STABLE LANGUAGE sql AS $$
    SELECT json_build_object('id', c.id, 'name', c.name, 'advertiser', coalesce(c.advertiser, ''), 'status', c.status,
        'timezone', c.timezone, 'start', ads.moment_text(c.starts_at), 'end', ads.moment_text(c.ends_at),
        'budget', CASE WHEN c.budget_type IS NOT NULL THEN json_build_object('type', c.budget_type,
            'amount_cents', ads.cents(c.budget_micro),
            'spent_cents', ads.cents(greatest(c.budget_spent_micro, spent_micro)),
            'hard_cap', c.hard_cap) END,
        'updated_at', ads.moment_text(c.updated_at), 'ad_groups', coalesce(ad_groups, '[]'))
$$;

CREATE OR REPLACE FUNCTION ads.experiment_object(e ads.experiments) RETURNS json STABLE LANGUAGE sql AS $$
    SELECT json_build_object('id', e.id, 'name', e.name, 'ad_group', e.ad_group_id, 'status', e.status,
        'metric', e.metric, 'alpha', e.alpha, 'min_sample', e.min_sample, 'mde', e.mde, 'allocation', e.allocation,
        'variants', (SELECT json_agg(json_build_object('creative', v.creative_id, 'share', v.share) ORDER BY v.creative_id)
                     FROM ads.variants v WHERE v.experiment_id = e.id),
        'winner', e.winner)
$$;

-- The parts of the document in its order: placements, campaigns and experiments, each with its id;
-- all of them, or those named. What was archived more than 60 days ago is left out, since no token
-- for it is still valid. EXECUTE makes PostgreSQL plan each call for its arguments. The groups are
-- an array because a subquery behind an OR would filter all rows.
CREATE OR REPLACE FUNCTION ads.catalog_parts(placements text[] DEFAULT NULL, campaigns bigint[] DEFAULT NULL,
                                             experiments bigint[] DEFAULT NULL)
RETURNS TABLE (part text, id text, document text)
STABLE LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp SET jit = off AS $function$
DECLARE
    groups bigint[] := CASE WHEN campaigns IS NOT NULL THEN ARRAY(
        SELECT g.id FROM ads.ad_groups g WHERE g.campaign_id = ANY (campaigns)) END;
BEGIN
    RETURN QUERY SELECT 'placement', p.id, ads.placement_object(p)::text
    FROM ads.placements p WHERE placements IS NULL OR p.id = ANY (placements)
    ORDER BY p.id COLLATE "C";

    RETURN QUERY EXECUTE $$
    WITH
    live_groups AS MATERIALIZED (
        SELECT g.* FROM ads.ad_groups g JOIN ads.campaigns c ON c.id = g.campaign_id
        WHERE ($1 IS NULL OR c.id = ANY ($1))
          AND coalesce(g.archived_at >= now() - interval '60 days', true)
          AND coalesce(c.archived_at >= now() - interval '60 days', true)),
    creatives AS (
        SELECT k.ad_group_id, json_agg(ads.creative_object(k) ORDER BY k.id) AS list
        FROM ads.creatives k
        WHERE ($2 IS NULL OR k.ad_group_id = ANY ($2))
          AND (coalesce(k.archived_at >= now() - interval '60 days', true)
               OR EXISTS (SELECT FROM ads.variants v WHERE v.creative_id = k.id))
        GROUP BY k.ad_group_id),
    targets AS (
        SELECT t.ad_group_id, json_agg(t.placement_id ORDER BY t.placement_id COLLATE "C") AS list
        FROM ads.ad_group_placements t
        WHERE $2 IS NULL OR t.ad_group_id = ANY ($2)
        GROUP BY t.ad_group_id),
    ad_groups AS (
        SELECT g.campaign_id, json_agg(ads.ad_group_object(g::ads.ad_groups, t.list, k.list) ORDER BY g.id) AS list
        FROM live_groups g LEFT JOIN targets t ON t.ad_group_id = g.id
        LEFT JOIN creatives k ON k.ad_group_id = g.id
        GROUP BY g.campaign_id)
    SELECT 'campaign', c.id::text, ads.campaign_object(c, booked.micro, g.list)::text
    FROM ads.campaigns c LEFT JOIN ad_groups g ON g.campaign_id = c.id
    LEFT JOIN LATERAL (
        SELECT coalesce(sum(s.spend_micro), 0)::bigint AS micro FROM ads.daily_spend s
        WHERE s.campaign_id = c.id AND c.budget_type IS NOT NULL
          AND (c.budget_type = 'lifetime' OR s.day = (now() AT TIME ZONE c.timezone)::date)) booked ON true
    WHERE ($1 IS NULL OR c.id = ANY ($1)) AND coalesce(c.archived_at >= now() - interval '60 days', true)
    ORDER BY c.id
    $$ USING campaigns, groups;

    RETURN QUERY SELECT 'experiment', e.id::text, ads.experiment_object(e)::text
    FROM ads.experiments e JOIN ads.ad_groups g ON g.id = e.ad_group_id JOIN ads.campaigns c ON c.id = g.campaign_id
    WHERE (experiments IS NULL OR e.id = ANY (experiments))
      AND coalesce(g.archived_at >= now() - interval '60 days', true)
      AND coalesce(c.archived_at >= now() - interval '60 days', true)
      AND EXISTS (SELECT FROM ads.variants v WHERE v.experiment_id = e.id)
    ORDER BY e.id;
END $function$;

-- The whole catalog. The aggregates keep the order of the parts.
CREATE OR REPLACE FUNCTION ads.catalog() RETURNS text
STABLE SECURITY DEFINER LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT ads.document_head()
        || '"placements" : [' || coalesce(string_agg(document, ', ') FILTER (WHERE part = 'placement'), '')
        || '], "campaigns" : [' || coalesce(string_agg(document, ', ') FILTER (WHERE part = 'campaign'), '')
        || '], "experiments" : [' || coalesce(string_agg(document, ', ') FILTER (WHERE part = 'experiment'), '')
        || ']}'
    FROM ads.catalog_parts()
$$;

-- The changes since the call that returned this mark, or everything if the mark is empty or too
-- old. The first row has the new mark, and 'all' or 'changes' as its document; a part without a
-- document was deleted. The mark is a snapshot: what is committed after it is returned by the next
-- call, whenever the transaction began.
CREATE OR REPLACE FUNCTION ads.catalog_changes(since text) RETURNS TABLE (part text, id text, document text)
STABLE SECURITY DEFINER LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    seen pg_snapshot := nullif(since, '');
    whole boolean := seen IS NULL OR EXISTS (
        SELECT FROM ads.catalog_edits_swept s WHERE s.newest >= pg_snapshot_xmin(seen));
    head boolean;
    placements text[];
    campaigns text[];
    groups text[];
    experiments text[];
BEGIN
    IF NOT whole THEN
        SELECT coalesce(bool_or(p.part = 'all'), false), coalesce(bool_or(p.part = 'head'), false),
               coalesce(array_agg(DISTINCT p.id) FILTER (WHERE p.part = 'placement'), '{}'),
               coalesce(array_agg(DISTINCT p.id) FILTER (WHERE p.part = 'campaign'), '{}'),
               coalesce(array_agg(DISTINCT p.id) FILTER (WHERE p.part = 'ad_group'), '{}'),
               coalesce(array_agg(DISTINCT p.id) FILTER (WHERE p.part = 'experiment'), '{}')
        INTO whole, head, placements, campaigns, groups, experiments
        FROM ads.catalog_edit_parts p
        WHERE p.edit >= pg_snapshot_xmin(seen) AND NOT pg_visible_in_snapshot(p.edit, seen);
    END IF;
    RETURN QUERY SELECT 'mark', pg_current_snapshot()::text, CASE WHEN whole THEN 'all' ELSE 'changes' END;
    IF whole OR head THEN
        RETURN QUERY SELECT 'head', '', ads.document_head();
    END IF;
    IF whole THEN
        RETURN QUERY SELECT * FROM ads.catalog_parts();
        RETURN;
    END IF;
    campaigns := campaigns || ARRAY(
        SELECT g.campaign_id::text FROM ads.ad_groups g WHERE g.id = ANY (groups::bigint[]));
    -- An experiment is left out when its group or campaign was archived more than 60 days ago.
    experiments := experiments || ARRAY(
        SELECT e.id::text FROM ads.ad_groups g JOIN ads.experiments e ON e.ad_group_id = g.id
        WHERE g.campaign_id = ANY (campaigns::bigint[]));
    RETURN QUERY
    SELECT touched.part, touched.id, now.document
    FROM (SELECT 'placement' AS part, unnest(placements) AS id UNION
          SELECT 'campaign', unnest(campaigns) UNION
          SELECT 'experiment', unnest(experiments)) touched
    LEFT JOIN ads.catalog_parts(placements, campaigns::bigint[], experiments::bigint[]) now
        ON now.part = touched.part AND now.id = touched.id;
END $$;

-- The document of catalog() with all placements but only one campaign, including what is archived
-- in it, and its experiments. Without the campaign if it does not exist. A list of many needs neither
-- the placements nor, perhaps, the ad groups.
DROP FUNCTION IF EXISTS ads.campaign_document(bigint);
CREATE OR REPLACE FUNCTION ads.campaign_document(campaign bigint, with_placements boolean DEFAULT true,
                                                 with_groups boolean DEFAULT true) RETURNS text
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp SET jit = off AS $$
SELECT ads.document_head() || substr(json_build_object(
    'placements', coalesce((
        SELECT json_agg(ads.placement_object(p) ORDER BY p.id COLLATE "C") FROM ads.placements p WHERE $2), '[]'),
    'campaigns', coalesce((
        SELECT json_agg(ads.campaign_object(c, (
                SELECT coalesce(sum(s.spend_micro), 0)::bigint FROM ads.daily_spend s
                WHERE s.campaign_id = c.id AND c.budget_type IS NOT NULL
                  AND (c.budget_type = 'lifetime' OR s.day = (now() AT TIME ZONE c.timezone)::date)), (
                SELECT json_agg(ads.ad_group_object(g, (
                        SELECT json_agg(t.placement_id ORDER BY t.placement_id COLLATE "C")
                        FROM ads.ad_group_placements t WHERE t.ad_group_id = g.id), (
                        SELECT json_agg(ads.creative_object(k) ORDER BY k.id)
                        FROM ads.creatives k WHERE k.ad_group_id = g.id)) ORDER BY g.id)
                FROM ads.ad_groups g WHERE g.campaign_id = c.id AND $3)))
        FROM ads.campaigns c WHERE c.id = $1), '[]'),
    'experiments', coalesce((
        SELECT json_agg(ads.experiment_object(e) ORDER BY e.id)
        FROM ads.experiments e JOIN ads.ad_groups g ON g.id = e.ad_group_id WHERE g.campaign_id = $1), '[]'))::text, 2)
$$;
