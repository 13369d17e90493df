-- replaces migrations 1 to 19
--
-- Types that several tables share.

-- The closed lists, in the order of core/types.hpp.
CREATE TYPE ads.status            AS ENUM ('draft', 'scheduled', 'active', 'paused', 'completed', 'archived');
CREATE TYPE ads.priority          AS ENUM ('sponsorship', 'standard', 'remnant', 'house');
CREATE TYPE ads.price_model       AS ENUM ('cpm', 'cpc', 'cpa', 'vcpm', 'flat');
CREATE TYPE ads.budget_type       AS ENUM ('daily', 'lifetime');
CREATE TYPE ads.strategy          AS ENUM ('probabilistic', 'asap', 'even', 'pid', 'adaptive');
CREATE TYPE ads.cap_on            AS ENUM ('serve', 'impression');
CREATE TYPE ads.goal_on           AS ENUM ('impressions', 'clicks');
CREATE TYPE ads.device            AS ENUM ('desktop', 'mobile', 'tablet', 'tv', 'bot');
CREATE TYPE ads.creative_type     AS ENUM ('image', 'html', 'native');
CREATE TYPE ads.placement_status  AS ENUM ('active', 'paused');
CREATE TYPE ads.selection         AS ENUM ('weight', 'price');
CREATE TYPE ads.exclusive         AS ENUM ('none', 'advertiser', 'category');
CREATE TYPE ads.metric            AS ENUM ('ctr', 'conversion');
CREATE TYPE ads.allocation        AS ENUM ('fixed');
CREATE TYPE ads.experiment_status AS ENUM ('draft', 'running', 'completed');
CREATE TYPE ads.event_type        AS ENUM ('serve', 'impression', 'viewable', 'click', 'conversion');
CREATE TYPE ads.invalid_reason    AS ENUM (
    'ignored', 'late', 'over_budget', 'bot', 'prefetch', 'network', 'user_agent', 'too_fast', 'no_impression',
    'rapid_fire', 'rate_limit', 'mismatch');

-- Ids are 32 bits in tokens and records.
CREATE DOMAIN ads.id AS bigint CHECK (VALUE BETWEEN 1 AND 4294967295);
-- Money is whole micro-cents, 1 cent = 10^6; at most 10^10 cents.
CREATE DOMAIN ads.money AS bigint CHECK (VALUE BETWEEN 0 AND 10000000000000000);
CREATE DOMAIN ads.amount AS bigint CHECK (VALUE BETWEEN 1 AND 1000000000000);  -- caps, goals, samples
CREATE DOMAIN ads.weight AS int CHECK (VALUE BETWEEN 0 AND 1000000);
CREATE DOMAIN ads.pixels AS int CHECK (VALUE BETWEEN 0 AND 16384);
-- Whole seconds of the years that the document knows.
CREATE DOMAIN ads.moment AS timestamptz(0) CHECK (VALUE >= '1970-01-01Z' AND VALUE < '2101-01-01Z');
CREATE DOMAIN ads.name AS text CHECK (octet_length(VALUE) <= 200);
CREATE DOMAIN ads.label AS text CHECK (octet_length(VALUE) <= 100);
