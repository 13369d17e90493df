-- Writes a catalog document to the tables. The put_*() functions take parts of the document, write
-- only what differs, and return whether anything changed.
--
-- The document has been checked by the caller (see values.sql), and constraints check what must
-- agree across tables. Arguments are arrays: ids, the ids of the parents, and documents. ON
-- CONFLICT locks and checks every proposed row, so only rows that differ are proposed. Existing
-- rows are looked up one by one by their key (a subquery, or OFFSET 0): the planner has no
-- statistics for joins while tables are filled. Plans are kept for the session, and a plan made for
-- an empty table would read all of it later: hence no sequential scans.

CREATE OR REPLACE FUNCTION ads.put_placement(document jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp SET enable_seqscan = off AS $$
DECLARE
    written bigint;
BEGIN
    INSERT INTO ads.placements AS p (id, name, status, width, height, types, "select", floor_micro, viewable_share,
                                      viewable_seconds)
    VALUES (document ->> 'id', coalesce(document ->> 'name', ''),
            coalesce(document ->> 'status', 'active')::ads.placement_status,
            coalesce((document ->> 'width')::int, 0), coalesce((document ->> 'height')::int, 0),
            ads.texts(document -> 'types')::ads.creative_type[],
            coalesce(document ->> 'select', 'weight')::ads.selection,
            coalesce(ads.micro(document -> 'floor_cents'), 0),
            trim_scale((document -> 'viewable' ->> 'share')::numeric),
            coalesce((document -> 'viewable' ->> 'seconds')::smallint, 1))
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, status = excluded.status, width = excluded.width, height = excluded.height,
        types = excluded.types, "select" = excluded."select", floor_micro = excluded.floor_micro,
        viewable_share = excluded.viewable_share, viewable_seconds = excluded.viewable_seconds;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written > 0;
END $$;

-- The spend counted against a lifetime budget: the value of the document if it is
-- more than what is stored here, else the former value.
CREATE OR REPLACE FUNCTION ads.spent_floor(campaign bigint, given bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    kept bigint;
    booked bigint;
BEGIN
    SELECT coalesce(sum(budget_spent_micro), 0) INTO kept FROM ads.campaigns WHERE id = campaign;
    SELECT coalesce(sum(spend_micro), 0) INTO booked FROM ads.daily_spend WHERE campaign_id = campaign;
    RETURN CASE WHEN given > greatest(kept, booked) THEN given ELSE kept END;
END $$;

CREATE OR REPLACE FUNCTION ads.put_campaign_rows(documents jsonb[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    written bigint;
BEGIN
    -- Time zones that are newer than the list.
    IF EXISTS (SELECT FROM unnest(documents) AS t (d)
               WHERE NOT coalesce((SELECT true FROM ads.timezones z WHERE z.name = d ->> 'timezone'),
                                  d ->> 'timezone' IS NULL)) THEN
        INSERT INTO ads.timezones SELECT name FROM pg_timezone_names
        WHERE name IN (SELECT d ->> 'timezone' FROM unnest(documents) AS t (d))
          AND name !~ '^(posix|right)/' AND name NOT IN ('localtime', 'posixrules', 'Factory')
        ON CONFLICT DO NOTHING;
    END IF;
    INSERT INTO ads.advertisers (name)
    SELECT DISTINCT d ->> 'advertiser' FROM unnest(documents) AS t (d)
    WHERE d ->> 'advertiser' <> ''
    ORDER BY 1
    ON CONFLICT DO NOTHING;

    INSERT INTO ads.campaigns AS c (id, name, advertiser, status, timezone, starts_at, ends_at, budget_type,
                                    budget_micro, hard_cap, budget_spent_micro)
    SELECT * FROM (
        SELECT (d ->> 'id')::bigint AS id, coalesce(d ->> 'name', '') AS name,
            nullif(d ->> 'advertiser', '') AS advertiser,
            coalesce(d ->> 'status', 'active')::ads.status AS status,
            coalesce(d ->> 'timezone', 'UTC') AS timezone,
            ads.read_moment(d -> 'start') AS starts_at, ads.read_moment(d -> 'end') AS ends_at,
            kind, ads.micro(budget -> 'amount_cents') AS micro,
            CASE WHEN kind IS NOT NULL THEN coalesce((budget ->> 'hard_cap')::float8, 1.2) END AS hard_cap,
            -- For a daily budget, the document does not say which day the value is for.
            CASE WHEN kind = 'lifetime' THEN ads.spent_floor((d ->> 'id')::bigint,
                coalesce(ads.micro(budget -> 'spent_cents'), 0)) ELSE 0 END AS spent
        FROM (SELECT d, d -> 'budget' AS budget, CASE WHEN coalesce(d -> 'budget', 'null') <> 'null'
                         THEN coalesce(d -> 'budget' ->> 'type', 'daily') END::ads.budget_type AS kind
              FROM unnest(documents) AS t (d) OFFSET 0) one OFFSET 0) n
    WHERE NOT coalesce((
        SELECT (o.name, o.advertiser, o.status, o.timezone, o.starts_at, o.ends_at, o.budget_type, o.budget_micro,
                o.hard_cap, o.budget_spent_micro)
            IS NOT DISTINCT FROM (n.name, n.advertiser, n.status, n.timezone, n.starts_at, n.ends_at, n.kind, n.micro,
                n.hard_cap, n.spent)
        FROM ads.campaigns o WHERE o.id = n.id), false)
    ORDER BY n.id
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, advertiser = excluded.advertiser, status = excluded.status,
        timezone = excluded.timezone, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
        budget_type = excluded.budget_type, budget_micro = excluded.budget_micro, hard_cap = excluded.hard_cap,
        budget_spent_micro = excluded.budget_spent_micro;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
END $$;

-- The id of a group of another campaign is refused.
CREATE OR REPLACE FUNCTION ads.put_ad_groups(ids bigint[], campaigns bigint[], documents jsonb[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    taken record;
    written bigint;
BEGIN
    SELECT n.campaign, n.id, g.campaign_id INTO taken
    FROM unnest(ids, campaigns) AS n (id, campaign),
         LATERAL (SELECT o.campaign_id FROM ads.ad_groups o WHERE o.id = n.id OFFSET 0) g
    WHERE g.campaign_id <> n.campaign LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'campaign %: id % is already used by an ad group of campaign %', taken.campaign, taken.id,
            taken.campaign_id USING ERRCODE = 'unique_violation';
    END IF;

    INSERT INTO ads.ad_groups AS g (
        id, campaign_id, name, status, starts_at, ends_at, priority, weight, price_model, price_micro, strategy,
        cap_on, daily_impression_cap, daily_click_cap, goal_on, goal_count, frequency_caps, devices, geos, schedule,
        include_urls, exclude_urls, keys, languages, category, exclusive, together)
    SELECT * FROM (
        SELECT id, campaign, coalesce(d ->> 'name', '') AS name,
            coalesce(d ->> 'status', 'active')::ads.status AS status,
            ads.read_moment(d -> 'start') AS starts_at, ads.read_moment(d -> 'end') AS ends_at,
            coalesce(d ->> 'priority', 'standard')::ads.priority AS priority,
            coalesce((d ->> 'weight')::int, 1) AS weight,
            coalesce(d -> 'price' ->> 'model', 'cpm')::ads.price_model AS price_model,
            coalesce(ads.micro(d -> 'price' -> 'amount_cents'), 0) AS price_micro,
            coalesce(pacing ->> 'strategy', 'adaptive')::ads.strategy AS strategy,
            -- A goal of impressions counts confirmed impressions unless the document says
            -- otherwise.
            coalesce(pacing ->> 'cap_on', CASE WHEN goal ->> 'impressions' IS NOT NULL THEN 'impression' ELSE 'serve' END
                )::ads.cap_on AS cap_on,
            (pacing ->> 'daily_impression_cap')::bigint AS daily_impression_cap,
            (pacing ->> 'daily_click_cap')::bigint AS daily_click_cap,
            CASE WHEN goal ->> 'impressions' IS NOT NULL THEN 'impressions'
                 WHEN goal ->> 'clicks' IS NOT NULL THEN 'clicks' END::ads.goal_on AS goal_on,
            coalesce(goal ->> 'impressions', goal ->> 'clicks')::bigint AS goal_count,
            ads.read_caps(d -> 'frequency_caps') AS frequency_caps,
            ads.texts(targeting -> 'devices')::ads.device[] AS devices,
            ads.folded_texts(targeting -> 'geos', true) AS geos,
            ads.read_schedule(targeting -> 'schedule') AS schedule,
            ads.texts(targeting -> 'urls' -> 'include') AS include_urls,
            ads.texts(targeting -> 'urls' -> 'exclude') AS exclude_urls,
            ads.read_keys(targeting -> 'keys') AS keys,
            ads.folded_texts(targeting -> 'languages', false) AS languages,
            coalesce(d ->> 'category', '') AS category,
            coalesce(d ->> 'exclusive', 'none')::ads.exclusive AS exclusive,
            coalesce(d ->> 'together', '') AS together
        FROM (SELECT id, campaign, d, d -> 'pacing' AS pacing, d -> 'pacing' -> 'goal' AS goal,
                     d -> 'targeting' AS targeting
              FROM unnest(ids, campaigns, documents) AS t (id, campaign, d) OFFSET 0) one OFFSET 0) n
    WHERE NOT coalesce((
        SELECT (o.name, o.status, o.starts_at, o.ends_at, o.priority, o.weight, o.price_model, o.price_micro,
                o.strategy, o.cap_on, o.daily_impression_cap, o.daily_click_cap, o.goal_on, o.goal_count,
                o.frequency_caps, o.devices, o.geos, o.schedule, o.include_urls, o.exclude_urls, o.keys, o.languages,
                o.category, o.exclusive, o.together)
            IS NOT DISTINCT FROM (n.name, n.status, n.starts_at, n.ends_at, n.priority, n.weight, n.price_model,
                n.price_micro, n.strategy, n.cap_on, n.daily_impression_cap, n.daily_click_cap, n.goal_on,
                n.goal_count, n.frequency_caps, n.devices, n.geos, n.schedule, n.include_urls, n.exclude_urls, n.keys,
                n.languages, n.category, n.exclusive, n.together)
        FROM ads.ad_groups o WHERE o.id = n.id), false)
    ORDER BY n.id
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, status = excluded.status, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
        priority = excluded.priority, weight = excluded.weight, price_model = excluded.price_model,
        price_micro = excluded.price_micro, strategy = excluded.strategy, cap_on = excluded.cap_on,
        daily_impression_cap = excluded.daily_impression_cap, daily_click_cap = excluded.daily_click_cap,
        goal_on = excluded.goal_on, goal_count = excluded.goal_count, frequency_caps = excluded.frequency_caps,
        devices = excluded.devices, geos = excluded.geos, schedule = excluded.schedule,
        include_urls = excluded.include_urls, exclude_urls = excluded.exclude_urls, keys = excluded.keys,
        languages = excluded.languages, category = excluded.category, exclusive = excluded.exclusive,
        together = excluded.together;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
END $$;

CREATE OR REPLACE FUNCTION ads.put_targets(groups bigint[], documents jsonb[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    targets bigint[];
    places text[];
    written bigint;
    changed bigint;
BEGIN
    SELECT array_agg(id), array_agg(place) INTO targets, places
    FROM unnest(groups, documents) AS g (id, d),
         unnest(ads.texts(d -> 'targeting' -> 'placements')) AS p (place);
    DELETE FROM ads.ad_group_placements t
    WHERE t.ad_group_id = ANY (groups)
      AND (t.ad_group_id, t.placement_id) NOT IN (SELECT * FROM unnest(targets, places));
    GET DIAGNOSTICS written = ROW_COUNT;
    INSERT INTO ads.ad_group_placements (ad_group_id, placement_id)
    SELECT * FROM unnest(targets, places)
    ORDER BY 1, 2
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN written + changed;
END $$;

CREATE OR REPLACE FUNCTION ads.put_creatives(ids bigint[], groups bigint[], documents jsonb[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    taken record;
    written bigint;
BEGIN
    SELECT n.ad_group, n.id, k.ad_group_id INTO taken
    FROM unnest(ids, groups) AS n (id, ad_group),
         LATERAL (SELECT o.ad_group_id FROM ads.creatives o WHERE o.id = n.id OFFSET 0) k
    WHERE k.ad_group_id <> n.ad_group LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'ad group %: id % is already used by a creative of ad group %', taken.ad_group, taken.id,
            taken.ad_group_id USING ERRCODE = 'unique_violation';
    END IF;

    INSERT INTO ads.creatives AS k (id, ad_group_id, name, type, status, weight, width, height, content, click_url,
                                    impression_url)
    SELECT * FROM (
        SELECT id, ad_group, coalesce(d ->> 'name', '') AS name, (d ->> 'type')::ads.creative_type AS type,
               coalesce(d ->> 'status', 'active')::ads.status AS status,
               coalesce((d ->> 'weight')::int, 1) AS weight,
               coalesce((d ->> 'width')::int, 0) AS width, coalesce((d ->> 'height')::int, 0) AS height,
               nullif(d -> 'content', 'null') AS content, d ->> 'click_url' AS click_url,
               d ->> 'impression_url' AS impression_url
        FROM unnest(ids, groups, documents) AS t (id, ad_group, d) OFFSET 0) n
    WHERE NOT coalesce((
        SELECT (o.name, o.type, o.status, o.weight, o.width, o.height, o.content, o.click_url, o.impression_url)
            IS NOT DISTINCT FROM (n.name, n.type, n.status, n.weight, n.width, n.height, n.content, n.click_url,
                n.impression_url)
        FROM ads.creatives o WHERE o.id = n.id), false)
    ORDER BY n.id
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, type = excluded.type, status = excluded.status, weight = excluded.weight,
        width = excluded.width, height = excluded.height, content = excluded.content,
        click_url = excluded.click_url, impression_url = excluded.impression_url;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
END $$;

-- The parts of campaigns. Parts that are no longer in the document are archived, not deleted: their
-- tokens may still be used.
CREATE OR REPLACE FUNCTION ads.put_below(campaigns jsonb[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[] := ARRAY(SELECT (c ->> 'id')::bigint FROM unnest(campaigns) AS t (c));
    group_ids bigint[];
    group_campaigns bigint[];
    group_documents jsonb[];
    creative_ids bigint[];
    creative_groups bigint[];
    creative_documents jsonb[];
    written bigint;
    changed bigint;
BEGIN
    SELECT array_agg((d ->> 'id')::bigint), array_agg(id), array_agg(d) INTO group_ids, group_campaigns, group_documents
    FROM unnest(ids, campaigns) AS t (id, c),
         jsonb_array_elements(coalesce(nullif(c -> 'ad_groups', 'null'), '[]')) AS g (d);
    written := ads.put_ad_groups(group_ids, group_campaigns, group_documents);
    UPDATE ads.ad_groups SET status = 'archived'
    WHERE campaign_id = ANY (ids) AND id NOT IN (SELECT unnest(group_ids)) AND status <> 'archived';
    GET DIAGNOSTICS changed = ROW_COUNT;
    written := written + changed + ads.put_targets(group_ids, group_documents);

    SELECT array_agg((d ->> 'id')::bigint), array_agg(id), array_agg(d)
    INTO creative_ids, creative_groups, creative_documents
    FROM unnest(group_ids, group_documents) AS t (id, g),
         jsonb_array_elements(coalesce(nullif(g -> 'creatives', 'null'), '[]')) AS k (d);
    written := written + ads.put_creatives(creative_ids, creative_groups, creative_documents);
    UPDATE ads.creatives SET status = 'archived'
    WHERE ad_group_id = ANY (group_ids) AND id NOT IN (SELECT unnest(creative_ids)) AND status <> 'archived';
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN written + changed;
END $$;

-- Campaigns with all their parts. Lists of ids are looked up by hash only while the hash table fits
-- into work_mem.
CREATE OR REPLACE FUNCTION ads.put_campaigns(documents jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp SET enable_seqscan = off SET jit = off
SET work_mem = '64MB' AS $$
DECLARE
    campaigns jsonb[] := ARRAY(SELECT jsonb_array_elements(documents));
BEGIN
    RETURN ads.put_campaign_rows(campaigns) + ads.put_below(campaigns) > 0;
END $$;

CREATE OR REPLACE FUNCTION ads.put_campaign(document jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    RETURN ads.put_campaigns(jsonb_build_array(document));
END $$;

CREATE OR REPLACE FUNCTION ads.put_experiment(document jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    experiment bigint := document ->> 'id';
    ad_group bigint := document ->> 'ad_group';
    wanted jsonb := coalesce(nullif(document -> 'variants', 'null'), '[]');
    written bigint;
    changed bigint;
BEGIN
    INSERT INTO ads.experiments AS e (id, name, ad_group_id, status, metric, alpha, min_sample, mde, allocation,
                                      winner)
    VALUES (experiment, coalesce(document ->> 'name', ''), ad_group,
            coalesce(document ->> 'status', 'draft')::ads.experiment_status,
            coalesce(document ->> 'metric', 'ctr')::ads.metric,
            coalesce((document ->> 'alpha')::float8, 0.05), coalesce((document ->> 'min_sample')::bigint, 1000),
            coalesce((document ->> 'mde')::float8, 0.001),
            coalesce(document ->> 'allocation', 'fixed')::ads.allocation,
            (document ->> 'winner')::bigint)
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, ad_group_id = excluded.ad_group_id, status = excluded.status,
        metric = excluded.metric, alpha = excluded.alpha, min_sample = excluded.min_sample, mde = excluded.mde,
        allocation = excluded.allocation, winner = excluded.winner;
    GET DIAGNOSTICS written = ROW_COUNT;

    DELETE FROM ads.variants
    WHERE experiment_id = experiment
      AND creative_id <> ALL (ARRAY(SELECT (v ->> 'creative')::bigint FROM jsonb_array_elements(wanted) AS t (v)));
    GET DIAGNOSTICS changed = ROW_COUNT;
    written := written + changed;
    INSERT INTO ads.variants AS t (experiment_id, creative_id, ad_group_id, share)
    SELECT experiment, (v ->> 'creative')::bigint, ad_group, (v ->> 'share')::float8
    FROM jsonb_array_elements(wanted) AS i (v)
    ORDER BY 2
    ON CONFLICT (experiment_id, creative_id)
    DO UPDATE SET ad_group_id = excluded.ad_group_id, share = excluded.share;
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN written + changed > 0;
END $$;
