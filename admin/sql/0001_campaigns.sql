-- The catalog: who advertises what, where, when and for how much. The document
-- that the edge loads is made of these tables (0004), so what the document's
-- validator refuses is refused here too, as far as SQL can tell: a single bad
-- row would keep every node on its last good catalog.

-- The closed lists, in the order of core/types.hpp.
CREATE TYPE ads.status            AS ENUM ('draft', 'scheduled', 'active', 'paused', 'completed', 'archived');
CREATE TYPE ads.priority          AS ENUM ('sponsorship', 'standard', 'remnant', 'house');
CREATE TYPE ads.price_model       AS ENUM ('cpm', 'cpc', 'cpa', 'vcpm', 'flat');
CREATE TYPE ads.budget_type       AS ENUM ('daily', 'lifetime');
CREATE TYPE ads.strategy          AS ENUM ('probabilistic', 'asap', 'even', 'pid', 'adaptive');
CREATE TYPE ads.cap_on            AS ENUM ('serve', 'impression');
CREATE TYPE ads.goal_on           AS ENUM ('impressions', 'clicks');
CREATE TYPE ads.device            AS ENUM ('desktop', 'mobile', 'tablet', 'tv', 'bot');
CREATE TYPE ads.creative_type     AS ENUM ('image', 'html', 'native');
CREATE TYPE ads.selection         AS ENUM ('weight', 'price');
CREATE TYPE ads.exclusive         AS ENUM ('none', 'advertiser', 'category');
CREATE TYPE ads.metric            AS ENUM ('ctr', 'conversion');
CREATE TYPE ads.allocation        AS ENUM ('fixed');
CREATE TYPE ads.experiment_status AS ENUM ('draft', 'running', 'completed');
CREATE TYPE ads.event_type        AS ENUM ('serve', 'impression', 'viewable', 'click', 'conversion');
CREATE TYPE ads.invalid_reason    AS ENUM ('ignored', 'late', 'over_budget');

-- Ids are 32 bits in tokens and records.
CREATE DOMAIN ads.id AS bigint CHECK (VALUE BETWEEN 1 AND 4294967295);
-- Money is whole micro-cents, 1 cent = 10^6; at most 10^10 cents.
CREATE DOMAIN ads.money AS bigint CHECK (VALUE BETWEEN 0 AND 10000000000000000);
CREATE DOMAIN ads.amount AS bigint CHECK (VALUE BETWEEN 1 AND 1000000000000);  -- caps, goals, samples
CREATE DOMAIN ads.weight AS int CHECK (VALUE BETWEEN 0 AND 1000000);
CREATE DOMAIN ads.pixels AS int CHECK (VALUE BETWEEN 0 AND 16384);
-- Whole seconds of the years that the document knows.
CREATE DOMAIN ads.moment AS timestamptz(0) CHECK (VALUE >= '1970-01-01Z' AND VALUE < '2101-01-01Z');
CREATE DOMAIN ads.name AS text CHECK (octet_length(VALUE) <= 200);
CREATE DOMAIN ads.label AS text CHECK (octet_length(VALUE) <= 100);

-- ---- what checks are made of ------------------------------------------------------
-- In plpgsql, whose plans are kept: a check in SQL is planned anew by each
-- statement that writes to its table, at many times the cost.

-- A list without holes, in one dimension.
CREATE FUNCTION ads.plain_list(list anyarray) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    RETURN cardinality(list) = 0 OR (array_ndims(list) = 1 AND array_position(list, NULL) IS NULL);
END $$;

CREATE FUNCTION ads.each_matches(list text[], pattern text) RETURNS boolean IMMUTABLE PARALLEL SAFE
LANGUAGE plpgsql AS $$
DECLARE
    item text;
BEGIN
    IF NOT ads.plain_list(list) THEN
        RETURN false;
    END IF;
    FOREACH item IN ARRAY list LOOP
        IF item !~ pattern THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $$;

CREATE FUNCTION ads.each_sized(list text[], low int, high int) RETURNS boolean IMMUTABLE PARALLEL SAFE
LANGUAGE plpgsql AS $$
DECLARE
    item text;
BEGIN
    IF NOT ads.plain_list(list) THEN
        RETURN false;
    END IF;
    FOREACH item IN ARRAY list LOOP
        IF octet_length(item) NOT BETWEEN low AND high THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $$;

