-- Who was erased stays erased: a node may hold events of a person in memory, or in a spool that
-- was not searched yet, and send them after the erasure.

-- Digests only: a session and a pseudonym are 128 random bits, so nothing leads back to them.
CREATE TABLE ads.erasures (
    kind      text NOT NULL CHECK (kind IN ('session', 'user', 'linked')),
    digest    bytea NOT NULL,  -- SHA-256
    erased_at timestamptz NOT NULL,
    PRIMARY KEY (digest, kind)
);
COMMENT ON TABLE ads.erasures IS 'Persons whose earlier events ads.ingest() stores without them; kept for three months.';

-- From now on, events of the person that were recorded before are stored without the person. To
-- be called, and committed, before the person is searched for: it waits for the batches that are
-- being stored, which are found then; those that follow see what it wrote. "linked" are sessions
-- of a user, of which events without a user are meant.
CREATE FUNCTION ads.mark_erased(session text, users text[], linked text[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, ads, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1633972065, 2);
    INSERT INTO ads.erasures AS e (kind, digest, erased_at)
    SELECT DISTINCT p.kind, sha256(convert_to(p.name, 'UTF8')), clock_timestamp()
    FROM (SELECT 'session' AS kind, session AS name
          UNION ALL SELECT 'user', unnest(users)
          UNION ALL SELECT 'linked', unnest(linked)) p
    WHERE p.name IS NOT NULL AND p.name NOT IN ('', 'anonymous')
    ON CONFLICT (digest, kind) DO UPDATE SET erased_at = greatest(e.erased_at, excluded.erased_at);
END $$;

-- What stores a batch is now a step of ads.ingest().
ALTER FUNCTION ads.ingest(uuid[], int2[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int2[],
    int2[], bool[], text[], text[], text[], text[], text[]) RENAME TO store_events;
REVOKE ALL ON FUNCTION ads.store_events(uuid[], int2[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[],
    int8[], int2[], int2[], bool[], text[], text[], text[], text[], text[]) FROM PUBLIC, ads_edge, ads_admin;

-- As in 0003, but that events of an erased person, recorded up to a minute after the erasure (the
-- clocks of the nodes may be so far ahead), are taken for those of somebody who did not consent.
CREATE FUNCTION ads.ingest(
    in_id uuid[], in_type int2[], in_at int8[], in_issued int8[], in_serve int8[], in_campaign int8[],
    in_ad_group int8[], in_creative int8[], in_experiment int8[], in_price int8[], in_node int8[],
    in_device int2[], in_invalid int2[], in_consent bool[], in_placement text[], in_country text[],
    in_session text[], in_user text[], in_metadata text[])
RETURNS TABLE (inserted int, duplicate int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET jit = off
    SET lock_timeout = '5s' AS $$
DECLARE
    erased bigint[];
    place bigint;
BEGIN
    -- Against mark_erased(), not against each other.
    PERFORM pg_advisory_xact_lock_shared(1633972065, 2);
    IF EXISTS (SELECT FROM ads.erasures) AND cardinality(in_id) = ALL (ARRAY[cardinality(in_at),
            cardinality(in_consent), cardinality(in_session), cardinality(in_user)]) THEN
        SELECT array_agg(e.n) INTO erased
        FROM (SELECT u.n, u.at, u."user" = '' AS alone, k.of_user,
                     sha256(convert_to(CASE WHEN k.of_user THEN u."user" ELSE u.session END, 'UTF8')) AS digest
              FROM unnest(in_at, in_consent, in_session, in_user) WITH ORDINALITY AS u (at, consent, session, "user", n),
                   (VALUES (false), (true)) AS k (of_user)
              WHERE u.consent AND (NOT k.of_user OR u."user" <> '')) e
             JOIN ads.erasures x ON x.digest = e.digest
                 AND CASE x.kind WHEN 'user' THEN e.of_user WHEN 'session' THEN NOT e.of_user ELSE NOT e.of_user AND e.alone END
        WHERE e.at <= extract(epoch FROM x.erased_at + interval '1 minute') * 1000;
        FOREACH place IN ARRAY coalesce(erased, '{}') LOOP
            in_consent[place] := false;
        END LOOP;
    END IF;
    RETURN QUERY SELECT s.inserted, s.duplicate
        FROM ads.store_events(in_id, in_type, in_at, in_issued, in_serve, in_campaign, in_ad_group, in_creative,
                              in_experiment, in_price, in_node, in_device, in_invalid, in_consent, in_placement,
                              in_country, in_session, in_user, in_metadata) AS s;
END $$;

-- ---- retention ------------------------------------------------------------------------

-- As in 0011, and erasures go when they are older than every claim.
ALTER FUNCTION ads.prune_events(int) RENAME TO prune_months;
CREATE FUNCTION ads.prune_events(keep_days int DEFAULT 395) RETURNS TABLE (action text, what text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ads, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    RETURN QUERY SELECT p.action, p.what FROM ads.prune_months(keep_days) AS p;
    DELETE FROM ads.erasures WHERE erased_at < ads.now() - interval '3 months';
END $$;

-- ---- rights ---------------------------------------------------------------------------

REVOKE ALL ON FUNCTION ads.mark_erased(text, text[], text[]), ads.prune_events(int), ads.ingest(uuid[], int2[], int8[],
    int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int2[], int2[], bool[], text[], text[], text[], text[],
    text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ads.mark_erased(text, text[], text[]), ads.prune_events(int) TO ads_admin;
GRANT EXECUTE ON FUNCTION ads.ingest(uuid[], int2[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[],
    int2[], int2[], bool[], text[], text[], text[], text[], text[]) TO ads_edge, ads_admin;
GRANT SELECT, INSERT, UPDATE, DELETE ON ads.erasures TO ads_admin;
GRANT SELECT ON ads.erasures TO ads_report;
