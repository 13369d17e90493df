-- What makes an ad viewable, by placement.
ALTER TABLE ads.placements
    ADD COLUMN viewable_share numeric CHECK (viewable_share BETWEEN 0.01 AND 1),  -- null: by the ad's size
    ADD COLUMN viewable_seconds smallint NOT NULL DEFAULT 1 CHECK (viewable_seconds BETWEEN 1 AND 60);
