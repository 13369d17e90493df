-- The catalog as the edge loads it, and the way back from the document into the
-- tables. put_* take the document's JSON, one thing at a time, fill in defaults
-- and write only what differs; the tables' constraints do most of the checking.
-- All of them return whether anything changed.

-- ---- reading the document -----------------------------------------------------------
-- Small, and called for every value: they take over the search path of put_*.

CREATE FUNCTION ads.refuse(path text, complaint text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: %', path, complaint USING ERRCODE = 'invalid_parameter_value';
END $$;

-- An object with no keys but these.
CREATE FUNCTION ads.check_object(thing jsonb, path text, keys text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF jsonb_typeof(thing) IS DISTINCT FROM 'object' THEN
        PERFORM ads.refuse(path, 'must be an object');
    END IF;
    IF thing - keys <> '{}' THEN
        PERFORM ads.refuse(path, format('unknown key "%s"',
            (SELECT min(key COLLATE "C") FROM jsonb_object_keys(thing - keys) AS k (key))));
    END IF;
END $$;

-- A member that is an object, or nothing.
CREATE FUNCTION ads.member(thing jsonb, key text, path text, keys text[]) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(thing -> key, 'null') = 'null' THEN
        RETURN '{}';
    END IF;
    PERFORM ads.check_object(thing -> key, path || '.' || key, keys);
    RETURN thing -> key;
END $$;

-- A member that is an array, or nothing.
CREATE FUNCTION ads.list(thing jsonb, key text, path text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(thing -> key, 'null') = 'null' THEN
        RETURN '[]';
    END IF;
    IF jsonb_typeof(thing -> key) <> 'array' THEN
        PERFORM ads.refuse(path || '.' || key, 'must be an array');
    END IF;
    RETURN thing -> key;
END $$;

-- A list of strings without repeats, in the order of their first places.
CREATE FUNCTION ads.texts(thing jsonb) RETURNS text[] IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
    item jsonb;
    list text[] := '{}';
BEGIN
    IF thing IS NULL OR thing IN ('null', '[]') THEN
        RETURN list;
    END IF;
    IF jsonb_typeof(thing) <> 'array' THEN
        PERFORM ads.refuse('a list', format('must be an array, not %s', thing));
    END IF;
    FOR item IN SELECT jsonb_array_elements(thing) LOOP
        IF jsonb_typeof(item) <> 'string' THEN
            PERFORM ads.refuse('a list', format('must be of strings, not %s', thing));
        END IF;
        IF item #>> '{}' <> ALL (list) THEN
            list := list || (item #>> '{}');
        END IF;
    END LOOP;
    RETURN list;
END $$;

CREATE FUNCTION ads.string(thing jsonb) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(jsonb_typeof(thing), 'null') NOT IN ('string', 'null') THEN
        PERFORM ads.refuse('a value', format('must be a string, not %s', thing));
    END IF;
    RETURN thing #>> '{}';
END $$;

CREATE FUNCTION ads.number(thing jsonb) RETURNS double precision IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(jsonb_typeof(thing), 'null') NOT IN ('number', 'null') THEN
        PERFORM ads.refuse('a value', format('must be a number, not %s', thing));
    END IF;
    RETURN (thing #>> '{}')::double precision;
END $$;

CREATE FUNCTION ads.whole(thing jsonb) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF thing IS NULL OR thing = 'null' THEN
        RETURN NULL;
    END IF;
    IF jsonb_typeof(thing) <> 'number' OR thing #>> '{}' !~ '^-?[0-9]{1,18}$' THEN
        PERFORM ads.refuse('a value', format('must be an integer, not %s', thing));
    END IF;
    RETURN thing #>> '{}';
END $$;

-- Cents, whole or with up to 6 decimals, as micro-cents.
CREATE FUNCTION ads.micro(cents jsonb) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
    amount numeric := ads.number(cents);
BEGIN
    -- Exactly as written, not as a double.
    amount := (cents #>> '{}')::numeric * 1000000;
    IF amount <> trunc(amount) OR amount NOT BETWEEN 0 AND 10000000000000000 THEN
        PERFORM ads.refuse('an amount',
            format('must be cents from 0 to 10000000000 with at most 6 decimals, not %s', cents));
    END IF;
    RETURN amount;
END $$;

CREATE FUNCTION ads.cents(micro bigint) RETURNS numeric IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT trim_scale(micro / 1000000.0)
$$;

-- PostgreSQL takes much more for a time than the document does. Fractions of a
-- second are dropped, not rounded.
CREATE FUNCTION ads.read_moment(thing jsonb) RETURNS timestamptz IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
    day constant text := '[0-9]{4}-[0-9]{2}-[0-9]{2}';
    clock constant text := '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]';
    zone constant text := '([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])';
BEGIN
    IF thing IS NULL OR thing = 'null' THEN
        RETURN NULL;
    END IF;
    IF jsonb_typeof(thing) <> 'string' OR thing #>> '{}' !~ ('^' || day || '[Tt]' || clock || '(\.[0-9]+)?' || zone || '$')
    THEN
        PERFORM ads.refuse('a date', format('must be like 2026-11-01T00:00:00Z, not %s', thing));
    END IF;
    RETURN regexp_replace(thing #>> '{}', '\.[0-9]+', '')::timestamptz;
END $$;

CREATE FUNCTION ads.moment_text(moment timestamptz) RETURNS text STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$$;

-- Every key filled in, days in the order of the week. Until 00:00 is until 24:00.
CREATE FUNCTION ads.read_schedule(thing jsonb, path text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    week constant text[] := '{sun,mon,tue,wed,thu,fri,sat}';
    part jsonb;
    days text[];
    schedule jsonb := '[]';
BEGIN
    FOR part IN SELECT jsonb_array_elements(thing) LOOP
        PERFORM ads.check_object(part, path, '{days,from,to}');
        days := ads.texts(part -> 'days');
        IF NOT days <@ week THEN
            PERFORM ads.refuse(path || '.days', 'must be of sun, mon, tue, wed, thu, fri, sat');
        END IF;
        schedule := schedule || jsonb_build_object(
            'days', (SELECT jsonb_agg(day ORDER BY place) FROM unnest(week) WITH ORDINALITY AS w (day, place)
                     WHERE days = '{}' OR day = ANY (days)),
            'from', coalesce(ads.string(part -> 'from'), '00:00'),
            'to', coalesce(nullif(ads.string(part -> 'to'), '00:00'), '24:00'));
    END LOOP;
    RETURN schedule;
END $$;

CREATE FUNCTION ads.read_caps(thing jsonb, path text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    cap jsonb;
    caps jsonb := '[]';
BEGIN
    FOR cap IN SELECT jsonb_array_elements(thing) LOOP
        PERFORM ads.check_object(cap, path, '{count,per,level}');
        caps := caps || jsonb_build_object('count', ads.whole(cap -> 'count'),
            'per', coalesce(ads.string(cap -> 'per'), 'day'),
            'level', coalesce(ads.string(cap -> 'level'), 'ad_group'));
    END LOOP;
    RETURN caps;
END $$;

CREATE FUNCTION ads.read_keys(thing jsonb, path text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF thing IS NULL OR thing IN ('null', '{}') THEN
        RETURN '{}';
    END IF;
    IF jsonb_typeof(thing) <> 'object' THEN
        PERFORM ads.refuse(path, 'must be an object');
    END IF;
    RETURN (SELECT jsonb_object_agg(key, to_jsonb(ads.texts(value))) FROM jsonb_each(thing));
END $$;

CREATE FUNCTION ads.read_goal(pacing jsonb, path text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    goal jsonb := ads.member(pacing, 'goal', path, '{impressions,clicks}');
BEGIN
    IF coalesce(pacing -> 'goal', 'null') <> 'null'
        AND (ads.whole(goal -> 'impressions') IS NULL) = (ads.whole(goal -> 'clicks') IS NULL) THEN
        PERFORM ads.refuse(path || '.goal', 'must have exactly one of impressions, clicks');
    END IF;
    RETURN goal;
END $$;

-- ---- writing ------------------------------------------------------------------------
-- Everything is found by its key. Plans are kept for the session, and one made for
-- a table that was empty then would read all of it: hence no sequential scans.

CREATE FUNCTION ads.put_placement(document jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp SET enable_seqscan = off AS $$
DECLARE
    written bigint;
BEGIN
    PERFORM ads.check_object(document, 'placement ' || coalesce(document ->> 'id', '?'),
                             '{id,name,width,height,types,select,floor_cents}');
    INSERT INTO ads.placements AS p (id, name, width, height, types, "select", floor_micro)
    VALUES (ads.string(document -> 'id'), coalesce(ads.string(document -> 'name'), ''),
            coalesce(ads.whole(document -> 'width'), 0), coalesce(ads.whole(document -> 'height'), 0),
            ads.texts(document -> 'types')::ads.creative_type[],
            coalesce(ads.string(document -> 'select'), 'weight')::ads.selection,
            coalesce(ads.micro(document -> 'floor_cents'), 0))
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, width = excluded.width, height = excluded.height, types = excluded.types,
        "select" = excluded."select", floor_micro = excluded.floor_micro;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written > 0;
END $$;

-- What is taken for spent of a lifetime budget: what the document says if that is
-- more than the books here know of, else what it was.
CREATE FUNCTION ads.spent_floor(campaign bigint, given bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    kept bigint;
    booked bigint;
BEGIN
    SELECT coalesce(sum(budget_spent_micro), 0) INTO kept FROM ads.campaigns WHERE id = campaign;
    SELECT coalesce(sum(spend_micro), 0) INTO booked FROM ads.daily_spend WHERE campaign_id = campaign;
    RETURN CASE WHEN given > greatest(kept, booked) THEN given ELSE kept END;
END $$;

CREATE FUNCTION ads.put_campaign_row(document jsonb, path text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    campaign bigint := ads.whole(document -> 'id');
    zone text := coalesce(ads.string(document -> 'timezone'), 'UTC');
    client text := nullif(ads.string(document -> 'advertiser'), '');
    budget jsonb := ads.member(document, 'budget', path, '{type,amount_cents,spent_cents,hard_cap}');
    kind ads.budget_type;
    written bigint;
BEGIN
    IF coalesce(document -> 'budget', 'null') <> 'null' THEN
        kind := coalesce(ads.string(budget -> 'type'), 'daily');
    END IF;
    PERFORM ads.read_moment(document -> 'updated_at');
    -- A name that is newer than the list of them.
    IF NOT EXISTS (SELECT FROM ads.timezones WHERE name = zone) THEN
        INSERT INTO ads.timezones SELECT name FROM pg_timezone_names
        WHERE name = zone AND name !~ '^(posix|right)/' AND name NOT IN ('localtime', 'posixrules', 'Factory')
        ON CONFLICT DO NOTHING;
    END IF;
    IF client IS NOT NULL AND NOT EXISTS (SELECT FROM ads.advertisers WHERE name = client) THEN
        INSERT INTO ads.advertisers (name) VALUES (client) ON CONFLICT DO NOTHING;
    END IF;
    INSERT INTO ads.campaigns AS c (id, name, advertiser, status, timezone, starts_at, ends_at, budget_type,
                                    budget_micro, hard_cap, budget_spent_micro)
    VALUES (campaign, coalesce(ads.string(document -> 'name'), ''), client,
            coalesce(ads.string(document -> 'status'), 'active')::ads.status, zone,
            ads.read_moment(document -> 'start'), ads.read_moment(document -> 'end'), kind,
            ads.micro(budget -> 'amount_cents'),
            CASE WHEN kind IS NOT NULL THEN coalesce(ads.number(budget -> 'hard_cap'), 1.2) END,
            -- Of a daily budget the document does not say which day it speaks of.
            CASE WHEN kind = 'lifetime'
                THEN ads.spent_floor(campaign, coalesce(ads.micro(budget -> 'spent_cents'), 0)) ELSE 0 END)
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, advertiser = excluded.advertiser, status = excluded.status,
        timezone = excluded.timezone, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
        budget_type = excluded.budget_type, budget_micro = excluded.budget_micro, hard_cap = excluded.hard_cap,
        budget_spent_micro = excluded.budget_spent_micro;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
END $$;

-- The ids of things in one list, each once.
CREATE FUNCTION ads.read_ids(things jsonb, path text) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[] := ARRAY(SELECT ads.whole(thing -> 'id') FROM jsonb_array_elements(things) AS t (thing));
BEGIN
    IF array_position(ids, NULL) IS NOT NULL THEN
        PERFORM ads.refuse(path, 'every one must have an id');
    END IF;
    IF (SELECT count(DISTINCT id) FROM unnest(ids) AS i (id)) <> cardinality(ids) THEN
        RAISE EXCEPTION '%: an id is there twice', path USING ERRCODE = 'unique_violation';
    END IF;
    RETURN ids;
END $$;

CREATE FUNCTION ads.put_ad_groups(campaign bigint, documents jsonb, path text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    kept bigint[] := ads.read_ids(documents, path || '.ad_groups');
    taken record;
    written bigint;
    changed bigint;
BEGIN
    PERFORM ads.check_object(g, path || ', ad group ' || coalesce(g ->> 'id', '?'),
        '{id,name,status,start,end,priority,weight,price,pacing,frequency_caps,targeting,category,exclusive,together,creatives}')
    FROM jsonb_array_elements(documents) AS t (g);
    SELECT id, campaign_id INTO taken FROM ads.ad_groups WHERE id = ANY (kept) AND campaign_id <> campaign LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '%: id % is already used by an ad group of campaign %', path, taken.id, taken.campaign_id
            USING ERRCODE = 'unique_violation';
    END IF;

    INSERT INTO ads.ad_groups AS g (
        id, campaign_id, name, status, starts_at, ends_at, priority, weight, price_model, price_micro, strategy,
        cap_on, daily_impression_cap, daily_click_cap, goal_on, goal_count, frequency_caps, devices, geos, schedule,
        include_urls, exclude_urls, keys, languages, category, exclusive, together)
    SELECT ads.whole(d -> 'id'), campaign, coalesce(ads.string(d -> 'name'), ''),
        coalesce(ads.string(d -> 'status'), 'active')::ads.status,
        ads.read_moment(d -> 'start'), ads.read_moment(d -> 'end'),
        coalesce(ads.string(d -> 'priority'), 'standard')::ads.priority, coalesce(ads.whole(d -> 'weight'), 1),
        coalesce(ads.string(price -> 'model'), 'cpm')::ads.price_model,
        coalesce(ads.micro(price -> 'amount_cents'), 0),
        coalesce(ads.string(pacing -> 'strategy'), 'adaptive')::ads.strategy,
        coalesce(ads.string(pacing -> 'cap_on'), 'serve')::ads.cap_on,
        ads.whole(pacing -> 'daily_impression_cap'), ads.whole(pacing -> 'daily_click_cap'),
        CASE WHEN coalesce(goal -> 'impressions', 'null') <> 'null' THEN 'impressions'
             WHEN coalesce(goal -> 'clicks', 'null') <> 'null' THEN 'clicks' END::ads.goal_on,
        coalesce(ads.whole(goal -> 'impressions'), ads.whole(goal -> 'clicks')),
        ads.read_caps(ads.list(d, 'frequency_caps', at), at || '.frequency_caps'),
        ads.texts(targeting -> 'devices')::ads.device[],
        ads.texts(to_jsonb(upper(ads.texts(targeting -> 'geos')::text)::text[])),
        ads.read_schedule(ads.list(targeting, 'schedule', at), at || '.schedule'),
        ads.texts(urls -> 'include'), ads.texts(urls -> 'exclude'),
        ads.read_keys(targeting -> 'keys', at || '.keys'),
        ads.texts(to_jsonb(lower(ads.texts(targeting -> 'languages')::text)::text[])),
        coalesce(ads.string(d -> 'category'), ''), coalesce(ads.string(d -> 'exclusive'), 'none')::ads.exclusive,
        coalesce(ads.string(d -> 'together'), '')
    FROM (SELECT d, at, price, pacing, targeting, ads.read_goal(pacing, at || '.pacing') AS goal,
                 ads.member(targeting, 'urls', at || '.targeting', '{include,exclude}') AS urls
          FROM (SELECT d, at, ads.member(d, 'price', at, '{model,amount_cents}') AS price,
                       ads.member(d, 'pacing', at,
                                  '{strategy,cap_on,daily_impression_cap,daily_click_cap,goal}') AS pacing,
                       ads.member(d, 'targeting', at,
                                  '{placements,devices,geos,schedule,urls,keys,languages}') AS targeting
                FROM (SELECT d, path || ', ad group ' || (d ->> 'id') AS at
                      FROM jsonb_array_elements(documents) AS t (d) OFFSET 0) one OFFSET 0) two OFFSET 0) three
    ORDER BY 1
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

    UPDATE ads.ad_groups SET status = 'archived'
    WHERE campaign_id = campaign AND id <> ALL (kept) AND status <> 'archived';
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN written + changed;
END $$;

CREATE FUNCTION ads.put_targets(documents jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    written bigint;
    changed bigint;
BEGIN
    DELETE FROM ads.ad_group_placements t
    USING jsonb_array_elements(documents) AS g (d)
    WHERE t.ad_group_id = ads.whole(d -> 'id')
      AND t.placement_id <> ALL (ads.texts(d -> 'targeting' -> 'placements'));
    GET DIAGNOSTICS written = ROW_COUNT;
    INSERT INTO ads.ad_group_placements (ad_group_id, placement_id)
    SELECT ads.whole(d -> 'id'), placement
    FROM jsonb_array_elements(documents) AS g (d), unnest(ads.texts(d -> 'targeting' -> 'placements')) AS p (placement)
    ORDER BY 1, 2
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN written + changed;
END $$;

CREATE FUNCTION ads.put_creatives(documents jsonb, path text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    wanted jsonb;
    groups bigint[] := ARRAY(SELECT ads.whole(d -> 'id') FROM jsonb_array_elements(documents) AS g (d));
    kept bigint[];
    taken record;
    written bigint;
    changed bigint;
BEGIN
    SELECT coalesce(jsonb_agg(c || jsonb_build_object('ad_group', d -> 'id')), '[]') INTO wanted
    FROM jsonb_array_elements(documents) AS g (d),
         jsonb_array_elements(ads.list(d, 'creatives', path || ', ad group ' || (d ->> 'id'))) AS t (c);
    PERFORM ads.check_object(c, path || ', creative ' || coalesce(c ->> 'id', '?'),
        '{id,name,type,status,weight,width,height,content,click_url,impression_url,ad_group}')
    FROM jsonb_array_elements(wanted) AS t (c);
    kept := ads.read_ids(wanted, path || '.creatives');
    SELECT k.id, k.ad_group_id INTO taken
    FROM jsonb_array_elements(wanted) AS t (c) JOIN ads.creatives k ON k.id = ads.whole(c -> 'id')
    WHERE k.ad_group_id <> ads.whole(c -> 'ad_group') LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '%: id % is already used by a creative of ad group %', path, taken.id, taken.ad_group_id
            USING ERRCODE = 'unique_violation';
    END IF;

    INSERT INTO ads.creatives AS k (id, ad_group_id, name, type, status, weight, width, height, content, click_url,
                                    impression_url)
    SELECT ads.whole(c -> 'id'), ads.whole(c -> 'ad_group'), coalesce(ads.string(c -> 'name'), ''),
           ads.string(c -> 'type')::ads.creative_type,
           coalesce(ads.string(c -> 'status'), 'active')::ads.status, coalesce(ads.whole(c -> 'weight'), 1),
           coalesce(ads.whole(c -> 'width'), 0), coalesce(ads.whole(c -> 'height'), 0),
           nullif(c -> 'content', 'null'), ads.string(c -> 'click_url'), ads.string(c -> 'impression_url')
    FROM jsonb_array_elements(wanted) AS t (c)
    ORDER BY 1
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, type = excluded.type, status = excluded.status, weight = excluded.weight,
        width = excluded.width, height = excluded.height, content = excluded.content,
        click_url = excluded.click_url, impression_url = excluded.impression_url;
    GET DIAGNOSTICS written = ROW_COUNT;

    UPDATE ads.creatives SET status = 'archived'
    WHERE ad_group_id = ANY (groups) AND id <> ALL (kept) AND status <> 'archived';
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN written + changed;
END $$;

-- A campaign with all that is below it. Groups and creatives that the document
-- leaves out are archived, not deleted: tokens that lead to them are still about.
CREATE FUNCTION ads.put_campaign(document jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    path text := 'campaign ' || coalesce(document ->> 'id', '?');
    groups jsonb;
    written bigint;
BEGIN
    PERFORM ads.check_object(document, path,
        '{id,name,advertiser,status,timezone,start,end,budget,updated_at,ad_groups}');
    groups := ads.list(document, 'ad_groups', path);
    written := ads.put_campaign_row(document, path);
    written := written + ads.put_ad_groups(ads.whole(document -> 'id'), groups, path);
    written := written + ads.put_targets(groups);
    written := written + ads.put_creatives(groups, path);
    RETURN written > 0;
END $$;

CREATE FUNCTION ads.put_experiment(document jsonb) RETURNS boolean
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

-- ---- the document -----------------------------------------------------------------

-- The whole catalog. Ask for catalog_version() before: what is committed in between
-- is then loaded once too often, not missed. What was archived over 60 days ago is
-- left out, no token that leads there is valid any more.
CREATE FUNCTION ads.catalog() RETURNS text
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
    SELECT json_agg(json_build_object('id', p.id, 'name', p.name, 'width', p.width, 'height', p.height,
        'types', p.types, 'select', p."select", 'floor_cents', ads.cents(p.floor_micro))
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
SELECT json_build_object('version', 1, 'placements', coalesce(placements.list, '[]'),
    'campaigns', coalesce(campaigns.list, '[]'), 'experiments', coalesce(experiments.list, '[]'))::text
FROM placements, campaigns, experiments
$$;
