-- Clicks that were stored without an impression, in a fleet: it may come from another node.
CREATE TABLE ads.unseen_clicks (
    impression  uuid PRIMARY KEY,       -- that it would have
    click       uuid NOT NULL,
    happened_at timestamptz NOT NULL,   -- as in ads.ad_events, where the click is
    price_micro bigint NOT NULL         -- if it is valid
);
