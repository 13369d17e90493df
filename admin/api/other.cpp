// Routes for the caller's own identity, the audit log, health, and the OpenAPI document.
#include <fmt/format.h>

#include "api/openapi.hpp"
#include "api/route.hpp"
#include "lib/diagnosis/node_status.hpp"
#include "lib/fleet/fleet.hpp"
#include "lib/manage/history.hpp"
#include "lib/manage/manage.hpp"
#include "version.hpp"

namespace ads::api {

using admin::number_json;
using admin::text_json;

namespace {

constexpr size_t kMostLimits = 200;

Response me(Call& call) {
    Json root(json_object());
    json_object_set_new(root.get(), "user", text_json(call.who.user));
    json_object_set_new(root.get(), "role", text_json(name_of(call.who.role)));
    json_object_set_new(root.get(), "advertiser",
                        call.who.advertiser.empty() ? json_null() : text_json(call.who.advertiser));
    json_t* operations = json_array();
    for (const auto& route : routes()) {
        if ((route.roles & role_bit(call.who.role)) != 0) {
            json_array_append_new(operations, text_json(route.operation));
        }
    }
    json_object_set_new(root.get(), "operations", operations);
    return {200, std::move(root)};
}

Response audit(Call& call) {
    const std::string before = call.get("before");
    const std::string after =
        before.empty() ? "" : std::to_string(call.number("before", 0, INT64_MAX));
    const auto edits = admin::read_audit(call.connections.reading(), after, call.get("actor"),
                                         call.number("limit", 100, 1000));
    return {200, Json(admin::history_json(edits))};
}

// What cannot be reached is a part of the answer.
Response health(Call& call) {
    Json root(json_object());
    json_object_set_new(root.get(), "version", text_json(ADS_VERSION));
    auto& database = call.connections.reading();
    json_t* postgres = json_object();
    json_object_set_new(postgres, "server", text_json(admin::version_text(database.version())));
    json_object_set_new(postgres, "database", text_json(database.shown()));
    json_object_set_new(root.get(), "postgresql", postgres);
    json_t* node = json_null();
    json_t* error = json_null();
    if (!call.config.status_url.empty()) {
        try {
            Json status = admin::node_status(call.config.status_url, "limit=1", "2s");
            json_object_del(status.get(), "ad_groups");
            json_object_del(status.get(), "campaigns");
            node = status.release();
        } catch (const admin::Failure& e) {
            error = text_json(e.what());
        }
    }
    json_object_set_new(root.get(), "node", node);
    json_object_set_new(root.get(), "node_error", error);
    return {200, std::move(root)};
}

// Nodes that share limits, and what each holds of them.
Response fleet(Call& call) {
    auto& database = call.connections.reading();
    Json root(json_object());
    json_t* nodes = json_array();
    for (const auto& node : admin::fleet_nodes(database)) {
        json_array_append_new(nodes, admin::fleet_node_json(node));
    }
    json_object_set_new(root.get(), "nodes", nodes);
    json_t* limits = json_array();
    for (const auto& limit : admin::shared_limits(database)) {
        // Of a large fleet those in need, which come first.
        if (json_array_size(limits) == kMostLimits) {
            break;
        }
        json_array_append_new(limits, admin::shared_limit_json(limit));
    }
    json_object_set_new(root.get(), "limits", limits);
    return {200, std::move(root)};
}

// What became of the requests for a placement; "" is an ad.
Response outcomes(Call& call) {
    auto& database = call.connections.reading();
    admin::version_of(database, admin::Kind::placement, call.id);  // 404 if there is none
    const std::string text = database.value(
        "SELECT coalesce(json_agg(to_json(list)), '[]') FROM (SELECT outcome, "
        "sum(requests)::bigint AS requests FROM ads.placement_hours WHERE placement = $1 AND "
        "hour > ads.now() - interval '24 hours' GROUP BY 1 ORDER BY 2 DESC) list",
        {call.id});
    return {200, Json(json_loadb(text.data(), text.size(), 0, nullptr))};
}

Response description(Call& call) {
    return {200, openapi(call.config.prefix)};
}

}  // namespace

void add_other_routes(std::vector<Route>& table) {
    table.push_back({"GET",
                     "/me",
                     "me",
                     "The user, the role and its permissions",
                     kReadsOwn,
                     {},
                     nullptr,
                     "Me"});
    table.back().run = me;
    table.push_back({"GET",
                     "/audit",
                     "audit",
                     "All changes with author and time, newest first",
                     kManages,
                     {{"actor", R"({"type":"string"})", "Only by this one"},
                      {"before", R"({"type":"integer","minimum":1})", "Only before this version"},
                      {"limit", R"({"type":"integer","minimum":1,"maximum":1000})",
                       "Maximum number of entries (100)"}},
                     nullptr,
                     "History"});
    table.back().run = audit;
    table.push_back(
        {"GET", "/health", "health", "PostgreSQL and the node", kViews, {}, nullptr, "Health"});
    table.back().run = health;
    table.push_back({"GET",
                     "/fleet",
                     "fleet",
                     "The nodes of a fleet, and the limits that they share",
                     kViews,
                     {},
                     nullptr,
                     "Fleet"});
    table.back().run = fleet;
    table.push_back({"GET",
                     "/placements/{id}/outcomes",
                     "outcomesPlacement",
                     "What became of its requests in the last 24 hours",
                     kViews,
                     {},
                     nullptr,
                     "Outcomes"});
    table.back().run = outcomes;
    table.push_back({"GET",
                     "/openapi.json",
                     "openapi",
                     "This description",
                     kReadsOwn,
                     {},
                     nullptr,
                     "Description"});
    table.back().run = description;
}

}  // namespace ads::api
