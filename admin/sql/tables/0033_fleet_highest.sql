-- The highest limit that a wall has had: what is billed stays below it even if grants were forgotten.
ALTER TABLE ads.fleet_walls ADD COLUMN highest bigint NOT NULL DEFAULT 0;
UPDATE ads.fleet_walls SET highest = units;
