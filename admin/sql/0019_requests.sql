-- Requests for placements reach the database with the events: once a minute a worker writes a
-- summary into its spool. In ads.ingest() it has the type 5, the start of its time as in_at, and
-- counts as its metadata: by placement, and by what became of the request ('' is an ad).
--   {"home-top": {"": 12, "pacing": 3}}
-- A summary that is sent twice counts once.

CREATE TABLE ads.request_summaries (
    id          uuid PRIMARY KEY,
    received_at timestamptz NOT NULL
);
CREATE INDEX request_summaries_age ON ads.request_summaries USING brin (received_at);

-- As in 0015, but for the summaries. They are in neither of the numbers that it returns.
CREATE OR REPLACE FUNCTION ads.ingest(
    in_id uuid[], in_type int2[], in_at int8[], in_issued int8[], in_serve int8[], in_campaign int8[],
    in_ad_group int8[], in_creative int8[], in_experiment int8[], in_price int8[], in_node int8[],
    in_device int2[], in_invalid int2[], in_consent bool[], in_placement text[], in_country text[],
    in_session text[], in_user text[], in_metadata text[])
RETURNS TABLE (inserted int, duplicate int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET jit = off
    SET lock_timeout = '5s' AS $$
DECLARE
    erased bigint[];
    place bigint;
BEGIN
    -- Summaries are no events: they are counted, and taken out of the batch.
    IF 5 = ANY (in_type) THEN
        WITH fresh AS (
            INSERT INTO ads.request_summaries (id, received_at)
            SELECT e.id, ads.now() FROM unnest(in_id, in_type) AS e (id, type) WHERE e.type = 5 ORDER BY e.id
            ON CONFLICT DO NOTHING
            RETURNING id)
        INSERT INTO ads.placement_hours AS p (hour, placement, outcome, requests)
        SELECT to_timestamp(e.at / 3600000 * 3600), s.key COLLATE "C", o.key COLLATE "C",
               sum(o.value::bigint)
        FROM (SELECT DISTINCT ON (u.id) u.id, u.at, u.metadata
              FROM unnest(in_id, in_type, in_at, in_metadata) AS u (id, type, at, metadata) WHERE u.type = 5) e
             JOIN fresh f ON f.id = e.id, jsonb_each(e.metadata::jsonb) s, jsonb_each_text(s.value) o
        GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (hour, placement, outcome) DO UPDATE SET requests = p.requests + excluded.requests;

        SELECT array_agg(e.id ORDER BY e.n), array_agg(e.type ORDER BY e.n), array_agg(e.at ORDER BY e.n),
               array_agg(e.issued ORDER BY e.n), array_agg(e.serve ORDER BY e.n), array_agg(e.campaign ORDER BY e.n),
               array_agg(e.ad_group ORDER BY e.n), array_agg(e.creative ORDER BY e.n),
               array_agg(e.experiment ORDER BY e.n), array_agg(e.price ORDER BY e.n), array_agg(e.node ORDER BY e.n),
               array_agg(e.device ORDER BY e.n), array_agg(e.invalid ORDER BY e.n), array_agg(e.consent ORDER BY e.n),
               array_agg(e.placement ORDER BY e.n), array_agg(e.country ORDER BY e.n),
               array_agg(e.session ORDER BY e.n), array_agg(e."user" ORDER BY e.n), array_agg(e.metadata ORDER BY e.n)
        INTO in_id, in_type, in_at, in_issued, in_serve, in_campaign, in_ad_group, in_creative, in_experiment,
             in_price, in_node, in_device, in_invalid, in_consent, in_placement, in_country, in_session, in_user,
             in_metadata
        FROM unnest(in_id, in_type, in_at, in_issued, in_serve, in_campaign, in_ad_group, in_creative, in_experiment,
                    in_price, in_node, in_device, in_invalid, in_consent, in_placement, in_country, in_session,
                    in_user, in_metadata) WITH ORDINALITY
             AS e (id, type, at, issued, serve, campaign, ad_group, creative, experiment, price, node, device,
                   invalid, consent, placement, country, session, "user", metadata, n)
        WHERE e.type IS DISTINCT FROM 5;
        IF in_id IS NULL THEN
            inserted := 0;
            duplicate := 0;
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;

    -- Against mark_erased(), not against each other.
    PERFORM pg_advisory_xact_lock_shared(1633972065, 2);
    IF EXISTS (SELECT FROM ads.erasures) AND cardinality(in_id) = ALL (ARRAY[cardinality(in_at),
            cardinality(in_consent), cardinality(in_session), cardinality(in_user)]) THEN
        SELECT array_agg(e.n) INTO erased
        FROM (SELECT u.n, u.at, u."user" = '' AS alone, k.of_user,
                     sha256(convert_to(CASE WHEN k.of_user THEN u."user" ELSE u.session END, 'UTF8')) AS digest
              FROM unnest(in_at, in_consent, in_session, in_user) WITH ORDINALITY AS u (at, consent, session, "user", n),
                   (VALUES (false), (true)) AS k (of_user)
              WHERE u.consent AND (NOT k.of_user OR u."user" <> '')) e
             JOIN ads.erasures x ON x.digest = e.digest
                 AND CASE x.kind WHEN 'user' THEN e.of_user WHEN 'session' THEN NOT e.of_user ELSE NOT e.of_user AND e.alone END
        WHERE e.at <= extract(epoch FROM x.erased_at + interval '1 minute') * 1000;
        FOREACH place IN ARRAY coalesce(erased, '{}') LOOP
            in_consent[place] := false;
        END LOOP;
    END IF;
    RETURN QUERY SELECT s.inserted, s.duplicate
        FROM ads.store_events(in_id, in_type, in_at, in_issued, in_serve, in_campaign, in_ad_group, in_creative,
                              in_experiment, in_price, in_node, in_device, in_invalid, in_consent, in_placement,
                              in_country, in_session, in_user, in_metadata) AS s;
END $$;

-- ---- retention ------------------------------------------------------------------------

-- As in 0015, and summaries are forgotten when no spool is likely to have them still.
ALTER FUNCTION ads.prune_events(int) RENAME TO prune_persons;
CREATE FUNCTION ads.prune_events(keep_days int DEFAULT 395) RETURNS TABLE (action text, what text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    RETURN QUERY SELECT p.action, p.what FROM ads.prune_persons(keep_days) AS p;
    DELETE FROM ads.request_summaries WHERE received_at < ads.now() - interval '3 months';
END $$;

-- ---- rights ---------------------------------------------------------------------------

REVOKE ALL ON ads.request_summaries FROM PUBLIC;
GRANT SELECT, INSERT, UPDATE, DELETE ON ads.request_summaries TO ads_admin;
GRANT SELECT ON ads.request_summaries TO ads_report;
REVOKE ALL ON FUNCTION ads.prune_events(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ads.prune_events(int) TO ads_admin;
