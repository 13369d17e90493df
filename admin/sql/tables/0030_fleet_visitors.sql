-- A fourth kind of wall: serves of an ad group a day to visitors without consent (ads_anonymous_cap),
-- whose limit is always told by nodes and which nothing is billed to.
ALTER TABLE ads.fleet_walls DROP CONSTRAINT fleet_walls_kind_check;
ALTER TABLE ads.fleet_walls ADD CONSTRAINT fleet_walls_kind_check CHECK (kind BETWEEN 1 AND 4);
