-- Third parties' pixels: what "nginx-ads dispatch" works on. An impression queues its
-- pixel in the transaction that stores it (ads.ingest), so each is queued once. A
-- dispatcher takes some for a while, the lease, and settles them one by one; of a
-- dispatcher that died the lease runs out, and another one takes them.

-- What the macros of an address stand for. Rows of before have none, but for the
-- creative: their macros become 0 and ''.
ALTER TABLE ads.pixel_queue
    ADD COLUMN campaign_id bigint NOT NULL DEFAULT 0,
    ADD COLUMN ad_group_id bigint NOT NULL DEFAULT 0,
    ADD COLUMN placement   text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN happened_at timestamptz,
    ADD COLUMN taken_by    text,             -- null: nobody has it
    ADD COLUMN error       text,             -- of the last try
    DROP COLUMN state;                       -- what is sent or given up is not here
DROP TYPE ads.pixel_state;
UPDATE ads.pixel_queue SET happened_at = queued_at;
ALTER TABLE ads.pixel_queue ALTER COLUMN happened_at SET NOT NULL;
-- It went with the column that it was for. next_try is also the end of a lease.
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

-- ---- the dispatcher's side ----------------------------------------------------------

-- Some that are due, those that wait longest first. Each counts as a try: what
-- kills its dispatcher comes to an end, too.
CREATE FUNCTION ads.take_pixels(taker text, most int, lease interval)
RETURNS TABLE (id bigint, tries int, event_id uuid, campaign_id bigint, ad_group_id bigint, creative_id bigint,
               placement text, happened_at timestamptz, url text)
LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    WITH due AS MATERIALIZED (
        SELECT q.id FROM ads.pixel_queue q WHERE q.next_try <= ads.now()
        ORDER BY q.next_try, q.id LIMIT most FOR UPDATE SKIP LOCKED)
    UPDATE ads.pixel_queue q SET next_try = ads.now() + lease, tries = q.tries + 1, taken_by = taker
    FROM due WHERE q.id = due.id
    RETURNING q.id, q.tries, q.event_id, q.campaign_id, q.ad_group_id, q.creative_id, q.placement, q.happened_at, q.url
$$;

-- What became of those that were taken, as arrays of one length:
--   outcome  'sent', 'retry' after so many seconds, 'dead', or 'later': nothing was
--            tried, so that no try is counted
-- Only what the taker still has is settled: the number of the try tells whether
-- somebody else has taken it since. Returns how many that were.
CREATE FUNCTION ads.settle_pixels(taker text, in_id int8[], in_try int4[], in_outcome text[], in_seconds float8[],
                                  in_error text[])
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
#variable_conflict use_column
DECLARE
    settled bigint;
BEGIN
    IF NOT '{sent,retry,dead,later}'::text[] @> in_outcome THEN
        RAISE EXCEPTION 'an outcome is sent, retry, dead or later' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    WITH told AS MATERIALIZED (
        SELECT q.*, o.outcome, o.seconds, o.why
        FROM unnest(in_id, in_try, in_outcome, in_seconds, in_error) AS o (id, try, outcome, seconds, why)
             JOIN ads.pixel_queue q ON q.id = o.id AND q.tries = o.try AND q.taken_by = taker
        ORDER BY q.id FOR UPDATE OF q),
    gone AS (
        DELETE FROM ads.pixel_queue q USING told
        WHERE q.id = told.id AND told.outcome IN ('sent', 'dead')),
    back AS (
        UPDATE ads.pixel_queue q
        SET next_try = ads.now() + make_interval(secs => told.seconds), taken_by = NULL,
            tries = q.tries - CASE told.outcome WHEN 'later' THEN 1 ELSE 0 END, error = coalesce(told.why, q.error)
        FROM told WHERE q.id = told.id AND told.outcome IN ('retry', 'later')),
    buried AS (
        INSERT INTO ads.dead_pixels (id, event_id, campaign_id, ad_group_id, creative_id, placement, happened_at, url,
                                     queued_at, tries, died_at, error)
        SELECT id, event_id, campaign_id, ad_group_id, creative_id, placement, happened_at, url, queued_at, tries,
               ads.now(), coalesce(why, '') FROM told WHERE outcome = 'dead'),
    counted AS (
        INSERT INTO ads.pixel_days AS d (day, creative_id, sent, retried, dead)
        SELECT (ads.now() AT TIME ZONE 'UTC')::date, creative_id, count(*) FILTER (WHERE outcome = 'sent'),
               count(*) FILTER (WHERE outcome = 'retry'), count(*) FILTER (WHERE outcome = 'dead')
        FROM told WHERE outcome <> 'later' GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (day, creative_id) DO UPDATE
        SET sent = d.sent + excluded.sent, retried = d.retried + excluded.retried, dead = d.dead + excluded.dead)
    SELECT count(*) INTO settled FROM told;
    RETURN settled;
