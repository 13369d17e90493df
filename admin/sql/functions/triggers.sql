-- Trigger functions, and the triggers.

-- ---- what more than one row must agree on ---------------------------------------
-- Checked when the transaction commits, since it may change both sides.

-- The flight of a group lies within that of its campaign; an advertiser that excludes others must
-- have a name.
CREATE OR REPLACE FUNCTION ads.check_flight(g ads.ad_groups, c ads.campaigns) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF g.starts_at < c.starts_at OR g.starts_at >= c.ends_at OR g.ends_at > c.ends_at OR g.ends_at <= c.starts_at THEN
        RAISE EXCEPTION 'the flight of ad group % is not within that of campaign %', g.id, c.id
            USING ERRCODE = 'check_violation', SCHEMA = 'ads', TABLE = 'ad_groups', CONSTRAINT = 'ad_groups_flight';
    END IF;
    IF g.exclusive = 'advertiser' AND c.advertiser IS NULL THEN
        RAISE EXCEPTION 'ad group % is exclusive by advertiser, but campaign % has none', g.id, c.id
            USING ERRCODE = 'check_violation', SCHEMA = 'ads', TABLE = 'ad_groups',
                  CONSTRAINT = 'ad_groups_exclusive_advertiser';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION ads.check_group_flight() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET enable_seqscan = off AS $$
DECLARE
    g ads.ad_groups;
    c ads.campaigns;
BEGIN
    SELECT * INTO g FROM ads.ad_groups WHERE id = NEW.id;  -- it may have changed since then
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    -- The lock keeps the campaign unchanged until this transaction ends: two transactions that
    -- change one side each cannot both pass.
    SELECT * INTO c FROM ads.campaigns WHERE id = g.campaign_id FOR SHARE;
    PERFORM ads.check_flight(g, c);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION ads.check_campaign_flight() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET enable_seqscan = off AS $$
BEGIN
    PERFORM ads.check_flight(g, c)
    FROM ads.campaigns c JOIN ads.ad_groups g ON g.campaign_id = c.id WHERE c.id = NEW.id;
    RETURN NULL;
END $$;

-- 2 to 100 variants whose shares add up to 1.
CREATE OR REPLACE FUNCTION ads.check_variants() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    experiment bigint := CASE WHEN TG_TABLE_NAME = 'experiments' THEN (to_jsonb(NEW) ->> 'id')::bigint
        ELSE (coalesce(to_jsonb(NEW), to_jsonb(OLD)) ->> 'experiment_id')::bigint END;
    variants int;
    total double precision;
BEGIN
    -- One at a time: if two transactions change one variant each, the second must see the result of
    -- the first.
    PERFORM FROM ads.experiments WHERE id = experiment FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT count(*), coalesce(sum(share), 0) INTO variants, total
    FROM ads.variants WHERE experiment_id = experiment;
    IF variants NOT BETWEEN 2 AND 100 THEN
        RAISE EXCEPTION 'experiment % has % variants, not 2 to 100', experiment, variants
            USING ERRCODE = 'check_violation', SCHEMA = 'ads', TABLE = 'variants', CONSTRAINT = 'variants_count';
    END IF;
    IF abs(total - 1) > 1e-6 THEN
        RAISE EXCEPTION 'the shares of experiment % add up to %, not 1', experiment, total
            USING ERRCODE = 'check_violation', SCHEMA = 'ads', TABLE = 'variants', CONSTRAINT = 'variants_shares';
    END IF;
    RETURN NULL;
END $$;

-- ---- rows that change ---------------------------------------------------------------

-- An update that changes nothing is dropped: no new version, no row in the log.
CREATE OR REPLACE FUNCTION ads.touch() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    IF NEW IS NOT DISTINCT FROM OLD THEN
        RETURN NULL;
    END IF;
    NEW.updated_at := now();
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION ads.note_archived() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    IF NEW.status <> 'archived' THEN
        NEW.archived_at := NULL;
    ELSE
        NEW.archived_at := coalesce(NEW.archived_at, now());
    END IF;
    RETURN NEW;
END $$;

-- A client that stores sanitized markup names the policy in the setting ads.creative_policy;
-- without it, markup counts as not sanitized.
CREATE OR REPLACE FUNCTION ads.note_policy() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    IF NEW.type <> 'html' THEN
        NEW.policy := NULL;
    ELSIF TG_OP = 'INSERT' OR NEW.content IS DISTINCT FROM OLD.content OR NEW.type <> OLD.type THEN
        NEW.policy := nullif(current_setting('ads.creative_policy', true), '')::int;
    END IF;
    RETURN NEW;
END $$;

-- The status was changed by someone else: the automatic pause is forgotten, so it is not undone
-- later.
CREATE OR REPLACE FUNCTION ads.forget_pause() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    DELETE FROM ads.budget_pauses WHERE campaign_id = OLD.id;
    DELETE FROM ads.advertiser_pauses WHERE campaign_id = OLD.id;
    IF TG_OP = 'DELETE' THEN
        DELETE FROM ads.campaign_days WHERE campaign_id = OLD.id;
    END IF;
    RETURN NULL;
