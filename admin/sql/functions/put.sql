-- The way from the catalog document into the tables: put_*() take parts of the document, fill in
-- defaults, write only what differs, and return whether anything changed.
--
-- Lists of things come as arrays: of the documents, of what each belongs to, and of what to call
-- that in a complaint. Only what differs is written: a row that is proposed to ON CONFLICT is
-- locked and checked even if it is the same. What is there is looked up for each by its key (a
-- subquery, or OFFSET 0): joins are planned by what the planner knows of tables, which is nothing
-- while they are filled. Plans are kept for the session, and one made for a table that was empty
-- then would read all of it: hence no sequential scans.

CREATE OR REPLACE FUNCTION ads.put_placement(document jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp SET enable_seqscan = off AS $$
DECLARE
    written bigint;
BEGIN
    PERFORM ads.check_object(document, 'placement ' || coalesce(document ->> 'id', '?'),
                             '{id,name,status,width,height,types,select,floor_cents}');
    INSERT INTO ads.placements AS p (id, name, status, width, height, types, "select", floor_micro)
    VALUES (ads.string(document -> 'id'), coalesce(ads.string(document -> 'name'), ''),
            coalesce(ads.string(document -> 'status'), 'active')::ads.placement_status,
            coalesce(ads.whole(document -> 'width'), 0), coalesce(ads.whole(document -> 'height'), 0),
            ads.texts(document -> 'types')::ads.creative_type[],
            coalesce(ads.string(document -> 'select'), 'weight')::ads.selection,
            coalesce(ads.micro(document -> 'floor_cents'), 0))
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, status = excluded.status, width = excluded.width, height = excluded.height,
        types = excluded.types, "select" = excluded."select", floor_micro = excluded.floor_micro;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written > 0;
END $$;

-- What is taken for spent of a lifetime budget: what the document says if that is
-- more than the books here know of, else what it was.
CREATE OR REPLACE FUNCTION ads.spent_floor(campaign bigint, given bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    kept bigint;
    booked bigint;
BEGIN
    SELECT coalesce(sum(budget_spent_micro), 0) INTO kept FROM ads.campaigns WHERE id = campaign;
    SELECT coalesce(sum(spend_micro), 0) INTO booked FROM ads.daily_spend WHERE campaign_id = campaign;
    RETURN CASE WHEN given > greatest(kept, booked) THEN given ELSE kept END;
END $$;

-- The ids of things, each once.
CREATE OR REPLACE FUNCTION ads.read_ids(documents jsonb[], paths text[], name text) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[] := ARRAY(SELECT ads.whole(d -> 'id') FROM unnest(documents) AS t (d));
    place bigint := array_position(ids, NULL);
BEGIN
    IF place IS NOT NULL THEN
        PERFORM ads.refuse(paths[place] || name, 'every one must have an id');
    END IF;
    IF (SELECT count(DISTINCT id) FROM unnest(ids) AS i (id)) <> cardinality(ids) THEN
        SELECT min(twice.place) INTO place
        FROM (SELECT max(i.place) AS place FROM unnest(ids) WITH ORDINALITY AS i (id, place)
              GROUP BY i.id HAVING count(*) > 1) twice;
        RAISE EXCEPTION '%: an id is there twice', paths[place] || name USING ERRCODE = 'unique_violation';
    END IF;
    RETURN ids;
END $$;

CREATE OR REPLACE FUNCTION ads.put_campaign_rows(documents jsonb[], paths text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    written bigint;
BEGIN
    PERFORM ads.read_moment(d -> 'updated_at') FROM unnest(documents) AS t (d);
    -- Names that are newer than the list of them.
    IF EXISTS (SELECT FROM unnest(documents) AS t (d)
               WHERE NOT coalesce((SELECT true FROM ads.timezones z WHERE z.name = ads.string(d -> 'timezone')),
                                  ads.string(d -> 'timezone') IS NULL)) THEN
        INSERT INTO ads.timezones SELECT name FROM pg_timezone_names
        WHERE name IN (SELECT ads.string(d -> 'timezone') FROM unnest(documents) AS t (d))
          AND name !~ '^(posix|right)/' AND name NOT IN ('localtime', 'posixrules', 'Factory')
        ON CONFLICT DO NOTHING;
    END IF;
    INSERT INTO ads.advertisers (name)
    SELECT DISTINCT ads.string(d -> 'advertiser') FROM unnest(documents) AS t (d)
    WHERE ads.string(d -> 'advertiser') <> ''
    ORDER BY 1
    ON CONFLICT DO NOTHING;

    INSERT INTO ads.campaigns AS c (id, name, advertiser, status, timezone, starts_at, ends_at, budget_type,
                                    budget_micro, hard_cap, budget_spent_micro)
    SELECT * FROM (
        SELECT ads.whole(d -> 'id') AS id, coalesce(ads.string(d -> 'name'), '') AS name,
            nullif(ads.string(d -> 'advertiser'), '') AS advertiser,
            coalesce(ads.string(d -> 'status'), 'active')::ads.status AS status,
            coalesce(ads.string(d -> 'timezone'), 'UTC') AS timezone,
            ads.read_moment(d -> 'start') AS starts_at, ads.read_moment(d -> 'end') AS ends_at,
            kind, ads.micro(budget -> 'amount_cents') AS micro,
            CASE WHEN kind IS NOT NULL THEN coalesce(ads.number(budget -> 'hard_cap'), 1.2) END AS hard_cap,
            -- Of a daily budget the document does not say which day it speaks of.
            CASE WHEN kind = 'lifetime' THEN ads.spent_floor(ads.whole(d -> 'id'),
                coalesce(ads.micro(budget -> 'spent_cents'), 0)) ELSE 0 END AS spent
        FROM (SELECT d, budget, CASE WHEN coalesce(d -> 'budget', 'null') <> 'null'
                         THEN coalesce(ads.string(budget -> 'type'), 'daily') END::ads.budget_type AS kind
              FROM (SELECT d, ads.member(d, 'budget', path, '{type,amount_cents,spent_cents,hard_cap}') AS budget
                    FROM unnest(documents, paths) AS t (d, path) OFFSET 0) one OFFSET 0) two OFFSET 0) n
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

-- A goal of impressions counts confirmed impressions unless its document says otherwise, as the
-- catalog compiler has it.
CREATE OR REPLACE FUNCTION ads.put_ad_groups(ids bigint[], campaigns bigint[], documents jsonb[], paths text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    taken record;
    written bigint;
BEGIN
    PERFORM ads.check_object(d, path || ', ad group ' || (d ->> 'id'),
        '{id,name,status,start,end,priority,weight,price,pacing,frequency_caps,targeting,category,exclusive,together,creatives}')
    FROM unnest(documents, paths) AS t (d, path);
    SELECT n.path, n.id, g.campaign_id INTO taken
    FROM unnest(ids, campaigns, paths) AS n (id, campaign, path),
         LATERAL (SELECT o.campaign_id FROM ads.ad_groups o WHERE o.id = n.id OFFSET 0) g
    WHERE g.campaign_id <> n.campaign LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '%: id % is already used by an ad group of campaign %', taken.path, taken.id, taken.campaign_id
            USING ERRCODE = 'unique_violation';
    END IF;

    INSERT INTO ads.ad_groups AS g (
        id, campaign_id, name, status, starts_at, ends_at, priority, weight, price_model, price_micro, strategy,
        cap_on, daily_impression_cap, daily_click_cap, goal_on, goal_count, frequency_caps, devices, geos, schedule,
        include_urls, exclude_urls, keys, languages, category, exclusive, together)
    SELECT * FROM (
        SELECT id, campaign, coalesce(ads.string(d -> 'name'), '') AS name,
            coalesce(ads.string(d -> 'status'), 'active')::ads.status AS status,
            ads.read_moment(d -> 'start') AS starts_at, ads.read_moment(d -> 'end') AS ends_at,
            coalesce(ads.string(d -> 'priority'), 'standard')::ads.priority AS priority,
            coalesce(ads.whole(d -> 'weight'), 1) AS weight,
            coalesce(ads.string(price -> 'model'), 'cpm')::ads.price_model AS price_model,
            coalesce(ads.micro(price -> 'amount_cents'), 0) AS price_micro,
            coalesce(ads.string(pacing -> 'strategy'), 'adaptive')::ads.strategy AS strategy,
            coalesce(ads.string(pacing -> 'cap_on'),
                     CASE WHEN coalesce(goal -> 'impressions', 'null') <> 'null' THEN 'impression' ELSE 'serve' END
                )::ads.cap_on AS cap_on,
            ads.whole(pacing -> 'daily_impression_cap') AS daily_impression_cap,
            ads.whole(pacing -> 'daily_click_cap') AS daily_click_cap,
            CASE WHEN coalesce(goal -> 'impressions', 'null') <> 'null' THEN 'impressions'
                 WHEN coalesce(goal -> 'clicks', 'null') <> 'null' THEN 'clicks' END::ads.goal_on AS goal_on,
            coalesce(ads.whole(goal -> 'impressions'), ads.whole(goal -> 'clicks')) AS goal_count,
            ads.read_caps(ads.list(d, 'frequency_caps', at), at || '.frequency_caps') AS frequency_caps,
            ads.texts(targeting -> 'devices')::ads.device[] AS devices,
            ads.folded_texts(targeting -> 'geos', true) AS geos,
            ads.read_schedule(ads.list(targeting, 'schedule', at), at || '.schedule') AS schedule,
            CASE WHEN urls = '{}' THEN '{}' ELSE ads.texts(urls -> 'include') END AS include_urls,
            CASE WHEN urls = '{}' THEN '{}' ELSE ads.texts(urls -> 'exclude') END AS exclude_urls,
            ads.read_keys(targeting -> 'keys', at || '.keys') AS keys,
            ads.folded_texts(targeting -> 'languages', false) AS languages,
            coalesce(ads.string(d -> 'category'), '') AS category,
            coalesce(ads.string(d -> 'exclusive'), 'none')::ads.exclusive AS exclusive,
            coalesce(ads.string(d -> 'together'), '') AS together
        FROM (SELECT id, campaign, d, at, price, pacing, targeting, ads.read_goal(pacing, at || '.pacing') AS goal,
                     ads.member(targeting, 'urls', at || '.targeting', '{include,exclude}') AS urls
              FROM (SELECT id, campaign, d, at, ads.member(d, 'price', at, '{model,amount_cents}') AS price,
                           ads.member(d, 'pacing', at,
                                      '{strategy,cap_on,daily_impression_cap,daily_click_cap,goal}') AS pacing,
                           ads.member(d, 'targeting', at,
                                      '{placements,devices,geos,schedule,urls,keys,languages}') AS targeting
                    FROM (SELECT id, campaign, d, path || ', ad group ' || id AS at
                          FROM unnest(ids, campaigns, documents, paths) AS t (id, campaign, d, path)
                          OFFSET 0) one OFFSET 0) two OFFSET 0) three OFFSET 0) n
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

CREATE OR REPLACE FUNCTION ads.put_creatives(ids bigint[], groups bigint[], documents jsonb[], paths text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    taken record;
    written bigint;
BEGIN
    SELECT n.path, n.id, k.ad_group_id INTO taken
    FROM unnest(ids, groups, paths) AS n (id, ad_group, path),
         LATERAL (SELECT o.ad_group_id FROM ads.creatives o WHERE o.id = n.id OFFSET 0) k
    WHERE k.ad_group_id <> n.ad_group LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '%: id % is already used by a creative of ad group %', taken.path, taken.id, taken.ad_group_id
            USING ERRCODE = 'unique_violation';
    END IF;

    INSERT INTO ads.creatives AS k (id, ad_group_id, name, type, status, weight, width, height, content, click_url,
                                    impression_url)
    SELECT * FROM (
        SELECT id, ad_group, coalesce(ads.string(d -> 'name'), '') AS name,
               ads.string(d -> 'type')::ads.creative_type AS type,
               coalesce(ads.string(d -> 'status'), 'active')::ads.status AS status,
               coalesce(ads.whole(d -> 'weight'), 1) AS weight,
               coalesce(ads.whole(d -> 'width'), 0) AS width, coalesce(ads.whole(d -> 'height'), 0) AS height,
               nullif(d -> 'content', 'null') AS content, ads.string(d -> 'click_url') AS click_url,
               ads.string(d -> 'impression_url') AS impression_url
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

-- What is below campaigns. What they no longer have is archived, not deleted: tokens
-- that lead there are still about.
CREATE OR REPLACE FUNCTION ads.put_below(campaigns jsonb[], paths text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    group_ids bigint[];
    group_campaigns bigint[];
    group_documents jsonb[];
    group_paths text[];
    ids bigint[] := ARRAY(SELECT ads.whole(c -> 'id') FROM unnest(campaigns) AS t (c));
    creative_ids bigint[];
    groups bigint[];
    documents jsonb[];
    creative_paths text[];
    written bigint;
    changed bigint;
BEGIN
    SELECT array_agg(id), array_agg(d), array_agg(path) INTO group_campaigns, group_documents, group_paths
    FROM unnest(ids, campaigns, paths) AS t (id, c, path), jsonb_array_elements(ads.list(c, 'ad_groups', path)) AS g (d);
    group_ids := ads.read_ids(group_documents, group_paths, '.ad_groups');
    written := ads.put_ad_groups(group_ids, group_campaigns, group_documents, group_paths);
    UPDATE ads.ad_groups SET status = 'archived'
    WHERE campaign_id = ANY (ids) AND id NOT IN (SELECT unnest(group_ids)) AND status <> 'archived';
    GET DIAGNOSTICS changed = ROW_COUNT;
    written := written + changed + ads.put_targets(group_ids, group_documents);

    SELECT array_agg(id), array_agg(d), array_agg(path) INTO groups, documents, creative_paths
    FROM unnest(group_ids, group_documents, group_paths) AS t (id, g, path),
         jsonb_array_elements(ads.list(g, 'creatives', path || ', ad group ' || id)) AS k (d);
    PERFORM ads.check_object(d, path || ', creative ' || coalesce(d ->> 'id', '?'),
        '{id,name,type,status,weight,width,height,content,click_url,impression_url}')
    FROM unnest(documents, creative_paths) AS t (d, path);
    creative_ids := ads.read_ids(documents, creative_paths, '.creatives');
    written := written + ads.put_creatives(creative_ids, groups, documents, creative_paths);
    UPDATE ads.creatives SET status = 'archived'
    WHERE ad_group_id = ANY (group_ids) AND id NOT IN (SELECT unnest(creative_ids)) AND status <> 'archived';
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN written + changed;
END $$;

-- Campaigns with all that is below them. Lists of ids are looked up by hash only while
-- that fits into memory.
CREATE OR REPLACE FUNCTION ads.put_campaigns(documents jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp SET enable_seqscan = off SET jit = off
SET work_mem = '64MB' AS $$
DECLARE
    campaigns jsonb[];
    paths text[];
    written bigint;
BEGIN
    IF jsonb_typeof(documents) IS DISTINCT FROM 'array' THEN
        PERFORM ads.refuse('campaigns', 'must be an array');
    END IF;
    SELECT array_agg(d), array_agg('campaign ' || coalesce(d ->> 'id', '?')) INTO campaigns, paths
    FROM jsonb_array_elements(documents) AS t (d);
    PERFORM ads.check_object(d, path, '{id,name,advertiser,status,timezone,start,end,budget,updated_at,ad_groups}'),
            ads.list(d, 'ad_groups', path)
    FROM unnest(campaigns, paths) AS t (d, path);
    written := ads.put_campaign_rows(campaigns, paths);
    written := written + ads.put_below(campaigns, paths);
    RETURN written > 0;
END $$;

CREATE OR REPLACE FUNCTION ads.put_campaign(document jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    RETURN ads.put_campaigns(jsonb_build_array(document));
END $$;

CREATE OR REPLACE FUNCTION ads.put_experiment(document jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    path text := 'experiment ' || coalesce(document ->> 'id', '?');
    experiment bigint;
    wanted jsonb;
    written bigint;
    changed bigint;
BEGIN
    PERFORM ads.check_object(document, path,
        '{id,name,ad_group,status,metric,alpha,min_sample,mde,allocation,variants,winner}');
    wanted := ads.list(document, 'variants', path);
    PERFORM ads.check_object(v, path || '.variants', '{creative,share}') FROM jsonb_array_elements(wanted) AS t (v);
    IF (SELECT count(DISTINCT v -> 'creative') FROM jsonb_array_elements(wanted) AS t (v))
        <> jsonb_array_length(wanted) THEN
        RAISE EXCEPTION '%: a creative is there twice', path USING ERRCODE = 'unique_violation';
    END IF;
    experiment := ads.whole(document -> 'id');

    INSERT INTO ads.experiments AS e (id, name, ad_group_id, status, metric, alpha, min_sample, mde, allocation,
                                      winner)
    VALUES (experiment, coalesce(ads.string(document -> 'name'), ''), ads.whole(document -> 'ad_group'),
            coalesce(ads.string(document -> 'status'), 'draft')::ads.experiment_status,
            coalesce(ads.string(document -> 'metric'), 'ctr')::ads.metric,
            coalesce(ads.number(document -> 'alpha'), 0.05), coalesce(ads.whole(document -> 'min_sample'), 1000),
            coalesce(ads.number(document -> 'mde'), 0.001),
            coalesce(ads.string(document -> 'allocation'), 'fixed')::ads.allocation,
            ads.whole(document -> 'winner'))
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, ad_group_id = excluded.ad_group_id, status = excluded.status,
        metric = excluded.metric, alpha = excluded.alpha, min_sample = excluded.min_sample, mde = excluded.mde,
        allocation = excluded.allocation, winner = excluded.winner;
    GET DIAGNOSTICS written = ROW_COUNT;

    DELETE FROM ads.variants
    WHERE experiment_id = experiment
      AND creative_id <> ALL (ARRAY(SELECT ads.whole(v -> 'creative') FROM jsonb_array_elements(wanted) AS t (v)));
    GET DIAGNOSTICS changed = ROW_COUNT;
    written := written + changed;
    INSERT INTO ads.variants AS t (experiment_id, creative_id, ad_group_id, share)
    SELECT experiment, ads.whole(v -> 'creative'), ads.whole(document -> 'ad_group'), ads.number(v -> 'share')
    FROM jsonb_array_elements(wanted) AS i (v)
    ORDER BY 2
    ON CONFLICT (experiment_id, creative_id)
    DO UPDATE SET ad_group_id = excluded.ad_group_id, share = excluded.share;
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN written + changed > 0;
END $$;