END $$;

-- Puts what was given up into the queue once more, of one creative or of all.
CREATE FUNCTION ads.revive_pixels(creative bigint DEFAULT NULL) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    WITH dead AS (
        DELETE FROM ads.dead_pixels d WHERE creative IS NULL OR d.creative_id = creative RETURNING *),
    back AS (
        INSERT INTO ads.pixel_queue (id, event_id, campaign_id, ad_group_id, creative_id, placement, happened_at, url,
                                     queued_at, next_try, error)
        SELECT id, event_id, campaign_id, ad_group_id, creative_id, placement, happened_at, url, queued_at, ads.now(),
               error FROM dead)
    SELECT count(*) FROM dead
$$;

CREATE FUNCTION ads.pixel_status() RETURNS TABLE (
    waiting bigint, due bigint, taken bigint, oldest_seconds double precision, dead bigint,
    sent_today bigint, retried_today bigint, dead_today bigint)
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT count(q.id), count(*) FILTER (WHERE q.next_try <= ads.now()),
           count(*) FILTER (WHERE q.taken_by IS NOT NULL AND q.next_try > ads.now()),
           extract(epoch FROM ads.now() - min(q.queued_at))::double precision,
           (SELECT count(*) FROM ads.dead_pixels), d.sent, d.retried, d.dead
    FROM (SELECT coalesce(sum(sent), 0)::bigint AS sent, coalesce(sum(retried), 0)::bigint AS retried,
                 coalesce(sum(dead), 0)::bigint AS dead
          FROM ads.pixel_days WHERE day = (ads.now() AT TIME ZONE 'UTC')::date) d
         LEFT JOIN ads.pixel_queue q ON true
    GROUP BY d.sent, d.retried, d.dead
$$;

-- ---- the edge's side ----------------------------------------------------------------

-- As in 0007, but that the queue gets what the macros need.
CREATE OR REPLACE FUNCTION ads.ingest(
    in_id uuid[], in_type int2[], in_at int8[], in_issued int8[], in_serve int8[], in_campaign int8[],
    in_ad_group int8[], in_creative int8[], in_experiment int8[], in_price int8[], in_node int8[],
    in_device int2[], in_invalid int2[], in_consent bool[], in_placement text[], in_country text[],
    in_session text[], in_user text[], in_metadata text[])
