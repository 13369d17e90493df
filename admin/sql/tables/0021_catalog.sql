-- replaces migrations 1 to 19
--
-- The catalog: who advertises what, where, when and for how much. The document that the
-- nodes load is made of these tables. Constraints that call functions are in
-- functions/checks.sql, triggers in functions/triggers.sql.

-- The names of the time zone database: a foreign key keeps unknown ones out, and
-- abbreviations and POSIX rules, which PostgreSQL would take too. put_campaigns()
-- adds a name that the server has learned since.
CREATE TABLE ads.timezones (
    name text PRIMARY KEY
);
INSERT INTO ads.timezones
SELECT name FROM pg_timezone_names
WHERE name !~ '^(posix|right)/' AND name NOT IN ('localtime', 'posixrules', 'Factory')
UNION SELECT 'UTC' UNION SELECT 'Etc/UTC';

CREATE TABLE ads.advertisers (
    name       ads.label PRIMARY KEY CHECK (name <> ''),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE ads.placements (
    id          text PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'),
    name        ads.name NOT NULL DEFAULT '',
    width       ads.pixels NOT NULL DEFAULT 0,  -- 0: any size
    height      ads.pixels NOT NULL DEFAULT 0,
    types       ads.creative_type[] NOT NULL DEFAULT '{}',  -- empty: all
    "select"    ads.selection NOT NULL DEFAULT 'weight',
    floor_micro ads.money NOT NULL DEFAULT 0,   -- eCPM: per thousand impressions
    updated_at  timestamptz NOT NULL DEFAULT now(),
    status      ads.placement_status NOT NULL DEFAULT 'active',
    CHECK ((width = 0) = (height = 0))
);

CREATE TABLE ads.campaigns (
    id                 ads.id PRIMARY KEY,
    name               ads.name NOT NULL DEFAULT '',
    advertiser         ads.label REFERENCES ads.advertisers ON UPDATE CASCADE,
    status             ads.status NOT NULL DEFAULT 'active',
    timezone           text NOT NULL DEFAULT 'UTC' REFERENCES ads.timezones,
    starts_at          ads.moment,
    ends_at            ads.moment,
    budget_type        ads.budget_type,  -- null: no budget, unlimited
    budget_micro       ads.money,
    hard_cap           double precision CHECK (hard_cap BETWEEN 1 AND 10),
    -- Spent before its events were kept here; the books win when they know of more.
    budget_spent_micro ads.money NOT NULL DEFAULT 0,
    updated_at         timestamptz NOT NULL DEFAULT now(),
    archived_at        timestamptz,
    CHECK (ends_at > starts_at),
    CHECK ((budget_type IS NULL) = (budget_micro IS NULL) AND (budget_type IS NULL) = (hard_cap IS NULL)),
    CHECK (budget_spent_micro = 0 OR budget_type IS NOT DISTINCT FROM 'lifetime'),
    CHECK ((status = 'archived') = (archived_at IS NOT NULL))
);
CREATE INDEX campaigns_advertiser ON ads.campaigns (advertiser);

CREATE TABLE ads.ad_groups (
    id                   ads.id PRIMARY KEY,
    campaign_id          ads.id NOT NULL REFERENCES ads.campaigns,
    name                 ads.name NOT NULL DEFAULT '',
    status               ads.status NOT NULL DEFAULT 'active',
    starts_at            ads.moment,     -- null: the campaign's
    ends_at              ads.moment,
    priority             ads.priority NOT NULL DEFAULT 'standard',
    weight               ads.weight NOT NULL DEFAULT 1,
    price_model          ads.price_model NOT NULL DEFAULT 'cpm',
    price_micro          ads.money NOT NULL DEFAULT 0,
    strategy             ads.strategy NOT NULL DEFAULT 'adaptive',
    cap_on               ads.cap_on NOT NULL DEFAULT 'serve',
    daily_impression_cap ads.amount,
    daily_click_cap      ads.amount,
    goal_on              ads.goal_on,
    goal_count           ads.amount,
    frequency_caps       jsonb NOT NULL DEFAULT '[]',
    -- Targeting; its placements are in ad_group_placements. Empty: everything.
    devices              ads.device[] NOT NULL DEFAULT '{}',
    geos                 text[] NOT NULL DEFAULT '{}',     -- "US", "US-CA"; "!US" excludes
    schedule             jsonb NOT NULL DEFAULT '[]',
    include_urls         text[] NOT NULL DEFAULT '{}',     -- PCRE2: the compiler checks the patterns
    exclude_urls         text[] NOT NULL DEFAULT '{}',
    keys                 jsonb NOT NULL DEFAULT '{}',
    languages            text[] NOT NULL DEFAULT '{}',
    category             ads.label NOT NULL DEFAULT '',
    exclusive            ads.exclusive NOT NULL DEFAULT 'none',
    together             ads.label NOT NULL DEFAULT '',
    updated_at           timestamptz NOT NULL DEFAULT now(),
    archived_at          timestamptz,
    CHECK (ends_at > starts_at),
    CHECK ((goal_on IS NULL) = (goal_count IS NULL)),
    CHECK (cardinality(include_urls) + cardinality(exclude_urls) <= 100),
    CHECK (exclusive <> 'category' OR category <> ''),
    CHECK ((status = 'archived') = (archived_at IS NOT NULL))
);
CREATE INDEX ad_groups_campaign ON ads.ad_groups (campaign_id);

-- A group without a row here may fill any placement: hence no cascade from
-- placements, the last row must not go unnoticed.
CREATE TABLE ads.ad_group_placements (
    ad_group_id  ads.id REFERENCES ads.ad_groups ON DELETE CASCADE,
    placement_id text REFERENCES ads.placements ON UPDATE CASCADE,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (ad_group_id, placement_id)
);
CREATE INDEX ad_group_placements_placement ON ads.ad_group_placements (placement_id);

CREATE TABLE ads.creatives (
    id             ads.id PRIMARY KEY,
    ad_group_id    ads.id NOT NULL REFERENCES ads.ad_groups,
    name           ads.name NOT NULL DEFAULT '',
    type           ads.creative_type NOT NULL,
    status         ads.status NOT NULL DEFAULT 'active',
    weight         ads.weight NOT NULL DEFAULT 1,
    width          ads.pixels NOT NULL DEFAULT 0,  -- 0: fits any
    height         ads.pixels NOT NULL DEFAULT 0,
    content        jsonb NOT NULL,
    click_url      text NOT NULL,
    impression_url text,  -- a third party's pixel
    updated_at     timestamptz NOT NULL DEFAULT now(),
    archived_at    timestamptz,
    -- The version of the sanitizer's policy that cleaned the markup; null: not cleaned, or nothing to clean.
    policy         int CHECK (policy > 0),
    UNIQUE (id, ad_group_id),                      -- for variants
    CHECK ((width = 0) = (height = 0)),
    CONSTRAINT creatives_archived CHECK ((status = 'archived') = (archived_at IS NOT NULL))
);
CREATE INDEX creatives_ad_group ON ads.creatives (ad_group_id);
-- Few creatives have a pixel: ingest finds out at no cost.
CREATE INDEX creatives_pixel ON ads.creatives (id) WHERE impression_url IS NOT NULL;
-- What creative resanitize looks for.
CREATE INDEX creatives_policy ON ads.creatives (policy, id) WHERE type = 'html';

CREATE TABLE ads.experiments (
    id          ads.id PRIMARY KEY,
    name        ads.name NOT NULL DEFAULT '',
    ad_group_id ads.id NOT NULL REFERENCES ads.ad_groups,
    status      ads.experiment_status NOT NULL DEFAULT 'draft',
    metric      ads.metric NOT NULL DEFAULT 'ctr',
    alpha       double precision NOT NULL DEFAULT 0.05 CHECK (alpha > 0 AND alpha < 1),
    min_sample  ads.amount NOT NULL DEFAULT 1000,
    mde         double precision NOT NULL DEFAULT 0.001 CHECK (mde > 0 AND mde < 1),
    allocation  ads.allocation NOT NULL DEFAULT 'fixed',
    winner      ads.id,                            -- the creative of a variant
    updated_at  timestamptz NOT NULL DEFAULT now(),
    UNIQUE (id, ad_group_id),                      -- for variants
    -- Deferred: one transaction may end an experiment and start the next.
    CONSTRAINT experiments_one_running EXCLUDE USING btree (ad_group_id WITH =) WHERE (status = 'running')
        DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX experiments_ad_group ON ads.experiments (ad_group_id);

-- The group is repeated here so that foreign keys hold experiment and creative
-- to the same one.
CREATE TABLE ads.variants (
    experiment_id ads.id,
    creative_id   ads.id,
    ad_group_id   ads.id NOT NULL,
    share         double precision NOT NULL CHECK (share > 0 AND share <= 1),
    updated_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (experiment_id, creative_id),
    FOREIGN KEY (experiment_id, ad_group_id) REFERENCES ads.experiments (id, ad_group_id)
        ON UPDATE CASCADE ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (creative_id, ad_group_id) REFERENCES ads.creatives (id, ad_group_id)
        DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX variants_creative ON ads.variants (creative_id);

ALTER TABLE ads.experiments ADD CONSTRAINT experiments_winner FOREIGN KEY (id, winner)
    REFERENCES ads.variants (experiment_id, creative_id) DEFERRABLE INITIALLY DEFERRED;

-- A row per transaction that changed the catalog. The version is how many there
-- have been, a number that every commit changes in whichever order transactions
-- commit; a sequence or a clock is read before the commit and may go unseen.
CREATE TABLE ads.catalog_edits (
    id xid8 PRIMARY KEY
);
-- How many rows of catalog_edits have been swept away, by ensure_partitions().
CREATE TABLE ads.catalog_edits_swept (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    edits    bigint NOT NULL DEFAULT 0
);
INSERT INTO ads.catalog_edits_swept DEFAULT VALUES;

CREATE TABLE ads.audit_log (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    actor      text NOT NULL,
    action     text NOT NULL,
    table_name text NOT NULL,
    row_id     text NOT NULL,
    before     jsonb,
    after      jsonb
);
CREATE INDEX audit_log_row ON ads.audit_log (table_name, row_id, id);

CREATE TABLE ads.settings (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    currency   text CHECK (currency ~ '^[A-Z]{3}$'),  -- ISO 4217; null: nobody has said it
    updated_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO ads.settings DEFAULT VALUES;
