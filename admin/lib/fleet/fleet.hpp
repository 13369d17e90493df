// The nodes of a fleet and what they hold, as PostgreSQL has it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/database.hpp"
#include "lib/base/json.hpp"

namespace ads::admin {

struct FleetNode {
    std::string id;
    std::string name;
    std::string version;
    std::string protocol;
    std::string catalog;     // "postgres" or "file"
    std::string generation;  // of its catalog
    std::string exactness;   // "exact", "share" or "sealed"
    std::string seen_at;
    int64_t silent = 0;  // seconds since its last call
    std::string state;   // "active", "silent" or "forgotten"
    uint64_t walls = 0;  // of which it holds rights
};

// A node's part of a wall.
struct FleetPart {
    std::string id;
    std::string name;
    bool active = false;
    std::string seen_at;
    int64_t used = 0;
    int64_t held = 0;
    int64_t needed = 0;

    const std::string& shown() const noexcept { return name.empty() ? id : name; }
};

// A limit that nodes share: of an ad group or a campaign on a day, or of all days. Money is in
// micro-cents.
struct SharedLimit {
    std::string kind;  // "impressions", "clicks", "budget" or "anonymous"
    uint64_t id = 0;
    std::string name;
    std::string day;  // empty: of all days
    int64_t units = 0;
    int64_t used = 0;
    int64_t held = 0;      // by active nodes
    int64_t stranded = 0;  // by silent ones
    int64_t free = 0;
    int64_t needed = 0;  // that active nodes were refused
    std::vector<FleetPart> parts;

    bool money() const noexcept { return kind == "budget"; }
    // "cap 12", "goal 12", "budget 7"
    std::string shown() const;
};

// Those that are forgotten come last.
std::vector<FleetNode> fleet_nodes(Database& database);
// Of today, and of all days; those with stranded rights come first.
std::vector<SharedLimit> shared_limits(Database& database);

struct Forgotten {
    FleetNode node;
    std::vector<SharedLimit> limits;  // `free`: what is free by it
};

// By its name or number. Throws NotFound, or Failure if several nodes have the name, or if it is
// active and not `even_active`.
Forgotten forget_node(Database& database, const std::string& name, bool even_active);

json_t* fleet_node_json(const FleetNode& node);
json_t* shared_limit_json(const SharedLimit& limit);

}  // namespace ads::admin
