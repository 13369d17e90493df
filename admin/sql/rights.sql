-- Who may do what: applied again whenever a function has changed.

-- Roles belong to the whole cluster: they may be there already, from another database. Nobody logs
-- in as one of them; a login is made a member:
--   CREATE ROLE edge LOGIN PASSWORD '…' IN ROLE ads_edge;
DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY '{ads_edge,ads_admin,ads_report}'::text[] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;  -- made by somebody else just now
            END;
        END IF;
    END LOOP;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ads FROM PUBLIC, ads_edge, ads_admin, ads_report;
REVOKE ALL ON ALL TABLES IN SCHEMA ads FROM PUBLIC, ads_edge, ads_admin, ads_report;
GRANT USAGE ON SCHEMA ads TO ads_edge, ads_admin, ads_report;

-- A node sends events and loads the catalog. These functions run with the rights of their owner:
-- it sees no table.
GRANT EXECUTE ON FUNCTION
    ads.ingest(uuid[], int2[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int2[],
               int2[], bool[], text[], text[], text[], text[], text[]),
    ads.books(date), ads.stored(uuid[]), ads.catalog(), ads.catalog_changes(text), ads.catalog_version(),
    ads.ensure_partitions(int),
    ads.rights(int8, int8, int8, int8[], int8, int8, int4, jsonb, int2[], int8[], int4[], int8[], int8[], int8[], int8[],
               int8[], int8[])
    TO ads_edge;

-- The command: all data, no definitions. The audit log can only be added to, and the triggers write
-- the rest.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ads TO ads_admin;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ads TO ads_admin;
REVOKE INSERT, UPDATE, DELETE ON ads.migrations, ads.function_files, ads.catalog_edits, ads.catalog_edits_swept,
    ads.catalog_edit_parts FROM ads_admin;
REVOKE UPDATE, DELETE ON ads.audit_log FROM ads_admin;
REVOKE INSERT, DELETE ON ads.settings FROM ads_admin;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA ads TO ads_admin;

-- Dashboards: every table and the functions that only read.
GRANT SELECT ON ALL TABLES IN SCHEMA ads TO ads_report;
GRANT EXECUTE ON FUNCTION
    ads.catalog(), ads.now(), ads.cents(bigint), ads.moment_text(timestamptz), ads.day_start(date, text),
    ads.spent(ads.campaigns, date), ads.document_head(), ads.campaign_document(bigint),
    ads.scheduler_tasks(), ads.stale_books(), ads.turn_open(text, timestamptz), ads.due_turn(text),
    ads.scheduler_status(), ads.experiment_arms(bigint), ads.pixel_status(),
    ads.period_bound(text, text, boolean), ads.period(text, text, text),
    ads.report_key(text, ads.event_hours, text, timestamp), ads.report_name(text, text),
    ads.report(text, timestamptz, timestamptz, bigint, text, text, text, interval),
    ads.elapsed(timestamptz, timestamptz), ads.campaign_delivery(), ads.ad_group_delivery(),
    ads.recent_spend(bigint), ads.forecast(bigint)
    TO ads_report;