-- [{"days": ["mon", "tue"], "from": "09:00", "to": "17:00"}], every key there.
CREATE FUNCTION ads.valid_schedule(schedule jsonb) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    RETURN schedule = '[]' OR (jsonb_typeof(schedule) = 'array' AND NOT EXISTS (
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
            AND part ->> 'to' <> '00:00', false)));
END $$;

-- The seconds of "30m", "1h", "7d"; null for anything else.
CREATE FUNCTION ads.period_seconds(period text) RETURNS numeric IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN period ~ '^[0-9]{1,10}[smhd]$' THEN
        left(period, -1)::numeric * CASE right(period, 1)
            WHEN 's' THEN 1 WHEN 'm' THEN 60 WHEN 'h' THEN 3600 ELSE 86400 END END;
END $$;

-- [{"count": 3, "per": "day", "level": "ad_group"}], every key there.
CREATE FUNCTION ads.valid_caps(caps jsonb) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    RETURN caps = '[]' OR (jsonb_typeof(caps) = 'array' AND jsonb_array_length(caps) <= 8 AND NOT EXISTS (
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
            AND cap ->> 'level' IN ('ad_group', 'campaign', 'creative'), false)));
END $$;

-- {"section": ["sports", "politics"]}
CREATE FUNCTION ads.valid_keys(keys jsonb) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    RETURN keys = '{}' OR (jsonb_typeof(keys) = 'object' AND NOT EXISTS (
        SELECT FROM jsonb_each(keys) part
        WHERE part.key !~ '^[A-Za-z0-9_.-]{1,64}$'
           OR jsonb_typeof(part.value) <> 'array'
           OR part.value = '[]'
           OR EXISTS (SELECT FROM jsonb_array_elements(
                          CASE jsonb_typeof(part.value) WHEN 'array' THEN part.value ELSE '[]' END) item
                      WHERE jsonb_typeof(item) <> 'string'
                         OR octet_length(item #>> '{}') NOT BETWEEN 1 AND 200)));
END $$;

-- Characters and origin of an address: scheme, host, port, nobody's name.
CREATE FUNCTION ads.valid_origin(url text, scheme text) RETURNS boolean IMMUTABLE PARALLEL SAFE
LANGUAGE plpgsql AS $$
BEGIN
    RETURN octet_length(url) <= 2048
       AND url !~ '[\u0001-\u0020\u007f\\]'
       AND url ~ ('^' || scheme || '://'
            || '(\[[0-9A-Za-z:][0-9A-Za-z:.]*\]|([0-9A-Za-z_-]|[^\u0001-\u007f])([0-9A-Za-z._-]|[^\u0001-\u007f])*)'
            || '(:0*([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?'
            || '([/?#]|$)');
END $$;

-- Addresses with macros. None can stand in the host, where braces are refused.
CREATE FUNCTION ads.valid_target(url text, scheme text) RETURNS boolean IMMUTABLE PARALLEL SAFE
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ads.valid_origin(url, scheme)
       AND regexp_replace(url, '\{(click_id|campaign|ad_group|creative|placement|timestamp|cachebuster)\}', '', 'g')
           !~ '[{}]';
END $$;

-- A flat object of strings, with what its type cannot do without.
CREATE FUNCTION ads.valid_content(content jsonb, type ads.creative_type) RETURNS boolean IMMUTABLE PARALLEL SAFE
LANGUAGE plpgsql AS $$
DECLARE
    src text := content ->> 'src';
BEGIN
    IF jsonb_typeof(content) <> 'object' THEN
        RETURN false;
    END IF;
    PERFORM FROM jsonb_each(content) field
    HAVING count(*) BETWEEN 1 AND 100
       AND bool_and(jsonb_typeof(field.value) = 'string'
           AND octet_length(field.key) BETWEEN 1 AND 100
           AND octet_length(field.value #>> '{}') <= 65536);
    IF NOT FOUND THEN
        RETURN false;
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

-- core/hash.hpp: a token carries this of its placement.
CREATE FUNCTION ads.fnv1a32(slug text) RETURNS bigint IMMUTABLE STRICT PARALLEL SAFE
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

-- ---- tables -----------------------------------------------------------------------

-- The names of the time zone database: a foreign key keeps unknown ones out, and
-- abbreviations and POSIX rules, which PostgreSQL would take too. put_campaign
-- (0004) looks again for a name that is not here, so that it may grow.
CREATE TABLE ads.timezones (
    name text PRIMARY KEY
);
INSERT INTO ads.timezones
SELECT name FROM pg_timezone_names
WHERE name !~ '^(posix|right)/' AND name NOT IN ('localtime', 'posixrules', 'Factory')
UNION SELECT 'UTC' UNION SELECT 'Etc/UTC';

CREATE TABLE ads.advertisers (
    name       ads.label PRIMARY KEY CHECK (name <> ''),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE ads.placements (
    id          text PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'),
    name        ads.name NOT NULL DEFAULT '',
    width       ads.pixels NOT NULL DEFAULT 0,  -- 0: any size
    height      ads.pixels NOT NULL DEFAULT 0,
    types       ads.creative_type[] NOT NULL DEFAULT '{}' CHECK (ads.plain_list(types)),  -- empty: all
    "select"    ads.selection NOT NULL DEFAULT 'weight',
    floor_micro ads.money NOT NULL DEFAULT 0,   -- eCPM: per thousand impressions
    updated_at  timestamptz NOT NULL DEFAULT now(),
    CHECK ((width = 0) = (height = 0))
);
-- Two slugs with one hash could not be told apart in a token.
CREATE UNIQUE INDEX placements_hash ON ads.placements (ads.fnv1a32(id));

CREATE TABLE ads.campaigns (
    id                 ads.id PRIMARY KEY,
    name               ads.name NOT NULL DEFAULT '',
    advertiser         ads.label REFERENCES ads.advertisers ON UPDATE CASCADE,
    status             ads.status NOT NULL DEFAULT 'active',
    timezone           text NOT NULL DEFAULT 'UTC' REFERENCES ads.timezones,
    starts_at          ads.moment,
    ends_at            ads.moment,
    budget_type        ads.budget_type,  -- null: no budget, unlimited
    budget_micro       ads.money,
    hard_cap           double precision CHECK (hard_cap BETWEEN 1 AND 10),
    -- Spent before its events were kept here; the books win when they know of more.
    budget_spent_micro ads.money NOT NULL DEFAULT 0,
    updated_at         timestamptz NOT NULL DEFAULT now(),
    archived_at        timestamptz,
    CHECK (ends_at > starts_at),
    CHECK ((budget_type IS NULL) = (budget_micro IS NULL) AND (budget_type IS NULL) = (hard_cap IS NULL)),
    CHECK (budget_spent_micro = 0 OR budget_type IS NOT DISTINCT FROM 'lifetime'),
    CHECK ((status = 'archived') = (archived_at IS NOT NULL))
);
CREATE INDEX campaigns_advertiser ON ads.campaigns (advertiser);

CREATE TABLE ads.ad_groups (
    id                   ads.id PRIMARY KEY,
    campaign_id          ads.id NOT NULL REFERENCES ads.campaigns,
    name                 ads.name NOT NULL DEFAULT '',
    status               ads.status NOT NULL DEFAULT 'active',
    starts_at            ads.moment,     -- null: the campaign's
    ends_at              ads.moment,
    priority             ads.priority NOT NULL DEFAULT 'standard',
    weight               ads.weight NOT NULL DEFAULT 1,
    price_model          ads.price_model NOT NULL DEFAULT 'cpm',
    price_micro          ads.money NOT NULL DEFAULT 0,
    strategy             ads.strategy NOT NULL DEFAULT 'adaptive',
    cap_on               ads.cap_on NOT NULL DEFAULT 'serve',
    daily_impression_cap ads.amount,
    daily_click_cap      ads.amount,
    goal_on              ads.goal_on,
    goal_count           ads.amount,
    frequency_caps       jsonb NOT NULL DEFAULT '[]' CHECK (ads.valid_caps(frequency_caps)),
    -- Targeting; its placements are in ad_group_placements. Empty: everything.
    devices              ads.device[] NOT NULL DEFAULT '{}' CHECK (ads.plain_list(devices)),
    geos                 text[] NOT NULL DEFAULT '{}'     -- "US", "US-CA"; "!US" excludes
        CHECK (ads.each_matches(geos, '^!?[A-Z]{2}(-[A-Z0-9]{1,3})?$')),
    schedule             jsonb NOT NULL DEFAULT '[]' CHECK (ads.valid_schedule(schedule)),
    include_urls         text[] NOT NULL DEFAULT '{}'     -- PCRE2: the edge checks the patterns
        CHECK (ads.each_sized(include_urls, 1, 1000)),
    exclude_urls         text[] NOT NULL DEFAULT '{}'
        CHECK (ads.each_sized(exclude_urls, 1, 1000)),
    keys                 jsonb NOT NULL DEFAULT '{}' CHECK (ads.valid_keys(keys)),
    languages            text[] NOT NULL DEFAULT '{}'
        CHECK (ads.each_matches(languages, '^[a-z]{2,8}(-[a-z0-9]{1,8})*$') AND ads.each_sized(languages, 2, 35)),
    category             ads.label NOT NULL DEFAULT '',
    exclusive            ads.exclusive NOT NULL DEFAULT 'none',
    together             ads.label NOT NULL DEFAULT '',
    updated_at           timestamptz NOT NULL DEFAULT now(),
    archived_at          timestamptz,
    CHECK (ends_at > starts_at),
    CHECK ((goal_on IS NULL) = (goal_count IS NULL)),
    CHECK (cardinality(include_urls) + cardinality(exclude_urls) <= 100),
    CHECK (exclusive <> 'category' OR category <> ''),
    CHECK ((status = 'archived') = (archived_at IS NOT NULL))
);
CREATE INDEX ad_groups_campaign ON ads.ad_groups (campaign_id);

-- A group without a row here may fill any placement: hence no cascade from
-- placements, the last row must not go unnoticed.
CREATE TABLE ads.ad_group_placements (
    ad_group_id  ads.id REFERENCES ads.ad_groups ON DELETE CASCADE,
    placement_id text REFERENCES ads.placements ON UPDATE CASCADE,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (ad_group_id, placement_id)
);
CREATE INDEX ad_group_placements_placement ON ads.ad_group_placements (placement_id);

CREATE TABLE ads.creatives (
    id             ads.id PRIMARY KEY,
    ad_group_id    ads.id NOT NULL REFERENCES ads.ad_groups,
    name           ads.name NOT NULL DEFAULT '',
    type           ads.creative_type NOT NULL,
    status         ads.status NOT NULL DEFAULT 'active',
    weight         ads.weight NOT NULL DEFAULT 1,
    width          ads.pixels NOT NULL DEFAULT 0,  -- 0: fits any
    height         ads.pixels NOT NULL DEFAULT 0,
    content        jsonb NOT NULL,
    click_url      text NOT NULL CHECK (ads.valid_target(click_url, 'https?')),
    impression_url text CHECK (ads.valid_target(impression_url, 'https')),  -- a third party's pixel
    updated_at     timestamptz NOT NULL DEFAULT now(),
    archived_at    timestamptz,
    UNIQUE (id, ad_group_id),                      -- for variants
    CHECK ((width = 0) = (height = 0)),
    CHECK (ads.valid_content(content, type)),
    CHECK ((status = 'archived') = (archived_at IS NOT NULL))
);
CREATE INDEX creatives_ad_group ON ads.creatives (ad_group_id);
-- Few creatives have a pixel: ingest finds out at no cost.
CREATE INDEX creatives_pixel ON ads.creatives (id) WHERE impression_url IS NOT NULL;

CREATE TABLE ads.experiments (
    id          ads.id PRIMARY KEY,
    name        ads.name NOT NULL DEFAULT '',
    ad_group_id ads.id NOT NULL REFERENCES ads.ad_groups,
    status      ads.experiment_status NOT NULL DEFAULT 'draft',
    metric      ads.metric NOT NULL DEFAULT 'ctr',
    alpha       double precision NOT NULL DEFAULT 0.05 CHECK (alpha > 0 AND alpha < 1),
    min_sample  ads.amount NOT NULL DEFAULT 1000,
    mde         double precision NOT NULL DEFAULT 0.001 CHECK (mde > 0 AND mde < 1),
    allocation  ads.allocation NOT NULL DEFAULT 'fixed',
    winner      ads.id,                            -- the creative of a variant
    updated_at  timestamptz NOT NULL DEFAULT now(),
    UNIQUE (id, ad_group_id),                      -- for variants
    -- Deferred: one transaction may end an experiment and start the next.
    CONSTRAINT experiments_one_running EXCLUDE USING btree (ad_group_id WITH =) WHERE (status = 'running')
        DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX experiments_ad_group ON ads.experiments (ad_group_id);

-- The group is repeated here so that foreign keys hold experiment and creative
-- to the same one.
CREATE TABLE ads.variants (
    experiment_id ads.id,
    creative_id   ads.id,
    ad_group_id   ads.id NOT NULL,
    share         double precision NOT NULL CHECK (share > 0 AND share <= 1),
    updated_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (experiment_id, creative_id),
    FOREIGN KEY (experiment_id, ad_group_id) REFERENCES ads.experiments (id, ad_group_id)
        ON UPDATE CASCADE ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (creative_id, ad_group_id) REFERENCES ads.creatives (id, ad_group_id)
        DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX variants_creative ON ads.variants (creative_id);

ALTER TABLE ads.experiments ADD CONSTRAINT experiments_winner FOREIGN KEY (id, winner)
    REFERENCES ads.variants (experiment_id, creative_id) DEFERRABLE INITIALLY DEFERRED;

-- ---- what more than one row must agree on ---------------------------------------
-- Looked at when the transaction commits, since it may change both sides.

-- A group's flight lies in its campaign's; an advertiser to be alone with must
-- have a name.
CREATE FUNCTION ads.check_flight(g ads.ad_groups, c ads.campaigns) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF g.starts_at < c.starts_at OR g.starts_at >= c.ends_at OR g.ends_at > c.ends_at OR g.ends_at <= c.starts_at THEN
        RAISE EXCEPTION 'the flight of ad group % is not inside that of campaign %', g.id, c.id
            USING ERRCODE = 'check_violation', SCHEMA = 'ads', TABLE = 'ad_groups', CONSTRAINT = 'ad_groups_flight';
    END IF;
    IF g.exclusive = 'advertiser' AND c.advertiser IS NULL THEN
        RAISE EXCEPTION 'ad group % is exclusive by advertiser, but campaign % has none', g.id, c.id
            USING ERRCODE = 'check_violation', SCHEMA = 'ads', TABLE = 'ad_groups',
                  CONSTRAINT = 'ad_groups_exclusive_advertiser';
    END IF;
END $$;

CREATE FUNCTION ads.check_group_flight() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET enable_seqscan = off AS $$
DECLARE
    g ads.ad_groups;
    c ads.campaigns;
BEGIN
    SELECT * INTO g FROM ads.ad_groups WHERE id = NEW.id;  -- it may have changed since
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    -- The lock keeps the campaign as it is until this transaction ends: two that
    -- change one side each cannot both pass.
    SELECT * INTO c FROM ads.campaigns WHERE id = g.campaign_id FOR SHARE;
    PERFORM ads.check_flight(g, c);
    RETURN NULL;
END $$;

CREATE FUNCTION ads.check_campaign_flight() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET enable_seqscan = off AS $$
BEGIN
    PERFORM ads.check_flight(g, c)
    FROM ads.campaigns c JOIN ads.ad_groups g ON g.campaign_id = c.id WHERE c.id = NEW.id;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER flight_in AFTER INSERT OR UPDATE OF campaign_id, starts_at, ends_at, exclusive
    ON ads.ad_groups DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION ads.check_group_flight();
CREATE CONSTRAINT TRIGGER flight_of AFTER UPDATE OF starts_at, ends_at, advertiser
    ON ads.campaigns DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION ads.check_campaign_flight();

-- 2 to 100 variants whose shares add up to 1.
CREATE FUNCTION ads.check_variants() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    experiment bigint := CASE WHEN TG_TABLE_NAME = 'experiments' THEN (to_jsonb(NEW) ->> 'id')::bigint
        ELSE (coalesce(to_jsonb(NEW), to_jsonb(OLD)) ->> 'experiment_id')::bigint END;
    variants int;
    total double precision;
BEGIN
    -- One after the other: the second of two that change a variant each must see
    -- what the first has left.
    PERFORM FROM ads.experiments WHERE id = experiment FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT count(*), coalesce(sum(share), 0) INTO variants, total
    FROM ads.variants WHERE experiment_id = experiment;
    IF variants NOT BETWEEN 2 AND 100 THEN
        RAISE EXCEPTION 'experiment % has % variants, not 2 to 100', experiment, variants
            USING ERRCODE = 'check_violation', SCHEMA = 'ads', TABLE = 'variants', CONSTRAINT = 'variants_count';
    END IF;
    IF abs(total - 1) > 1e-6 THEN
        RAISE EXCEPTION 'the shares of experiment % add up to %, not 1', experiment, total
            USING ERRCODE = 'check_violation', SCHEMA = 'ads', TABLE = 'variants', CONSTRAINT = 'variants_shares';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER variants_whole AFTER INSERT ON ads.experiments
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ads.check_variants();
CREATE CONSTRAINT TRIGGER variants_whole AFTER INSERT OR UPDATE OR DELETE ON ads.variants
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ads.check_variants();

-- ---- the version of the catalog, and who changed what -----------------------------

-- A row per transaction that changed the catalog. The version is how many there
-- have been, a number that every commit changes in whichever order transactions
-- commit; a sequence or a clock is read before the commit and may go unseen.
CREATE TABLE ads.catalog_edits (
    id xid8 PRIMARY KEY
);
-- How many rows of catalog_edits have been swept away (0002).
CREATE TABLE ads.catalog_edits_swept (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    edits    bigint NOT NULL DEFAULT 0
);
INSERT INTO ads.catalog_edits_swept DEFAULT VALUES;

CREATE TABLE ads.audit_log (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    actor      text NOT NULL,
    action     text NOT NULL,
    table_name text NOT NULL,
    row_id     text NOT NULL,
    before     jsonb,
    after      jsonb
);
CREATE INDEX audit_log_row ON ads.audit_log (table_name, row_id, id);

-- An update that changes nothing is dropped: no new version, no row in the log.
CREATE FUNCTION ads.touch() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    IF NEW IS NOT DISTINCT FROM OLD THEN
        RETURN NULL;
    END IF;
    NEW.updated_at := now();
    RETURN NEW;
END $$;

CREATE FUNCTION ads.note_archived() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    IF NEW.status <> 'archived' THEN
        NEW.archived_at := NULL;
    ELSE
        NEW.archived_at := coalesce(NEW.archived_at, now());
    END IF;
    RETURN NEW;
END $$;

-- The setting ads.actor names the person behind a shared login.
CREATE FUNCTION ads.audit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    before jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    after jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
BEGIN
    INSERT INTO ads.audit_log (actor, action, table_name, row_id, before, after)
    VALUES (coalesce(nullif(current_setting('ads.actor', true), ''), session_user), lower(TG_OP), TG_TABLE_NAME,
            (coalesce(after, before) ->> TG_ARGV[0])
                || CASE WHEN TG_NARGS > 1 THEN '/' || (coalesce(after, before) ->> TG_ARGV[1]) ELSE '' END,
            before, after);
    RETURN NULL;
END $$;

-- `changed` are the rows that the statement really wrote.
CREATE FUNCTION ads.note_edit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    IF TG_OP <> 'TRUNCATE' THEN
        PERFORM FROM changed LIMIT 1;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    INSERT INTO ads.catalog_edits (id) VALUES (pg_current_xact_id()) ON CONFLICT DO NOTHING;
    PERFORM pg_notify('ads_catalog', '');
    RETURN NULL;
END $$;

CREATE FUNCTION ads.catalog_version() RETURNS text
STABLE SECURITY DEFINER
LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT (swept.edits + edits.count)::text || '.' || coalesce(edits.newest::text, '0')
    FROM ads.catalog_edits_swept swept,
         (SELECT count(*), (SELECT e.id FROM ads.catalog_edits e ORDER BY e.id DESC LIMIT 1) AS newest
          FROM ads.catalog_edits) edits
$$;

-- Triggers of one kind run in the order of their names: archived_at is set before
-- the row is compared.
DO $$
DECLARE
    t record;
BEGIN
    FOR t IN SELECT * FROM (VALUES
        ('advertisers', 'name', false), ('placements', 'id', false), ('campaigns', 'id', true),
        ('ad_groups', 'id', true), ('ad_group_placements', 'ad_group_id, placement_id', false),
        ('creatives', 'id', true), ('experiments', 'id', false),
        ('variants', 'experiment_id, creative_id', false)) AS list (name, key, archived)
    LOOP
        IF t.archived THEN
            EXECUTE format('CREATE TRIGGER archived BEFORE INSERT OR UPDATE ON ads.%I
                FOR EACH ROW EXECUTE FUNCTION ads.note_archived()', t.name);
        END IF;
        EXECUTE format('CREATE TRIGGER touch BEFORE UPDATE ON ads.%I
            FOR EACH ROW EXECUTE FUNCTION ads.touch()', t.name);
        EXECUTE format('CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON ads.%I
            FOR EACH ROW EXECUTE FUNCTION ads.audit(%s)', t.name, t.key);
        EXECUTE format('CREATE TRIGGER edit_insert AFTER INSERT ON ads.%I REFERENCING NEW TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit()', t.name);
        EXECUTE format('CREATE TRIGGER edit_update AFTER UPDATE ON ads.%I REFERENCING NEW TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit()', t.name);
        EXECUTE format('CREATE TRIGGER edit_delete AFTER DELETE ON ads.%I REFERENCING OLD TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit()', t.name);
        EXECUTE format('CREATE TRIGGER edit_truncate AFTER TRUNCATE ON ads.%I
            FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit()', t.name);
    END LOOP;
END $$;
