-- Events and what is counted of them. Rows get here through ads.ingest (0003).

-- One row per fact. By month, so that old ones are dropped, not deleted. No
-- foreign keys: events outlive the catalog. No default partition: a row in it
-- would stand in the way of the partition it belongs to. Columns stand by their
-- alignment, which saves a tenth of the space; texts compare as bytes, whatever
-- the database's language, which makes the indexes a good deal cheaper.
CREATE TABLE ads.ad_events (
    id            uuid NOT NULL,         -- from issued-at, serve id and type
    "timestamp"   timestamptz NOT NULL,
    serve_id      bigint NOT NULL,       -- 64 bits, as signed
    campaign_id   bigint NOT NULL,
    ad_group_id   bigint NOT NULL,
    creative_id   bigint NOT NULL,
    experiment_id bigint,
    price_micro   bigint NOT NULL,
    node          bigint NOT NULL,
    type          ads.event_type NOT NULL,
    device        ads.device,            -- null: unknown
    invalid       ads.invalid_reason,    -- null: valid, and billed
    placement     text COLLATE "C" NOT NULL,
    session_id    text COLLATE "C" NOT NULL,         -- 'anonymous' without consent
    user_id       text COLLATE "C",
    country       text COLLATE "C",
    metadata      jsonb NOT NULL
) PARTITION BY RANGE ("timestamp");

-- An id stands here once, whichever month its event came in: a claim is the last
-- word on what is a duplicate. Ids begin with the time of issue, so these
-- partitions are months too, those of the serve.
CREATE TABLE ads.event_claims (
    id uuid PRIMARY KEY
) PARTITION BY RANGE (id);

-- Per hour, for reports. The sum of events is the number of rows in ad_events.
-- Unknown is '', not null: it is part of the key.
CREATE TABLE ads.event_hours (
    hour        timestamptz NOT NULL,
    campaign_id bigint NOT NULL,
    ad_group_id bigint NOT NULL,
    creative_id bigint NOT NULL,
    placement   text COLLATE "C" NOT NULL,
    country     text COLLATE "C" NOT NULL,
    device      text COLLATE "C" NOT NULL,
    type        ads.event_type NOT NULL,
    invalid     text COLLATE "C" NOT NULL,
    events      bigint NOT NULL,
    price_micro bigint NOT NULL,
    PRIMARY KEY (campaign_id, hour, ad_group_id, creative_id, type, placement, country, device, invalid)
);

-- The books of a local day, valid events only. Pixels belong to the day of their
-- serve, clicks and conversions to the day they arrive.
CREATE TABLE ads.daily_spend (
    campaign_id bigint NOT NULL,
    day         date NOT NULL,           -- in the campaign's time zone
    ad_group_id bigint NOT NULL,
    serves      bigint NOT NULL DEFAULT 0,
    impressions bigint NOT NULL DEFAULT 0,
    viewables   bigint NOT NULL DEFAULT 0,
    clicks      bigint NOT NULL DEFAULT 0,
    conversions bigint NOT NULL DEFAULT 0,
    spend_micro bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (campaign_id, day, ad_group_id)
) WITH (fillfactor = 70);                -- a few rows are updated all day: in place

-- One trial per session: which variant it saw, and whether that worked.
CREATE TABLE ads.experiment_trials (
    experiment_id    bigint NOT NULL,
    session_id       text COLLATE "C" NOT NULL,
    creative_id      bigint NOT NULL,
    first_impression timestamptz,
    first_success    timestamptz,
    PRIMARY KEY (experiment_id, session_id)
);

CREATE TYPE ads.pixel_state AS ENUM ('waiting', 'sent', 'failed');

-- Pixels of third parties, fetched by nginx-ads dispatch.
CREATE TABLE ads.pixel_queue (
    id          bigserial PRIMARY KEY,
    event_id    uuid NOT NULL,
    creative_id bigint NOT NULL,
    url         text NOT NULL,           -- with its macros
    queued_at   timestamptz NOT NULL DEFAULT now(),
    next_try    timestamptz NOT NULL DEFAULT now(),
    tries       int NOT NULL DEFAULT 0 CHECK (tries >= 0),
    state       ads.pixel_state NOT NULL DEFAULT 'waiting'
);
CREATE INDEX pixel_queue_next ON ads.pixel_queue (next_try) WHERE state = 'waiting';

