-- Reports, forecasts, and the delivery of budgets and goals. The command, dashboards and psql call
-- these functions, so they show the same figures.

-- ---- periods --------------------------------------------------------------------------

-- "2026-11-18", "today" and "yesterday" are local days, "now" and RFC 3339 texts are moments. A day
-- stands for its first instant, or as the end of a period for the first instant after it.
CREATE OR REPLACE FUNCTION ads.period_bound(word text, zone text, is_end boolean) RETURNS timestamptz STABLE LANGUAGE plpgsql
SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    day date := CASE
        WHEN word = 'today' THEN (ads.now() AT TIME ZONE zone)::date
        WHEN word = 'yesterday' THEN (ads.now() AT TIME ZONE zone)::date - 1
        WHEN word ~ '^\d{4}-\d\d-\d\d$' THEN word::date END;
BEGIN
    IF day IS NOT NULL THEN
        RETURN ads.day_start(CASE WHEN is_end THEN day + 1 ELSE day END, zone);
    END IF;
    RETURN CASE WHEN word = 'now' THEN ads.now() ELSE word::timestamptz END;
END $$;

-- The period between two bounds, both days included; '' stands for 30 days ago and for now. "shift"
-- is the distance to the preceding period of equal length, in local time.
CREATE OR REPLACE FUNCTION ads.period(first text, last text, zone text DEFAULT 'UTC')
RETURNS TABLE (since timestamptz, until timestamptz, shift interval) STABLE LANGUAGE plpgsql
SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    since := coalesce(ads.period_bound(nullif(first, ''), zone, false), ads.now() - interval '30 days');
    until := coalesce(ads.period_bound(nullif(last, ''), zone, true), ads.now());
    shift := (until AT TIME ZONE zone) - (since AT TIME ZONE zone);
    RETURN NEXT;
END $$;

-- ---- reports --------------------------------------------------------------------------

-- What a row of the roll-up belongs to; "at" is its local time. Without SET, so that it is inlined.
CREATE OR REPLACE FUNCTION ads.report_key(dimension text, h ads.event_hours, advertiser text, at timestamp) RETURNS text
STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT CASE dimension
        WHEN 'total' THEN ''
        WHEN 'advertiser' THEN coalesce(advertiser, '')
        WHEN 'campaign' THEN h.campaign_id::text
        WHEN 'ad-group' THEN h.ad_group_id::text
        WHEN 'creative' THEN h.creative_id::text
        WHEN 'placement' THEN h.placement
        WHEN 'country' THEN h.country
        WHEN 'device' THEN h.device
        WHEN 'day' THEN to_char(at, 'YYYY-MM-DD')
        WHEN 'hour' THEN to_char(at, 'YYYY-MM-DD"T"HH24:MI') END
$$;

CREATE OR REPLACE FUNCTION ads.report_name(dimension text, key text) RETURNS text STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT coalesce(CASE dimension
        WHEN 'campaign' THEN (SELECT c.name FROM ads.campaigns c WHERE c.id = key::bigint)
        WHEN 'ad-group' THEN (SELECT a.name FROM ads.ad_groups a WHERE a.id = key::bigint)
        WHEN 'creative' THEN (SELECT k.name FROM ads.creatives k WHERE k.id = key::bigint)
        WHEN 'placement' THEN (SELECT p.name FROM ads.placements p WHERE p.id = key) END, '')
$$;

-- Figures from the roll-ups, by one dimension or two ("campaign,day"), or in one row ("total").
-- They are of valid events, except for invalid and requests; rates are null where the divisor is 0.
-- Requests are counted by placement and hour only, so requests and the fill rate are given for
-- total, placement, day and hour without a campaign, and null otherwise.
-- viewable_share and viewable_seconds are those of the placement, null where a row has none; the
-- share is null also if it depends on the size of the ad.
-- With with_total the first row, whose key is null, is that of 'total'.
--
-- Days and hours are those of the time zone; if its offset is not whole hours, an hour belongs to
-- the day in which it begins. With a shift, the figures are of the period that lies so far back,
-- but its days and hours are named as those of the current period.
DROP FUNCTION IF EXISTS ads.report(text, timestamptz, timestamptz, bigint, text, text, text, interval);
DROP FUNCTION IF EXISTS ads.report(text, timestamptz, timestamptz, bigint, text, text, text, interval, boolean);
CREATE FUNCTION ads.report(by text, since timestamptz, until timestamptz, campaign bigint DEFAULT NULL,
                           zone text DEFAULT 'UTC', advertiser text DEFAULT NULL, placement text DEFAULT NULL,
                           shift interval DEFAULT '0', with_total boolean DEFAULT false)
