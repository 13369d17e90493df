-- Whether the node has said what it has of the wall: at the first time it may come with use of its own.
ALTER TABLE ads.fleet_accounts ADD COLUMN told boolean NOT NULL DEFAULT false;
