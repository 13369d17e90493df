-- Many campaigns at once: put_campaigns() takes a list where put_campaign() (0004)
-- took one, and nothing is done row by row that can be done for all. Rules, errors
-- and the log are what they were.

-- ---- checks -------------------------------------------------------------------------
-- A query inside a function costs ten times what an expression does, so the usual is
-- told without one; the rest goes the long way of 0001.

CREATE OR REPLACE FUNCTION ads.valid_schedule(schedule jsonb) RETURNS boolean IMMUTABLE PARALLEL SAFE
LANGUAGE plpgsql AS $$
BEGIN
    IF schedule = '[]' THEN
        RETURN true;
    END IF;
    RETURN jsonb_typeof(schedule) = 'array' AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(schedule) part
        WHERE NOT coalesce(
            jsonb_typeof(part) = 'object'
            AND part - '{days,from,to}'::text[] = '{}'
            AND jsonb_typeof(part -> 'days') = 'array'
            AND part -> 'days' <> '[]'
            AND part -> 'days' <@ '["sun", "mon", "tue", "wed", "thu", "fri", "sat"]'
            AND jsonb_typeof(part -> 'from') = 'string'
            AND part ->> 'from' ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$'
            AND jsonb_typeof(part -> 'to') = 'string'
            AND part ->> 'to' ~ '^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$'
            AND part ->> 'to' <> '00:00', false));
END $$;

CREATE OR REPLACE FUNCTION ads.valid_caps(caps jsonb) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    IF caps = '[]' THEN
        RETURN true;
    END IF;
    RETURN jsonb_typeof(caps) = 'array' AND jsonb_array_length(caps) <= 8 AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(caps) cap
        WHERE NOT coalesce(
            jsonb_typeof(cap) = 'object'
            AND cap - '{count,per,level}'::text[] = '{}'
            AND jsonb_typeof(cap -> 'count') = 'number'
            AND cap ->> 'count' ~ '^[1-9][0-9]{0,3}$'
            AND (cap ->> 'count')::int <= 1000
            AND jsonb_typeof(cap -> 'per') = 'string'
            AND (cap ->> 'per' IN ('day', 'lifetime')
                 OR ads.period_seconds(cap ->> 'per') BETWEEN 1 AND 400 * 86400)
            AND jsonb_typeof(cap -> 'level') = 'string'
            AND cap ->> 'level' IN ('ad_group', 'campaign', 'creative'), false));
END $$;

