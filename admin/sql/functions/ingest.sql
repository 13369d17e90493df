-- Removes the clicks of these impressions that were stored without them. The caller takes them out of
-- ads.event_hours.
CREATE OR REPLACE FUNCTION ads.take_unseen_clicks(impressions uuid[]) RETURNS SETOF ads.ad_events
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    unseen record;
    click ads.ad_events;
BEGIN
    FOR unseen IN DELETE FROM ads.unseen_clicks u WHERE u.impression = ANY (impressions) RETURNING u.* LOOP
        DELETE FROM ads.ad_events e
        WHERE e.id = unseen.click AND e."timestamp" = unseen.happened_at AND e.invalid = 'no_impression'
        RETURNING e.* INTO click;
        CONTINUE WHEN NOT FOUND;  -- erased
        click.price_micro := unseen.price_micro;
        RETURN NEXT click;
    END LOOP;
END $$;

-- Stores a batch of events, given as arrays of equal length. This is the only write access that a
-- node has. A batch is one transaction, and a second copy of an event, in this batch or any other,
-- changes nothing.
--
--   type     0 serve, 1 impression, 2 viewable, 3 click, 4 conversion, 5 a summary of requests
--   at       ms since 1970, when it happened; issued: when its serve was decided
--   device   0 desktop, 1 mobile, 2 tablet, 3 tv, 4 bot, 255 unknown
--   invalid  0 valid, else the place of its reason in ads.invalid_reason
--   experiment 0, country '' and user '' stand for none
--
-- The metadata of a summary has the counts of requests since `at`, by placement and by outcome (''
-- is a served ad). Summaries are in neither of the returned numbers.
--   {"home-top": {"": 12, "pacing": 3}}
--
-- Invalid input fails with an SQLSTATE of class 22 or 23, an event outside of all partitions with
-- 23514, and nothing of the batch is stored: the caller halves the batch until it finds the invalid
-- event. Other errors can be retried.
--
-- In a fleet each event is billed against the account of the node that served (billing.sql); one for
-- which nothing is left is stored as "late". `recorder` is the node whose spool is shipped. A click
-- with the metadata {"unseen":true} is to have an impression that its node does not know of: until
-- one is stored, it is invalid as "no_impression".
--
-- Tables are written in a fixed order, and each in the order of its key, so that callers with
-- overlapping batches wait for each other but never deadlock. Every step is a separate statement:
-- in one statement with several CTEs the planner would choose the order.

