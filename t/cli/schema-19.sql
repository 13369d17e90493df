-- The schema as migrations 1 to 19 left it, as pg_dump has it; its functions do nothing here.
DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY '{ads_edge,ads_admin,ads_report}'::text[] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
    END LOOP;
END $$;
CREATE SCHEMA ads;
CREATE TYPE ads.allocation AS ENUM ( 'fixed' );
CREATE DOMAIN ads.amount AS bigint CONSTRAINT amount_check CHECK (((VALUE >= 1) AND (VALUE <= '1000000000000'::bigint)));
CREATE TYPE ads.budget_type AS ENUM ( 'daily', 'lifetime' );
CREATE TYPE ads.cap_on AS ENUM ( 'serve', 'impression' );
CREATE TYPE ads.creative_type AS ENUM ( 'image', 'html', 'native' );
CREATE TYPE ads.device AS ENUM ( 'desktop', 'mobile', 'tablet', 'tv', 'bot' );
CREATE TYPE ads.event_type AS ENUM ( 'serve', 'impression', 'viewable', 'click', 'conversion' );
CREATE TYPE ads.exclusive AS ENUM ( 'none', 'advertiser', 'category' );
CREATE TYPE ads.experiment_status AS ENUM ( 'draft', 'running', 'completed' );
CREATE TYPE ads.goal_on AS ENUM ( 'impressions', 'clicks' );
CREATE DOMAIN ads.id AS bigint CONSTRAINT id_check CHECK (((VALUE >= 1) AND (VALUE <= '4294967295'::bigint)));
CREATE TYPE ads.invalid_reason AS ENUM ( 'ignored', 'late', 'over_budget', 'bot', 'prefetch', 'network', 'user_agent', 'too_fast', 'no_impression', 'rapid_fire', 'rate_limit', 'mismatch' );
CREATE DOMAIN ads.label AS text CONSTRAINT label_check CHECK ((octet_length(VALUE) <= 100));
CREATE TYPE ads.metric AS ENUM ( 'ctr', 'conversion' );
CREATE DOMAIN ads.moment AS timestamp(0) with time zone CONSTRAINT moment_check CHECK (((VALUE >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (VALUE < '2101-01-01 00:00:00+00'::timestamp with time zone)));
CREATE DOMAIN ads.money AS bigint CONSTRAINT money_check CHECK (((VALUE >= 0) AND (VALUE <= '10000000000000000'::bigint)));
CREATE DOMAIN ads.name AS text CONSTRAINT name_check CHECK ((octet_length(VALUE) <= 200));
CREATE DOMAIN ads.pixels AS integer CONSTRAINT pixels_check CHECK (((VALUE >= 0) AND (VALUE <= 16384)));
CREATE TYPE ads.placement_status AS ENUM ( 'active', 'paused' );
CREATE TYPE ads.price_model AS ENUM ( 'cpm', 'cpc', 'cpa', 'vcpm', 'flat' );
CREATE TYPE ads.priority AS ENUM ( 'sponsorship', 'standard', 'remnant', 'house' );
CREATE TYPE ads.selection AS ENUM ( 'weight', 'price' );
CREATE TYPE ads.status AS ENUM ( 'draft', 'scheduled', 'active', 'paused', 'completed', 'archived' );
CREATE TYPE ads.strategy AS ENUM ( 'probabilistic', 'asap', 'even', 'pid', 'adaptive' );
CREATE DOMAIN ads.weight AS integer CONSTRAINT weight_check CHECK (((VALUE >= 0) AND (VALUE <= 1000000)));
CREATE FUNCTION ads.activate_campaigns() RETURNS TABLE(action text, what text) LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.ad_group_delivery() RETURNS TABLE(ad_group_id bigint, of text, unit text, done bigint, target bigint, delivered numeric, aim numeric) LANGUAGE plpgsql STABLE AS $$BEGIN  END$$;
CREATE FUNCTION ads.audit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RETURN NEW; END$$;
CREATE FUNCTION ads.audit_inserts() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RETURN NEW; END$$;
CREATE FUNCTION ads.books(since date) RETURNS TABLE(campaign_id bigint, ad_group_id bigint, day integer, serves bigint, impressions bigint, viewables bigint, clicks bigint, conversions bigint, spend_micro bigint) LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER AS $$BEGIN  END$$;
CREATE FUNCTION ads.campaign_delivery() RETURNS TABLE(campaign_id bigint, of text, spent_cents numeric, budget_cents numeric, delivered numeric, aim numeric) LANGUAGE plpgsql STABLE AS $$BEGIN  END$$;
CREATE FUNCTION ads.campaign_document(campaign bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.catalog() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.catalog_version() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.cents(micro bigint) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.check_campaign_flight() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RETURN NEW; END$$;
CREATE FUNCTION ads.each_matches(list text[], pattern text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.each_sized(list text[], low integer, high integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.plain_list(list anyarray) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.valid_caps(caps jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.valid_keys(keys jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.valid_schedule(schedule jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE TABLE ads.ad_groups (
    id ads.id NOT NULL,
    campaign_id ads.id NOT NULL,
    name ads.name DEFAULT ''::text NOT NULL,
    status ads.status DEFAULT 'active'::ads.status NOT NULL,
    starts_at ads.moment,
    ends_at ads.moment,
    priority ads.priority DEFAULT 'standard'::ads.priority NOT NULL,
    weight ads.weight DEFAULT 1 NOT NULL,
    price_model ads.price_model DEFAULT 'cpm'::ads.price_model NOT NULL,
    price_micro ads.money DEFAULT 0 NOT NULL,
    strategy ads.strategy DEFAULT 'adaptive'::ads.strategy NOT NULL,
    cap_on ads.cap_on DEFAULT 'serve'::ads.cap_on NOT NULL,
    daily_impression_cap ads.amount,
    daily_click_cap ads.amount,
    goal_on ads.goal_on,
    goal_count ads.amount,
    frequency_caps jsonb DEFAULT '[]'::jsonb NOT NULL,
    devices ads.device[] DEFAULT '{}'::ads.device[] NOT NULL,
    geos text[] DEFAULT '{}'::text[] NOT NULL,
    schedule jsonb DEFAULT '[]'::jsonb NOT NULL,
    include_urls text[] DEFAULT '{}'::text[] NOT NULL,
    exclude_urls text[] DEFAULT '{}'::text[] NOT NULL,
    keys jsonb DEFAULT '{}'::jsonb NOT NULL,
    languages text[] DEFAULT '{}'::text[] NOT NULL,
    category ads.label DEFAULT ''::text NOT NULL,
    exclusive ads.exclusive DEFAULT 'none'::ads.exclusive NOT NULL,
    together ads.label DEFAULT ''::text NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    archived_at timestamp with time zone,
    CONSTRAINT ad_groups_check CHECK (((ends_at)::timestamp with time zone > (starts_at)::timestamp with time zone)),
    CONSTRAINT ad_groups_check1 CHECK (((goal_on IS NULL) = (goal_count IS NULL))),
    CONSTRAINT ad_groups_check2 CHECK (((cardinality(include_urls) + cardinality(exclude_urls)) <= 100)),
    CONSTRAINT ad_groups_check3 CHECK (((exclusive <> 'category'::ads.exclusive) OR ((category)::text <> ''::text))),
    CONSTRAINT ad_groups_check4 CHECK (((status = 'archived'::ads.status) = (archived_at IS NOT NULL))),
    CONSTRAINT ad_groups_devices_check CHECK (ads.plain_list(devices)),
    CONSTRAINT ad_groups_exclude_urls_check CHECK (ads.each_sized(exclude_urls, 1, 1000)),
    CONSTRAINT ad_groups_frequency_caps_check CHECK (ads.valid_caps(frequency_caps)),
    CONSTRAINT ad_groups_geos_check CHECK (ads.each_matches(geos, '^!?[A-Z]{2}(-[A-Z0-9]{1,3})?$'::text)),
    CONSTRAINT ad_groups_include_urls_check CHECK (ads.each_sized(include_urls, 1, 1000)),
    CONSTRAINT ad_groups_keys_check CHECK (ads.valid_keys(keys)),
    CONSTRAINT ad_groups_languages_check CHECK ((ads.each_matches(languages, '^[a-z]{2,8}(-[a-z0-9]{1,8})*$'::text) AND ads.each_sized(languages, 2, 35))),
    CONSTRAINT ad_groups_schedule_check CHECK (ads.valid_schedule(schedule))
);
CREATE TABLE ads.campaigns (
    id ads.id NOT NULL,
    name ads.name DEFAULT ''::text NOT NULL,
    advertiser ads.label,
    status ads.status DEFAULT 'active'::ads.status NOT NULL,
    timezone text DEFAULT 'UTC'::text NOT NULL,
    starts_at ads.moment,
    ends_at ads.moment,
    budget_type ads.budget_type,
    budget_micro ads.money,
    hard_cap double precision,
    budget_spent_micro ads.money DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    archived_at timestamp with time zone,
    CONSTRAINT campaigns_check CHECK (((ends_at)::timestamp with time zone > (starts_at)::timestamp with time zone)),
    CONSTRAINT campaigns_check1 CHECK ((((budget_type IS NULL) = (budget_micro IS NULL)) AND ((budget_type IS NULL) = (hard_cap IS NULL)))),
    CONSTRAINT campaigns_check2 CHECK ((((budget_spent_micro)::bigint = 0) OR (NOT (budget_type IS DISTINCT FROM 'lifetime'::ads.budget_type)))),
    CONSTRAINT campaigns_check3 CHECK (((status = 'archived'::ads.status) = (archived_at IS NOT NULL))),
    CONSTRAINT campaigns_hard_cap_check CHECK (((hard_cap >= (1)::double precision) AND (hard_cap <= (10)::double precision)))
);
CREATE FUNCTION ads.check_flight(g ads.ad_groups, c ads.campaigns) RETURNS void LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.check_group_flight() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RETURN NEW; END$$;
CREATE FUNCTION ads.check_object(thing jsonb, path text, keys text[]) RETURNS void LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.check_variants() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RETURN NEW; END$$;
CREATE FUNCTION ads.claim_turn(in_task text, in_instance text) RETURNS timestamp with time zone LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.complete_campaigns() RETURNS TABLE(action text, what text) LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.day_start(day date, zone text) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.day_target(c ads.campaigns, day date) RETURNS bigint LANGUAGE plpgsql STABLE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.do_turn(in_task text, due timestamp with time zone, keep_days integer) RETURNS TABLE(action text, what text) LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.document_head() RETURNS text LANGUAGE plpgsql STABLE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.due_turn(in_task text) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.elapsed(since timestamp with time zone, until timestamp with time zone) RETURNS numeric LANGUAGE plpgsql STABLE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.end_experiment(experiment bigint, chosen bigint, why jsonb) RETURNS void LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.ensure_partitions(months_ahead integer DEFAULT 3) RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN  END$$;
CREATE FUNCTION ads.erase_person(session text, users text[], linked text[]) RETURNS TABLE(events bigint, trials bigint) LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.experiment_arms(experiment bigint) RETURNS TABLE(creative_id bigint, name text, share double precision, trials bigint, successes bigint, previous_p double precision) LANGUAGE plpgsql STABLE AS $$BEGIN  END$$;
CREATE FUNCTION ads.export_person(session text, users text[], linked text[]) RETURNS TABLE(kind text, fact json) LANGUAGE plpgsql STABLE AS $$BEGIN  END$$;
CREATE FUNCTION ads.fail_turn(in_task text, due timestamp with time zone, in_instance text, in_error text) RETURNS void LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.finish_turn(in_task text, due timestamp with time zone, in_changed bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.first_id(issued timestamp with time zone) RETURNS uuid LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.fix_currency() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RETURN NEW; END$$;
CREATE FUNCTION ads.fnv1a32(slug text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.folded_texts(thing jsonb, capitals boolean) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.forecast(campaign bigint) RETURNS TABLE(campaign_id bigint, name text, status text, timezone text, budget_type text, budget_cents numeric, spent_cents numeric, average_daily_spend numeric, days_remaining numeric, exhaustion_date date, projected_total_spend numeric, will_exhaust_early boolean, days_to_end numeric, delivery numeric, goal_count bigint, goal_done bigint, goal_projected bigint, starts_on date, ends_on date, deliver_by date, flight text) LANGUAGE plpgsql STABLE AS $$BEGIN  END$$;
CREATE FUNCTION ads.forget_pause() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RETURN NEW; END$$;
CREATE FUNCTION ads.ingest(in_id uuid[], in_type smallint[], in_at bigint[], in_issued bigint[], in_serve bigint[], in_campaign bigint[], in_ad_group bigint[], in_creative bigint[], in_experiment bigint[], in_price bigint[], in_node bigint[], in_device smallint[], in_invalid smallint[], in_consent boolean[], in_placement text[], in_country text[], in_session text[], in_user text[], in_metadata text[]) RETURNS TABLE(inserted integer, duplicate integer) LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN  END$$;
CREATE FUNCTION ads.list(thing jsonb, key text, path text) RETURNS jsonb LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.make_partition(parent text, month timestamp with time zone) RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.mark_erased(session text, users text[], linked text[]) RETURNS void LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.member(thing jsonb, key text, path text, keys text[]) RETURNS jsonb LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.micro(cents jsonb) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.moment_text(moment timestamp with time zone) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.note_archived() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$;
CREATE FUNCTION ads.note_edit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RETURN NEW; END$$;
CREATE FUNCTION ads.note_look(experiment bigint, creative bigint, seen double precision) RETURNS void LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.note_policy() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$;
CREATE FUNCTION ads.note_privacy(in_action text, details jsonb) RETURNS void LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.now() RETURNS timestamp with time zone LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.number(thing jsonb) RETURNS double precision LANGUAGE plpgsql IMMUTABLE STRICT AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.pause_over_budget() RETURNS TABLE(action text, what text) LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.period(first text, last text, zone text DEFAULT 'UTC'::text) RETURNS TABLE(since timestamp with time zone, until timestamp with time zone, shift interval) LANGUAGE plpgsql STABLE AS $$BEGIN  END$$;
CREATE FUNCTION ads.period_bound(word text, zone text, is_end boolean) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.period_seconds(period text) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.pixel_status() RETURNS TABLE(waiting bigint, due bigint, taken bigint, oldest_seconds double precision, dead bigint, sent_today bigint, retried_today bigint, dead_today bigint) LANGUAGE plpgsql STABLE AS $$BEGIN  END$$;
CREATE FUNCTION ads.prune_events(keep_days integer DEFAULT 395) RETURNS TABLE(action text, what text) LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN  END$$;
CREATE FUNCTION ads.prune_months(keep_days integer DEFAULT 395) RETURNS TABLE(action text, what text) LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN  END$$;
CREATE FUNCTION ads.prune_persons(keep_days integer DEFAULT 395) RETURNS TABLE(action text, what text) LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN  END$$;
CREATE FUNCTION ads.put_ad_groups(ids bigint[], campaigns bigint[], documents jsonb[], paths text[]) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.put_below(campaigns jsonb[], paths text[]) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.put_campaign(document jsonb) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.put_campaign_rows(documents jsonb[], paths text[]) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.put_campaigns(documents jsonb) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.put_creatives(ids bigint[], groups bigint[], documents jsonb[], paths text[]) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.put_experiment(document jsonb) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.put_placement(document jsonb) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.put_targets(groups bigint[], documents jsonb[]) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.read_caps(thing jsonb, path text) RETURNS jsonb LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.read_goal(pacing jsonb, path text) RETURNS jsonb LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.read_ids(documents jsonb[], paths text[], name text) RETURNS bigint[] LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.read_keys(thing jsonb, path text) RETURNS jsonb LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.read_moment(thing jsonb) RETURNS timestamp with time zone LANGUAGE plpgsql IMMUTABLE STRICT AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.read_schedule(thing jsonb, path text) RETURNS jsonb LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.recent_spend(campaign bigint) RETURNS TABLE(day date, spend_cents numeric) LANGUAGE plpgsql STABLE AS $$BEGIN  END$$;
CREATE FUNCTION ads.refuse(path text, complaint text) RETURNS void LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.report(by text, since timestamp with time zone, until timestamp with time zone, campaign bigint DEFAULT NULL::bigint, zone text DEFAULT 'UTC'::text, advertiser text DEFAULT NULL::text, placement text DEFAULT NULL::text, shift interval DEFAULT '00:00:00'::interval) RETURNS TABLE(key text, name text, key2 text, name2 text, requests bigint, unfilled bigint, fill_rate numeric, serves bigint, impressions bigint, viewables bigint, viewable_rate numeric, clicks bigint, ctr numeric, conversions bigint, invalid bigint, spend_cents numeric, ecpm_cents numeric) LANGUAGE plpgsql STABLE AS $$BEGIN  END$$;
CREATE TABLE ads.event_hours (
    hour timestamp with time zone NOT NULL,
    campaign_id bigint NOT NULL,
    ad_group_id bigint NOT NULL,
    creative_id bigint NOT NULL,
    placement text NOT NULL COLLATE pg_catalog."C",
    country text NOT NULL COLLATE pg_catalog."C",
    device text NOT NULL COLLATE pg_catalog."C",
    type ads.event_type NOT NULL,
    invalid text NOT NULL COLLATE pg_catalog."C",
    events bigint NOT NULL,
    price_micro bigint NOT NULL
);
CREATE FUNCTION ads.report_key(dimension text, h ads.event_hours, advertiser text, at timestamp without time zone) RETURNS text LANGUAGE plpgsql STABLE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.report_name(dimension text, key text) RETURNS text LANGUAGE plpgsql STABLE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.reset_days(due timestamp with time zone) RETURNS TABLE(action text, what text) LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.revive_pixels(creative bigint DEFAULT NULL::bigint) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.scheduler_status() RETURNS TABLE(task text, every_seconds bigint, due_at timestamp with time zone, finished_at timestamp with time zone, seconds double precision, instance text, changed bigint, next_due timestamp with time zone, error text, failed_at timestamp with time zone, attempts integer) LANGUAGE plpgsql STABLE AS $$BEGIN  END$$;
CREATE FUNCTION ads.scheduler_tasks() RETURNS TABLE(place integer, task text, every interval) LANGUAGE plpgsql IMMUTABLE AS $$BEGIN  END$$;
CREATE FUNCTION ads.sessions_of(users text[]) RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$BEGIN  END$$;
CREATE FUNCTION ads.settle_pixels(taker text, in_id bigint[], in_try integer[], in_outcome text[], in_seconds double precision[], in_error text[]) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.spent(c ads.campaigns, before date DEFAULT NULL::date) RETURNS bigint LANGUAGE plpgsql STABLE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.spent_floor(campaign bigint, given bigint) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.stale_books() RETURNS TABLE(campaign_id bigint, day date, midnight timestamp with time zone) LANGUAGE plpgsql STABLE AS $$BEGIN  END$$;
CREATE FUNCTION ads.start_experiment(experiment bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.store_events(in_id uuid[], in_type smallint[], in_at bigint[], in_issued bigint[], in_serve bigint[], in_campaign bigint[], in_ad_group bigint[], in_creative bigint[], in_experiment bigint[], in_price bigint[], in_node bigint[], in_device smallint[], in_invalid smallint[], in_consent boolean[], in_placement text[], in_country text[], in_session text[], in_user text[], in_metadata text[]) RETURNS TABLE(inserted integer, duplicate integer) LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN  END$$;
CREATE FUNCTION ads.stored(ids uuid[]) RETURNS SETOF bigint LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER AS $$BEGIN  END$$;
CREATE FUNCTION ads.string(thing jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.take_pixels(taker text, most integer, lease interval) RETURNS TABLE(id bigint, tries integer, event_id uuid, campaign_id bigint, ad_group_id bigint, creative_id bigint, placement text, happened_at timestamp with time zone, url text) LANGUAGE plpgsql AS $$BEGIN  END$$;
CREATE FUNCTION ads.texts(thing jsonb) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.touch() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$;
CREATE FUNCTION ads.turn_open(in_task text, due timestamp with time zone) RETURNS boolean LANGUAGE plpgsql STABLE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.valid_content(content jsonb, type ads.creative_type) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.valid_origin(url text, scheme text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.valid_target(url text, scheme text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION ads.whole(thing jsonb) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT AS $$BEGIN RETURN NULL; END$$;
CREATE TABLE ads.ad_events (
    id uuid NOT NULL,
    "timestamp" timestamp with time zone NOT NULL,
    serve_id bigint NOT NULL,
    campaign_id bigint NOT NULL,
    ad_group_id bigint NOT NULL,
    creative_id bigint NOT NULL,
    experiment_id bigint,
    price_micro bigint NOT NULL,
    node bigint NOT NULL,
    type ads.event_type NOT NULL,
    device ads.device,
    invalid ads.invalid_reason,
    placement text NOT NULL COLLATE pg_catalog."C",
    session_id text NOT NULL COLLATE pg_catalog."C",
    user_id text COLLATE pg_catalog."C",
    country text COLLATE pg_catalog."C",
    metadata jsonb NOT NULL
)
PARTITION BY RANGE ("timestamp");
CREATE TABLE ads.ad_group_placements (
    ad_group_id ads.id NOT NULL,
    placement_id text NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE ads.advertiser_pauses (
    campaign_id ads.id NOT NULL,
    over_budget boolean DEFAULT false NOT NULL,
    paused_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE ads.advertisers (
    name ads.label NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT advertisers_name_check CHECK (((name)::text <> ''::text))
);
CREATE TABLE ads.audit_log (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    table_name text NOT NULL,
    row_id text NOT NULL,
    before jsonb,
    after jsonb
);
ALTER TABLE ads.audit_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME ads.audit_log_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );
CREATE TABLE ads.budget_pauses (
    campaign_id ads.id NOT NULL,
    paused_at timestamp with time zone NOT NULL
);
CREATE TABLE ads.campaign_books (
    campaign_id ads.id NOT NULL,
    day date NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    target_micro bigint,
    spent_before_micro bigint NOT NULL
);
CREATE TABLE ads.catalog_edits (
    id xid8 NOT NULL
);
CREATE TABLE ads.catalog_edits_swept (
    only_row boolean DEFAULT true NOT NULL,
    edits bigint DEFAULT 0 NOT NULL,
    CONSTRAINT catalog_edits_swept_only_row_check CHECK (only_row)
);
CREATE TABLE ads.creatives (
    id ads.id NOT NULL,
    ad_group_id ads.id NOT NULL,
    name ads.name DEFAULT ''::text NOT NULL,
    type ads.creative_type NOT NULL,
    status ads.status DEFAULT 'active'::ads.status NOT NULL,
    weight ads.weight DEFAULT 1 NOT NULL,
    width ads.pixels DEFAULT 0 NOT NULL,
    height ads.pixels DEFAULT 0 NOT NULL,
    content jsonb NOT NULL,
    click_url text NOT NULL,
    impression_url text,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    archived_at timestamp with time zone,
    policy integer,
    CONSTRAINT creatives_check CHECK ((((width)::integer = 0) = ((height)::integer = 0))),
    CONSTRAINT creatives_check1 CHECK (ads.valid_content(content, type)),
    CONSTRAINT creatives_check2 CHECK (((status = 'archived'::ads.status) = (archived_at IS NOT NULL))),
    CONSTRAINT creatives_click_url_check CHECK (ads.valid_target(click_url, 'https?'::text)),
    CONSTRAINT creatives_impression_url_check CHECK (ads.valid_target(impression_url, 'https'::text)),
    CONSTRAINT creatives_policy_check CHECK ((policy > 0))
);
CREATE TABLE ads.daily_spend (
    campaign_id bigint NOT NULL,
    day date NOT NULL,
    ad_group_id bigint NOT NULL,
    serves bigint DEFAULT 0 NOT NULL,
    impressions bigint DEFAULT 0 NOT NULL,
    viewables bigint DEFAULT 0 NOT NULL,
    clicks bigint DEFAULT 0 NOT NULL,
    conversions bigint DEFAULT 0 NOT NULL,
    spend_micro bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE ads.dead_pixels (
    id bigint NOT NULL,
    event_id uuid NOT NULL,
    campaign_id bigint NOT NULL,
    ad_group_id bigint NOT NULL,
    creative_id bigint NOT NULL,
    placement text NOT NULL COLLATE pg_catalog."C",
    happened_at timestamp with time zone NOT NULL,
    url text NOT NULL,
    queued_at timestamp with time zone NOT NULL,
    tries integer NOT NULL,
    died_at timestamp with time zone NOT NULL,
    error text NOT NULL
);
CREATE TABLE ads.erasures (
    kind text NOT NULL,
    digest bytea NOT NULL,
    erased_at timestamp with time zone NOT NULL,
    CONSTRAINT erasures_kind_check CHECK ((kind = ANY (ARRAY['session'::text, 'user'::text, 'linked'::text])))
);
COMMENT ON TABLE ads.erasures IS 'Persons whose earlier events ads.ingest() stores without them; kept for three months.';
CREATE TABLE ads.event_claims (
    id uuid NOT NULL
)
PARTITION BY RANGE (id);
CREATE TABLE ads.experiment_looks (
    experiment_id ads.id NOT NULL,
    creative_id ads.id NOT NULL,
    p double precision NOT NULL,
    looked_at timestamp with time zone NOT NULL,
    CONSTRAINT experiment_looks_p_check CHECK (((p >= (0)::double precision) AND (p <= (1)::double precision)))
);
CREATE TABLE ads.experiment_trials (
    experiment_id bigint NOT NULL,
    session_id text NOT NULL COLLATE pg_catalog."C",
    creative_id bigint NOT NULL,
    first_impression timestamp with time zone,
    first_success timestamp with time zone
);
CREATE TABLE ads.experiments (
    id ads.id NOT NULL,
    name ads.name DEFAULT ''::text NOT NULL,
    ad_group_id ads.id NOT NULL,
    status ads.experiment_status DEFAULT 'draft'::ads.experiment_status NOT NULL,
    metric ads.metric DEFAULT 'ctr'::ads.metric NOT NULL,
    alpha double precision DEFAULT 0.05 NOT NULL,
    min_sample ads.amount DEFAULT 1000 NOT NULL,
    mde double precision DEFAULT 0.001 NOT NULL,
    allocation ads.allocation DEFAULT 'fixed'::ads.allocation NOT NULL,
    winner ads.id,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT experiments_alpha_check CHECK (((alpha > (0)::double precision) AND (alpha < (1)::double precision))),
    CONSTRAINT experiments_mde_check CHECK (((mde > (0)::double precision) AND (mde < (1)::double precision)))
);
CREATE TABLE ads.migrations (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    seconds double precision NOT NULL
);
CREATE TABLE ads.pixel_days (
    day date NOT NULL,
    creative_id bigint NOT NULL,
    sent bigint DEFAULT 0 NOT NULL,
    retried bigint DEFAULT 0 NOT NULL,
    dead bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE ads.pixel_queue (
    id bigint NOT NULL,
    event_id uuid NOT NULL,
    creative_id bigint NOT NULL,
    url text NOT NULL,
    queued_at timestamp with time zone DEFAULT now() NOT NULL,
    next_try timestamp with time zone DEFAULT now() NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    campaign_id bigint DEFAULT 0 NOT NULL,
    ad_group_id bigint DEFAULT 0 NOT NULL,
    placement text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    happened_at timestamp with time zone NOT NULL,
    taken_by text,
    error text,
    CONSTRAINT pixel_queue_tries_check CHECK ((tries >= 0))
);
CREATE SEQUENCE ads.pixel_queue_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1;
ALTER SEQUENCE ads.pixel_queue_id_seq OWNED BY ads.pixel_queue.id;
CREATE TABLE ads.placement_hours (
    hour timestamp with time zone NOT NULL,
    placement text NOT NULL COLLATE pg_catalog."C",
    outcome text NOT NULL COLLATE pg_catalog."C",
    requests bigint NOT NULL,
    CONSTRAINT placement_hours_requests_check CHECK ((requests >= 0))
)
WITH (fillfactor='70');
CREATE TABLE ads.placements (
    id text NOT NULL,
    name ads.name DEFAULT ''::text NOT NULL,
    width ads.pixels DEFAULT 0 NOT NULL,
    height ads.pixels DEFAULT 0 NOT NULL,
    types ads.creative_type[] DEFAULT '{}'::ads.creative_type[] NOT NULL,
    "select" ads.selection DEFAULT 'weight'::ads.selection NOT NULL,
    floor_micro ads.money DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    status ads.placement_status DEFAULT 'active'::ads.placement_status NOT NULL,
    CONSTRAINT placements_check CHECK ((((width)::integer = 0) = ((height)::integer = 0))),
    CONSTRAINT placements_id_check CHECK ((id ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'::text)),
    CONSTRAINT placements_types_check CHECK (ads.plain_list(types))
);
CREATE TABLE ads.request_summaries (
    id uuid NOT NULL,
    received_at timestamp with time zone NOT NULL
);
CREATE TABLE ads.scheduler_runs (
    task text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    instance text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    changed bigint,
    error text,
    attempts integer DEFAULT 1 NOT NULL,
    retry_at timestamp with time zone,
    CONSTRAINT scheduler_runs_check CHECK ((finished_at >= started_at))
);
CREATE TABLE ads.settings (
    only_row boolean DEFAULT true NOT NULL,
    currency text,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT settings_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT settings_only_row_check CHECK (only_row)
);
CREATE TABLE ads.timezones (
    name text NOT NULL
);
CREATE TABLE ads.variants (
    experiment_id ads.id NOT NULL,
    creative_id ads.id NOT NULL,
    ad_group_id ads.id NOT NULL,
    share double precision NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT variants_share_check CHECK (((share > (0)::double precision) AND (share <= (1)::double precision)))
);
ALTER TABLE ONLY ads.pixel_queue ALTER COLUMN id SET DEFAULT nextval('ads.pixel_queue_id_seq'::regclass);
ALTER TABLE ONLY ads.ad_group_placements ADD CONSTRAINT ad_group_placements_pkey PRIMARY KEY (ad_group_id, placement_id);
ALTER TABLE ONLY ads.ad_groups ADD CONSTRAINT ad_groups_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ads.advertiser_pauses ADD CONSTRAINT advertiser_pauses_pkey PRIMARY KEY (campaign_id);
ALTER TABLE ONLY ads.advertisers ADD CONSTRAINT advertisers_pkey PRIMARY KEY (name);
ALTER TABLE ONLY ads.audit_log ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ads.budget_pauses ADD CONSTRAINT budget_pauses_pkey PRIMARY KEY (campaign_id);
ALTER TABLE ONLY ads.campaign_books ADD CONSTRAINT campaign_books_pkey PRIMARY KEY (campaign_id);
ALTER TABLE ONLY ads.campaigns ADD CONSTRAINT campaigns_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ads.catalog_edits ADD CONSTRAINT catalog_edits_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ads.catalog_edits_swept ADD CONSTRAINT catalog_edits_swept_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY ads.creatives ADD CONSTRAINT creatives_id_ad_group_id_key UNIQUE (id, ad_group_id);
ALTER TABLE ONLY ads.creatives ADD CONSTRAINT creatives_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ads.daily_spend ADD CONSTRAINT daily_spend_pkey PRIMARY KEY (campaign_id, day, ad_group_id);
ALTER TABLE ONLY ads.dead_pixels ADD CONSTRAINT dead_pixels_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ads.erasures ADD CONSTRAINT erasures_pkey PRIMARY KEY (digest, kind);
ALTER TABLE ONLY ads.event_claims ADD CONSTRAINT event_claims_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ads.event_hours ADD CONSTRAINT event_hours_pkey PRIMARY KEY (campaign_id, hour, ad_group_id, creative_id, type, placement, country, device, invalid);
ALTER TABLE ONLY ads.experiment_looks ADD CONSTRAINT experiment_looks_pkey PRIMARY KEY (experiment_id, creative_id);
ALTER TABLE ONLY ads.experiment_trials ADD CONSTRAINT experiment_trials_pkey PRIMARY KEY (experiment_id, session_id);
ALTER TABLE ONLY ads.experiments ADD CONSTRAINT experiments_id_ad_group_id_key UNIQUE (id, ad_group_id);
ALTER TABLE ONLY ads.experiments ADD CONSTRAINT experiments_one_running EXCLUDE USING btree (ad_group_id WITH =) WHERE ((status = 'running'::ads.experiment_status)) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY ads.experiments ADD CONSTRAINT experiments_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ads.migrations ADD CONSTRAINT migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY ads.pixel_days ADD CONSTRAINT pixel_days_pkey PRIMARY KEY (day, creative_id);
ALTER TABLE ONLY ads.pixel_queue ADD CONSTRAINT pixel_queue_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ads.placement_hours ADD CONSTRAINT placement_hours_pkey PRIMARY KEY (hour, placement, outcome);
ALTER TABLE ONLY ads.placements ADD CONSTRAINT placements_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ads.request_summaries ADD CONSTRAINT request_summaries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ads.scheduler_runs ADD CONSTRAINT scheduler_runs_pkey PRIMARY KEY (task, due_at);
ALTER TABLE ONLY ads.settings ADD CONSTRAINT settings_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY ads.timezones ADD CONSTRAINT timezones_pkey PRIMARY KEY (name);
ALTER TABLE ONLY ads.variants ADD CONSTRAINT variants_pkey PRIMARY KEY (experiment_id, creative_id);
CREATE INDEX ad_group_placements_placement ON ads.ad_group_placements USING btree (placement_id);
CREATE INDEX ad_groups_campaign ON ads.ad_groups USING btree (campaign_id);
CREATE INDEX audit_log_row ON ads.audit_log USING btree (table_name, row_id, id);
CREATE INDEX campaigns_advertiser ON ads.campaigns USING btree (advertiser);
CREATE INDEX creatives_ad_group ON ads.creatives USING btree (ad_group_id);
CREATE INDEX creatives_pixel ON ads.creatives USING btree (id) WHERE (impression_url IS NOT NULL);
CREATE INDEX creatives_policy ON ads.creatives USING btree (policy, id) WHERE (type = 'html'::ads.creative_type);
CREATE INDEX dead_pixels_died ON ads.dead_pixels USING btree (died_at);
CREATE INDEX experiments_ad_group ON ads.experiments USING btree (ad_group_id);
CREATE INDEX idx_ad_events_campaign_creative_type ON ONLY ads.ad_events USING btree (campaign_id, creative_id, type);
CREATE INDEX idx_ad_events_campaign_time ON ONLY ads.ad_events USING btree (campaign_id, "timestamp" DESC);
CREATE INDEX idx_ad_events_campaign_type_time ON ONLY ads.ad_events USING btree (campaign_id, type, "timestamp" DESC);
CREATE INDEX idx_ad_events_session_group_type_time ON ONLY ads.ad_events USING btree (session_id, ad_group_id, type, "timestamp" DESC);
CREATE INDEX pixel_queue_next ON ads.pixel_queue USING btree (next_try, id);
CREATE UNIQUE INDEX placements_hash ON ads.placements USING btree (ads.fnv1a32(id));
CREATE INDEX request_summaries_age ON ads.request_summaries USING brin (received_at);
CREATE INDEX variants_creative ON ads.variants USING btree (creative_id);
CREATE TRIGGER archived BEFORE INSERT OR UPDATE ON ads.ad_groups FOR EACH ROW WHEN (((new.status = 'archived'::ads.status) IS DISTINCT FROM (new.archived_at IS NOT NULL))) EXECUTE FUNCTION ads.note_archived();
CREATE TRIGGER archived BEFORE INSERT OR UPDATE ON ads.campaigns FOR EACH ROW WHEN (((new.status = 'archived'::ads.status) IS DISTINCT FROM (new.archived_at IS NOT NULL))) EXECUTE FUNCTION ads.note_archived();
CREATE TRIGGER archived BEFORE INSERT OR UPDATE ON ads.creatives FOR EACH ROW WHEN (((new.status = 'archived'::ads.status) IS DISTINCT FROM (new.archived_at IS NOT NULL))) EXECUTE FUNCTION ads.note_archived();
CREATE TRIGGER audit AFTER DELETE OR UPDATE ON ads.ad_group_placements FOR EACH ROW EXECUTE FUNCTION ads.audit('ad_group_id', 'placement_id');
CREATE TRIGGER audit AFTER DELETE OR UPDATE ON ads.ad_groups FOR EACH ROW EXECUTE FUNCTION ads.audit('id');
CREATE TRIGGER audit AFTER DELETE OR UPDATE ON ads.advertisers FOR EACH ROW EXECUTE FUNCTION ads.audit('name');
CREATE TRIGGER audit AFTER DELETE OR UPDATE ON ads.campaigns FOR EACH ROW EXECUTE FUNCTION ads.audit('id');
CREATE TRIGGER audit AFTER DELETE OR UPDATE ON ads.creatives FOR EACH ROW EXECUTE FUNCTION ads.audit('id');
CREATE TRIGGER audit AFTER DELETE OR UPDATE ON ads.experiments FOR EACH ROW EXECUTE FUNCTION ads.audit('id');
CREATE TRIGGER audit AFTER DELETE OR UPDATE ON ads.placements FOR EACH ROW EXECUTE FUNCTION ads.audit('id');
CREATE TRIGGER audit AFTER UPDATE ON ads.settings FOR EACH ROW EXECUTE FUNCTION ads.audit('only_row');
CREATE TRIGGER audit AFTER DELETE OR UPDATE ON ads.variants FOR EACH ROW EXECUTE FUNCTION ads.audit('experiment_id', 'creative_id');
CREATE TRIGGER audit_insert AFTER INSERT ON ads.ad_group_placements REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.audit_inserts('ad_group_id', 'placement_id');
CREATE TRIGGER audit_insert AFTER INSERT ON ads.ad_groups REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.audit_inserts('id');
CREATE TRIGGER audit_insert AFTER INSERT ON ads.advertisers REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.audit_inserts('name');
CREATE TRIGGER audit_insert AFTER INSERT ON ads.campaigns REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.audit_inserts('id');
CREATE TRIGGER audit_insert AFTER INSERT ON ads.creatives REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.audit_inserts('id');
CREATE TRIGGER audit_insert AFTER INSERT ON ads.experiments REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.audit_inserts('id');
CREATE TRIGGER audit_insert AFTER INSERT ON ads.placements REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.audit_inserts('id');
CREATE TRIGGER audit_insert AFTER INSERT ON ads.variants REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.audit_inserts('experiment_id', 'creative_id');
CREATE TRIGGER currency BEFORE UPDATE ON ads.settings FOR EACH ROW WHEN (((old.currency IS NOT NULL) AND (new.currency IS DISTINCT FROM old.currency))) EXECUTE FUNCTION ads.fix_currency();
CREATE TRIGGER edit_delete AFTER DELETE ON ads.ad_group_placements REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_delete AFTER DELETE ON ads.ad_groups REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_delete AFTER DELETE ON ads.advertisers REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_delete AFTER DELETE ON ads.campaigns REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_delete AFTER DELETE ON ads.creatives REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_delete AFTER DELETE ON ads.experiments REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_delete AFTER DELETE ON ads.placements REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_delete AFTER DELETE ON ads.variants REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_insert AFTER INSERT ON ads.ad_group_placements REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_insert AFTER INSERT ON ads.ad_groups REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_insert AFTER INSERT ON ads.advertisers REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_insert AFTER INSERT ON ads.campaigns REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_insert AFTER INSERT ON ads.creatives REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_insert AFTER INSERT ON ads.experiments REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_insert AFTER INSERT ON ads.placements REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_insert AFTER INSERT ON ads.variants REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_truncate AFTER TRUNCATE ON ads.ad_group_placements FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_truncate AFTER TRUNCATE ON ads.ad_groups FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_truncate AFTER TRUNCATE ON ads.advertisers FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_truncate AFTER TRUNCATE ON ads.campaigns FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_truncate AFTER TRUNCATE ON ads.creatives FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_truncate AFTER TRUNCATE ON ads.experiments FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_truncate AFTER TRUNCATE ON ads.placements FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_truncate AFTER TRUNCATE ON ads.variants FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_update AFTER UPDATE ON ads.ad_group_placements REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_update AFTER UPDATE ON ads.ad_groups REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_update AFTER UPDATE ON ads.advertisers REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_update AFTER UPDATE ON ads.campaigns REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_update AFTER UPDATE ON ads.creatives REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_update AFTER UPDATE ON ads.experiments REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_update AFTER UPDATE ON ads.placements REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_update AFTER UPDATE ON ads.settings REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE TRIGGER edit_update AFTER UPDATE ON ads.variants REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION ads.note_edit();
CREATE CONSTRAINT TRIGGER flight_in AFTER INSERT OR UPDATE OF campaign_id, starts_at, ends_at, exclusive ON ads.ad_groups DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.starts_at IS NOT NULL) OR (new.ends_at IS NOT NULL) OR (new.exclusive = 'advertiser'::ads.exclusive))) EXECUTE FUNCTION ads.check_group_flight();
CREATE CONSTRAINT TRIGGER flight_of AFTER UPDATE OF starts_at, ends_at, advertiser ON ads.campaigns DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ads.check_campaign_flight();
CREATE TRIGGER forget_books AFTER DELETE ON ads.campaigns FOR EACH ROW EXECUTE FUNCTION ads.forget_pause();
CREATE TRIGGER forget_pause AFTER UPDATE OF status ON ads.campaigns FOR EACH ROW WHEN ((old.status IS DISTINCT FROM new.status)) EXECUTE FUNCTION ads.forget_pause();
CREATE TRIGGER policy BEFORE INSERT OR UPDATE ON ads.creatives FOR EACH ROW WHEN (((new.type = 'html'::ads.creative_type) OR (new.policy IS NOT NULL))) EXECUTE FUNCTION ads.note_policy();
CREATE TRIGGER touch BEFORE UPDATE ON ads.ad_group_placements FOR EACH ROW EXECUTE FUNCTION ads.touch();
CREATE TRIGGER touch BEFORE UPDATE ON ads.ad_groups FOR EACH ROW EXECUTE FUNCTION ads.touch();
CREATE TRIGGER touch BEFORE UPDATE ON ads.advertisers FOR EACH ROW EXECUTE FUNCTION ads.touch();
CREATE TRIGGER touch BEFORE UPDATE ON ads.campaigns FOR EACH ROW EXECUTE FUNCTION ads.touch();
CREATE TRIGGER touch BEFORE UPDATE ON ads.creatives FOR EACH ROW EXECUTE FUNCTION ads.touch();
CREATE TRIGGER touch BEFORE UPDATE ON ads.experiments FOR EACH ROW EXECUTE FUNCTION ads.touch();
CREATE TRIGGER touch BEFORE UPDATE ON ads.placements FOR EACH ROW EXECUTE FUNCTION ads.touch();
CREATE TRIGGER touch BEFORE UPDATE ON ads.settings FOR EACH ROW EXECUTE FUNCTION ads.touch();
CREATE TRIGGER touch BEFORE UPDATE ON ads.variants FOR EACH ROW EXECUTE FUNCTION ads.touch();
CREATE CONSTRAINT TRIGGER variants_whole AFTER INSERT ON ads.experiments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ads.check_variants();
CREATE CONSTRAINT TRIGGER variants_whole AFTER INSERT OR DELETE OR UPDATE ON ads.variants DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ads.check_variants();
ALTER TABLE ONLY ads.ad_group_placements ADD CONSTRAINT ad_group_placements_ad_group_id_fkey FOREIGN KEY (ad_group_id) REFERENCES ads.ad_groups(id) ON DELETE CASCADE;
ALTER TABLE ONLY ads.ad_group_placements ADD CONSTRAINT ad_group_placements_placement_id_fkey FOREIGN KEY (placement_id) REFERENCES ads.placements(id) ON UPDATE CASCADE;
ALTER TABLE ONLY ads.ad_groups ADD CONSTRAINT ad_groups_campaign_id_fkey FOREIGN KEY (campaign_id) REFERENCES ads.campaigns(id);
ALTER TABLE ONLY ads.campaigns ADD CONSTRAINT campaigns_advertiser_fkey FOREIGN KEY (advertiser) REFERENCES ads.advertisers(name) ON UPDATE CASCADE;
ALTER TABLE ONLY ads.campaigns ADD CONSTRAINT campaigns_timezone_fkey FOREIGN KEY (timezone) REFERENCES ads.timezones(name);
ALTER TABLE ONLY ads.creatives ADD CONSTRAINT creatives_ad_group_id_fkey FOREIGN KEY (ad_group_id) REFERENCES ads.ad_groups(id);
ALTER TABLE ONLY ads.experiments ADD CONSTRAINT experiments_ad_group_id_fkey FOREIGN KEY (ad_group_id) REFERENCES ads.ad_groups(id);
ALTER TABLE ONLY ads.experiments ADD CONSTRAINT experiments_winner FOREIGN KEY (id, winner) REFERENCES ads.variants(experiment_id, creative_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY ads.variants ADD CONSTRAINT variants_creative_id_ad_group_id_fkey FOREIGN KEY (creative_id, ad_group_id) REFERENCES ads.creatives(id, ad_group_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY ads.variants ADD CONSTRAINT variants_experiment_id_ad_group_id_fkey FOREIGN KEY (experiment_id, ad_group_id) REFERENCES ads.experiments(id, ad_group_id) ON UPDATE CASCADE ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
GRANT USAGE ON SCHEMA ads TO ads_edge;
GRANT USAGE ON SCHEMA ads TO ads_admin;
GRANT USAGE ON SCHEMA ads TO ads_report;
REVOKE ALL ON FUNCTION ads.activate_campaigns() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.activate_campaigns() TO ads_admin;
REVOKE ALL ON FUNCTION ads.ad_group_delivery() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.ad_group_delivery() TO ads_admin;
GRANT ALL ON FUNCTION ads.ad_group_delivery() TO ads_report;
REVOKE ALL ON FUNCTION ads.audit() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.audit() TO ads_admin;
REVOKE ALL ON FUNCTION ads.audit_inserts() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.audit_inserts() TO ads_admin;
REVOKE ALL ON FUNCTION ads.books(since date) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.books(since date) TO ads_edge;
GRANT ALL ON FUNCTION ads.books(since date) TO ads_admin;
REVOKE ALL ON FUNCTION ads.campaign_delivery() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.campaign_delivery() TO ads_admin;
GRANT ALL ON FUNCTION ads.campaign_delivery() TO ads_report;
REVOKE ALL ON FUNCTION ads.campaign_document(campaign bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.campaign_document(campaign bigint) TO ads_admin;
GRANT ALL ON FUNCTION ads.campaign_document(campaign bigint) TO ads_report;
REVOKE ALL ON FUNCTION ads.catalog() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.catalog() TO ads_edge;
GRANT ALL ON FUNCTION ads.catalog() TO ads_admin;
REVOKE ALL ON FUNCTION ads.catalog_version() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.catalog_version() TO ads_edge;
GRANT ALL ON FUNCTION ads.catalog_version() TO ads_admin;
REVOKE ALL ON FUNCTION ads.cents(micro bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.cents(micro bigint) TO ads_admin;
GRANT ALL ON FUNCTION ads.cents(micro bigint) TO ads_report;
REVOKE ALL ON FUNCTION ads.check_campaign_flight() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.check_campaign_flight() TO ads_admin;
REVOKE ALL ON FUNCTION ads.each_matches(list text[], pattern text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.each_matches(list text[], pattern text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.each_sized(list text[], low integer, high integer) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.each_sized(list text[], low integer, high integer) TO ads_admin;
REVOKE ALL ON FUNCTION ads.plain_list(list anyarray) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.plain_list(list anyarray) TO ads_admin;
REVOKE ALL ON FUNCTION ads.valid_caps(caps jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.valid_caps(caps jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.valid_keys(keys jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.valid_keys(keys jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.valid_schedule(schedule jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.valid_schedule(schedule jsonb) TO ads_admin;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.ad_groups TO ads_admin;
GRANT SELECT ON TABLE ads.ad_groups TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.campaigns TO ads_admin;
GRANT SELECT ON TABLE ads.campaigns TO ads_report;
REVOKE ALL ON FUNCTION ads.check_flight(g ads.ad_groups, c ads.campaigns) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.check_flight(g ads.ad_groups, c ads.campaigns) TO ads_admin;
REVOKE ALL ON FUNCTION ads.check_group_flight() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.check_group_flight() TO ads_admin;
REVOKE ALL ON FUNCTION ads.check_object(thing jsonb, path text, keys text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.check_object(thing jsonb, path text, keys text[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.check_variants() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.check_variants() TO ads_admin;
REVOKE ALL ON FUNCTION ads.claim_turn(in_task text, in_instance text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.claim_turn(in_task text, in_instance text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.complete_campaigns() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.complete_campaigns() TO ads_admin;
REVOKE ALL ON FUNCTION ads.day_start(day date, zone text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.day_start(day date, zone text) TO ads_admin;
GRANT ALL ON FUNCTION ads.day_start(day date, zone text) TO ads_report;
REVOKE ALL ON FUNCTION ads.day_target(c ads.campaigns, day date) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.day_target(c ads.campaigns, day date) TO ads_admin;
REVOKE ALL ON FUNCTION ads.do_turn(in_task text, due timestamp with time zone, keep_days integer) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.do_turn(in_task text, due timestamp with time zone, keep_days integer) TO ads_admin;
REVOKE ALL ON FUNCTION ads.document_head() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.document_head() TO ads_admin;
GRANT ALL ON FUNCTION ads.document_head() TO ads_report;
REVOKE ALL ON FUNCTION ads.due_turn(in_task text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.due_turn(in_task text) TO ads_admin;
GRANT ALL ON FUNCTION ads.due_turn(in_task text) TO ads_report;
REVOKE ALL ON FUNCTION ads.elapsed(since timestamp with time zone, until timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.elapsed(since timestamp with time zone, until timestamp with time zone) TO ads_admin;
GRANT ALL ON FUNCTION ads.elapsed(since timestamp with time zone, until timestamp with time zone) TO ads_report;
REVOKE ALL ON FUNCTION ads.end_experiment(experiment bigint, chosen bigint, why jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.end_experiment(experiment bigint, chosen bigint, why jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.ensure_partitions(months_ahead integer) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.ensure_partitions(months_ahead integer) TO ads_edge;
GRANT ALL ON FUNCTION ads.ensure_partitions(months_ahead integer) TO ads_admin;
REVOKE ALL ON FUNCTION ads.erase_person(session text, users text[], linked text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.erase_person(session text, users text[], linked text[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.experiment_arms(experiment bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.experiment_arms(experiment bigint) TO ads_admin;
GRANT ALL ON FUNCTION ads.experiment_arms(experiment bigint) TO ads_report;
REVOKE ALL ON FUNCTION ads.export_person(session text, users text[], linked text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.export_person(session text, users text[], linked text[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.fail_turn(in_task text, due timestamp with time zone, in_instance text, in_error text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.fail_turn(in_task text, due timestamp with time zone, in_instance text, in_error text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.finish_turn(in_task text, due timestamp with time zone, in_changed bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.finish_turn(in_task text, due timestamp with time zone, in_changed bigint) TO ads_admin;
REVOKE ALL ON FUNCTION ads.first_id(issued timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.first_id(issued timestamp with time zone) TO ads_admin;
REVOKE ALL ON FUNCTION ads.fix_currency() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.fix_currency() TO ads_admin;
REVOKE ALL ON FUNCTION ads.fnv1a32(slug text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.fnv1a32(slug text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.folded_texts(thing jsonb, capitals boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.folded_texts(thing jsonb, capitals boolean) TO ads_admin;
REVOKE ALL ON FUNCTION ads.forecast(campaign bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.forecast(campaign bigint) TO ads_admin;
GRANT ALL ON FUNCTION ads.forecast(campaign bigint) TO ads_report;
REVOKE ALL ON FUNCTION ads.forget_pause() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.forget_pause() TO ads_admin;
REVOKE ALL ON FUNCTION ads.ingest(in_id uuid[], in_type smallint[], in_at bigint[], in_issued bigint[], in_serve bigint[], in_campaign bigint[], in_ad_group bigint[], in_creative bigint[], in_experiment bigint[], in_price bigint[], in_node bigint[], in_device smallint[], in_invalid smallint[], in_consent boolean[], in_placement text[], in_country text[], in_session text[], in_user text[], in_metadata text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.ingest(in_id uuid[], in_type smallint[], in_at bigint[], in_issued bigint[], in_serve bigint[], in_campaign bigint[], in_ad_group bigint[], in_creative bigint[], in_experiment bigint[], in_price bigint[], in_node bigint[], in_device smallint[], in_invalid smallint[], in_consent boolean[], in_placement text[], in_country text[], in_session text[], in_user text[], in_metadata text[]) TO ads_edge;
GRANT ALL ON FUNCTION ads.ingest(in_id uuid[], in_type smallint[], in_at bigint[], in_issued bigint[], in_serve bigint[], in_campaign bigint[], in_ad_group bigint[], in_creative bigint[], in_experiment bigint[], in_price bigint[], in_node bigint[], in_device smallint[], in_invalid smallint[], in_consent boolean[], in_placement text[], in_country text[], in_session text[], in_user text[], in_metadata text[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.list(thing jsonb, key text, path text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.list(thing jsonb, key text, path text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.make_partition(parent text, month timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.make_partition(parent text, month timestamp with time zone) TO ads_admin;
REVOKE ALL ON FUNCTION ads.mark_erased(session text, users text[], linked text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.mark_erased(session text, users text[], linked text[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.member(thing jsonb, key text, path text, keys text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.member(thing jsonb, key text, path text, keys text[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.micro(cents jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.micro(cents jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.moment_text(moment timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.moment_text(moment timestamp with time zone) TO ads_admin;
GRANT ALL ON FUNCTION ads.moment_text(moment timestamp with time zone) TO ads_report;
REVOKE ALL ON FUNCTION ads.note_archived() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.note_archived() TO ads_admin;
REVOKE ALL ON FUNCTION ads.note_edit() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.note_edit() TO ads_admin;
REVOKE ALL ON FUNCTION ads.note_look(experiment bigint, creative bigint, seen double precision) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.note_look(experiment bigint, creative bigint, seen double precision) TO ads_admin;
REVOKE ALL ON FUNCTION ads.note_policy() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.note_policy() TO ads_admin;
REVOKE ALL ON FUNCTION ads.note_privacy(in_action text, details jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.note_privacy(in_action text, details jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.now() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.now() TO ads_admin;
GRANT ALL ON FUNCTION ads.now() TO ads_report;
REVOKE ALL ON FUNCTION ads.number(thing jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.number(thing jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.pause_over_budget() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.pause_over_budget() TO ads_admin;
REVOKE ALL ON FUNCTION ads.period(first text, last text, zone text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.period(first text, last text, zone text) TO ads_admin;
GRANT ALL ON FUNCTION ads.period(first text, last text, zone text) TO ads_report;
REVOKE ALL ON FUNCTION ads.period_bound(word text, zone text, is_end boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.period_bound(word text, zone text, is_end boolean) TO ads_admin;
GRANT ALL ON FUNCTION ads.period_bound(word text, zone text, is_end boolean) TO ads_report;
REVOKE ALL ON FUNCTION ads.period_seconds(period text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.period_seconds(period text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.pixel_status() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.pixel_status() TO ads_admin;
GRANT ALL ON FUNCTION ads.pixel_status() TO ads_report;
REVOKE ALL ON FUNCTION ads.prune_events(keep_days integer) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.prune_events(keep_days integer) TO ads_admin;
REVOKE ALL ON FUNCTION ads.prune_months(keep_days integer) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.prune_months(keep_days integer) TO ads_admin;
REVOKE ALL ON FUNCTION ads.prune_persons(keep_days integer) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.prune_persons(keep_days integer) TO ads_admin;
REVOKE ALL ON FUNCTION ads.put_ad_groups(ids bigint[], campaigns bigint[], documents jsonb[], paths text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.put_ad_groups(ids bigint[], campaigns bigint[], documents jsonb[], paths text[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.put_below(campaigns jsonb[], paths text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.put_below(campaigns jsonb[], paths text[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.put_campaign(document jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.put_campaign(document jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.put_campaign_rows(documents jsonb[], paths text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.put_campaign_rows(documents jsonb[], paths text[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.put_campaigns(documents jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.put_campaigns(documents jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.put_creatives(ids bigint[], groups bigint[], documents jsonb[], paths text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.put_creatives(ids bigint[], groups bigint[], documents jsonb[], paths text[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.put_experiment(document jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.put_experiment(document jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.put_placement(document jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.put_placement(document jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.put_targets(groups bigint[], documents jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.put_targets(groups bigint[], documents jsonb[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.read_caps(thing jsonb, path text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.read_caps(thing jsonb, path text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.read_goal(pacing jsonb, path text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.read_goal(pacing jsonb, path text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.read_ids(documents jsonb[], paths text[], name text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.read_ids(documents jsonb[], paths text[], name text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.read_keys(thing jsonb, path text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.read_keys(thing jsonb, path text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.read_moment(thing jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.read_moment(thing jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.read_schedule(thing jsonb, path text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.read_schedule(thing jsonb, path text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.recent_spend(campaign bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.recent_spend(campaign bigint) TO ads_admin;
GRANT ALL ON FUNCTION ads.recent_spend(campaign bigint) TO ads_report;
REVOKE ALL ON FUNCTION ads.refuse(path text, complaint text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.refuse(path text, complaint text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.report(by text, since timestamp with time zone, until timestamp with time zone, campaign bigint, zone text, advertiser text, placement text, shift interval) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.report(by text, since timestamp with time zone, until timestamp with time zone, campaign bigint, zone text, advertiser text, placement text, shift interval) TO ads_admin;
GRANT ALL ON FUNCTION ads.report(by text, since timestamp with time zone, until timestamp with time zone, campaign bigint, zone text, advertiser text, placement text, shift interval) TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.event_hours TO ads_admin;
GRANT SELECT ON TABLE ads.event_hours TO ads_report;
REVOKE ALL ON FUNCTION ads.report_key(dimension text, h ads.event_hours, advertiser text, at timestamp without time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.report_key(dimension text, h ads.event_hours, advertiser text, at timestamp without time zone) TO ads_admin;
GRANT ALL ON FUNCTION ads.report_key(dimension text, h ads.event_hours, advertiser text, at timestamp without time zone) TO ads_report;
REVOKE ALL ON FUNCTION ads.report_name(dimension text, key text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.report_name(dimension text, key text) TO ads_admin;
GRANT ALL ON FUNCTION ads.report_name(dimension text, key text) TO ads_report;
REVOKE ALL ON FUNCTION ads.reset_days(due timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.reset_days(due timestamp with time zone) TO ads_admin;
REVOKE ALL ON FUNCTION ads.revive_pixels(creative bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.revive_pixels(creative bigint) TO ads_admin;
REVOKE ALL ON FUNCTION ads.scheduler_status() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.scheduler_status() TO ads_admin;
GRANT ALL ON FUNCTION ads.scheduler_status() TO ads_report;
REVOKE ALL ON FUNCTION ads.scheduler_tasks() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.scheduler_tasks() TO ads_admin;
GRANT ALL ON FUNCTION ads.scheduler_tasks() TO ads_report;
REVOKE ALL ON FUNCTION ads.sessions_of(users text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.sessions_of(users text[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.settle_pixels(taker text, in_id bigint[], in_try integer[], in_outcome text[], in_seconds double precision[], in_error text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.settle_pixels(taker text, in_id bigint[], in_try integer[], in_outcome text[], in_seconds double precision[], in_error text[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.spent(c ads.campaigns, before date) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.spent(c ads.campaigns, before date) TO ads_admin;
GRANT ALL ON FUNCTION ads.spent(c ads.campaigns, before date) TO ads_report;
REVOKE ALL ON FUNCTION ads.spent_floor(campaign bigint, given bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.spent_floor(campaign bigint, given bigint) TO ads_admin;
REVOKE ALL ON FUNCTION ads.stale_books() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.stale_books() TO ads_admin;
GRANT ALL ON FUNCTION ads.stale_books() TO ads_report;
REVOKE ALL ON FUNCTION ads.start_experiment(experiment bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.start_experiment(experiment bigint) TO ads_admin;
REVOKE ALL ON FUNCTION ads.store_events(in_id uuid[], in_type smallint[], in_at bigint[], in_issued bigint[], in_serve bigint[], in_campaign bigint[], in_ad_group bigint[], in_creative bigint[], in_experiment bigint[], in_price bigint[], in_node bigint[], in_device smallint[], in_invalid smallint[], in_consent boolean[], in_placement text[], in_country text[], in_session text[], in_user text[], in_metadata text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION ads.stored(ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.stored(ids uuid[]) TO ads_edge;
GRANT ALL ON FUNCTION ads.stored(ids uuid[]) TO ads_admin;
REVOKE ALL ON FUNCTION ads.string(thing jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.string(thing jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.take_pixels(taker text, most integer, lease interval) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.take_pixels(taker text, most integer, lease interval) TO ads_admin;
REVOKE ALL ON FUNCTION ads.texts(thing jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.texts(thing jsonb) TO ads_admin;
REVOKE ALL ON FUNCTION ads.touch() FROM PUBLIC;
GRANT ALL ON FUNCTION ads.touch() TO ads_admin;
REVOKE ALL ON FUNCTION ads.turn_open(in_task text, due timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.turn_open(in_task text, due timestamp with time zone) TO ads_admin;
GRANT ALL ON FUNCTION ads.turn_open(in_task text, due timestamp with time zone) TO ads_report;
REVOKE ALL ON FUNCTION ads.valid_content(content jsonb, type ads.creative_type) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.valid_content(content jsonb, type ads.creative_type) TO ads_admin;
REVOKE ALL ON FUNCTION ads.valid_origin(url text, scheme text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.valid_origin(url text, scheme text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.valid_target(url text, scheme text) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.valid_target(url text, scheme text) TO ads_admin;
REVOKE ALL ON FUNCTION ads.whole(thing jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ads.whole(thing jsonb) TO ads_admin;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.ad_events TO ads_admin;
GRANT SELECT ON TABLE ads.ad_events TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.ad_group_placements TO ads_admin;
GRANT SELECT ON TABLE ads.ad_group_placements TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.advertiser_pauses TO ads_admin;
GRANT SELECT ON TABLE ads.advertiser_pauses TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.advertisers TO ads_admin;
GRANT SELECT ON TABLE ads.advertisers TO ads_report;
GRANT SELECT,INSERT ON TABLE ads.audit_log TO ads_admin;
GRANT SELECT ON TABLE ads.audit_log TO ads_report;
GRANT USAGE ON SEQUENCE ads.audit_log_id_seq TO ads_admin;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.budget_pauses TO ads_admin;
GRANT SELECT ON TABLE ads.budget_pauses TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.campaign_books TO ads_admin;
GRANT SELECT ON TABLE ads.campaign_books TO ads_report;
GRANT SELECT ON TABLE ads.catalog_edits TO ads_admin;
GRANT SELECT ON TABLE ads.catalog_edits TO ads_report;
GRANT SELECT ON TABLE ads.catalog_edits_swept TO ads_admin;
GRANT SELECT ON TABLE ads.catalog_edits_swept TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.creatives TO ads_admin;
GRANT SELECT ON TABLE ads.creatives TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.daily_spend TO ads_admin;
GRANT SELECT ON TABLE ads.daily_spend TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.dead_pixels TO ads_admin;
GRANT SELECT ON TABLE ads.dead_pixels TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.erasures TO ads_admin;
GRANT SELECT ON TABLE ads.erasures TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.event_claims TO ads_admin;
GRANT SELECT ON TABLE ads.event_claims TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.experiment_looks TO ads_admin;
GRANT SELECT ON TABLE ads.experiment_looks TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.experiment_trials TO ads_admin;
GRANT SELECT ON TABLE ads.experiment_trials TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.experiments TO ads_admin;
GRANT SELECT ON TABLE ads.experiments TO ads_report;
GRANT SELECT ON TABLE ads.migrations TO ads_admin;
GRANT SELECT ON TABLE ads.migrations TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.pixel_days TO ads_admin;
GRANT SELECT ON TABLE ads.pixel_days TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.pixel_queue TO ads_admin;
GRANT SELECT ON TABLE ads.pixel_queue TO ads_report;
GRANT USAGE ON SEQUENCE ads.pixel_queue_id_seq TO ads_admin;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.placement_hours TO ads_admin;
GRANT SELECT ON TABLE ads.placement_hours TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.placements TO ads_admin;
GRANT SELECT ON TABLE ads.placements TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.request_summaries TO ads_admin;
GRANT SELECT ON TABLE ads.request_summaries TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.scheduler_runs TO ads_admin;
GRANT SELECT ON TABLE ads.scheduler_runs TO ads_report;
GRANT SELECT,UPDATE ON TABLE ads.settings TO ads_admin;
GRANT SELECT ON TABLE ads.settings TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.timezones TO ads_admin;
GRANT SELECT ON TABLE ads.timezones TO ads_report;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ads.variants TO ads_admin;
GRANT SELECT ON TABLE ads.variants TO ads_report;
INSERT INTO ads.migrations (version, name, checksum, seconds) VALUES
    (1, 'campaigns', 'bba72015c927df6b0abc86601e1b8a8dee9352dd61bf7685b0247ed28b0ace99', 0),
    (2, 'events', '9a6d312481c1b6f02cfc2dca4dcb50677b8c29c87d0512f6fc1b4af4457ac75e', 0),
    (3, 'ingest', '4c5ba515a469ad7ca8df781b28dc409e874984ef9e0f4437430cff27d1dfada3', 0),
    (4, 'catalog', '84f982c79182b366107894e162163983fa13d80d28d71fd7222a1db8acbbf9a5', 0),
    (5, 'event_indexes', 'bc794829faf6ce05634ca8c6277137d82e4393ed9238f2b957d6c48fb49136e5', 0),
    (6, 'roles', 'a05809e22550ec5171b2c7c0d05e17eba5e60926a4e66c3137327fc78c0ae1fe', 0),
    (7, 'invalid_reasons', '5636cceb83fce49fb5c009e133e5c943745bd4fdf246ae16dd791eebe1043c80', 0),
    (8, 'management', 'a6a2f741beabb433b2d3cc8a168c34e1004140faeddbbea2821336daf5cd19e7', 0),
    (9, 'scheduler', 'cb0d28a27205e6252351c28904427390af8b674dd901cc2bf878d496dde205d7', 0),
    (10, 'pixels', '1a250ecce43a73e3733bf364d9ad48df0b4ce3a32c422fd25dead0053ea390bd', 0),
    (11, 'privacy', '7eb71f9f333264e14b05d4546ba6245b4f900d0ee35b7b2233bc0d6a2aa70515', 0),
    (12, 'bulk', 'c771eceb3f3e356f4224c08704e069d11d3038b0adae7b0ef72b40d3940a0f92', 0),
    (13, 'books', '8e6324a28f60d2551a1b0361064ff30697a0fa58018e0424a76c823322b41238', 0),
    (14, 'goals', '5511050480fc4deb2dac7feb7dfc6ee981e5ca6e2029c7f9423ad5acc61f6544', 0),
    (15, 'erasures', '3ad991e3c2c2df9990767f60f41be0bd9913ce03c2f3c68e40b8ef591b6b5e5c', 0),
    (16, 'mismatch', 'd08cad7ab0ff09d1f9affbfaf21c5cd0a45c696597c75a756777fb4455bc544c', 0),
    (17, 'settings', 'bb5b92dd0e8161520ae6e20275b86c71c5c22ed3bbfbd0ff25488038310fcb6c', 0),
    (18, 'reports', 'aa197eb07f6ba4508f9d14b575b12cd2558cb079ea6128f1023a7125422b19de', 0),
    (19, 'requests', '005d7773bfd80d37276f93b071b02ccff87fad455362fafc6c1d5003e01cce36', 0);
INSERT INTO ads.catalog_edits_swept DEFAULT VALUES;
INSERT INTO ads.settings DEFAULT VALUES;
INSERT INTO ads.timezones VALUES ('UTC'), ('Europe/Berlin');