RETURNS TABLE (key text, name text, key2 text, name2 text, requests bigint, unfilled bigint, fill_rate numeric,
               serves bigint, impressions bigint, viewables bigint, viewable_rate numeric, clicks bigint, ctr numeric,
               conversions bigint, invalid bigint, spend_cents numeric, ecpm_cents numeric, viewable_share numeric,
               viewable_seconds smallint)
STABLE LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp SET jit = off SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    timely constant text[] := '{day,hour}';
    dims text[] := string_to_array(by, ',');
    first text := dims[1];
    second text := dims[2];
    of_campaign bigint := campaign;
    of_advertiser text := advertiser;
    of_placement text := placement;
    asked boolean := campaign IS NULL AND advertiser IS NULL;
    fillable boolean := asked AND dims <@ '{total,placement,day,hour}';
BEGIN
    IF cardinality(dims) NOT BETWEEN 1 AND 2 OR first = second OR 'total' = ANY (dims[2:]) OR NOT dims <@
        '{total,advertiser,campaign,ad-group,creative,placement,country,device,day,hour}' THEN
        RAISE EXCEPTION 'there is no report by %', by USING ERRCODE = 'invalid_parameter_value';
    END IF;
    since := (since AT TIME ZONE zone - shift) AT TIME ZONE zone;
    until := (until AT TIME ZONE zone - shift) AT TIME ZONE zone;
    RETURN QUERY
    SELECT s.key, CASE WHEN NOT s.whole THEN ads.report_name(first, s.key) END, s.key2,
           CASE WHEN NOT s.whole AND second IS NOT NULL THEN ads.report_name(second, s.key2) END,
           s.requests, s.unfilled, round((s.requests - s.unfilled)::numeric / nullif(s.requests, 0), 6),
           s.serves, s.impressions, s.viewables, round(s.viewables::numeric / nullif(s.impressions, 0), 6),
           s.clicks, round(s.clicks::numeric / nullif(s.impressions, 0), 6), s.conversions, s.invalid,
           ads.cents(s.micro), round(s.micro::numeric / 1000 / nullif(s.impressions, 0), 4),
           coalesce(p.viewable_share, CASE WHEN p.width * p.height >= 242500 THEN 0.3 WHEN p.width > 0 THEN 0.5 END),
           p.viewable_seconds
    FROM (SELECT g.key, g.key2, grouping(g.key) = 1 AS whole,
                 CASE WHEN fillable OR asked AND grouping(g.key) = 1 THEN coalesce(sum(g.requests), 0)::bigint END AS requests,
                 CASE WHEN fillable OR asked AND grouping(g.key) = 1 THEN coalesce(sum(g.unfilled), 0)::bigint END AS unfilled,
                 coalesce(sum(g.events) FILTER (WHERE g.valid AND g.type = 'serve'), 0)::bigint AS serves,
                 coalesce(sum(g.events) FILTER (WHERE g.valid AND g.type = 'impression'), 0)::bigint AS impressions,
                 coalesce(sum(g.events) FILTER (WHERE g.valid AND g.type = 'viewable'), 0)::bigint AS viewables,
                 coalesce(sum(g.events) FILTER (WHERE g.valid AND g.type = 'click'), 0)::bigint AS clicks,
                 coalesce(sum(g.events) FILTER (WHERE g.valid AND g.type = 'conversion'), 0)::bigint AS conversions,
                 coalesce(sum(g.events) FILTER (WHERE NOT g.valid), 0)::bigint AS invalid,
                 coalesce(sum(g.micro) FILTER (WHERE g.valid), 0)::bigint AS micro
          FROM (SELECT ads.report_key(first, h.parts, c.advertiser, h.at) AS key,
                       ads.report_key(second, h.parts, c.advertiser, h.at) AS key2,
                       h.valid, h.type, h.events, h.micro, NULL::numeric AS requests, NULL::numeric AS unfilled
                FROM (SELECT s.*, (NULL, s.campaign_id, s.ad_group_id, s.creative_id, s.placement, s.country, s.device,
                                   NULL, NULL, NULL, NULL)::ads.event_hours AS parts
                      -- Millions of rows are summed by the columns that are needed; texts are made of the sums.
                      FROM (SELECT CASE WHEN 'hour' = ANY (dims) THEN e.hour AT TIME ZONE zone + shift
                                        WHEN 'day' = ANY (dims) THEN (e.hour AT TIME ZONE zone + shift)::date END AS at,
                                   CASE WHEN dims && '{campaign,advertiser}' OR of_advertiser IS NOT NULL THEN e.campaign_id END AS campaign_id,
                                   CASE WHEN 'ad-group' = ANY (dims) THEN e.ad_group_id END AS ad_group_id,
                                   CASE WHEN 'creative' = ANY (dims) THEN e.creative_id END AS creative_id,
                                   CASE WHEN 'placement' = ANY (dims) THEN e.placement END AS placement,
                                   CASE WHEN 'country' = ANY (dims) THEN e.country END AS country,
                                   CASE WHEN 'device' = ANY (dims) THEN e.device END AS device,
                                   e.type, e.invalid = '' AS valid, sum(e.events) AS events, sum(e.price_micro) AS micro
                            FROM ads.event_hours e
                            WHERE e.hour >= since AND e.hour < until AND (of_campaign IS NULL OR e.campaign_id = of_campaign)
                              AND (of_placement IS NULL OR e.placement = of_placement)
                            GROUP BY 1, 2, 3, 4, 5, 6, 7, e.type, e.invalid = '') s) h
                LEFT JOIN ads.campaigns c ON c.id = h.campaign_id
                WHERE of_advertiser IS NULL OR coalesce(c.advertiser, '') = of_advertiser
                UNION ALL
                SELECT CASE first WHEN 'total' THEN '' WHEN 'placement' THEN r.placement
                           WHEN 'day' THEN to_char(r.at, 'YYYY-MM-DD')
                           WHEN 'hour' THEN to_char(r.at, 'YYYY-MM-DD"T"HH24:MI') END,
                       CASE second WHEN 'placement' THEN r.placement WHEN 'day' THEN to_char(r.at, 'YYYY-MM-DD')
                           WHEN 'hour' THEN to_char(r.at, 'YYYY-MM-DD"T"HH24:MI') END,
                       NULL, NULL, 0, 0, sum(r.requests), coalesce(sum(r.requests) FILTER (WHERE r.outcome <> ''), 0)
                FROM (SELECT p.*, p.hour AT TIME ZONE zone + shift AS at FROM ads.placement_hours p
                      WHERE (fillable OR asked AND with_total) AND p.hour >= since AND p.hour < until
                        AND (of_placement IS NULL OR p.placement = of_placement)) r
                GROUP BY 1, 2) g
          GROUP BY GROUPING SETS ((g.key, g.key2), ())) s
    LEFT JOIN ads.placements p
        ON p.id = CASE WHEN s.whole THEN of_placement WHEN first = 'placement' THEN s.key
                       WHEN second = 'placement' THEN s.key2 ELSE of_placement END
    WHERE CASE WHEN s.whole THEN with_total ELSE s.key IS NOT NULL AND (second IS NULL OR s.key2 IS NOT NULL) END
    WINDOW same AS (PARTITION BY s.key)
    ORDER BY s.whole DESC, CASE WHEN first = ANY (timely) THEN s.key END, sum(s.micro) OVER same DESC,
             sum(s.impressions) OVER same DESC, length(s.key), s.key COLLATE "C",
             CASE WHEN second = ANY (timely) THEN s.key2 END, s.micro DESC, s.impressions DESC,
             length(s.key2), s.key2 COLLATE "C";
