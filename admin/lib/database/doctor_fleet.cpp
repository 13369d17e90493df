// nginx-ads doctor: nodes that share limits, and what silent ones keep from the others.
#include <fmt/format.h>

#include <algorithm>

#include "lib/base/money.hpp"
#include "lib/base/text.hpp"
#include "lib/database/findings.hpp"
#include "lib/fleet/fleet.hpp"

namespace ads::admin {

namespace {

constexpr size_t kShown = 5;

// "10:02", with the date if that is not the day of `now`; both are RFC 3339 in UTC.
std::string since(const std::string& at, const std::string& now) {
    const bool today = at.substr(0, 10) == now.substr(0, 10);
    return today && at.size() >= 16 ? at.substr(11, 5) : at;
}

std::string units_text(const SharedLimit& limit, int64_t units) {
    return limit.money() ? money_text(units) : counted(static_cast<uint64_t>(units), "unit");
}

}  // namespace

void examine_fleet(Database& database, Findings& findings) {
    if (database.value("SELECT to_regclass('ads.fleet_nodes') IS NULL") == "t" ||
        database.value("SELECT has_table_privilege('ads.fleet_nodes', 'SELECT')") != "t") {
        return;  // found by the checks of the schema, or not this role's concern
    }
    std::vector<FleetNode> nodes = fleet_nodes(database);
    std::erase_if(nodes, [](const FleetNode& node) { return node.state == "forgotten"; });
    if (nodes.empty()) {
        return;
    }
    const std::string now = database.value("SELECT ads.moment_text(ads.now())");
    size_t found = 0;
    size_t more = 0;
    for (const SharedLimit& limit : shared_limits(database)) {
        for (const FleetPart& part : limit.parts) {
            // What is not missed yet is not worth a line.
            if (part.active || part.held == 0 || (limit.needed == 0 && limit.free > 0)) {
                continue;
            }
            if (found++ >= kShown) {
                more++;
                continue;
            }
            findings.warning(
                "fleet",
                fmt::format("{} is {} short because {} is silent since {}.", limit.shown(),
                            units_text(limit, part.held), printable(part.shown()),
                            since(part.seen_at, now)),
                fmt::format("start it again, or if it is lost: nginx-ads fleet forget {}",
                            printable(part.shown())));
        }
    }
    if (more > 0) {
        findings.warning("fleet", fmt::format("{} more limits are short.", more),
                         "nginx-ads fleet walls --stranded");
    }
    for (const FleetNode& node : nodes) {
        if (node.exactness == "share" && node.state == "active") {
            findings.warning(
                "fleet",
                fmt::format("{} serves without rights (on_error=share).", printable(node.name)),
                "see why its calls to PostgreSQL fail in its error log");
        }
    }
    if (found == 0) {
        const auto active = static_cast<uint64_t>(std::count_if(
            nodes.begin(), nodes.end(), [](const auto& node) { return node.state == "active"; }));
        findings.ok("fleet", fmt::format("{}, {} active.", counted(nodes.size(), "node"), active));
    }
}

}  // namespace ads::admin