-- Texts as JSON are never shorter than themselves: if all of it is short, each is.
CREATE OR REPLACE FUNCTION ads.valid_keys(keys jsonb) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    names text;
BEGIN
    IF keys = '{}' THEN
        RETURN true;
    END IF;
    IF jsonb_typeof(keys) = 'object' AND octet_length(keys::text) <= 200
        AND NOT keys @? 'strict $.* ? (@.type() != "array" || @.size() == 0)'
        AND NOT keys @? 'strict $.*[*] ? (@.type() != "string" || @ == "")' THEN
        names := jsonb_path_query_array(keys, '$.keyvalue().key');
        IF octet_length(names) <= 64 AND names ~ '^\["[A-Za-z0-9_.-]+"(, "[A-Za-z0-9_.-]+")*]$' THEN
            RETURN true;
        END IF;
    END IF;
    RETURN jsonb_typeof(keys) = 'object' AND NOT EXISTS (
        SELECT FROM jsonb_each(keys) part
        WHERE part.key !~ '^[A-Za-z0-9_.-]{1,64}$'
           OR jsonb_typeof(part.value) <> 'array'
           OR part.value = '[]'
           OR EXISTS (SELECT FROM jsonb_array_elements(
                          CASE jsonb_typeof(part.value) WHEN 'array' THEN part.value ELSE '[]' END) item
                      WHERE jsonb_typeof(item) <> 'string'
                         OR octet_length(item #>> '{}') NOT BETWEEN 1 AND 200));
END $$;

CREATE OR REPLACE FUNCTION ads.valid_content(content jsonb, type ads.creative_type) RETURNS boolean
IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    src text := content ->> 'src';
    names text;
BEGIN
    IF jsonb_typeof(content) <> 'object' THEN
        RETURN false;
    END IF;
    names := jsonb_path_query_array(content, '$.keyvalue().key');
    IF names = '[]' OR names LIKE '%""%' OR octet_length(names) > 100 OR octet_length(content::text) > 65536
        OR content @? 'strict $.* ? (@.type() != "string")' THEN
        PERFORM FROM jsonb_each(content) field
        HAVING count(*) BETWEEN 1 AND 100
           AND bool_and(jsonb_typeof(field.value) = 'string'
               AND octet_length(field.key) BETWEEN 1 AND 100
               AND octet_length(field.value #>> '{}') <= 65536);
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    IF type = 'html' THEN
        RETURN coalesce(content ->> 'markup' <> '', false);
    ELSIF type <> 'image' THEN
        RETURN true;
    ELSIF src ~ '^/($|[^/])' THEN
        RETURN octet_length(src) <= 2048 AND src !~ '[\u0001-\u0020\u007f\\]';
    ELSE
        RETURN coalesce(ads.valid_origin(src, 'https?'), false);
    END IF;
END $$;

-- ---- triggers -----------------------------------------------------------------------
-- Called only for rows that they have something to do with.

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY '{campaigns,ad_groups,creatives}'::text[] LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER archived BEFORE INSERT OR UPDATE ON ads.%I FOR EACH ROW
            WHEN ((NEW.status = ''archived'') IS DISTINCT FROM (NEW.archived_at IS NOT NULL))
            EXECUTE FUNCTION ads.note_archived()', t);
    END LOOP;
END $$;

CREATE OR REPLACE TRIGGER policy BEFORE INSERT OR UPDATE ON ads.creatives FOR EACH ROW
    WHEN (NEW.type = 'html' OR NEW.policy IS NOT NULL) EXECUTE FUNCTION ads.note_policy();

-- A group without a flight of its own, and that shares pages, agrees with any campaign.
DROP TRIGGER flight_in ON ads.ad_groups;
CREATE CONSTRAINT TRIGGER flight_in AFTER INSERT OR UPDATE OF campaign_id, starts_at, ends_at, exclusive
    ON ads.ad_groups DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.starts_at IS NOT NULL OR NEW.ends_at IS NOT NULL OR NEW.exclusive = 'advertiser')
    EXECUTE FUNCTION ads.check_group_flight();

-- What is new goes to the log a statement at a time. Updates stay with audit() (0001):
-- only a row's own trigger knows both of its versions when the key changes.
CREATE FUNCTION ads.audit_inserts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    INSERT INTO ads.audit_log (actor, action, table_name, row_id, after)
    SELECT coalesce(nullif(current_setting('ads.actor', true), ''), session_user), 'insert', TG_TABLE_NAME,
           (after ->> TG_ARGV[0]) || CASE WHEN TG_NARGS > 1 THEN '/' || (after ->> TG_ARGV[1]) ELSE '' END, after
    FROM (SELECT to_jsonb(c) AS after FROM changed c OFFSET 0) new;
    RETURN NULL;
END $$;

DO $$
DECLARE
    t record;
BEGIN
    FOR t IN SELECT * FROM (VALUES
        ('advertisers', 'name'), ('placements', 'id'), ('campaigns', 'id'), ('ad_groups', 'id'),
        ('ad_group_placements', 'ad_group_id, placement_id'), ('creatives', 'id'), ('experiments', 'id'),
        ('variants', 'experiment_id, creative_id')) AS list (name, key)
    LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER audit AFTER UPDATE OR DELETE ON ads.%I
            FOR EACH ROW EXECUTE FUNCTION ads.audit(%s)', t.name, t.key);
        EXECUTE format('CREATE TRIGGER audit_insert AFTER INSERT ON ads.%I REFERENCING NEW TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION ads.audit_inserts(%s)', t.name, t.key);
    END LOOP;
END $$;

-- ---- reading the document -----------------------------------------------------------

-- What is not there is not asked about.
ALTER FUNCTION ads.string(jsonb) STRICT;
ALTER FUNCTION ads.number(jsonb) STRICT;
ALTER FUNCTION ads.read_moment(jsonb) STRICT;

CREATE OR REPLACE FUNCTION ads.whole(thing jsonb) RETURNS bigint IMMUTABLE STRICT LANGUAGE plpgsql AS $$
BEGIN
    IF (CASE jsonb_typeof(thing) WHEN 'number' THEN scale(thing::numeric) = 0 AND abs(thing::numeric) < 1e18
                                 ELSE false END) THEN
        RETURN thing::bigint;
    ELSIF thing <> 'null' THEN
        PERFORM ads.refuse('a value', format('must be an integer, not %s', thing));
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION ads.micro(cents jsonb) RETURNS bigint IMMUTABLE STRICT LANGUAGE plpgsql AS $$
DECLARE
    amount numeric;
BEGIN
    IF jsonb_typeof(cents) <> 'number' THEN
        RETURN ads.number(cents);  -- null, or a complaint
    END IF;
    amount := cents::numeric * 1000000;
    IF amount <> trunc(amount) OR amount NOT BETWEEN 0 AND 10000000000000000 THEN
        PERFORM ads.refuse('an amount',
            format('must be cents from 0 to 10000000000 with at most 6 decimals, not %s', cents));
    END IF;
    RETURN amount;
END $$;

CREATE OR REPLACE FUNCTION ads.member(thing jsonb, key text, path text, keys text[]) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    part jsonb := thing -> key;
BEGIN
    IF part IS NULL OR part = 'null' THEN
        RETURN '{}';
    END IF;
    IF jsonb_typeof(part) <> 'object' OR part - keys <> '{}' THEN
        PERFORM ads.check_object(part, path || '.' || key, keys);
    END IF;
    RETURN part;
END $$;

CREATE OR REPLACE FUNCTION ads.texts(thing jsonb) RETURNS text[] IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
    item text;
    list text[] := '{}';
BEGIN
    IF thing IS NULL OR thing IN ('null', '[]') THEN
        RETURN list;
    END IF;
    IF jsonb_typeof(thing) <> 'array' THEN
        PERFORM ads.refuse('a list', format('must be an array, not %s', thing));
    END IF;
    FOR i IN 0 .. jsonb_array_length(thing) - 1 LOOP
        IF jsonb_typeof(thing -> i) <> 'string' THEN
            PERFORM ads.refuse('a list', format('must be of strings, not %s', thing));
        END IF;
        item := thing ->> i;
        IF item <> ALL (list) THEN
            list := list || item;
        END IF;
    END LOOP;
    RETURN list;
END $$;

-- The same in capitals, or in small letters, where two may turn out to be one.
CREATE FUNCTION ads.folded_texts(thing jsonb, capitals boolean) RETURNS text[] IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
    list text[] := ads.texts(thing);
    plain text := list::text;
    folded text := CASE WHEN capitals THEN upper(plain) ELSE lower(plain) END;
BEGIN
    RETURN CASE WHEN folded = plain THEN list ELSE ads.texts(to_jsonb(folded::text[])) END;
END $$;

CREATE OR REPLACE FUNCTION ads.read_schedule(thing jsonb, path text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    week constant text[] := '{sun,mon,tue,wed,thu,fri,sat}';
    part jsonb;
    days text[];
    schedule jsonb := '[]';
BEGIN
    FOR i IN 0 .. jsonb_array_length(thing) - 1 LOOP
        part := thing -> i;
        IF jsonb_typeof(part) <> 'object' OR part - '{days,from,to}'::text[] <> '{}' THEN
            PERFORM ads.check_object(part, path, '{days,from,to}');
        END IF;
        days := ads.texts(part -> 'days');
        IF NOT days <@ week THEN
            PERFORM ads.refuse(path || '.days', 'must be of sun, mon, tue, wed, thu, fri, sat');
        END IF;
        IF days <> '{}' THEN
            days := ARRAY(SELECT day FROM unnest(week) WITH ORDINALITY AS w (day, place)
                          WHERE day = ANY (days) ORDER BY place);
        END IF;
        schedule := schedule || jsonb_build_object(
            'days', to_jsonb(CASE WHEN days = '{}' THEN week ELSE days END),
            'from', coalesce(ads.string(part -> 'from'), '00:00'),
            'to', coalesce(nullif(ads.string(part -> 'to'), '00:00'), '24:00'));
    END LOOP;
    RETURN schedule;
END $$;

CREATE OR REPLACE FUNCTION ads.read_caps(thing jsonb, path text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    cap jsonb;
    caps jsonb := '[]';
BEGIN
    FOR i IN 0 .. jsonb_array_length(thing) - 1 LOOP
        cap := thing -> i;
        PERFORM ads.check_object(cap, path, '{count,per,level}');
        caps := caps || jsonb_build_object('count', ads.whole(cap -> 'count'),
            'per', coalesce(ads.string(cap -> 'per'), 'day'),
            'level', coalesce(ads.string(cap -> 'level'), 'ad_group'));
    END LOOP;
    RETURN caps;
END $$;

CREATE OR REPLACE FUNCTION ads.read_keys(thing jsonb, path text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    names jsonb;
    name text;
    list jsonb;
    keys jsonb := thing;
BEGIN
    IF thing IS NULL OR thing IN ('null', '{}') THEN
        RETURN '{}';
    END IF;
    IF jsonb_typeof(thing) <> 'object' THEN
        PERFORM ads.refuse(path, 'must be an object');
    END IF;
    names := jsonb_path_query_array(thing, '$.keyvalue().key');
    FOR i IN 0 .. jsonb_array_length(names) - 1 LOOP
        name := names ->> i;
        list := to_jsonb(ads.texts(thing -> name));
        IF list <> thing -> name THEN  -- it had repeats
            keys := keys || jsonb_build_object(name, list);
        END IF;
    END LOOP;
    RETURN keys;
END $$;

CREATE OR REPLACE FUNCTION ads.read_goal(pacing jsonb, path text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    goal jsonb := ads.member(pacing, 'goal', path, '{impressions,clicks}');
BEGIN
    IF goal = '{}' AND coalesce(pacing -> 'goal', 'null') = 'null' THEN
        RETURN goal;
    END IF;
    IF (ads.whole(goal -> 'impressions') IS NULL) = (ads.whole(goal -> 'clicks') IS NULL) THEN
        PERFORM ads.refuse(path || '.goal', 'must have exactly one of impressions, clicks');
    END IF;
    RETURN goal;
END $$;

-- ---- writing ------------------------------------------------------------------------
-- Lists of things come as arrays: of the documents, of what each belongs to, and of
-- what to call that in a complaint. Only what differs is written: a row that is
-- proposed to ON CONFLICT is locked and checked even if it is the same. What is there
-- is looked up for each by its key (a subquery, or OFFSET 0): joins are planned by
-- what the planner knows of tables, which is nothing while they are filled.

DROP FUNCTION ads.put_campaign_row(jsonb, text);
DROP FUNCTION ads.put_ad_groups(bigint, jsonb, text);
DROP FUNCTION ads.put_targets(jsonb);
DROP FUNCTION ads.put_creatives(jsonb, text);
DROP FUNCTION ads.read_ids(jsonb, text);

-- The ids of things, each once.
CREATE FUNCTION ads.read_ids(documents jsonb[], paths text[], name text) RETURNS bigint[] LANGUAGE plpgsql AS $$
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

CREATE FUNCTION ads.put_campaign_rows(documents jsonb[], paths text[]) RETURNS bigint LANGUAGE plpgsql AS $$
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

CREATE FUNCTION ads.put_ad_groups(ids bigint[], campaigns bigint[], documents jsonb[], paths text[]) RETURNS bigint
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
            coalesce(ads.string(pacing -> 'cap_on'), 'serve')::ads.cap_on AS cap_on,
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

CREATE FUNCTION ads.put_targets(groups bigint[], documents jsonb[]) RETURNS bigint LANGUAGE plpgsql AS $$
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

CREATE FUNCTION ads.put_creatives(ids bigint[], groups bigint[], documents jsonb[], paths text[]) RETURNS bigint
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
CREATE FUNCTION ads.put_below(campaigns jsonb[], paths text[]) RETURNS bigint LANGUAGE plpgsql AS $$
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
CREATE FUNCTION ads.put_campaigns(documents jsonb) RETURNS boolean
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

-- ---- rights -------------------------------------------------------------------------

REVOKE ALL ON FUNCTION ads.audit_inserts(), ads.folded_texts(jsonb, boolean), ads.read_ids(jsonb[], text[], text),
    ads.put_campaign_rows(jsonb[], text[]), ads.put_ad_groups(bigint[], bigint[], jsonb[], text[]),
    ads.put_targets(bigint[], jsonb[]), ads.put_creatives(bigint[], bigint[], jsonb[], text[]),
    ads.put_below(jsonb[], text[]), ads.put_campaigns(jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ads.audit_inserts(), ads.folded_texts(jsonb, boolean), ads.read_ids(jsonb[], text[], text),
    ads.put_campaign_rows(jsonb[], text[]), ads.put_ad_groups(bigint[], bigint[], jsonb[], text[]),
    ads.put_targets(bigint[], jsonb[]), ads.put_creatives(bigint[], bigint[], jsonb[], text[]),
    ads.put_below(jsonb[], text[]), ads.put_campaigns(jsonb) TO ads_admin;
