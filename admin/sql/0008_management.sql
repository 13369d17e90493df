-- What the commands that edit single things need: one campaign as a document, and
-- which creatives were cleaned by which policy.

-- The version of the sanitiser's policy that the markup was cleaned with; null if
-- nobody cleaned it, or it needs no cleaning. Whoever saves clean markup says so
-- in the setting ads.creative_policy; markup that comes in without is not clean.
ALTER TABLE ads.creatives ADD COLUMN policy int CHECK (policy > 0);
-- What creative resanitize looks for.
CREATE INDEX creatives_policy ON ads.creatives (policy, id) WHERE type = 'html';

CREATE FUNCTION ads.note_policy() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    IF NEW.type <> 'html' THEN
        NEW.policy := NULL;
    ELSIF TG_OP = 'INSERT' OR NEW.content IS DISTINCT FROM OLD.content OR NEW.type <> OLD.type THEN
        NEW.policy := nullif(current_setting('ads.creative_policy', true), '')::int;
    END IF;
    RETURN NEW;
END $$;

-- By its name before `touch`, which compares rows.
CREATE TRIGGER policy BEFORE INSERT OR UPDATE ON ads.creatives
    FOR EACH ROW EXECUTE FUNCTION ads.note_policy();

-- A placement that is paused has the highest floor, which no ad reaches; this is
-- the floor to come back to. Null: not paused.
ALTER TABLE ads.placements ADD COLUMN paused_floor_micro ads.money;

-- The document of catalog() (0004) with all placements, but one campaign, whatever
-- is archived in it, and its experiments. No campaign if there is none.
CREATE FUNCTION ads.campaign_document(campaign bigint) RETURNS text
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp SET jit = off AS $$
SELECT json_build_object('version', 1,
    'placements', coalesce((
        SELECT json_agg(json_build_object('id', p.id, 'name', p.name, 'width', p.width, 'height', p.height,
            'types', p.types, 'select', p."select", 'floor_cents', ads.cents(p.floor_micro))
            ORDER BY p.id COLLATE "C")
        FROM ads.placements p), '[]'),
    'campaigns', coalesce((
        SELECT json_agg(json_build_object(
            'id', c.id, 'name', c.name, 'advertiser', coalesce(c.advertiser, ''), 'status', c.status,
            'timezone', c.timezone, 'start', ads.moment_text(c.starts_at), 'end', ads.moment_text(c.ends_at),
            'budget', CASE WHEN c.budget_type IS NOT NULL THEN json_build_object('type', c.budget_type,
                'amount_cents', ads.cents(c.budget_micro),
                'spent_cents', ads.cents(greatest(c.budget_spent_micro, (
                    SELECT coalesce(sum(s.spend_micro), 0)::bigint FROM ads.daily_spend s
                    WHERE s.campaign_id = c.id
                      AND (c.budget_type = 'lifetime' OR s.day = (now() AT TIME ZONE c.timezone)::date)))),
                'hard_cap', c.hard_cap) END,
            'updated_at', ads.moment_text(c.updated_at),
            'ad_groups', coalesce((
                SELECT json_agg(json_build_object(
                    'id', g.id, 'name', g.name, 'status', g.status,
                    'start', ads.moment_text(g.starts_at), 'end', ads.moment_text(g.ends_at),
                    'priority', g.priority, 'weight', g.weight,
                    'price', json_build_object('model', g.price_model, 'amount_cents', ads.cents(g.price_micro)),
                    'pacing', json_build_object('strategy', g.strategy, 'cap_on', g.cap_on,
                        'daily_impression_cap', g.daily_impression_cap, 'daily_click_cap', g.daily_click_cap,
                        'goal', CASE WHEN g.goal_on IS NOT NULL THEN json_build_object(g.goal_on, g.goal_count) END),
                    'frequency_caps', g.frequency_caps,
                    'targeting', json_build_object('placements', coalesce((
                            SELECT json_agg(t.placement_id ORDER BY t.placement_id COLLATE "C")
                            FROM ads.ad_group_placements t WHERE t.ad_group_id = g.id), '[]'),
                        'devices', g.devices, 'geos', g.geos, 'schedule', g.schedule,
                        'urls', json_build_object('include', g.include_urls, 'exclude', g.exclude_urls),
                        'keys', g.keys, 'languages', g.languages),
                    'category', g.category, 'exclusive', g.exclusive, 'together', g.together,
                    'creatives', coalesce((
                        SELECT json_agg(json_strip_nulls(json_build_object(
                            'id', k.id, 'name', k.name, 'type', k.type, 'status', k.status, 'weight', k.weight,
                            'width', k.width, 'height', k.height, 'content', k.content,
                            'click_url', k.click_url, 'impression_url', k.impression_url)) ORDER BY k.id)
                        FROM ads.creatives k WHERE k.ad_group_id = g.id), '[]')) ORDER BY g.id)
                FROM ads.ad_groups g WHERE g.campaign_id = c.id), '[]')))
        FROM ads.campaigns c WHERE c.id = $1), '[]'),
    'experiments', coalesce((
        SELECT json_agg(json_build_object('id', e.id, 'name', e.name, 'ad_group', e.ad_group_id,
            'status', e.status, 'metric', e.metric, 'alpha', e.alpha, 'min_sample', e.min_sample, 'mde', e.mde,
            'allocation', e.allocation, 'variants', (
                SELECT json_agg(json_build_object('creative', v.creative_id, 'share', v.share) ORDER BY v.creative_id)
                FROM ads.variants v WHERE v.experiment_id = e.id),
            'winner', e.winner) ORDER BY e.id)
        FROM ads.experiments e JOIN ads.ad_groups g ON g.id = e.ad_group_id WHERE g.campaign_id = $1), '[]'))::text
$$;

REVOKE ALL ON FUNCTION ads.note_policy(), ads.campaign_document(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ads.note_policy() TO ads_admin;
GRANT EXECUTE ON FUNCTION ads.campaign_document(bigint), ads.moment_text(timestamptz) TO ads_admin, ads_report;
