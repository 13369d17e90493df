-- What the files that replace migrations 1 to 19 did not take over from them.
DROP FUNCTION IF EXISTS
    ads.store_events(uuid[], int2[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int2[],
                     int2[], bool[], text[], text[], text[], text[], text[]),
    ads.prune_months(int), ads.prune_persons(int),
    ads.refuse(text, text), ads.check_object(jsonb, text, text[]), ads.member(jsonb, text, text, text[]),
    ads.list(jsonb, text, text), ads.string(jsonb), ads.number(jsonb), ads.whole(jsonb), ads.read_schedule(jsonb, text),
    ads.read_caps(jsonb, text), ads.read_keys(jsonb, text), ads.read_goal(jsonb, text),
    ads.read_ids(jsonb[], text[], text), ads.put_campaign_rows(jsonb[], text[]),
    ads.put_ad_groups(bigint[], bigint[], jsonb[], text[]), ads.put_creatives(bigint[], bigint[], jsonb[], text[]),
    ads.put_below(jsonb[], text[]);

-- Functions of constraints with other arguments; functions/checks.sql adds the constraints again.
ALTER TABLE ads.ad_groups
    DROP CONSTRAINT IF EXISTS ad_groups_geos_check,
    DROP CONSTRAINT IF EXISTS ad_groups_include_urls_check,
    DROP CONSTRAINT IF EXISTS ad_groups_exclude_urls_check,
    DROP CONSTRAINT IF EXISTS ad_groups_languages_check;
DROP FUNCTION IF EXISTS ads.each_matches(text[], text), ads.each_sized(text[], int, int);

-- Names that were made up by PostgreSQL.
ALTER TABLE ads.creatives
    DROP CONSTRAINT IF EXISTS creatives_check1,
    DROP CONSTRAINT IF EXISTS creatives_check2,
    DROP CONSTRAINT IF EXISTS creatives_archived,
    ADD CONSTRAINT creatives_archived CHECK ((status = 'archived') = (archived_at IS NOT NULL));
