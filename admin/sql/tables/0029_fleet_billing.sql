-- Billing of a fleet: see functions/billing.sql.

-- The walls that events count against, a row for each event and wall.
CREATE TYPE ads.billed_walls AS (
    places  int[],      -- of the event in its batch, from 1
    kinds   int2[],
    ids     int8[],
    days    int4[],
    nodes   int8[],     -- that served
    amounts int8[],
    counts  boolean[]   -- a serve that is counted: it is never late
);

-- What nodes are to know of their serves, numbered by node in the order of the commits.
CREATE TABLE ads.fleet_verdicts (
    node        bigint NOT NULL,   -- that served
    number      bigint NOT NULL,
    event       uuid NOT NULL,
    serve       bigint NOT NULL,
    type        smallint NOT NULL,
    issued      bigint NOT NULL,   -- ms since 1970, as `at`
    at          bigint NOT NULL,
    campaign_id bigint NOT NULL,
    ad_group_id bigint NOT NULL,
    price_micro bigint NOT NULL,
    recorder    bigint NOT NULL,   -- the node that recorded the event
    verdict     text COLLATE "C" NOT NULL CHECK (verdict IN ('confirmed', 'late', 'duplicate')),
    PRIMARY KEY (node, number)
);
CREATE INDEX fleet_verdicts_event ON ads.fleet_verdicts (event);

CREATE TABLE ads.fleet_cursors (
    node   bigint PRIMARY KEY,
    newest bigint NOT NULL
) WITH (fillfactor = 50);