RETURNS TABLE (inserted int, duplicate int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET jit = off
    SET lock_timeout = '5s' AS $$
DECLARE
    total int := cardinality(in_id);
    reasons CONSTANT ads.invalid_reason[] := enum_range(NULL::ads.invalid_reason);
    fresh uuid[];
BEGIN
    IF NOT coalesce(total = ALL (ARRAY[
        cardinality(in_type), cardinality(in_at), cardinality(in_issued), cardinality(in_serve),
        cardinality(in_campaign), cardinality(in_ad_group), cardinality(in_creative), cardinality(in_experiment),
        cardinality(in_price), cardinality(in_node), cardinality(in_device), cardinality(in_invalid),
        cardinality(in_consent), cardinality(in_placement), cardinality(in_country), cardinality(in_session),
        cardinality(in_user), cardinality(in_metadata)]), false) THEN
        RAISE EXCEPTION 'the arrays must have the same length, and none may be null'
            USING ERRCODE = 'array_subscript_error';
    END IF;
    -- ALL is null if there is a null among them.
    IF total > 0 AND NOT coalesce(
        1 = ALL (ARRAY[array_ndims(in_id), array_ndims(in_serve), array_ndims(in_consent), array_ndims(in_placement),
                       array_ndims(in_country), array_ndims(in_session), array_ndims(in_user),
                       array_ndims(in_metadata)]), false) THEN
        RAISE EXCEPTION 'the arrays must have one dimension' USING ERRCODE = 'array_subscript_error';
    END IF;
    IF NOT coalesce(
        0 <= ALL (in_type) AND 4 >= ALL (in_type)
        AND 0 <= ALL (in_at) AND 253402300799999 >= ALL (in_at)
        AND 0 <= ALL (in_issued) AND 253402300799999 >= ALL (in_issued)
        AND 1 <= ALL (in_campaign) AND 4294967295 >= ALL (in_campaign)
        AND 1 <= ALL (in_ad_group) AND 4294967295 >= ALL (in_ad_group)
        AND 1 <= ALL (in_creative) AND 4294967295 >= ALL (in_creative)
        AND 0 <= ALL (in_experiment) AND 4294967295 >= ALL (in_experiment)
        AND 0 <= ALL (in_price) AND 10000000000000000 >= ALL (in_price)
        AND 0 <= ALL (in_node) AND 4294967295 >= ALL (in_node)
        AND 0 <= ALL (in_device) AND 4 >= ALL (array_remove(in_device, 255::int2))
        AND 0 <= ALL (in_invalid) AND cardinality(reasons) >= ALL (in_invalid)
        AND array_position(in_id, NULL) IS NULL AND array_position(in_serve, NULL) IS NULL
        AND array_position(in_consent, NULL) IS NULL AND array_position(in_placement, NULL) IS NULL
        AND array_position(in_country, NULL) IS NULL AND '' <> ALL (in_session)
        AND array_position(in_user, NULL) IS NULL AND array_position(in_metadata, NULL) IS NULL, false) THEN
        RAISE EXCEPTION 'an event has a null or a value out of range' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Most have none.
    IF '{}' <> ANY (in_metadata) THEN
        PERFORM FROM unnest(in_metadata) AS e (metadata) WHERE jsonb_typeof(e.metadata::jsonb) <> 'object' LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'the metadata of an event is not an object' USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;

    -- Who claims an id first has it. A second caller waits here for the first one to
    -- commit or to fail. Duplicates are rare, the edges have sorted them out: without
    -- ON CONFLICT, which looks twice, claims cost half as much.
    BEGIN
        INSERT INTO ads.event_claims (id) SELECT e.id FROM unnest(in_id) AS e (id) ORDER BY e.id;
        inserted := total;
    EXCEPTION WHEN unique_violation THEN
        WITH claimed AS (
            INSERT INTO ads.event_claims (id)
            SELECT e.id FROM unnest(in_id) AS e (id) ORDER BY e.id
            ON CONFLICT DO NOTHING
            RETURNING id)
        SELECT array_agg(claimed.id) INTO fresh FROM claimed;
        inserted := coalesce(cardinality(fresh), 0);
    END;
    duplicate := total - inserted;
    IF inserted = 0 THEN
        RETURN NEXT;
        RETURN;
    END IF;

    -- What has no new claim gets the type -1, which the rest leaves out; of copies
    -- within the batch the first goes on.
    IF duplicate > 0 THEN
        SELECT array_agg(CASE WHEN kept.n IS NULL THEN -1 ELSE e.type END ORDER BY e.n) INTO in_type
        FROM unnest(in_type) WITH ORDINALITY AS e (type, n)
             LEFT JOIN (SELECT min(i.n) AS n
                        FROM unnest(in_id) WITH ORDINALITY AS i (id, n) JOIN unnest(fresh) AS f (id) ON f.id = i.id
                        GROUP BY i.id) kept ON kept.n = e.n;
    END IF;

    -- Without consent nothing that tells people apart is kept, whatever was sent.
    -- (Arrays are unnested in the SELECT list: in FROM each would be stored first.)
    INSERT INTO ads.ad_events (id, "timestamp", serve_id, campaign_id, ad_group_id, creative_id, experiment_id,
                               price_micro, node, type, device, invalid, placement, session_id, user_id, country,
                               metadata)
    SELECT e.id, to_timestamp(e.at::float8 / 1000), e.serve, e.campaign, e.ad_group, e.creative,
           nullif(e.experiment, 0), e.price, e.node,
           ('{serve,impression,viewable,click,conversion}'::ads.event_type[])[e.type + 1],
           ('{desktop,mobile,tablet,tv,bot}'::ads.device[])[e.device + 1],
           reasons[e.invalid],
           e.placement, CASE WHEN e.consent THEN e.session ELSE 'anonymous' END,
           CASE WHEN e.consent THEN nullif(e."user", '') END, nullif(e.country, ''),
           CASE WHEN e.consent AND e.metadata <> '{}' THEN e.metadata::jsonb ELSE '{}' END
    FROM (SELECT unnest(in_id) AS id, unnest(in_type) AS type, unnest(in_at) AS at, unnest(in_serve) AS serve,
                 unnest(in_campaign) AS campaign, unnest(in_ad_group) AS ad_group, unnest(in_creative) AS creative,
                 unnest(in_experiment) AS experiment, unnest(in_price) AS price, unnest(in_node) AS node,
                 unnest(in_device) AS device, unnest(in_invalid) AS invalid, unnest(in_consent) AS consent,
                 unnest(in_placement) AS placement, unnest(in_country) AS country, unnest(in_session) AS session,
                 unnest(in_user) AS "user", unnest(in_metadata) AS metadata) e
    WHERE e.type >= 0;

    INSERT INTO ads.event_hours AS h (hour, campaign_id, ad_group_id, creative_id, placement, country, device, type,
                                      invalid, events, price_micro)
    SELECT to_timestamp(e.hour * 3600), e.campaign, e.ad_group, e.creative, e.placement, e.country,
           coalesce(('{desktop,mobile,tablet,tv,bot}'::text[])[e.device + 1], ''),
           ('{serve,impression,viewable,click,conversion}'::ads.event_type[])[e.type + 1],
           coalesce(reasons[e.invalid]::text, ''), e.events, e.price
    FROM (SELECT campaign, at / 3600000 AS hour, ad_group, creative, type, placement COLLATE "C" AS placement,
                 country COLLATE "C" AS country, device, invalid, count(*) AS events, sum(price)::bigint AS price
          FROM (SELECT unnest(in_at) AS at, unnest(in_campaign) AS campaign, unnest(in_ad_group) AS ad_group,
                       unnest(in_creative) AS creative, unnest(in_placement) AS placement,
                       unnest(in_country) AS country, unnest(in_device) AS device, unnest(in_type) AS type,
                       unnest(in_invalid) AS invalid, unnest(in_price) AS price) u
          WHERE type >= 0
          GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9) e
    ORDER BY e.campaign, e.hour, e.ad_group, e.creative, e.type, e.placement, e.country, e.device, e.invalid
    ON CONFLICT (campaign_id, hour, ad_group_id, creative_id, type, placement, country, device, invalid)
    DO UPDATE SET events = h.events + excluded.events, price_micro = h.price_micro + excluded.price_micro;

    INSERT INTO ads.daily_spend AS s (campaign_id, day, ad_group_id, serves, impressions, viewables, clicks,
                                      conversions, spend_micro)
    SELECT e.campaign, (to_timestamp((CASE WHEN e.type < 3 THEN e.issued ELSE e.at END)::float8 / 1000)
                        AT TIME ZONE coalesce(c.timezone, 'UTC'))::date AS day, e.ad_group,
           count(*) FILTER (WHERE e.type = 0), count(*) FILTER (WHERE e.type = 1),
           count(*) FILTER (WHERE e.type = 2), count(*) FILTER (WHERE e.type = 3),
           count(*) FILTER (WHERE e.type = 4), sum(e.price)
    FROM (SELECT unnest(in_type) AS type, unnest(in_at) AS at, unnest(in_issued) AS issued,
                 unnest(in_campaign) AS campaign, unnest(in_ad_group) AS ad_group, unnest(in_price) AS price,
                 unnest(in_invalid) AS invalid) e
         LEFT JOIN ads.campaigns c ON c.id = e.campaign
    WHERE e.invalid = 0 AND e.type >= 0
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (campaign_id, day, ad_group_id)
    DO UPDATE SET serves = s.serves + excluded.serves, impressions = s.impressions + excluded.impressions,
        viewables = s.viewables + excluded.viewables, clicks = s.clicks + excluded.clicks,
        conversions = s.conversions + excluded.conversions, spend_micro = s.spend_micro + excluded.spend_micro;

    -- The variant that a session saw first is its variant; events may come in any
    -- order, so the earliest times win.
    IF 0 <> ANY (in_experiment) THEN
        INSERT INTO ads.experiment_trials AS t (experiment_id, session_id, creative_id, first_impression,
                                                first_success)
        SELECT e.experiment, e.session COLLATE "C", (array_agg(e.creative ORDER BY e.at, e.type, e.creative))[1],
               to_timestamp((min(e.at) FILTER (WHERE e.type = 1))::float8 / 1000),
               to_timestamp((min(e.at) FILTER (WHERE e.type <> 1))::float8 / 1000)
        FROM (SELECT unnest(in_type) AS type, unnest(in_at) AS at, unnest(in_experiment) AS experiment,
                     unnest(in_creative) AS creative, unnest(in_session) AS session, unnest(in_invalid) AS invalid,
                     unnest(in_consent) AS consent) e
             LEFT JOIN ads.experiments x ON x.id = e.experiment
        WHERE e.experiment <> 0 AND e.invalid = 0 AND e.consent AND e.session <> 'anonymous'
          AND (e.type = 1 OR e.type = CASE x.metric WHEN 'conversion' THEN 4 ELSE 3 END)
        GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (experiment_id, session_id)
        DO UPDATE SET first_impression = least(t.first_impression, excluded.first_impression),
                      first_success = least(t.first_success, excluded.first_success);
    END IF;

    IF 1 = ANY (in_type) THEN
        INSERT INTO ads.pixel_queue (event_id, campaign_id, ad_group_id, creative_id, placement, happened_at, url)
        SELECT e.id, e.campaign, e.ad_group, e.creative, e.placement, to_timestamp(e.at::float8 / 1000),
               c.impression_url
        FROM (SELECT unnest(in_id) AS id, unnest(in_type) AS type, unnest(in_at) AS at,
                     unnest(in_campaign) AS campaign, unnest(in_ad_group) AS ad_group,
                     unnest(in_creative) AS creative, unnest(in_placement) AS placement,
                     unnest(in_invalid) AS invalid) e
             JOIN ads.creatives c ON c.id = e.creative AND c.impression_url IS NOT NULL
        WHERE e.type = 1 AND e.invalid = 0;
    END IF;

    RETURN NEXT;
END $$;

-- ---- rights -------------------------------------------------------------------------

REVOKE ALL ON FUNCTION ads.take_pixels(text, int, interval),
    ads.settle_pixels(text, int8[], int4[], text[], float8[], text[]), ads.revive_pixels(bigint), ads.pixel_status()
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ads.take_pixels(text, int, interval),
    ads.settle_pixels(text, int8[], int4[], text[], float8[], text[]), ads.revive_pixels(bigint), ads.pixel_status()
    TO ads_admin;
GRANT EXECUTE ON FUNCTION ads.pixel_status() TO ads_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON ads.dead_pixels, ads.pixel_days TO ads_admin;
GRANT SELECT ON ads.dead_pixels, ads.pixel_days TO ads_report;
