-- A node's accounts of the days that are open.
DROP INDEX ads.fleet_accounts_node;
CREATE INDEX fleet_accounts_node ON ads.fleet_accounts (node, day);