END $$;

-- ---- delivery -------------------------------------------------------------------------

-- The part of a period that has passed; null if it has no start or no end.
CREATE OR REPLACE FUNCTION ads.elapsed(since timestamptz, until timestamptz) RETURNS numeric STABLE LANGUAGE sql AS $$
    SELECT CASE WHEN until > since THEN round(least(1, greatest(0,
        extract(epoch FROM ads.now() - since)::numeric / extract(epoch FROM until - since)::numeric)), 4) END
$$;

-- The delivery of each budget: "of" is the amount for the day or the flight; "aim" is what even
-- delivery would have reached by now. Null without a budget, or without an end to aim at. Without
-- SET, so that only the requested rows are computed.
CREATE OR REPLACE FUNCTION ads.campaign_delivery() RETURNS TABLE (campaign_id bigint, "of" text, spent_cents numeric,
    budget_cents numeric, delivered numeric, aim numeric)
STABLE LANGUAGE sql AS $$
    SELECT d.id, d."of", ads.cents(d.spent), ads.cents(d.budget_micro),
           round(d.spent::numeric / nullif(d.budget_micro, 0), 4),
           CASE d."of" WHEN 'day' THEN ads.elapsed(ads.day_start(d.today, d.timezone), ads.day_start(d.today + 1, d.timezone))
                       WHEN 'flight' THEN ads.elapsed(d.starts_at, d.ends_at) END
    FROM (SELECT c.id, c.timezone, c.starts_at, c.ends_at, c.budget_micro::bigint AS budget_micro, t.today,
                 CASE c.budget_type WHEN 'daily' THEN 'day' WHEN 'lifetime' THEN 'flight' END AS "of",
                 CASE c.budget_type WHEN 'lifetime' THEN greatest(c.budget_spent_micro, coalesce(s.total, 0))
                                    ELSE coalesce(s.today, 0) END::bigint AS spent
          FROM ads.campaigns c
          CROSS JOIN LATERAL (SELECT (ads.now() AT TIME ZONE c.timezone)::date AS today) t
          LEFT JOIN LATERAL (SELECT sum(s.spend_micro) AS total, sum(s.spend_micro) FILTER (WHERE s.day = t.today) AS today
                             FROM ads.daily_spend s WHERE s.campaign_id = c.id) s ON true) d
