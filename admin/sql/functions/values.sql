-- Conversion of values of the catalog document. Values that come in have been checked by the
-- command, with the same code that nodes use to read the catalog; omitted values get their defaults
-- here.

-- A list of strings without repetitions, in the order of their first occurrences.
CREATE OR REPLACE FUNCTION ads.texts(thing jsonb) RETURNS text[] IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
    item text;
    list text[] := '{}';
BEGIN
    IF thing IS NULL OR thing IN ('null', '[]') THEN
        RETURN list;
    END IF;
    FOR i IN 0 .. jsonb_array_length(thing) - 1 LOOP
        item := thing ->> i;
        IF item <> ALL (list) THEN
            list := list || item;
        END IF;
    END LOOP;
    RETURN list;
END $$;

-- The same in upper or lower case, where two different strings may become equal.
CREATE OR REPLACE FUNCTION ads.folded_texts(thing jsonb, capitals boolean) RETURNS text[] IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
    list text[] := ads.texts(thing);
    plain text := list::text;
    folded text := CASE WHEN capitals THEN upper(plain) ELSE lower(plain) END;
BEGIN
    RETURN CASE WHEN folded = plain THEN list ELSE ads.texts(to_jsonb(folded::text[])) END;
END $$;

CREATE OR REPLACE FUNCTION ads.micro(cents jsonb) RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT ((cents #>> '{}')::numeric * 1000000)::bigint
$$;

CREATE OR REPLACE FUNCTION ads.cents(micro bigint) RETURNS numeric IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT trim_scale(micro / 1000000.0)
$$;

-- Fractions of a second are truncated, not rounded.
CREATE OR REPLACE FUNCTION ads.read_moment(thing jsonb) RETURNS timestamptz STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT regexp_replace(thing #>> '{}', '\.[0-9]+', '')::timestamptz
$$;

CREATE OR REPLACE FUNCTION ads.moment_text(moment timestamptz) RETURNS text STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$$;

-- Days in the order of the week. "until 00:00" means 24:00.
CREATE OR REPLACE FUNCTION ads.read_schedule(thing jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    week constant text[] := '{sun,mon,tue,wed,thu,fri,sat}';
    part jsonb;
    days text[];
    schedule jsonb := '[]';
BEGIN
    FOR i IN 0 .. jsonb_array_length(coalesce(nullif(thing, 'null'), '[]')) - 1 LOOP
        part := thing -> i;
        days := ads.texts(part -> 'days');
        IF days <> '{}' THEN
            days := ARRAY(SELECT day FROM unnest(days) AS d (day) ORDER BY array_position(week, day));
        END IF;
        schedule := schedule || jsonb_build_object(
            'days', to_jsonb(CASE WHEN days = '{}' THEN week ELSE days END),
            'from', coalesce(part ->> 'from', '00:00'), 'to', coalesce(nullif(part ->> 'to', '00:00'), '24:00'));
    END LOOP;
    RETURN schedule;
END $$;

CREATE OR REPLACE FUNCTION ads.read_caps(thing jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    caps jsonb := '[]';
BEGIN
    FOR i IN 0 .. jsonb_array_length(coalesce(nullif(thing, 'null'), '[]')) - 1 LOOP
        caps := caps || (jsonb '{"per": "day", "level": "ad_group"}' || jsonb_strip_nulls(thing -> i));
    END LOOP;
    RETURN caps;
END $$;

CREATE OR REPLACE FUNCTION ads.read_keys(thing jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    names jsonb := jsonb_path_query_array(thing, '$.keyvalue().key');
    name text;
    list jsonb;
    keys jsonb := coalesce(nullif(thing, 'null'), '{}');
BEGIN
    IF keys = '{}' THEN
        RETURN keys;
    END IF;
    FOR i IN 0 .. jsonb_array_length(names) - 1 LOOP
        name := names ->> i;
        list := to_jsonb(ads.texts(thing -> name));
        IF list <> thing -> name THEN  -- it had repetitions
            keys := keys || jsonb_build_object(name, list);
        END IF;
    END LOOP;
    RETURN keys;
END $$;
