-- What a node asks that has lost its counters, before its workers start.

-- The books of each ad group: of every local day since that date, by its number
-- (2026-01-01 is 1), and of all days, as day 0. Of all nodes together.
CREATE FUNCTION ads.books(since date) RETURNS TABLE (
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

-- Which of these events are stored: their places in the list, from 1.
CREATE FUNCTION ads.stored(ids uuid[]) RETURNS SETOF bigint
STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE sql AS $$
    SELECT asked.place
    FROM unnest(ids) WITH ORDINALITY AS asked (id, place)
    JOIN ads.event_claims c ON c.id = asked.id
$$;

REVOKE ALL ON FUNCTION ads.books(date), ads.stored(uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ads.books(date), ads.stored(uuid[]) TO ads_edge, ads_admin;