$$;

-- The same for each ad group's goal, or else its daily cap; counts instead of money.
CREATE OR REPLACE FUNCTION ads.ad_group_delivery() RETURNS TABLE (ad_group_id bigint, "of" text, unit text, done bigint,
    target bigint, delivered numeric, aim numeric)
STABLE LANGUAGE sql AS $$
    SELECT d.id, d."of", d.unit, d.done, d.target, round(d.done::numeric / nullif(d.target, 0), 4),
           CASE d."of" WHEN 'day' THEN ads.elapsed(ads.day_start(d.today, d.timezone), ads.day_start(d.today + 1, d.timezone))
                       WHEN 'flight' THEN ads.elapsed(d.starts_at, d.ends_at) END
    FROM (SELECT g.id, c.timezone, coalesce(g.starts_at, c.starts_at) AS starts_at, coalesce(g.ends_at, c.ends_at) AS ends_at,
                 u."of", u.unit, u.target, t.today, CASE WHEN u.target IS NOT NULL THEN coalesce((
                     SELECT sum(CASE u.unit WHEN 'clicks' THEN s.clicks WHEN 'serves' THEN s.serves ELSE s.impressions END)
                     FROM ads.daily_spend s WHERE s.campaign_id = c.id AND s.ad_group_id = g.id
                       AND (u."of" = 'flight' OR s.day = t.today)), 0)::bigint END AS done
          FROM ads.ad_groups g JOIN ads.campaigns c ON c.id = g.campaign_id
          CROSS JOIN LATERAL (SELECT (ads.now() AT TIME ZONE c.timezone)::date AS today) t
          CROSS JOIN LATERAL (
              SELECT CASE WHEN g.goal_on IS NOT NULL THEN 'flight'
                          WHEN coalesce(g.daily_impression_cap, g.daily_click_cap) IS NOT NULL THEN 'day' END AS "of",
                     CASE WHEN g.goal_on = 'clicks' OR (g.goal_on IS NULL AND g.daily_impression_cap IS NULL
                                                        AND g.daily_click_cap IS NOT NULL) THEN 'clicks'
                          WHEN coalesce(g.goal_count, g.daily_impression_cap) IS NULL THEN NULL
                          WHEN g.cap_on = 'serve' THEN 'serves' ELSE 'impressions' END AS unit,
                     coalesce(g.goal_count, g.daily_impression_cap, g.daily_click_cap)::bigint AS target) u) d
