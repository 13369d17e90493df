-- A goal of impressions counts confirmed impressions unless its document says
-- otherwise: cap_on is then impression, as the catalog compiler has it. Rows that exist
-- keep what they say. The function is that of 0012 but for this default.
CREATE OR REPLACE FUNCTION ads.put_ad_groups(ids bigint[], campaigns bigint[], documents jsonb[], paths text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    taken record;
    written bigint;
BEGIN
    PERFORM ads.check_object(d, path || ', ad group ' || (d ->> 'id'),
        '{id,name,status,start,end,priority,weight,price,pacing,frequency_caps,targeting,category,exclusive,together,creatives}')
    FROM unnest(documents, paths) AS t (d, path);
    SELECT n.path, n.id, g.campaign_id INTO taken
    FROM unnest(ids, campaigns, paths) AS n (id, campaign, path),
         LATERAL (SELECT o.campaign_id FROM ads.ad_groups o WHERE o.id = n.id OFFSET 0) g
    WHERE g.campaign_id <> n.campaign LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '%: id % is already used by an ad group of campaign %', taken.path, taken.id, taken.campaign_id
            USING ERRCODE = 'unique_violation';
    END IF;

    INSERT INTO ads.ad_groups AS g (
        id, campaign_id, name, status, starts_at, ends_at, priority, weight, price_model, price_micro, strategy,
        cap_on, daily_impression_cap, daily_click_cap, goal_on, goal_count, frequency_caps, devices, geos, schedule,
        include_urls, exclude_urls, keys, languages, category, exclusive, together)
    SELECT * FROM (
        SELECT id, campaign, coalesce(ads.string(d -> 'name'), '') AS name,
            coalesce(ads.string(d -> 'status'), 'active')::ads.status AS status,
            ads.read_moment(d -> 'start') AS starts_at, ads.read_moment(d -> 'end') AS ends_at,
            coalesce(ads.string(d -> 'priority'), 'standard')::ads.priority AS priority,
            coalesce(ads.whole(d -> 'weight'), 1) AS weight,
            coalesce(ads.string(price -> 'model'), 'cpm')::ads.price_model AS price_model,
            coalesce(ads.micro(price -> 'amount_cents'), 0) AS price_micro,
            coalesce(ads.string(pacing -> 'strategy'), 'adaptive')::ads.strategy AS strategy,
            coalesce(ads.string(pacing -> 'cap_on'),
                     CASE WHEN coalesce(goal -> 'impressions', 'null') <> 'null' THEN 'impression' ELSE 'serve' END
                )::ads.cap_on AS cap_on,
            ads.whole(pacing -> 'daily_impression_cap') AS daily_impression_cap,
            ads.whole(pacing -> 'daily_click_cap') AS daily_click_cap,
            CASE WHEN coalesce(goal -> 'impressions', 'null') <> 'null' THEN 'impressions'
                 WHEN coalesce(goal -> 'clicks', 'null') <> 'null' THEN 'clicks' END::ads.goal_on AS goal_on,
            coalesce(ads.whole(goal -> 'impressions'), ads.whole(goal -> 'clicks')) AS goal_count,
            ads.read_caps(ads.list(d, 'frequency_caps', at), at || '.frequency_caps') AS frequency_caps,
            ads.texts(targeting -> 'devices')::ads.device[] AS devices,
            ads.folded_texts(targeting -> 'geos', true) AS geos,
            ads.read_schedule(ads.list(targeting, 'schedule', at), at || '.schedule') AS schedule,
            CASE WHEN urls = '{}' THEN '{}' ELSE ads.texts(urls -> 'include') END AS include_urls,
            CASE WHEN urls = '{}' THEN '{}' ELSE ads.texts(urls -> 'exclude') END AS exclude_urls,
            ads.read_keys(targeting -> 'keys', at || '.keys') AS keys,
            ads.folded_texts(targeting -> 'languages', false) AS languages,
            coalesce(ads.string(d -> 'category'), '') AS category,
            coalesce(ads.string(d -> 'exclusive'), 'none')::ads.exclusive AS exclusive,
            coalesce(ads.string(d -> 'together'), '') AS together
        FROM (SELECT id, campaign, d, at, price, pacing, targeting, ads.read_goal(pacing, at || '.pacing') AS goal,
                     ads.member(targeting, 'urls', at || '.targeting', '{include,exclude}') AS urls
              FROM (SELECT id, campaign, d, at, ads.member(d, 'price', at, '{model,amount_cents}') AS price,
                           ads.member(d, 'pacing', at,
                                      '{strategy,cap_on,daily_impression_cap,daily_click_cap,goal}') AS pacing,
                           ads.member(d, 'targeting', at,
                                      '{placements,devices,geos,schedule,urls,keys,languages}') AS targeting
                    FROM (SELECT id, campaign, d, path || ', ad group ' || id AS at
                          FROM unnest(ids, campaigns, documents, paths) AS t (id, campaign, d, path)
                          OFFSET 0) one OFFSET 0) two OFFSET 0) three OFFSET 0) n
    WHERE NOT coalesce((
        SELECT (o.name, o.status, o.starts_at, o.ends_at, o.priority, o.weight, o.price_model, o.price_micro,
                o.strategy, o.cap_on, o.daily_impression_cap, o.daily_click_cap, o.goal_on, o.goal_count,
                o.frequency_caps, o.devices, o.geos, o.schedule, o.include_urls, o.exclude_urls, o.keys, o.languages,
                o.category, o.exclusive, o.together)
            IS NOT DISTINCT FROM (n.name, n.status, n.starts_at, n.ends_at, n.priority, n.weight, n.price_model,
                n.price_micro, n.strategy, n.cap_on, n.daily_impression_cap, n.daily_click_cap, n.goal_on,
                n.goal_count, n.frequency_caps, n.devices, n.geos, n.schedule, n.include_urls, n.exclude_urls, n.keys,
                n.languages, n.category, n.exclusive, n.together)
        FROM ads.ad_groups o WHERE o.id = n.id), false)
    ORDER BY n.id
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, status = excluded.status, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
        priority = excluded.priority, weight = excluded.weight, price_model = excluded.price_model,
        price_micro = excluded.price_micro, strategy = excluded.strategy, cap_on = excluded.cap_on,
        daily_impression_cap = excluded.daily_impression_cap, daily_click_cap = excluded.daily_click_cap,
        goal_on = excluded.goal_on, goal_count = excluded.goal_count, frequency_caps = excluded.frequency_caps,
        devices = excluded.devices, geos = excluded.geos, schedule = excluded.schedule,
        include_urls = excluded.include_urls, exclude_urls = excluded.exclude_urls, keys = excluded.keys,
        languages = excluded.languages, category = excluded.category, exclusive = excluded.exclusive,
        together = excluded.together;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
END $$;