DROP FUNCTION IF EXISTS ads.ingest(
    uuid[], int2[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int2[], int2[], bool[],
    text[], text[], text[], text[], text[]);
CREATE OR REPLACE FUNCTION ads.ingest(
    in_id uuid[], in_type int2[], in_at int8[], in_issued int8[], in_serve int8[], in_campaign int8[],
    in_ad_group int8[], in_creative int8[], in_experiment int8[], in_price int8[], in_node int8[],
    in_device int2[], in_invalid int2[], in_consent bool[], in_placement text[], in_country text[],
    in_session text[], in_user text[], in_metadata text[], in_recorder int8 DEFAULT 0)
RETURNS TABLE (inserted int, duplicate int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET jit = off
    SET lock_timeout = '5s' AS $$
DECLARE
    total int;
    reasons CONSTANT ads.invalid_reason[] := enum_range(NULL::ads.invalid_reason);
    fresh uuid[];
    erased bigint[];
    place bigint;
    in_fleet CONSTANT boolean := EXISTS (SELECT FROM ads.fleet_nodes);
    walls ads.billed_walls;
    bill_first boolean := false;
    asked_price int8[];
    asked_invalid int2[];
    repeated uuid[];
    probes uuid[] := '{}';  -- impressions that a click is to have, and that its node has not recorded
    missing uuid[] := '{}';
    received int;
    unseen record;
BEGIN
    -- Summaries are not events: they are counted here and removed from the batch.
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

    -- Events of an erased person that were recorded up to a minute after the erasure, because the
    -- clocks of nodes may be ahead by that much, are stored as those of a visitor without consent.
    -- The lock is against mark_erased(), not against other batches.
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

    total := cardinality(in_id);
    IF NOT coalesce(total = ALL (ARRAY[
        cardinality(in_type), cardinality(in_at), cardinality(in_issued), cardinality(in_serve),
        cardinality(in_campaign), cardinality(in_ad_group), cardinality(in_creative), cardinality(in_experiment),
        cardinality(in_price), cardinality(in_node), cardinality(in_device), cardinality(in_invalid),
        cardinality(in_consent), cardinality(in_placement), cardinality(in_country), cardinality(in_session),
        cardinality(in_user), cardinality(in_metadata)]), false) THEN
        RAISE EXCEPTION 'the arrays must have the same length, and none may be null'
            USING ERRCODE = 'array_subscript_error';
    END IF;
    -- ALL yields null if the list has a null.
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
    -- Most batches have none.
    IF '{}' <> ANY (in_metadata) THEN
        PERFORM FROM unnest(in_metadata) AS e (metadata) WHERE jsonb_typeof(e.metadata::jsonb) <> 'object' LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'the metadata of an event is not an object' USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;

    -- In a fleet another node may have the impression of a click: its claim tells. (An id has its type
    -- in the 17th character.)
    IF in_fleet AND '{"unseen":true}' = ANY (in_metadata) THEN
        probes := ARRAY(SELECT overlay(e.id::text PLACING '1' FROM 17 FOR 1)::uuid
                        FROM unnest(in_id, in_type, in_invalid, in_metadata) AS e (id, type, invalid, metadata)
                        WHERE e.type = 3 AND e.invalid = 0 AND e.metadata = '{"unseen":true}');
        in_metadata := array_replace(in_metadata, '{"unseen":true}', '{}');
    END IF;

    -- The first transaction to claim an id keeps it. A second one waits here until the first
    -- commits or fails. Duplicates are rare, since the nodes filter them: claims without ON
    -- CONFLICT, which reads the index twice, cost half as much.
    BEGIN
        IF probes <> '{}' THEN
            RAISE unique_violation;
        END IF;
        INSERT INTO ads.event_claims (id) SELECT e.id FROM unnest(in_id) AS e (id) ORDER BY e.id;
        inserted := total;
    EXCEPTION WHEN unique_violation THEN
        WITH claimed AS (
            INSERT INTO ads.event_claims (id)
            SELECT e.id FROM unnest(in_id || probes) AS e (id) ORDER BY e.id
            ON CONFLICT DO NOTHING
            RETURNING id)
        SELECT array_agg(claimed.id) INTO fresh FROM claimed;
        -- An impression that is being stored at this moment was waited for, and one that comes from now
        -- on waits for this transaction: it finds its click in ads.unseen_clicks.
        IF probes <> '{}' THEN
            missing := ARRAY(SELECT p.id FROM unnest(probes) AS p (id) WHERE p.id = ANY (fresh) AND p.id <> ALL (in_id));
            DELETE FROM ads.event_claims c WHERE c.id = ANY (missing);
            fresh := ARRAY(SELECT f.id FROM unnest(fresh) AS f (id) WHERE f.id <> ALL (missing));
        END IF;
        inserted := coalesce(cardinality(fresh), 0);
    END;
    duplicate := total - inserted;
    IF in_fleet AND duplicate > 0 THEN
        repeated := ARRAY(SELECT e.id FROM unnest(in_id, in_node, in_invalid) AS e (id, node, invalid)
                          WHERE e.node = in_recorder AND e.invalid = 0 AND e.id <> ALL (coalesce(fresh, '{}')));
    END IF;
    IF inserted = 0 THEN
        IF repeated <> '{}' THEN
            PERFORM ads.note_verdicts('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', in_recorder,
                                      repeated);
        END IF;
        RETURN NEXT;
        RETURN;
    END IF;

    -- An event without a new claim gets type -1, which the following statements skip; of copies
    -- within the batch the first is kept.
    IF duplicate > 0 THEN
        SELECT array_agg(CASE WHEN kept.n IS NULL THEN -1 ELSE e.type END ORDER BY e.n) INTO in_type
        FROM unnest(in_type) WITH ORDINALITY AS e (type, n)
             LEFT JOIN (SELECT min(i.n) AS n
                        FROM unnest(in_id) WITH ORDINALITY AS i (id, n) JOIN unnest(fresh) AS f (id) ON f.id = i.id
                        GROUP BY i.id) kept ON kept.n = e.n;
    END IF;

    received := total;
    IF in_fleet THEN
        asked_price := in_price;
        asked_invalid := in_invalid;
        FOR place IN SELECT e.n FROM unnest(in_id, in_type) WITH ORDINALITY AS e (id, type, n)
                     WHERE e.type = 3 AND overlay(e.id::text PLACING '1' FROM 17 FOR 1)::uuid = ANY (missing) LOOP
            INSERT INTO ads.unseen_clicks (impression, click, happened_at, price_micro)
            VALUES (overlay(in_id[place]::text PLACING '1' FROM 17 FOR 1)::uuid, in_id[place],
                    to_timestamp(in_at[place]::float8 / 1000), in_price[place]) ON CONFLICT DO NOTHING;
            in_invalid[place] := array_position(reasons, 'no_impression');
            in_price[place] := 0;
        END LOOP;
        -- Clicks that came before their impressions are taken out, and stored again as valid.
        IF 1 = ANY (in_type) AND EXISTS (SELECT FROM ads.unseen_clicks) THEN
            FOR unseen IN
                SELECT * FROM ads.take_unseen_clicks(
                    ARRAY(SELECT e.id FROM unnest(in_id, in_type) AS e (id, type) WHERE e.type = 1))
            LOOP
                in_id := in_id || unseen.id;
                in_type := in_type || 3::int2;
                in_at := in_at || (extract(epoch FROM unseen."timestamp") * 1000)::int8;
                in_issued := in_issued || ('x' || left(replace(unseen.id::text, '-', ''), 12))::bit(48)::int8;
                in_serve := in_serve || unseen.serve_id;
                in_campaign := in_campaign || unseen.campaign_id;
                in_ad_group := in_ad_group || unseen.ad_group_id;
                in_creative := in_creative || unseen.creative_id;
                in_experiment := in_experiment || coalesce(unseen.experiment_id, 0);
                in_price := in_price || unseen.price_micro;
                in_node := in_node || unseen.node;
                in_device := in_device || (coalesce(array_position(enum_range(NULL::ads.device), unseen.device), 256) - 1)::int2;
                in_invalid := in_invalid || 0::int2;
                in_consent := in_consent || true;
                in_placement := in_placement || unseen.placement;
                in_country := in_country || coalesce(unseen.country, '');
                in_session := in_session || unseen.session_id;
                in_user := in_user || coalesce(unseen.user_id, '');
                in_metadata := in_metadata || unseen.metadata::text;
                asked_price := asked_price || unseen.price_micro;
                asked_invalid := asked_invalid || 0::int2;
            END LOOP;
        END IF;
        walls := ads.walls_of_events(in_type, in_at, in_issued, in_campaign, in_ad_group, in_price, in_node, in_invalid);
        bill_first := walls.places IS NOT NULL AND ads.contested_events(walls) <> '{}';
    END IF;

    -- Billing locks the walls until the end of the transaction, and other nodes wait for them: it comes
    -- last, unless some events may be late. If that turns out only then, the rest is done again. One
    -- that bills first excludes the others, or they would wait for each other in a circle.
    LOOP
        BEGIN
            IF in_fleet AND NOT bill_first THEN
                PERFORM pg_advisory_xact_lock_shared(1633972065, 3);
            END IF;
            IF bill_first THEN
                PERFORM pg_advisory_xact_lock(1633972065, 3);
                FOREACH place IN ARRAY ads.bill_events(walls) LOOP
                    in_invalid[place] := array_position(reasons, 'late');
                    in_price[place] := 0;
                END LOOP;
            END IF;

            -- Without consent, data that identifies a visitor is dropped, whatever was sent.
            -- (Arrays are unnested in the SELECT list, since in FROM each would be materialized
            -- first.)
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
                         country COLLATE "C" AS country, device, invalid, sum(events) AS events, sum(price)::bigint AS price
                  FROM (SELECT unnest(in_at) AS at, unnest(in_campaign) AS campaign, unnest(in_ad_group) AS ad_group,
                               unnest(in_creative) AS creative, unnest(in_placement) AS placement,
                               unnest(in_country) AS country, unnest(in_device) AS device, unnest(in_type) AS type,
                               unnest(in_invalid) AS invalid, unnest(in_price) AS price, 1 AS events
                        UNION ALL
                        SELECT unnest(in_at[received + 1:]), unnest(in_campaign[received + 1:]),
                               unnest(in_ad_group[received + 1:]), unnest(in_creative[received + 1:]),
                               unnest(in_placement[received + 1:]), unnest(in_country[received + 1:]),
                               unnest(in_device[received + 1:]), 3,
                               array_position(reasons, 'no_impression'), 0, -1) u
                  WHERE type >= 0
                  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9) e
            ORDER BY e.campaign, e.hour, e.ad_group, e.creative, e.type, e.placement, e.country, e.device, e.invalid
            ON CONFLICT (campaign_id, hour, ad_group_id, creative_id, type, placement, country, device, invalid)
            DO UPDATE SET events = h.events + excluded.events, price_micro = h.price_micro + excluded.price_micro;
            IF cardinality(in_id) > received THEN
                DELETE FROM ads.event_hours h
                USING (SELECT unnest(in_at[received + 1:]) AS at, unnest(in_campaign[received + 1:]) AS campaign) e
                WHERE h.campaign_id = e.campaign AND h.hour = to_timestamp(e.at / 3600000 * 3600)
                  AND h.type = 'click' AND h.invalid = 'no_impression' AND h.events = 0;
            END IF;

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

            -- A session belongs to the variant that it saw first. Events may arrive in any order,
            -- so the earliest times are kept.
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

            IF walls.places IS NOT NULL AND NOT bill_first AND ads.bill_events(walls) <> '{}' THEN
                RAISE EXCEPTION 'an event is late' USING ERRCODE = 'ADS01';
            END IF;
            EXIT;
        EXCEPTION WHEN SQLSTATE 'ADS01' THEN
            bill_first := true;
        END;
    END LOOP;
    IF in_fleet THEN
        -- The cursors of both calls, in their order.
        IF cardinality(in_id) > received THEN
            PERFORM FROM ads.fleet_cursors c WHERE c.node = ANY (in_node) ORDER BY c.node FOR UPDATE;
        END IF;
        PERFORM ads.note_verdicts(
            in_id[1:received], in_type[1:received], in_at[1:received], in_issued[1:received], in_serve[1:received],
            in_campaign[1:received], in_ad_group[1:received], asked_price[1:received], in_node[1:received],
            asked_invalid[1:received], in_invalid[1:received], in_recorder, repeated);
        -- Their nodes have heard that these are invalid, whoever recorded them.
        IF cardinality(in_id) > received THEN
            PERFORM ads.note_verdicts(
                in_id[received + 1:], in_type[received + 1:], in_at[received + 1:], in_issued[received + 1:],
                in_serve[received + 1:], in_campaign[received + 1:], in_ad_group[received + 1:],
                asked_price[received + 1:], in_node[received + 1:], asked_invalid[received + 1:],
                in_invalid[received + 1:], -1, '{}');
        END IF;
    END IF;

    RETURN NEXT;
END $$;

-- For a node that lost its counters, before its workers start.

-- The totals of each ad group, summed over all nodes: one row for each local day since that date, where
-- 2026-01-01 is day 1, and one row for all days, as day 0.
CREATE OR REPLACE FUNCTION ads.stored_totals(since date) RETURNS TABLE (
    campaign_id bigint, ad_group_id bigint, day int,
    serves bigint, impressions bigint, viewables bigint, clicks bigint, conversions bigint, spend_micro bigint
) STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE sql AS $$
    SELECT s.campaign_id, s.ad_group_id, s.day - date '2025-12-31',
           s.serves, s.impressions, s.viewables, s.clicks, s.conversions, s.spend_micro
    FROM ads.daily_spend s
    WHERE s.day >= greatest(since, date '2026-01-01')
    UNION ALL
    SELECT s.campaign_id, s.ad_group_id, 0,
           sum(s.serves)::bigint, sum(s.impressions)::bigint, sum(s.viewables)::bigint, sum(s.clicks)::bigint,
           sum(s.conversions)::bigint, sum(s.spend_micro)::bigint
    FROM ads.daily_spend s
    GROUP BY s.campaign_id, s.ad_group_id
$$;

-- The positions, from 1, of those events of the list that are stored.
CREATE OR REPLACE FUNCTION ads.stored(ids uuid[]) RETURNS SETOF bigint
STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE sql AS $$
    SELECT asked.place
    FROM unnest(ids) WITH ORDINALITY AS asked (id, place)
    JOIN ads.event_claims c ON c.id = asked.id
$$;
