-- What the files that replace migrations 1 to 19 did not take over from them.
DROP FUNCTION IF EXISTS
    ads.store_events(uuid[], int2[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int2[],
                     int2[], bool[], text[], text[], text[], text[], text[]),
    ads.prune_months(int), ads.prune_persons(int);

-- Names that were made up by PostgreSQL.
ALTER TABLE ads.creatives
    DROP CONSTRAINT IF EXISTS creatives_check1,
    DROP CONSTRAINT IF EXISTS creatives_check2,
    DROP CONSTRAINT IF EXISTS creatives_archived,
    ADD CONSTRAINT creatives_archived CHECK ((status = 'archived') = (archived_at IS NOT NULL));
