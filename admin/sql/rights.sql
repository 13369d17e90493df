-- Roles and their privileges. Applied again whenever a function file has changed.

-- Roles belong to the whole cluster and may exist already, from another database. Nobody logs in as
-- one of them; login roles are made members:
--   CREATE ROLE edge LOGIN PASSWORD '…' IN ROLE ads_edge;
DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY '{ads_edge,ads_admin,ads_report,ads_operator,ads_advertiser}'::text[] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;  -- created concurrently
            END;
        END IF;
    END LOOP;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ads FROM PUBLIC, ads_edge, ads_admin, ads_report, ads_operator, ads_advertiser;
REVOKE ALL ON ALL TABLES IN SCHEMA ads FROM PUBLIC, ads_edge, ads_admin, ads_report, ads_operator, ads_advertiser;
GRANT USAGE ON SCHEMA ads TO ads_edge, ads_admin, ads_report, ads_operator, ads_advertiser;

-- Nodes send events and load the catalog. These functions run with the rights of their owner: the
-- role itself has no access to tables.
GRANT EXECUTE ON FUNCTION
    ads.ingest(uuid[], int2[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int2[],
               int2[], bool[], text[], text[], text[], text[], text[], int8),
    ads.stored_totals(date), ads.stored(uuid[]), ads.catalog(), ads.catalog_changes(text), ads.catalog_version(),
    ads.ensure_partitions(int),
    ads.rights(int8, int8, int8, int8[], int8, int8, int4, jsonb, int2[], int8[], int4[], int8[], int8[], int8[], int8[],
               int8[], int8[]),
    ads.verdicts(int8, int8, int4)
    TO ads_edge;

-- The command: all data, no definitions. The audit log is append-only; tables that only triggers
-- write are read-only.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ads TO ads_admin;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ads TO ads_admin;
REVOKE INSERT, UPDATE, DELETE ON ads.migrations, ads.function_files, ads.catalog_edits, ads.catalog_edits_swept,
    ads.catalog_edit_parts FROM ads_admin;
REVOKE UPDATE, DELETE ON ads.audit_log FROM ads_admin;
REVOKE INSERT, DELETE ON ads.settings FROM ads_admin;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA ads TO ads_admin;

-- Dashboards: every table, and the functions that only read.
GRANT SELECT ON ALL TABLES IN SCHEMA ads TO ads_report;
GRANT EXECUTE ON FUNCTION
    ads.catalog(), ads.now(), ads.cents(bigint), ads.moment_text(timestamptz), ads.day_start(date, text),
    ads.spent(ads.campaigns, date), ads.document_head(), ads.campaign_document(bigint, boolean, boolean),
    ads.placement_object(ads.placements), ads.creative_object(ads.creatives),
    ads.ad_group_object(ads.ad_groups, json, json), ads.campaign_object(ads.campaigns, bigint, json),
    ads.experiment_object(ads.experiments),
    ads.scheduler_tasks(), ads.due_campaign_days(), ads.is_run_open(text, timestamptz), ads.due_run(text),
    ads.scheduler_status(), ads.experiment_arms(bigint), ads.pixel_status(),
    ads.period_bound(text, text, boolean), ads.period(text, text, text),
    ads.report_key(text, ads.event_hours, text, timestamp), ads.report_name(text, text),
    ads.report(text, timestamptz, timestamptz, bigint, text, text, text, interval, boolean),
    ads.elapsed(timestamptz, timestamptz), ads.campaign_delivery(), ads.ad_group_delivery(),
    ads.recent_spend(bigint), ads.forecast(bigint), ads.day_number(date), ads.fleet_status(), ads.fleet_wall_status()
    TO ads_report;

-- Operators: they pause, resume and move budgets, through the functions that import uses. Those need
-- the rights to whole rows, so that triggers refuse the rest (functions/roles.sql).
GRANT ads_report TO ads_operator;
GRANT INSERT, UPDATE ON ads.campaigns, ads.ad_groups, ads.creatives, ads.placements, ads.experiments, ads.variants,
    ads.advertisers, ads.ad_group_placements TO ads_operator;
GRANT DELETE ON ads.ad_group_placements, ads.variants TO ads_operator;
GRANT INSERT, DELETE ON ads.advertiser_pauses, ads.budget_pauses TO ads_operator;
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'ads'::regnamespace AND prokind = 'f' AND NOT prosecdef LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO ads_operator', f);
    END LOOP;
END $$;

-- An advertiser: rows of its own. Of the tables without a policy for it, it sees none.
GRANT SELECT ON ads.advertisers, ads.campaigns, ads.ad_groups, ads.ad_group_placements, ads.creatives, ads.placements,
    ads.experiments, ads.variants, ads.event_hours, ads.placement_hours, ads.daily_spend, ads.experiment_trials,
    ads.experiment_looks, ads.settings TO ads_advertiser;
GRANT EXECUTE ON FUNCTION
    ads.now(), ads.cents(bigint), ads.moment_text(timestamptz), ads.day_start(date, text), ads.own_advertiser(),
    ads.spent(ads.campaigns, date), ads.document_head(), ads.campaign_document(bigint, boolean, boolean),
    ads.placement_object(ads.placements), ads.creative_object(ads.creatives),
    ads.ad_group_object(ads.ad_groups, json, json), ads.campaign_object(ads.campaigns, bigint, json),
    ads.experiment_object(ads.experiments), ads.experiment_arms(bigint),
    ads.period_bound(text, text, boolean), ads.period(text, text, text),
    ads.report_key(text, ads.event_hours, text, timestamp), ads.report_name(text, text),
    ads.report(text, timestamptz, timestamptz, bigint, text, text, text, interval, boolean),
    ads.elapsed(timestamptz, timestamptz), ads.campaign_delivery(), ads.ad_group_delivery(),
    ads.recent_spend(bigint), ads.forecast(bigint)
    TO ads_advertiser;

-- Only what is not there yet: each of these statements waits for all who read the table.
DO $$
DECLARE
    t record;
BEGIN
    FOR t IN SELECT * FROM (VALUES
        ('advertisers', 'name = ads.own_advertiser()'),
        ('campaigns', 'advertiser = ads.own_advertiser()'),
        ('ad_groups', 'campaign_id IN (SELECT id FROM ads.campaigns)'),
        ('ad_group_placements', 'ad_group_id IN (SELECT id FROM ads.ad_groups)'),
        ('creatives', 'ad_group_id IN (SELECT id FROM ads.ad_groups)'),
        ('experiments', 'ad_group_id IN (SELECT id FROM ads.ad_groups)'),
        ('variants', 'ad_group_id IN (SELECT id FROM ads.ad_groups)'),
        ('event_hours', 'campaign_id IN (SELECT id FROM ads.campaigns)'),
        ('daily_spend', 'campaign_id IN (SELECT id FROM ads.campaigns)'),
        ('experiment_trials', 'experiment_id IN (SELECT id FROM ads.experiments)'),
        ('experiment_looks', 'experiment_id IN (SELECT id FROM ads.experiments)'),
        ('placements', 'false'), ('placement_hours', 'false')) AS list (name, own)
    LOOP
        CONTINUE WHEN t.own IS NOT DISTINCT FROM (
            SELECT obj_description(p.oid, 'pg_policy') FROM pg_policy p
            WHERE p.polrelid = format('ads.%I', t.name)::regclass AND p.polname = 'own');
        EXECUTE format('ALTER TABLE ads.%I ENABLE ROW LEVEL SECURITY', t.name);
        EXECUTE format('DROP POLICY IF EXISTS everything ON ads.%I', t.name);
        EXECUTE format('DROP POLICY IF EXISTS own ON ads.%I', t.name);
        EXECUTE format('CREATE POLICY everything ON ads.%I TO ads_admin, ads_report, ads_operator USING (true)', t.name);
        EXECUTE format('CREATE POLICY own ON ads.%I FOR SELECT TO ads_advertiser USING (%s)', t.name, t.own);
        EXECUTE format('COMMENT ON POLICY own ON ads.%I IS %L', t.name, t.own);
    END LOOP;
END $$;
