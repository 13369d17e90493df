-- Who may do what. Roles belong to the whole cluster: they may be there already,
-- from another database. Nobody logs in as one of them; a login is made a member:
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

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ads FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA ads FROM PUBLIC;
GRANT USAGE ON SCHEMA ads TO ads_edge, ads_admin, ads_report;

-- A worker sends events and loads the catalog. These run with the rights of their
-- owner; it sees no table.
GRANT EXECUTE ON FUNCTION
    ads.ingest(uuid[], int2[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int2[],
               int2[], bool[], text[], text[], text[], text[], text[]),
    ads.catalog(), ads.catalog_version(), ads.ensure_partitions(int) TO ads_edge;

-- The admin tool: all data, no definitions. What the log says stays said, and the
-- triggers write the rest.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ads TO ads_admin;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ads TO ads_admin;
REVOKE INSERT, UPDATE, DELETE ON ads.migrations, ads.catalog_edits, ads.catalog_edits_swept FROM ads_admin;
REVOKE UPDATE, DELETE ON ads.audit_log FROM ads_admin;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA ads TO ads_admin;

GRANT SELECT ON ALL TABLES IN SCHEMA ads TO ads_report;
GRANT EXECUTE ON FUNCTION ads.cents(bigint) TO ads_report;
