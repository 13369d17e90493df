-- Impression URLs of third parties, for "nginx-ads dispatch".

-- Takes pixels that are due, the oldest first. Each take counts as a try, so that a pixel that
-- crashes its dispatcher is given up in the end.
CREATE OR REPLACE FUNCTION ads.take_pixels(taker text, most int, lease interval)
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

-- Stores the outcome of taken pixels, as arrays of equal length:
--   outcome  'sent', 'retry' after so many seconds, 'dead', or 'later': nothing was
--            tried, so that no try is counted
-- Only pixels that `taker` still holds are changed: the number of the try shows whether another
-- dispatcher has taken one since. Returns the number of changed pixels.
CREATE OR REPLACE FUNCTION ads.finish_pixels(taker text, in_id int8[], in_try int4[], in_outcome text[], in_seconds float8[],
                                  in_error text[])
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
#variable_conflict use_column
DECLARE
    finished bigint;
BEGIN
    IF NOT '{sent,retry,dead,later}'::text[] @> in_outcome THEN
        RAISE EXCEPTION 'invalid outcome: must be sent, retry, dead or later' USING ERRCODE = 'invalid_parameter_value';
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
    SELECT count(*) INTO finished FROM told;
    RETURN finished;
END $$;

-- Queues the pixels that were given up again, of one creative or of all.
CREATE OR REPLACE FUNCTION ads.revive_pixels(creative bigint DEFAULT NULL) RETURNS bigint
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

CREATE OR REPLACE FUNCTION ads.pixel_status() RETURNS TABLE (
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
