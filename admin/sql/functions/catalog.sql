-- The catalog as nodes load it, and as the command edits it.

CREATE OR REPLACE FUNCTION ads.catalog_version() RETURNS text
STABLE SECURITY DEFINER
LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT (swept.edits + edits.count)::text || '.' || coalesce(edits.newest::text, '0')
    FROM ads.catalog_edits_swept swept,
         (SELECT count(*), (SELECT e.id FROM ads.catalog_edits e ORDER BY e.id DESC LIMIT 1) AS newest
          FROM ads.catalog_edits) edits
$$;

-- {"version" : 1, and the currency if there is one.
CREATE OR REPLACE FUNCTION ads.document_head() RETURNS text STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT '{"version" : 1, ' || coalesce((SELECT '"currency" : "' || currency || '", ' FROM ads.settings), '')
$$;

-- The whole catalog. Ask for catalog_version() before: what is committed in between is then loaded
-- once too often, not missed. What was archived over 60 days ago is left out, no token that leads
-- there is valid any more.
CREATE OR REPLACE FUNCTION ads.catalog() RETURNS text
STABLE SECURITY DEFINER
LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp SET jit = off AS $$
WITH
live_groups AS MATERIALIZED (
    SELECT g.* FROM ads.ad_groups g JOIN ads.campaigns c ON c.id = g.campaign_id
    WHERE coalesce(g.archived_at >= now() - interval '60 days', true)
      AND coalesce(c.archived_at >= now() - interval '60 days', true)),
creatives AS (
    SELECT k.ad_group_id, json_agg(json_strip_nulls(json_build_object(
        'id', k.id, 'name', k.name, 'type', k.type, 'status', k.status, 'weight', k.weight, 'width', k.width,
        'height', k.height, 'content', k.content, 'click_url', k.click_url, 'impression_url', k.impression_url))
        ORDER BY k.id) AS list
    FROM ads.creatives k
    WHERE coalesce(k.archived_at >= now() - interval '60 days', true)
       OR EXISTS (SELECT FROM ads.variants v WHERE v.creative_id = k.id)
    GROUP BY k.ad_group_id),
targets AS (
    SELECT ad_group_id, json_agg(placement_id ORDER BY placement_id COLLATE "C") AS list
    FROM ads.ad_group_placements GROUP BY ad_group_id),
ad_groups AS (
    SELECT g.campaign_id, json_agg(json_build_object(
        'id', g.id, 'name', g.name, 'status', g.status,
        'start', ads.moment_text(g.starts_at), 'end', ads.moment_text(g.ends_at),
        'priority', g.priority, 'weight', g.weight,
        'price', json_build_object('model', g.price_model, 'amount_cents', ads.cents(g.price_micro)),
        'pacing', json_build_object('strategy', g.strategy, 'cap_on', g.cap_on,
            'daily_impression_cap', g.daily_impression_cap, 'daily_click_cap', g.daily_click_cap,
            'goal', CASE WHEN g.goal_on IS NOT NULL THEN json_build_object(g.goal_on, g.goal_count) END),
        'frequency_caps', g.frequency_caps,
        'targeting', json_build_object('placements', coalesce(t.list, '[]'), 'devices', g.devices, 'geos', g.geos,
            'schedule', g.schedule, 'urls', json_build_object('include', g.include_urls, 'exclude', g.exclude_urls),
            'keys', g.keys, 'languages', g.languages),
        'category', g.category, 'exclusive', g.exclusive, 'together', g.together,
        'creatives', coalesce(k.list, '[]')) ORDER BY g.id) AS list
    FROM live_groups g LEFT JOIN targets t ON t.ad_group_id = g.id LEFT JOIN creatives k ON k.ad_group_id = g.id
    GROUP BY g.campaign_id),
campaigns AS (
    SELECT json_agg(json_build_object(
        'id', c.id, 'name', c.name, 'advertiser', coalesce(c.advertiser, ''), 'status', c.status,
        'timezone', c.timezone, 'start', ads.moment_text(c.starts_at), 'end', ads.moment_text(c.ends_at),
        'budget', CASE WHEN c.budget_type IS NOT NULL THEN json_build_object('type', c.budget_type,
            'amount_cents', ads.cents(c.budget_micro),
            'spent_cents', ads.cents(greatest(c.budget_spent_micro, booked.micro)),
            'hard_cap', c.hard_cap) END,
        'updated_at', ads.moment_text(c.updated_at), 'ad_groups', coalesce(g.list, '[]')) ORDER BY c.id) AS list
    FROM ads.campaigns c LEFT JOIN ad_groups g ON g.campaign_id = c.id
    LEFT JOIN LATERAL (
        SELECT coalesce(sum(s.spend_micro), 0)::bigint AS micro FROM ads.daily_spend s
        WHERE s.campaign_id = c.id AND c.budget_type IS NOT NULL
          AND (c.budget_type = 'lifetime' OR s.day = (now() AT TIME ZONE c.timezone)::date)) booked ON true
    WHERE coalesce(c.archived_at >= now() - interval '60 days', true)),
placements AS (
    SELECT json_agg(json_build_object('id', p.id, 'name', p.name, 'status', p.status, 'width', p.width,
        'height', p.height, 'types', p.types, 'select', p."select", 'floor_cents', ads.cents(p.floor_micro))
        ORDER BY p.id COLLATE "C") AS list
    FROM ads.placements p),
variants AS (
    SELECT experiment_id, json_agg(json_build_object('creative', creative_id, 'share', share) ORDER BY creative_id)
        AS list
    FROM ads.variants GROUP BY experiment_id),
experiments AS (
    SELECT json_agg(json_build_object('id', e.id, 'name', e.name, 'ad_group', e.ad_group_id, 'status', e.status,
        'metric', e.metric, 'alpha', e.alpha, 'min_sample', e.min_sample, 'mde', e.mde,
        'allocation', e.allocation, 'variants', v.list, 'winner', e.winner) ORDER BY e.id) AS list
    FROM ads.experiments e JOIN live_groups g ON g.id = e.ad_group_id JOIN variants v ON v.experiment_id = e.id)
SELECT ads.document_head() || substr(json_build_object('placements', coalesce(placements.list, '[]'),
    'campaigns', coalesce(campaigns.list, '[]'), 'experiments', coalesce(experiments.list, '[]'))::text, 2)
FROM placements, campaigns, experiments
$$;

-- The document of catalog() with all placements, but one campaign, whatever is archived in it, and
-- its experiments. No campaign if there is none.
CREATE OR REPLACE FUNCTION ads.campaign_document(campaign bigint) RETURNS text
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp SET jit = off AS $$
SELECT ads.document_head() || substr(json_build_object(
    'placements', coalesce((
        SELECT json_agg(json_build_object('id', p.id, 'name', p.name, 'status', p.status, 'width', p.width,
            'height', p.height, 'types', p.types, 'select', p."select", 'floor_cents', ads.cents(p.floor_micro))
            ORDER BY p.id COLLATE "C")
        FROM ads.placements p), '[]'),
    'campaigns', coalesce((
        SELECT json_agg(json_build_object(
            'id', c.id, 'name', c.name, 'advertiser', coalesce(c.advertiser, ''), 'status', c.status,
            'timezone', c.timezone, 'start', ads.moment_text(c.starts_at), 'end', ads.moment_text(c.ends_at),
            'budget', CASE WHEN c.budget_type IS NOT NULL THEN json_build_object('type', c.budget_type,
                'amount_cents', ads.cents(c.budget_micro),
                'spent_cents', ads.cents(greatest(c.budget_spent_micro, (
                    SELECT coalesce(sum(s.spend_micro), 0)::bigint FROM ads.daily_spend s
                    WHERE s.campaign_id = c.id
                      AND (c.budget_type = 'lifetime' OR s.day = (now() AT TIME ZONE c.timezone)::date)))),
                'hard_cap', c.hard_cap) END,
            'updated_at', ads.moment_text(c.updated_at),
            'ad_groups', coalesce((
                SELECT json_agg(json_build_object(
                    'id', g.id, 'name', g.name, 'status', g.status,
                    'start', ads.moment_text(g.starts_at), 'end', ads.moment_text(g.ends_at),
                    'priority', g.priority, 'weight', g.weight,
                    'price', json_build_object('model', g.price_model, 'amount_cents', ads.cents(g.price_micro)),
                    'pacing', json_build_object('strategy', g.strategy, 'cap_on', g.cap_on,
                        'daily_impression_cap', g.daily_impression_cap, 'daily_click_cap', g.daily_click_cap,
                        'goal', CASE WHEN g.goal_on IS NOT NULL THEN json_build_object(g.goal_on, g.goal_count) END),
                    'frequency_caps', g.frequency_caps,
                    'targeting', json_build_object('placements', coalesce((
                            SELECT json_agg(t.placement_id ORDER BY t.placement_id COLLATE "C")
                            FROM ads.ad_group_placements t WHERE t.ad_group_id = g.id), '[]'),
                        'devices', g.devices, 'geos', g.geos, 'schedule', g.schedule,
                        'urls', json_build_object('include', g.include_urls, 'exclude', g.exclude_urls),
                        'keys', g.keys, 'languages', g.languages),
                    'category', g.category, 'exclusive', g.exclusive, 'together', g.together,
                    'creatives', coalesce((
                        SELECT json_agg(json_strip_nulls(json_build_object(
                            'id', k.id, 'name', k.name, 'type', k.type, 'status', k.status, 'weight', k.weight,
                            'width', k.width, 'height', k.height, 'content', k.content,
                            'click_url', k.click_url, 'impression_url', k.impression_url)) ORDER BY k.id)
                        FROM ads.creatives k WHERE k.ad_group_id = g.id), '[]')) ORDER BY g.id)
                FROM ads.ad_groups g WHERE g.campaign_id = c.id), '[]')))
        FROM ads.campaigns c WHERE c.id = $1), '[]'),
    'experiments', coalesce((
        SELECT json_agg(json_build_object('id', e.id, 'name', e.name, 'ad_group', e.ad_group_id,
            'status', e.status, 'metric', e.metric, 'alpha', e.alpha, 'min_sample', e.min_sample, 'mde', e.mde,
            'allocation', e.allocation, 'variants', (
                SELECT json_agg(json_build_object('creative', v.creative_id, 'share', v.share) ORDER BY v.creative_id)
                FROM ads.variants v WHERE v.experiment_id = e.id),
            'winner', e.winner) ORDER BY e.id)
        FROM ads.experiments e JOIN ads.ad_groups g ON g.id = e.ad_group_id WHERE g.campaign_id = $1), '[]'))::text, 2)
$$;
