-- Constraints that a plain expression cannot state. When this file changes, existing rows are
-- checked again.
--
-- The functions are in plpgsql because its plans are kept: a check in SQL is planned again for each
-- statement that writes to the table, at many times the cost. A query inside a function costs ten
-- times as much as an expression, so the usual cases are decided by expressions.

-- A one-dimensional array without nulls.
CREATE OR REPLACE FUNCTION ads.plain_list(list anyarray) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    RETURN cardinality(list) = 0 OR (array_ndims(list) = 1 AND array_position(list, NULL) IS NULL);
END $$;

-- A one-dimensional array whose items match a pattern and have a length in bytes between these.
CREATE OR REPLACE FUNCTION ads.each_matches(list text[], pattern text, low int, high int) RETURNS boolean
IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    item text;
BEGIN
    IF NOT ads.plain_list(list) THEN
        RETURN false;
    END IF;
    FOREACH item IN ARRAY list LOOP
        IF octet_length(item) NOT BETWEEN low AND high OR item !~ pattern THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $$;

-- [{"days": ["mon", "tue"], "from": "09:00", "to": "17:00"}], with every key.
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

-- The seconds of "30m", "1h", "7d"; null for other texts.
CREATE OR REPLACE FUNCTION ads.period_seconds(period text) RETURNS numeric IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN period ~ '^[0-9]{1,10}[smhd]$' THEN
        left(period, -1)::numeric * CASE right(period, 1)
            WHEN 's' THEN 1 WHEN 'm' THEN 60 WHEN 'h' THEN 3600 ELSE 86400 END END;
END $$;

-- [{"count": 3, "per": "day", "level": "ad_group"}], with every key.
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

-- {"section": ["sports", "politics"]}
-- A text in JSON is never shorter than the text itself: if the whole list is short, each item is.
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

-- The characters and the origin of a URL: scheme, host and port, without user name.
CREATE OR REPLACE FUNCTION ads.valid_origin(url text, scheme text) RETURNS boolean IMMUTABLE PARALLEL SAFE
LANGUAGE plpgsql AS $$
BEGIN
    RETURN octet_length(url) <= 2048
       AND url !~ '[\u0001-\u0020\u007f\\]'
       AND url ~ ('^' || scheme || '://'
            || '(\[[0-9A-Za-z:][0-9A-Za-z:.]*\]|([0-9A-Za-z_-]|[^\u0001-\u007f])([0-9A-Za-z._-]|[^\u0001-\u007f])*)'
            || '(:0*([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?'
            || '([/?#]|$)');
END $$;

-- URLs with macros. A macro cannot be in the host, where braces are refused.
CREATE OR REPLACE FUNCTION ads.valid_target(url text, scheme text) RETURNS boolean IMMUTABLE PARALLEL SAFE
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ads.valid_origin(url, scheme)
       AND regexp_replace(url, '\{(click_id|campaign|ad_group|creative|placement|timestamp|cachebuster)\}', '', 'g')
           !~ '[{}]';
END $$;

-- A flat object of strings, with the keys that the type requires.
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
    -- As text: an enum value that a migration adds cannot be used in the same transaction.
    IF type::text IN ('html', 'tag') THEN
        RETURN coalesce(content ->> 'markup' <> '', false);
    ELSIF type <> 'image' THEN
        RETURN true;
    ELSIF src ~ '^/($|[^/])' THEN
        RETURN octet_length(src) <= 2048 AND src !~ '[\u0001-\u0020\u007f\\]';
    ELSE
        RETURN coalesce(ads.valid_origin(src, 'https?'), false);
    END IF;
END $$;

-- The hash of core/base/hash.hpp: tokens contain this hash of their placement.
CREATE OR REPLACE FUNCTION ads.fnv1a32(slug text) RETURNS bigint IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    bytes bytea := convert_to(slug, 'UTF8');
    hash bigint := 2166136261;
BEGIN
    FOR i IN 0 .. length(bytes) - 1 LOOP
        hash := ((hash # get_byte(bytes, i)) * 16777619) & 4294967295;
    END LOOP;
    RETURN hash;
END $$;

ALTER TABLE ads.placements
    DROP CONSTRAINT IF EXISTS placements_types_check,
    ADD CONSTRAINT placements_types_check CHECK (ads.plain_list(types));
-- Two placements with the same hash could not be distinguished in a token.
CREATE UNIQUE INDEX IF NOT EXISTS placements_hash ON ads.placements (ads.fnv1a32(id));

ALTER TABLE ads.ad_groups
    DROP CONSTRAINT IF EXISTS ad_groups_frequency_caps_check,
    DROP CONSTRAINT IF EXISTS ad_groups_devices_check,
    DROP CONSTRAINT IF EXISTS ad_groups_geos_check,
    DROP CONSTRAINT IF EXISTS ad_groups_schedule_check,
    DROP CONSTRAINT IF EXISTS ad_groups_include_urls_check,
    DROP CONSTRAINT IF EXISTS ad_groups_exclude_urls_check,
    DROP CONSTRAINT IF EXISTS ad_groups_keys_check,
    DROP CONSTRAINT IF EXISTS ad_groups_languages_check,
    ADD CONSTRAINT ad_groups_frequency_caps_check CHECK (ads.valid_caps(frequency_caps)),
    ADD CONSTRAINT ad_groups_devices_check CHECK (ads.plain_list(devices)),
    ADD CONSTRAINT ad_groups_geos_check CHECK (ads.each_matches(geos, '^!?[A-Z]{2}(-[A-Z0-9]{1,3})?$', 2, 7)),
    ADD CONSTRAINT ad_groups_schedule_check CHECK (ads.valid_schedule(schedule)),
    ADD CONSTRAINT ad_groups_include_urls_check CHECK (ads.each_matches(include_urls, '', 1, 1000)),
    ADD CONSTRAINT ad_groups_exclude_urls_check CHECK (ads.each_matches(exclude_urls, '', 1, 1000)),
    ADD CONSTRAINT ad_groups_keys_check CHECK (ads.valid_keys(keys)),
    ADD CONSTRAINT ad_groups_languages_check
        CHECK (ads.each_matches(languages, '^[a-z]{2,8}(-[a-z0-9]{1,8})*$', 2, 35));

ALTER TABLE ads.creatives
    DROP CONSTRAINT IF EXISTS creatives_click_url_check,
    DROP CONSTRAINT IF EXISTS creatives_impression_url_check,
    DROP CONSTRAINT IF EXISTS creatives_content,
    ADD CONSTRAINT creatives_click_url_check CHECK (ads.valid_target(click_url, 'https?')),
    ADD CONSTRAINT creatives_impression_url_check CHECK (ads.valid_target(impression_url, 'https')),
    ADD CONSTRAINT creatives_content CHECK (ads.valid_content(content, type));