-- Who ran which task of the scheduler. The key makes a turn happen once.
CREATE TABLE ads.scheduler_runs (
    task        text NOT NULL,
    due_at      timestamptz NOT NULL,
    instance    text NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    changed     bigint,
    error       text,
    PRIMARY KEY (task, due_at),
    CHECK (finished_at >= started_at)
);

-- ---- partitions -------------------------------------------------------------------

-- The smallest id of an event whose serve was issued at that time or later.
CREATE FUNCTION ads.first_id(issued timestamptz) RETURNS uuid IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT rpad(lpad(to_hex((extract(epoch FROM issued) * 1000)::bigint), 12, '0'), 32, '0')::uuid
$$;

-- Makes what is missing of one table, for the month that begins then. The table
-- is made alone and then attached: only that takes a lock on the parent, for an
-- instant, and one that lets rows in and out.
CREATE FUNCTION ads.make_partition(parent text, month timestamptz) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    name text := parent || to_char(month AT TIME ZONE 'UTC', '_YYYY_MM');
    after timestamptz := (month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC';
    low text;
    high text;
BEGIN
    IF EXISTS (SELECT FROM pg_inherits
               WHERE inhrelid = to_regclass('ads.' || name) AND inhparent = to_regclass('ads.' || parent)) THEN
        RETURN NULL;
    END IF;
    IF parent = 'event_claims' THEN
        low := ads.first_id(month);
        high := ads.first_id(after);
    ELSE
        low := to_char(month AT TIME ZONE 'UTC', 'YYYY-MM-DD') || ' 00:00:00+00';
        high := to_char(after AT TIME ZONE 'UTC', 'YYYY-MM-DD') || ' 00:00:00+00';
    END IF;
    EXECUTE format('CREATE TABLE IF NOT EXISTS ads.%I (LIKE ads.%I INCLUDING ALL)', name, parent);
    EXECUTE format('ALTER TABLE ads.%I ATTACH PARTITION ads.%I FOR VALUES FROM (%L) TO (%L)',
                   parent, name, low, high);
    RETURN name;
END $$;

-- Makes the partitions from the last month on, and returns their names. Whoever
-- calls it, one at a time; it gives up (55P03) rather than wait for long. Claims
-- begin a month earlier: a conversion may come 30 days after its serve.
CREATE FUNCTION ads.ensure_partitions(months_ahead int DEFAULT 3) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET lock_timeout = '5s'
SET client_min_messages = warning AS $$
DECLARE
    this_month timestamp := date_trunc('month', now() AT TIME ZONE 'UTC');
    made text;
    swept bigint;
BEGIN
    IF months_ahead IS NULL OR months_ahead NOT BETWEEN 0 AND 60 THEN
        RAISE EXCEPTION 'months_ahead must be 0 to 60, not %', months_ahead
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(1633972065, 1);
    FOR i IN -2 .. months_ahead LOOP
        made := ads.make_partition('event_claims', (this_month + make_interval(months => i)) AT TIME ZONE 'UTC');
        IF made IS NOT NULL THEN
            RETURN NEXT made;
        END IF;
        CONTINUE WHEN i = -2;
        made := ads.make_partition('ad_events', (this_month + make_interval(months => i)) AT TIME ZONE 'UTC');
        IF made IS NOT NULL THEN
            RETURN NEXT made;
        END IF;
    END LOOP;

    -- Keeps catalog_edits short. What is swept stays counted, so that the version
    -- does not change.
    WITH old AS (
        DELETE FROM ads.catalog_edits
        WHERE id < (SELECT id FROM ads.catalog_edits ORDER BY id DESC OFFSET 999 LIMIT 1)
        RETURNING 1)
    SELECT count(*) INTO swept FROM old;
    IF swept > 0 THEN
        UPDATE ads.catalog_edits_swept SET edits = edits + swept;
    END IF;
END $$;

SELECT ads.ensure_partitions();
