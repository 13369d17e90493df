-- Values of the catalog document, in and out. Small, and called for every value: they take over
-- the search path of the functions in put.sql.

CREATE OR REPLACE FUNCTION ads.refuse(path text, complaint text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: %', path, complaint USING ERRCODE = 'invalid_parameter_value';
END $$;

-- An object with no keys but these.
CREATE OR REPLACE FUNCTION ads.check_object(thing jsonb, path text, keys text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF jsonb_typeof(thing) IS DISTINCT FROM 'object' THEN
        PERFORM ads.refuse(path, 'must be an object');
    END IF;
    IF thing - keys <> '{}' THEN
        PERFORM ads.refuse(path, format('unknown key "%s"',
            (SELECT min(key COLLATE "C") FROM jsonb_object_keys(thing - keys) AS k (key))));
    END IF;
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

-- A member that is an array, or nothing.
CREATE OR REPLACE FUNCTION ads.list(thing jsonb, key text, path text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(thing -> key, 'null') = 'null' THEN
        RETURN '[]';
    END IF;
    IF jsonb_typeof(thing -> key) <> 'array' THEN
        PERFORM ads.refuse(path || '.' || key, 'must be an array');
    END IF;
    RETURN thing -> key;
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
CREATE OR REPLACE FUNCTION ads.folded_texts(thing jsonb, capitals boolean) RETURNS text[] IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
    list text[] := ads.texts(thing);
    plain text := list::text;
    folded text := CASE WHEN capitals THEN upper(plain) ELSE lower(plain) END;
BEGIN
    RETURN CASE WHEN folded = plain THEN list ELSE ads.texts(to_jsonb(folded::text[])) END;
END $$;

CREATE OR REPLACE FUNCTION ads.string(thing jsonb) RETURNS text IMMUTABLE STRICT LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(jsonb_typeof(thing), 'null') NOT IN ('string', 'null') THEN
        PERFORM ads.refuse('a value', format('must be a string, not %s', thing));
    END IF;
    RETURN thing #>> '{}';
END $$;

CREATE OR REPLACE FUNCTION ads.number(thing jsonb) RETURNS double precision IMMUTABLE STRICT LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(jsonb_typeof(thing), 'null') NOT IN ('number', 'null') THEN
        PERFORM ads.refuse('a value', format('must be a number, not %s', thing));
    END IF;
    RETURN (thing #>> '{}')::double precision;
END $$;

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

CREATE OR REPLACE FUNCTION ads.cents(micro bigint) RETURNS numeric IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT trim_scale(micro / 1000000.0)
$$;

-- PostgreSQL takes much more for a time than the document does. Fractions of a
-- second are dropped, not rounded.
CREATE OR REPLACE FUNCTION ads.read_moment(thing jsonb) RETURNS timestamptz IMMUTABLE STRICT LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE FUNCTION ads.moment_text(moment timestamptz) RETURNS text STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$$;

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
