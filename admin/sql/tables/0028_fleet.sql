-- Rights of the nodes of a fleet: who may still spend what. Written by ads.rights() and ads.ingest().

-- A node is the identity of a state; a machine gets a new one when it loses its state.
CREATE TABLE ads.fleet_nodes (
    node      bigint PRIMARY KEY CHECK (node BETWEEN 1 AND 4294967295),
    instance  bigint NOT NULL,            -- of the state that was accepted last
    sequence  bigint NOT NULL DEFAULT 0,  -- of the last call
    nonce     bigint NOT NULL DEFAULT 0,
    protocol  int NOT NULL,
    about     jsonb NOT NULL DEFAULT '{}',  -- as the node describes itself
    joined_at timestamptz NOT NULL,
    seen_at   timestamptz NOT NULL,
    closed_at timestamptz                 -- its account is settled, and its calls are refused
) WITH (fillfactor = 50);                 -- updated once a second: in place

-- A wall is the hard bound of a limit on a local day, by its number (2026-01-01 is 1); day 0 is of
-- all days. Its kind: 1 impressions of an ad group, 2 its clicks, 3 the budget of a campaign.
CREATE TABLE ads.fleet_walls (
    id      bigint NOT NULL,
    day     int NOT NULL CHECK (day >= 0),
    kind    smallint NOT NULL CHECK (kind BETWEEN 1 AND 3),
    over    boolean NOT NULL DEFAULT false,  -- more is held than there is: nodes are to return what is idle
    units   bigint NOT NULL CHECK (units >= 0),    -- the limit
    quantum bigint NOT NULL CHECK (quantum > 0),   -- the least that a node can use
    settled bigint NOT NULL CHECK (settled >= 0),  -- billed before there was a fleet, and of closed nodes
    told_at bigint,                          -- the time of the catalog file that has the limit; null: it is in ads.campaigns
    PRIMARY KEY (kind, id, day)
) WITH (fillfactor = 70);
CREATE INDEX fleet_walls_over ON ads.fleet_walls (kind, id, day) WHERE over;

-- What a node was granted, has returned, and has stored of a wall; all only grow.
CREATE TABLE ads.fleet_accounts (
    id     bigint NOT NULL,
    day    int NOT NULL,
    kind   smallint NOT NULL,
    node   bigint NOT NULL,
    got    bigint NOT NULL CHECK (got >= 0),
    gave   bigint NOT NULL CHECK (gave >= 0),
    billed bigint NOT NULL DEFAULT 0 CHECK (billed >= 0),
    denied bigint NOT NULL DEFAULT 0 CHECK (denied >= 0),  -- of what it needed at its last call
    PRIMARY KEY (kind, id, day, node)
) WITH (fillfactor = 50);
CREATE INDEX fleet_accounts_denied ON ads.fleet_accounts (kind, id, day, node) WHERE denied > 0;
CREATE INDEX fleet_accounts_node ON ads.fleet_accounts (node);

-- The version of the catalog that the limits are of.
CREATE TABLE ads.fleet_limits (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    catalog_version text NOT NULL DEFAULT ''
);
INSERT INTO ads.fleet_limits DEFAULT VALUES;