END $$;

-- Counted amounts are in the currency, so it cannot change.
CREATE OR REPLACE FUNCTION ads.fix_currency() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM ads.ad_events) OR EXISTS (SELECT FROM ads.daily_spend) THEN
        RAISE EXCEPTION 'the currency is %, and events were counted in it, so that it cannot become %', OLD.currency,
            coalesce(NEW.currency, 'none') USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;

-- ---- the log and the version of the catalog ---------------------------------------------

-- The setting ads.actor names the person behind a shared login.
CREATE OR REPLACE FUNCTION ads.audit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    before jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    after jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
BEGIN
    INSERT INTO ads.audit_log (actor, action, table_name, row_id, before, after)
    VALUES (coalesce(nullif(current_setting('ads.actor', true), ''), session_user), lower(TG_OP), TG_TABLE_NAME,
            (coalesce(after, before) ->> TG_ARGV[0])
                || CASE WHEN TG_NARGS > 1 THEN '/' || (coalesce(after, before) ->> TG_ARGV[1]) ELSE '' END,
            before, after);
    RETURN NULL;
END $$;

-- Inserts are logged once per statement. Updates are logged by audit(), once per row: only a row
-- trigger has both versions when the key changes.
CREATE OR REPLACE FUNCTION ads.audit_inserts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    INSERT INTO ads.audit_log (actor, action, table_name, row_id, after)
    SELECT coalesce(nullif(current_setting('ads.actor', true), ''), session_user), 'insert', TG_TABLE_NAME,
           (after ->> TG_ARGV[0]) || CASE WHEN TG_NARGS > 1 THEN '/' || (after ->> TG_ARGV[1]) ELSE '' END, after
    FROM (SELECT to_jsonb(c) AS after FROM changed c OFFSET 0) new;
    RETURN NULL;
END $$;

-- Records which parts of the document a transaction changed. `changed` are the rows that the
-- statement really wrote; an update calls this for both versions, in two triggers, since a key may
-- have changed. More than a thousand rows count as everything.
CREATE OR REPLACE FUNCTION ads.note_edit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    edit constant xid8 := pg_current_xact_id();
    rows bigint;
BEGIN
    IF TG_OP <> 'TRUNCATE' THEN
        SELECT count(*) INTO rows FROM (SELECT FROM changed LIMIT 1001) c;
        IF rows = 0 THEN
            RETURN NULL;
        END IF;
    END IF;
    INSERT INTO ads.catalog_edits (id) VALUES (edit) ON CONFLICT DO NOTHING;
    IF TG_OP = 'TRUNCATE' OR rows > 1000 THEN
        INSERT INTO ads.catalog_edit_parts VALUES (edit, 'all', '') ON CONFLICT DO NOTHING;
    ELSIF TG_TABLE_NAME = 'settings' THEN
        INSERT INTO ads.catalog_edit_parts VALUES (edit, 'head', '') ON CONFLICT DO NOTHING;
    ELSIF TG_TABLE_NAME IN ('placements', 'campaigns', 'experiments') THEN
        INSERT INTO ads.catalog_edit_parts SELECT edit, rtrim(TG_TABLE_NAME, 's'), id FROM changed
        ON CONFLICT DO NOTHING;
    ELSIF TG_TABLE_NAME = 'ad_groups' THEN
        INSERT INTO ads.catalog_edit_parts SELECT edit, 'campaign', campaign_id FROM changed
        ON CONFLICT DO NOTHING;
    ELSIF TG_TABLE_NAME IN ('ad_group_placements', 'creatives', 'variants') THEN
        INSERT INTO ads.catalog_edit_parts SELECT edit, 'ad_group', ad_group_id FROM changed
        ON CONFLICT DO NOTHING;
        IF TG_TABLE_NAME = 'variants' THEN
            INSERT INTO ads.catalog_edit_parts SELECT edit, 'experiment', experiment_id FROM changed
            ON CONFLICT DO NOTHING;
        END IF;
    END IF;
    PERFORM pg_notify('ads_catalog', '');
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION ads.note_sweep() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    UPDATE ads.catalog_edits_swept s SET newest = swept.newest
    FROM (SELECT id AS newest FROM changed ORDER BY id DESC LIMIT 1) swept WHERE swept.newest > s.newest;
    RETURN NULL;
END $$;

-- ---- triggers -----------------------------------------------------------------------
-- Triggers of one kind run in the order of their names: archived_at and policy are set before the
-- row is compared.

DO $$
DECLARE
    t record;
