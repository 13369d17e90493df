-- What the audit log knows of the past.

-- Takes back what these entries of the audit log did, in the order in which they are named: the newest first.
-- Whoever wants to see the past calls it in a transaction, reads, and rolls back. A column that an entry
-- does not know, since it is newer, keeps its value.
CREATE OR REPLACE FUNCTION ads.undo(entries bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    keys constant jsonb := '{"placements": ["id"], "campaigns": ["id"], "ad_groups": ["id"], "creatives": ["id"],
        "ad_group_placements": ["ad_group_id", "placement_id"], "experiments": ["id"],
        "variants": ["experiment_id", "creative_id"]}';
    e ads.audit_log;
    same_key text;
    columns text;
BEGIN
    FOR e IN SELECT l.* FROM unnest(entries) WITH ORDINALITY AS u (id, place) JOIN ads.audit_log l ON l.id = u.id
             WHERE keys ? l.table_name ORDER BY u.place
    LOOP
        SELECT string_agg(format('t.%1$I = r.%1$I', key), ' AND ') INTO same_key
        FROM jsonb_array_elements_text(keys -> e.table_name) AS k (key);
        IF e.table_name = 'campaigns' AND e.before ->> 'advertiser' <> '' THEN  -- it may have another name by now
            INSERT INTO ads.advertisers (name) VALUES (e.before ->> 'advertiser') ON CONFLICT DO NOTHING;
        END IF;
        IF e.action = 'insert' THEN
            EXECUTE format('DELETE FROM ads.%1$I t USING jsonb_populate_record(NULL::ads.%1$I, $1) r WHERE %2$s',
                           e.table_name, same_key) USING e.after;
        ELSIF e.action = 'delete' THEN
            EXECUTE format('INSERT INTO ads.%1$I SELECT * FROM jsonb_populate_record(NULL::ads.%1$I, $1)',
                           e.table_name) USING e.before;
        ELSIF e.action = 'update' THEN
            SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns
            FROM pg_attribute
            WHERE attrelid = format('ads.%I', e.table_name)::regclass AND attnum > 0 AND NOT attisdropped;
            EXECUTE format('UPDATE ads.%1$I t SET (%2$s) = (SELECT (jsonb_populate_record(t, $2)).*)
                            FROM jsonb_populate_record(NULL::ads.%1$I, $1) r WHERE %3$s',
                           e.table_name, columns, same_key) USING e.after, e.before;
        END IF;
    END LOOP;
END $$;