$$;

-- ---- forecast -------------------------------------------------------------------------

-- The last 168 hours by the campaign's local days.
CREATE OR REPLACE FUNCTION ads.recent_spend(campaign bigint) RETURNS TABLE (day date, spend_cents numeric) STABLE LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT (h.hour AT TIME ZONE c.timezone)::date, ads.cents(sum(h.price_micro)::bigint)
    FROM ads.campaigns c JOIN ads.event_hours h ON h.campaign_id = c.id
    WHERE c.id = campaign AND h.invalid = '' AND h.hour > ads.now() - interval '168 h' AND h.hour <= ads.now()
    GROUP BY 1 ORDER BY 1
$$;

-- The average is over the last 168 hours, or the time the campaign has been running, but at least a
-- day. A lifetime budget is spent at that rate until it is used up or the flight ends; for a daily
-- budget the forecast is the part of it that will be delivered. Without a budget, the forecast is
-- for the goals of the ad groups; one goal cannot make up for another. deliver_by is when the
-- budget is used up, or the last day of the flight. The flight is that of the campaign, or of its
-- ad groups if all of them begin later or end earlier. A goal is projected to the end of its own ad
-- group; goal_open: one of them has no end.
DROP FUNCTION IF EXISTS ads.forecast(bigint);
CREATE FUNCTION ads.forecast(campaign bigint) RETURNS TABLE (
    campaign_id bigint, name text, status text, timezone text, budget_type text, budget_cents numeric, spent_cents numeric,
    average_daily_spend numeric, days_remaining numeric, exhaustion_date date, projected_total_spend numeric,
    will_exhaust_early boolean, days_to_end numeric, delivery numeric, goal_count bigint, goal_done bigint,
    goal_projected bigint, starts_on date, ends_on date, deliver_by date, flight text, goal_daily numeric,
    goal_open boolean)
STABLE LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
#variable_conflict use_column
DECLARE
    c ads.campaigns;
    spent bigint;
    recent bigint;
    first_hour timestamptz;
    days numeric;
    rate numeric;
    to_end numeric;
    gone timestamptz;
