#include "lib/fleet/fleet.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/text.hpp"

namespace ads::admin {

namespace {

int64_t integer_at(const json_t* object, const char* key) {
    return json_integer_value(json_object_get(object, key));
}

std::vector<FleetPart> parts_of(std::string_view text) {
    const Json list(json_loadb(text.data(), text.size(), 0, nullptr));
    std::vector<FleetPart> parts;
    size_t i = 0;
    json_t* item = nullptr;
    json_array_foreach(list.get(), i, item) {
        parts.push_back({.id = std::to_string(integer_at(item, "node")),
                         .name = text_at(item, "name"),
                         .active = json_is_true(json_object_get(item, "active")),
                         .seen_at = text_at(item, "seen_at"),
                         .used = integer_at(item, "used"),
                         .held = integer_at(item, "held"),
                         .needed = integer_at(item, "needed")});
    }
    return parts;
}

// A database that nginx-ads migrate has not seen for long.
[[noreturn]] void explain(const SqlError& error) {
    if (error.is("42883") || error.is("42P01")) {
        throw Failure(Exit::failed,
                      "the schema has no fleets yet: run \"nginx-ads migrate\" first.");
    }
    throw explained(error);
}

}  // namespace

std::string SharedLimit::shown() const {
    return fmt::format("{} {}",
                       kind == "budget"      ? "budget"
                       : kind == "clicks"    ? (day.empty() ? "click goal" : "click cap")
                       : kind == "anonymous" ? "cap without consent"
                       : day.empty()         ? "goal"
                                             : "cap",
                       id);
}

std::vector<FleetNode> fleet_nodes(Database& database) {
    std::vector<FleetNode> nodes;
    try {
        const Rows rows = database.run(
            "SELECT node, name, version, protocol, catalog, generation, exactness, "
            "ads.moment_text(seen_at), greatest(0, extract(epoch FROM silent))::bigint, state, "
            "walls FROM ads.fleet_status()");
        for (size_t i = 0; i < rows.size(); i++) {
            const auto text = [&](int column) { return std::string(rows.at(i, column)); };
            nodes.push_back({.id = text(0),
                             .name = text(1),
                             .version = text(2),
                             .protocol = text(3),
                             .catalog = text(4),
                             .generation = text(5),
                             .exactness = text(6),
                             .seen_at = text(7),
                             .silent = rows.number(i, 8),
                             .state = text(9),
                             .walls = static_cast<uint64_t>(rows.number(i, 10))});
        }
    } catch (const SqlError& e) {
        explain(e);
    }
    return nodes;
}

std::vector<SharedLimit> shared_limits(Database& database) {
    std::vector<SharedLimit> limits;
    try {
        const Rows rows = database.run(
            "SELECT kind, id, name, day, units, used, held, stranded, free, needed, nodes "
            "FROM ads.fleet_wall_status()");
        for (size_t i = 0; i < rows.size(); i++) {
            limits.push_back({.kind = std::string(rows.at(i, 0)),
                              .id = static_cast<uint64_t>(rows.number(i, 1)),
                              .name = std::string(rows.at(i, 2)),
                              .day = std::string(rows.at(i, 3)),
                              .units = rows.number(i, 4),
                              .used = rows.number(i, 5),
                              .held = rows.number(i, 6),
                              .stranded = rows.number(i, 7),
                              .free = rows.number(i, 8),
                              .needed = rows.number(i, 9),
                              .parts = parts_of(rows.at(i, 10))});
        }
    } catch (const SqlError& e) {
        explain(e);
    }
    return limits;
}

Forgotten forget_node(Database& database, const std::string& name, bool even_active) {
    std::vector<FleetNode> found;
    for (FleetNode& node : fleet_nodes(database)) {
        if (node.state != "forgotten" && (node.id == name || node.name == name)) {
            found.push_back(std::move(node));
        }
    }
    if (found.empty()) {
        throw NotFound(fmt::format("there is no node {}.", printable(name)));
    }
    if (found.size() > 1) {
        std::vector<std::string> ids;
        for (const FleetNode& node : found) {
            ids.push_back(fmt::format("{} ({})", node.id, node.state));
        }
        throw Failure(Exit::bad_input, fmt::format("several nodes are named {}: pass one of {}.",
                                                   printable(name), fmt::join(ids, ", ")));
    }
    Forgotten forgotten{.node = std::move(found.front()), .limits = {}};
    if (forgotten.node.state == "active" && !even_active) {
        throw Failure(
            Exit::bad_input,
            fmt::format("node {} is active: stop it first, or pass --force.", printable(name)));
    }
    try {
        const Rows rows = database.run(
            "SELECT ('{impressions,clicks,budget,anonymous}'::text[])[f.kind], f.id, "
            "CASE WHEN f.day > 0 THEN date '2025-12-31' + f.day END, f.freed "
            "FROM ads.forget_node($1) f WHERE f.freed > 0 ORDER BY f.kind, f.id, f.day",
            {forgotten.node.id});
        for (size_t i = 0; i < rows.size(); i++) {
            forgotten.limits.push_back({.kind = std::string(rows.at(i, 0)),
                                        .id = static_cast<uint64_t>(rows.number(i, 1)),
                                        .day = std::string(rows.at(i, 2)),
                                        .free = rows.number(i, 3)});
        }
    } catch (const SqlError& e) {
        explain(e);
    }
    return forgotten;
}

json_t* fleet_node_json(const FleetNode& node) {
    json_t* object = json_object();
    const auto text = [&](const char* key, const std::string& value) {
        json_object_set_new(object, key, text_json(value));
    };
    json_object_set_new(object, "node", json_integer(std::stoll(node.id)));
    text("name", node.name);
    text("version", node.version);
    json_object_set_new(object, "protocol", json_integer(std::stoll(node.protocol)));
    text("catalog", node.catalog);
    text("generation", node.generation);
    text("exactness", node.exactness);
    text("state", node.state);
    text("seen_at", node.seen_at);
    json_object_set_new(object, "silent_seconds", json_integer(node.silent));
    json_object_set_new(object, "limits", number_json(node.walls));
    return object;
}

json_t* shared_limit_json(const SharedLimit& limit) {
    json_t* object = json_object();
    const auto number = [](json_t* to, const char* key, int64_t value) {
        json_object_set_new(to, key, json_integer(value));
    };
    json_object_set_new(object, "kind", text_json(limit.kind));
    number(object, "id", static_cast<int64_t>(limit.id));
    json_object_set_new(object, "name", text_json(limit.name));
    json_object_set_new(object, "day", limit.day.empty() ? json_null() : text_json(limit.day));
    json_object_set_new(object, "unit", text_json(limit.money() ? "micro_cents" : "count"));
    number(object, "limit", limit.units);
    number(object, "used", limit.used);
    number(object, "held", limit.held);
    number(object, "stranded", limit.stranded);
    number(object, "free", limit.free);
    number(object, "needed", limit.needed);
    json_t* list = json_array();
    for (const FleetPart& part : limit.parts) {
        json_t* item = json_object();
        json_object_set_new(item, "node", json_integer(std::stoll(part.id)));
        json_object_set_new(item, "name", text_json(part.name));
        json_object_set_new(item, "active", json_boolean(part.active));
        json_object_set_new(item, "seen_at", text_json(part.seen_at));
        number(item, "used", part.used);
        number(item, "held", part.held);
        number(item, "needed", part.needed);
        json_array_append_new(list, item);
    }
    json_object_set_new(object, "nodes", list);
    return object;
}

}  // namespace ads::admin
