-- replaces migrations 1 to 19
--
-- Events and what is counted of them. Rows get here through ads.ingest().

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

-- Pixels of third parties, fetched by nginx-ads dispatch. An impression queues its pixel in the
-- transaction that stores it, so each is queued once. A dispatcher takes some for a while, the
-- lease, and settles them one by one; when a dispatcher dies its lease runs out, and another one
-- takes them.
CREATE TABLE ads.pixel_queue (
    id          bigserial PRIMARY KEY,
    event_id    uuid NOT NULL,
    creative_id bigint NOT NULL,
    url         text NOT NULL,           -- with its macros
    queued_at   timestamptz NOT NULL DEFAULT now(),
    next_try    timestamptz NOT NULL DEFAULT now(),  -- also the end of a lease
    tries       int NOT NULL DEFAULT 0 CHECK (tries >= 0),
    -- For the macros of the address.
    campaign_id bigint NOT NULL DEFAULT 0,
    ad_group_id bigint NOT NULL DEFAULT 0,
    placement   text COLLATE "C" NOT NULL DEFAULT '',
    happened_at timestamptz NOT NULL,
    taken_by    text,                    -- null: nobody has it
    error       text                     -- of the last try
);
CREATE INDEX pixel_queue_next ON ads.pixel_queue (next_try, id);

-- What was given up, and why.
CREATE TABLE ads.dead_pixels (
    id          bigint PRIMARY KEY,          -- as in the queue
    event_id    uuid NOT NULL,
    campaign_id bigint NOT NULL,
    ad_group_id bigint NOT NULL,
    creative_id bigint NOT NULL,
    placement   text COLLATE "C" NOT NULL,
    happened_at timestamptz NOT NULL,
    url         text NOT NULL,
    queued_at   timestamptz NOT NULL,
    tries       int NOT NULL,
    died_at     timestamptz NOT NULL,
    error       text NOT NULL
);
CREATE INDEX dead_pixels_died ON ads.dead_pixels (died_at);

-- How many, by day in UTC.
CREATE TABLE ads.pixel_days (
    day         date NOT NULL,
    creative_id bigint NOT NULL,
    sent        bigint NOT NULL DEFAULT 0,
    retried     bigint NOT NULL DEFAULT 0,   -- tries that failed and are to be repeated
    dead        bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (day, creative_id)
) WITH (fillfactor = 70);

-- Requests for a placement, per hour and by what became of them. The workers count them and
-- send a summary once a minute.
CREATE TABLE ads.placement_hours (
    hour      timestamptz NOT NULL,
    placement text COLLATE "C" NOT NULL,
    outcome   text COLLATE "C" NOT NULL,  -- '' for an ad, else why there was none
    requests  bigint NOT NULL CHECK (requests >= 0),
    PRIMARY KEY (hour, placement, outcome)
) WITH (fillfactor = 70);

-- Summaries of requests that were counted: one that is sent twice counts once.
CREATE TABLE ads.request_summaries (
    id          uuid PRIMARY KEY,
    received_at timestamptz NOT NULL
);
CREATE INDEX request_summaries_age ON ads.request_summaries USING brin (received_at);

-- Persons that were erased stay erased: a node may still hold events of one in memory, or in a
-- spool that was not searched yet, and send them after the erasure.
-- Digests only: a session and a pseudonym are 128 random bits, so nothing leads back to them.
CREATE TABLE ads.erasures (
    kind      text NOT NULL CHECK (kind IN ('session', 'user', 'linked')),
    digest    bytea NOT NULL,  -- SHA-256
    erased_at timestamptz NOT NULL,
    PRIMARY KEY (digest, kind)
);
COMMENT ON TABLE ads.erasures IS 'Persons whose earlier events ads.ingest() stores without them; kept for three months.';