BEGIN
    SELECT * INTO c FROM ads.campaigns WHERE id = campaign;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- greatest() and least() ignore null; min() and max() must not.
    SELECT CASE WHEN bool_and(g.starts_at IS NOT NULL) THEN greatest(c.starts_at, min(g.starts_at)) ELSE c.starts_at END,
           CASE WHEN bool_and(g.ends_at IS NOT NULL) THEN least(c.ends_at, max(g.ends_at)) ELSE c.ends_at END
    INTO c.starts_at, c.ends_at
    FROM ads.ad_groups g WHERE g.campaign_id = c.id AND g.status <> 'archived';
    spent := ads.spent(c);
    SELECT coalesce(sum(h.price_micro) FILTER (WHERE h.hour > ads.now() - interval '168 h'), 0), min(h.hour)
    INTO recent, first_hour
    FROM ads.event_hours h WHERE h.campaign_id = c.id AND h.invalid = '' AND h.hour <= ads.now();
    days := least(7, greatest(1, extract(epoch FROM ads.now() - coalesce(c.starts_at, first_hour, ads.now())) / 86400));
    rate := recent / days;
    IF c.ends_at IS NOT NULL THEN  -- greatest() ignores null
        to_end := greatest(0, extract(epoch FROM c.ends_at - ads.now()) / 86400);
    END IF;

    campaign_id := c.id;
    name := c.name;
    status := c.status;
    timezone := c.timezone;
    budget_type := c.budget_type;
    budget_cents := ads.cents(c.budget_micro);
    spent_cents := ads.cents(spent);
    average_daily_spend := round(rate / 1000000, 2);
    days_to_end := round(to_end, 2);
    projected_total_spend := round((spent + rate * coalesce(to_end, 0)) / 1000000, 2);
    will_exhaust_early := false;
    starts_on := (c.starts_at AT TIME ZONE c.timezone)::date;
    ends_on := ((c.ends_at - interval '1 second') AT TIME ZONE c.timezone)::date;
    deliver_by := ends_on;
    flight := CASE WHEN c.status IN ('completed', 'archived') OR c.ends_at <= ads.now() THEN 'over'
                   WHEN c.starts_at > ads.now() THEN 'ahead' ELSE 'running' END;
    IF c.budget_type = 'daily' THEN
        delivery := CASE WHEN c.budget_micro > 0 THEN round(rate / c.budget_micro, 4) END;
    ELSIF c.budget_type = 'lifetime' AND rate > 0 AND flight <> 'over' THEN
        days_remaining := round(greatest(0, c.budget_micro - spent) / rate, 2);
        -- Dates in more than a thousand years are not computed.
        gone := ads.now() + make_interval(secs => least(days_remaining, 365000)::double precision * 86400);
        exhaustion_date := (gone AT TIME ZONE c.timezone)::date;
        will_exhaust_early := coalesce(gone < c.ends_at, false);
        deliver_by := least(exhaustion_date, ends_on);
        projected_total_spend := CASE WHEN to_end IS NULL THEN greatest(budget_cents, spent_cents)
            ELSE least(projected_total_spend, greatest(budget_cents, spent_cents)) END;
        delivery := CASE WHEN c.budget_micro > 0 THEN round(projected_total_spend / budget_cents, 4) END;
    ELSIF c.budget_type = 'lifetime' THEN
        delivery := CASE WHEN c.budget_micro > 0 THEN round(spent_cents / budget_cents, 4) END;
    END IF;

    SELECT sum(g.target), sum(g.done), sum(least(g.target, g.done + l.days_left * r.a_day)),
           round(sum(r.a_day), 2), bool_or(l.ends_at IS NULL)
    INTO goal_count, goal_done, goal_projected, goal_daily, goal_open
    FROM ads.ad_group_delivery() g JOIN ads.ad_groups a ON a.id = g.ad_group_id
    CROSS JOIN LATERAL (
        SELECT e.ends_at, CASE WHEN flight = 'over' OR e.ends_at IS NULL THEN 0
                   ELSE greatest(0, extract(epoch FROM e.ends_at - greatest(ads.now(), a.starts_at)) / 86400) END AS days_left
        FROM (SELECT least(a.ends_at, c.ends_at) AS ends_at) e) l
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(h.events), 0) / CASE WHEN a.starts_at IS NULL THEN days ELSE least(days,
                   greatest(1, extract(epoch FROM ads.now() - a.starts_at) / 86400)) END AS a_day
        FROM ads.event_hours h
        WHERE h.campaign_id = c.id AND h.ad_group_id = g.ad_group_id AND h.invalid = ''
          AND h.hour > ads.now() - interval '168 h' AND h.hour <= ads.now()
          AND h.type = CASE g.unit WHEN 'clicks' THEN 'click' WHEN 'serves' THEN 'serve'
                                   ELSE 'impression' END::ads.event_type) r
    WHERE a.campaign_id = c.id AND a.status <> 'archived' AND g."of" = 'flight';
    IF c.budget_type IS NULL THEN
        delivery := round(goal_projected::numeric / nullif(goal_count, 0), 4);
    END IF;
    RETURN NEXT;
END $$;
