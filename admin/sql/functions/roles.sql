-- What the roles ads_operator and ads_advertiser may do of what their rights allow.

-- Whose rows ads_advertiser sees: the setting ads.advertiser, which the API makes for each request.
CREATE OR REPLACE FUNCTION ads.own_advertiser() RETURNS text STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT nullif(current_setting('ads.advertiser', true), '')
$$;

-- An operator changes statuses, but archives nothing, and the amount of a budget, which it raises by at
-- most so many percent as the setting ads.operator_percent says.
CREATE OR REPLACE FUNCTION ads.guard_operator() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    percent numeric := coalesce(nullif(current_setting('ads.operator_percent', true), '')::numeric, 0);
    open constant text[] := '{status,updated_at}';
    budget constant text[] := '{budget_micro}';
    before jsonb;
    after jsonb;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        before := to_jsonb(OLD) - open;
        after := to_jsonb(NEW) - open;
        IF TG_TABLE_NAME = 'campaigns' AND (after ->> 'budget_micro')::numeric
                <= (before ->> 'budget_micro')::numeric * (1 + percent / 100) THEN
            before := before - budget;
            after := after - budget;
        END IF;
        IF before = after AND coalesce(to_jsonb(NEW) ->> 'status', '') <> 'archived' THEN
            RETURN NULL;
        END IF;
    END IF;
    RAISE EXCEPTION 'an operator may only pause, resume and move a budget within its limit'
        USING ERRCODE = 'insufficient_privilege';
END $$;

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY '{advertisers,placements,campaigns,ad_groups,ad_group_placements,creatives,experiments,variants}'::text[] LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER guard_operator AFTER INSERT OR UPDATE OR DELETE ON ads.%I FOR EACH ROW
            WHEN (current_user = ''ads_operator'') EXECUTE FUNCTION ads.guard_operator()', t);
    END LOOP;
END $$;
