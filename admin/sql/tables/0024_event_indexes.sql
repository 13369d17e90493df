-- no transaction
-- replaces migrations 1 to 19
--
-- The four indexes of the hot questions: a campaign's figures by type and time, how
-- often a session saw a group, a campaign's creatives, a campaign's latest events.
-- Built partition by partition without keeping writers out, then attached; each
-- statement may be run again. Partitions that are made later get them by themselves.

-- What an interrupted run left behind is invalid and would never be finished.
-- each row is a statement
SELECT format('DROP INDEX CONCURRENTLY IF EXISTS ads.%I', i.relname)
FROM pg_inherits p
JOIN pg_index x ON x.indrelid = p.inhrelid AND NOT x.indisvalid
JOIN pg_class i ON i.oid = x.indexrelid AND NOT i.relispartition
WHERE p.inhparent = 'ads.ad_events'::regclass;

CREATE INDEX IF NOT EXISTS idx_ad_events_campaign_type_time
    ON ONLY ads.ad_events (campaign_id, type, "timestamp" DESC);

CREATE INDEX IF NOT EXISTS idx_ad_events_session_group_type_time
    ON ONLY ads.ad_events (session_id, ad_group_id, type, "timestamp" DESC);

CREATE INDEX IF NOT EXISTS idx_ad_events_campaign_creative_type
    ON ONLY ads.ad_events (campaign_id, creative_id, type);

CREATE INDEX IF NOT EXISTS idx_ad_events_campaign_time
    ON ONLY ads.ad_events (campaign_id, "timestamp" DESC);

-- Where a partition has none of its own yet: first all are built, then attached. With the last of
-- its partitions an index of the parent becomes valid.
-- each row is a statement
SELECT format(step.statement, c.relname || replace(i.relname, 'idx_ad_events', ''), c.relname,
              substring(pg_get_indexdef(i.oid) FROM 'USING .*'), i.relname)
FROM pg_inherits p
JOIN pg_class c ON c.oid = p.inhrelid
CROSS JOIN pg_index x
JOIN pg_class i ON i.oid = x.indexrelid AND i.relname LIKE 'idx\_ad\_events\_%'
CROSS JOIN (VALUES (1, 'CREATE INDEX CONCURRENTLY IF NOT EXISTS %1$I ON ads.%2$I %3$s'),
                   (2, 'ALTER INDEX ads.%4$I ATTACH PARTITION ads.%1$I')) AS step (place, statement)
WHERE p.inhparent = 'ads.ad_events'::regclass AND x.indrelid = p.inhparent
  AND NOT EXISTS (SELECT FROM pg_inherits a JOIN pg_index y ON y.indexrelid = a.inhrelid
                  WHERE a.inhparent = i.oid AND y.indrelid = c.oid)
ORDER BY step.place, c.relname, i.relname;