BEGIN
    FOR t IN SELECT * FROM (VALUES
        ('advertisers', 'name', false), ('placements', 'id', false), ('campaigns', 'id', true),
        ('ad_groups', 'id', true), ('ad_group_placements', 'ad_group_id, placement_id', false),
        ('creatives', 'id', true), ('experiments', 'id', false),
        ('variants', 'experiment_id, creative_id', false)) AS list (name, key, archived)
    LOOP
        IF t.archived THEN
            EXECUTE format('CREATE OR REPLACE TRIGGER archived BEFORE INSERT OR UPDATE ON ads.%I FOR EACH ROW
                WHEN ((NEW.status = ''archived'') IS DISTINCT FROM (NEW.archived_at IS NOT NULL))
                EXECUTE FUNCTION ads.note_archived()', t.name);
        END IF;
        EXECUTE format('CREATE OR REPLACE TRIGGER touch BEFORE UPDATE ON ads.%I
            FOR EACH ROW EXECUTE FUNCTION ads.touch()', t.name);
        EXECUTE format('CREATE OR REPLACE TRIGGER audit AFTER UPDATE OR DELETE ON ads.%I
            FOR EACH ROW EXECUTE FUNCTION ads.audit(%s)', t.name, t.key);
        EXECUTE format('CREATE OR REPLACE TRIGGER audit_insert AFTER INSERT ON ads.%I REFERENCING NEW TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION ads.audit_inserts(%s)', t.name, t.key);
        EXECUTE format('CREATE OR REPLACE TRIGGER edit_insert AFTER INSERT ON ads.%I REFERENCING NEW TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit()', t.name);
        EXECUTE format('CREATE OR REPLACE TRIGGER edit_update AFTER UPDATE ON ads.%I REFERENCING NEW TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit()', t.name);
        EXECUTE format('CREATE OR REPLACE TRIGGER edit_update_from AFTER UPDATE ON ads.%I REFERENCING OLD TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit()', t.name);
        EXECUTE format('CREATE OR REPLACE TRIGGER edit_delete AFTER DELETE ON ads.%I REFERENCING OLD TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit()', t.name);
        EXECUTE format('CREATE OR REPLACE TRIGGER edit_truncate AFTER TRUNCATE ON ads.%I
            FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit()', t.name);
    END LOOP;
END $$;

CREATE OR REPLACE TRIGGER sweep AFTER DELETE ON ads.catalog_edits REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ads.note_sweep();

CREATE OR REPLACE TRIGGER policy BEFORE INSERT OR UPDATE ON ads.creatives FOR EACH ROW
    WHEN (NEW.type = 'html' OR NEW.policy IS NOT NULL) EXECUTE FUNCTION ads.note_policy();

CREATE OR REPLACE TRIGGER forget_pause AFTER UPDATE OF status ON ads.campaigns
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION ads.forget_pause();
CREATE OR REPLACE TRIGGER forget_campaign_day AFTER DELETE ON ads.campaigns
    FOR EACH ROW EXECUTE FUNCTION ads.forget_pause();

CREATE OR REPLACE TRIGGER currency BEFORE UPDATE ON ads.settings FOR EACH ROW
    WHEN (OLD.currency IS NOT NULL AND NEW.currency IS DISTINCT FROM OLD.currency) EXECUTE FUNCTION ads.fix_currency();
CREATE OR REPLACE TRIGGER touch BEFORE UPDATE ON ads.settings
    FOR EACH ROW EXECUTE FUNCTION ads.touch();
CREATE OR REPLACE TRIGGER audit AFTER UPDATE ON ads.settings
    FOR EACH ROW EXECUTE FUNCTION ads.audit(only_row);
CREATE OR REPLACE TRIGGER edit_update AFTER UPDATE ON ads.settings REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();

-- Constraint triggers cannot be replaced. A group that has no flight of its own and may share pages
-- agrees with any campaign.
DROP TRIGGER IF EXISTS flight_in ON ads.ad_groups;
CREATE CONSTRAINT TRIGGER flight_in AFTER INSERT OR UPDATE OF campaign_id, starts_at, ends_at, exclusive
    ON ads.ad_groups DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.starts_at IS NOT NULL OR NEW.ends_at IS NOT NULL OR NEW.exclusive = 'advertiser')
    EXECUTE FUNCTION ads.check_group_flight();
DROP TRIGGER IF EXISTS flight_of ON ads.campaigns;
CREATE CONSTRAINT TRIGGER flight_of AFTER UPDATE OF starts_at, ends_at, advertiser
    ON ads.campaigns DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION ads.check_campaign_flight();
DROP TRIGGER IF EXISTS variants_whole ON ads.experiments;
CREATE CONSTRAINT TRIGGER variants_whole AFTER INSERT ON ads.experiments
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ads.check_variants();
DROP TRIGGER IF EXISTS variants_whole ON ads.variants;
CREATE CONSTRAINT TRIGGER variants_whole AFTER INSERT OR UPDATE OR DELETE ON ads.variants
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ads.check_variants();
