// The catalog of the simulated fleet, compiled as nodes have it.
#pragma once

#include <cstdint>
#include <vector>

namespace fleet_test {

// Ad groups 1 and 2 of campaign 7 (a daily budget), 3 of campaign 8 (a lifetime budget), 4 and 5 of
// campaign 9 (none). All are served as soon as possible.
struct FleetLimits {
    uint64_t serves = 1;       // of 1 and 4, a day
    uint64_t impressions = 1;  // of 2 and 3, a day
    uint64_t goal = 1;         // of 3
    uint64_t clicks = 1;       // of 5, a day
    uint64_t cents = 1;        // of each budget; an impression costs 1 (group 1), 3 or 2 cents
};

inline constexpr int64_t kMidnight = 1'794'873'600;  // 2026-11-17T00:00:00Z

std::vector<char> fleet_catalog(const FleetLimits& limits, int64_t at);

}  // namespace fleet_test
