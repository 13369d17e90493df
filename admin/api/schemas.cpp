#include "api/schemas.hpp"

#include <string>
#include <string_view>

#include "core/catalog/schema.hpp"
#include "lib/base/json.hpp"

namespace ads::api {

namespace {

constexpr std::string_view kOwn = R"json({
"Nothing": {"type": "object", "maxProperties": 0},
"New": {"type": "object", "description": "As in the catalog; without an id it gets one"},
"Patch": {"type": "object", "description": "Merged as RFC 7396 says"},
"Clone": {"type": "object", "properties": {
    "name": {"type": "string"}, "parent": {"type": "integer", "minimum": 1}},
    "additionalProperties": false},
"Revert": {"type": "object", "properties": {
    "to": {"type": "integer", "minimum": 0, "description": "The version to restore"},
    "before": {"type": "integer", "minimum": 1,
        "description": "A version: the edit that made it is undone, and all later ones"}},
    "additionalProperties": false, "minProperties": 1, "maxProperties": 1},
"Stop": {"type": "object", "properties": {"winner": {"type": ["integer", "null"]}},
    "additionalProperties": false},
"Request": {"type": "object", "required": ["placements"]},
"Description": {"type": "object", "required": ["openapi", "info", "paths", "components"]},

"Image": {"type": "object", "additionalProperties": false,
    "required": ["url", "type", "width", "height", "bytes", "existed"], "properties": {
    "url": {"type": "string"},
    "type": {"type": "string", "enum": ["png", "jpeg", "gif", "webp", "avif"]},
    "width": {"type": "integer"}, "height": {"type": "integer"}, "bytes": {"type": "integer"},
    "existed": {"type": "boolean"}}},

"Error": {"type": "object", "required": ["error"], "additionalProperties": false, "properties": {
    "error": {"type": "object", "required": ["code", "message", "faults"],
        "additionalProperties": false, "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "faults": {"type": "array", "items": {"type": "object",
            "required": ["object", "path", "message"], "additionalProperties": false,
            "properties": {"object": {"type": "string"}, "path": {"type": "string"},
                "message": {"type": "string"}}}},
        "version": {"type": "string"},
        "changes": {"$ref": "#/components/schemas/History"}}}}},

"Edited": {"type": "object", "additionalProperties": false,
    "required": ["id", "dry_run", "changed", "changes", "removed", "warnings"], "properties": {
    "id": {"type": ["integer", "string"]},
    "dry_run": {"type": "boolean"},
    "changed": {"type": "boolean"},
    "changes": {"$ref": "#/components/schemas/Changes"},
    "removed": {"type": "array", "items": {"type": "object", "required": ["creative", "what"]}},
    "warnings": {"type": "array", "items": {"type": "string"}}}},

"Changes": {"type": "array", "items": {"type": "object",
    "required": ["change", "object", "id", "name", "fields"], "properties": {
    "change": {"type": "string", "enum": ["added", "changed", "archived"]},
    "object": {"type": "string"},
    "id": {"type": ["integer", "string"]},
    "name": {"type": "string"},
    "fields": {"type": "array", "items": {"type": "object", "additionalProperties": false,
        "required": ["field", "before", "after"],
        "properties": {"field": {"type": "string"}, "before": {}, "after": {}}}}}}},
"History": {"type": "array", "items": {"type": "object", "additionalProperties": false,
    "required": ["version", "at", "actor", "changes"], "properties": {
    "version": {"type": "string"}, "at": {"type": "string"}, "actor": {"type": "string"},
    "changes": {"$ref": "#/components/schemas/Changes"}}}},

"Advertiser": {"type": "object", "additionalProperties": false, "required": ["name", "campaigns"],
    "properties": {"name": {"type": "string"}, "campaigns": {"type": "array", "items": {
        "type": "object", "additionalProperties": false, "required": ["id", "name", "status"],
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"},
            "status": {"type": "string"}}}}}},

"Me": {"type": "object", "additionalProperties": false,
    "required": ["user", "role", "advertiser", "operations"], "properties": {
    "user": {"type": "string"},
    "role": {"type": "string", "enum": ["viewer", "operator", "manager", "admin", "advertiser"]},
    "advertiser": {"type": ["string", "null"]},
    "operations": {"type": "array", "items": {"type": "string"}}}},

"Health": {"type": "object", "additionalProperties": false,
    "required": ["version", "postgresql", "node", "node_error"], "properties": {
    "version": {"type": "string"},
    "postgresql": {"type": "object", "required": ["server", "database"]},
    "node": {"type": ["object", "null"]},
    "node_error": {"type": ["string", "null"]}}},

"Fleet": {"type": "object", "additionalProperties": false, "required": ["nodes", "limits"],
    "properties": {
    "nodes": {"type": "array", "items": {"type": "object",
        "required": ["node", "name", "version", "generation", "exactness", "state",
            "silent_seconds", "limits"], "properties": {
        "state": {"type": "string", "enum": ["active", "silent", "forgotten"]}}}},
    "limits": {"type": "array", "items": {"type": "object",
        "required": ["kind", "id", "unit", "limit", "used", "held", "stranded", "free"]}}}},
"Outcomes": {"type": "array", "items": {"type": "object", "additionalProperties": false,
    "required": ["outcome", "requests"], "properties": {
    "outcome": {"type": "string", "description": "Empty: an ad; else why there was none"},
    "requests": {"type": "integer"}}}},

"Figures": {"type": "object",
    "required": ["requests", "unfilled", "fill_rate", "serves", "impressions", "viewables",
        "viewable_rate", "clicks", "ctr", "conversions", "invalid", "spend_cents", "ecpm_cents",
        "viewable_share", "viewable_seconds"],
    "properties": {
    "requests": {"type": ["integer", "null"]}, "unfilled": {"type": ["integer", "null"]},
    "fill_rate": {"type": ["number", "null"]}, "serves": {"type": "integer"},
    "impressions": {"type": "integer"}, "viewables": {"type": "integer"},
    "viewable_rate": {"type": ["number", "null"]}, "clicks": {"type": "integer"},
    "ctr": {"type": ["number", "null"]}, "conversions": {"type": "integer"},
    "invalid": {"type": "integer"}, "spend_cents": {"type": "number"},
    "ecpm_cents": {"type": ["number", "null"]},
    "viewable_share": {"type": ["number", "null"]},
    "viewable_seconds": {"type": ["integer", "null"]}}},
"Report": {"type": "object", "additionalProperties": false,
    "required": ["by", "from", "to", "currency", "rows", "total"], "properties": {
    "by": {"type": "string"}, "from": {"type": "string"}, "to": {"type": "string"},
    "currency": {"type": ["string", "null"]},
    "previous": {"type": "object", "required": ["from", "to"]},
    "rows": {"type": "array", "items": {"$ref": "#/components/schemas/Figures"}},
    "total": {"$ref": "#/components/schemas/Figures"}}},

"Forecast": {"type": "object", "additionalProperties": false,
    "required": ["summary", "campaign", "name", "status", "timezone", "currency", "flight",
        "delivery", "deliver_by", "starts_on", "ends_on", "days_to_end", "budget_type",
        "budget_cents", "spent_cents", "average_daily_spend", "days_remaining",
        "exhaustion_date", "will_exhaust_early", "projected_total_spend", "goal_count",
        "goal_done", "goal_projected", "goal_daily", "goal_open", "days"], "properties": {
    "summary": {"type": "string"}, "campaign": {"type": "integer"}, "name": {"type": "string"},
    "status": {"type": "string"}, "timezone": {"type": "string"},
    "currency": {"type": ["string", "null"]},
    "flight": {"type": "string", "enum": ["ahead", "running", "over"]},
    "delivery": {"type": ["number", "null"]}, "deliver_by": {"type": ["string", "null"]},
    "starts_on": {"type": ["string", "null"]}, "ends_on": {"type": ["string", "null"]},
    "days_to_end": {"type": ["number", "null"]}, "budget_type": {"type": ["string", "null"]},
    "budget_cents": {"type": ["number", "null"]}, "spent_cents": {"type": "number"},
    "average_daily_spend": {"type": "number"}, "days_remaining": {"type": ["number", "null"]},
    "exhaustion_date": {"type": ["string", "null"]}, "will_exhaust_early": {"type": "boolean"},
    "projected_total_spend": {"type": "number"}, "goal_count": {"type": ["integer", "null"]},
    "goal_done": {"type": ["integer", "null"]}, "goal_projected": {"type": ["integer", "null"]},
    "goal_daily": {"type": ["number", "null"]}, "goal_open": {"type": "boolean"},
    "days": {"type": "array", "items": {"type": "object", "required": ["day", "spend_cents"],
        "properties": {"day": {"type": "string"}, "spend_cents": {"type": "number"}}}}}},

"Analysis": {"type": "object",
    "required": ["id", "name", "ad_group", "status", "metric", "alpha", "min_sample", "mde",
        "winner", "trials", "since", "needed_trials", "analysis"], "properties": {
    "id": {"type": "integer"}, "winner": {"type": ["integer", "null"]},
    "trials": {"type": "integer"},
    "since": {"type": ["string", "null"]},
    "needed_trials": {"type": ["integer", "null"],
        "description": "Of each variant, for a verdict on an effect of mde"},
    "analysis": {"type": "object", "required": ["verdict", "winner", "why", "alpha", "variants",
        "chi_square", "sample_ratio"]}}},

"Diagnoses": {"type": "object", "additionalProperties": false,
    "required": ["ad_groups", "warnings"], "properties": {
    "warnings": {"type": "array", "items": {"type": "string"}},
    "ad_groups": {"type": "array", "items": {"type": "object",
        "required": ["ad_group", "name", "campaign", "campaign_name", "verdict", "causes",
            "delivery", "flight_delivery"], "properties": {
        "ad_group": {"type": "integer"},
        "verdict": {"type": "string", "enum": ["blocked", "limited", "used_up", "off", "fine"]},
        "causes": {"type": "array", "items": {"type": "object",
            "required": ["reason", "extent", "object", "what", "remedy", "placements"]}},
        "delivery": {"type": ["number", "null"]},
        "flight_delivery": {"type": ["number", "null"]}}}}}},

"Decision": {"type": "object", "additionalProperties": false,
    "required": ["at", "seed", "repeat", "device", "placements"], "properties": {
    "at": {"type": "string"}, "seed": {"type": "integer"}, "repeat": {"type": "integer"},
    "device": {"type": "string"},
    "placements": {"type": "array", "items": {"type": "object",
        "required": ["placement", "served", "unfilled", "not_served"], "properties": {
        "placement": {"type": "string"}, "unfilled": {"type": "integer"},
        "served": {"type": "array", "items": {"type": "object",
            "required": ["campaign", "ad_group", "creative", "experiment", "count", "share"]}},
        "not_served": {"type": "array", "items": {"type": "object",
            "required": ["campaign", "ad_group", "reason"]}}}}}}}
})json";

json_t* items_of(const json_t* schema, const char* key) {
    return json_object_get(json_object_get(json_object_get(schema, "properties"), key), "items");
}

// An object of the catalog as it is answered: with its delivery, and what it stands in.
void add(json_t* all, const char* name, const json_t* shape, const char* within, bool delivered) {
    json_t* copy = json_deep_copy(shape);
    json_t* properties = json_object_get(copy, "properties");
    if (delivered) {
        json_object_set_new(properties, "delivery",
                            json_pack("{s:[s,s]}", "type", "object", "null"));
    }
    if (within != nullptr) {
        json_object_set_new(properties, within, json_pack("{s:s}", "type", "integer"));
    }
    json_object_set_new(all, name, copy);
}

void add_list(json_t* all, const std::string& name) {
    json_object_set_new(all, (name + "List").c_str(),
                        json_pack("{s:s,s:{s:s}}", "type", "array", "items", "$ref",
                                  ("#/components/schemas/" + name).c_str()));
}

}  // namespace

json_t* schemas() {
    const std::string text = catalog::schema();
    const admin::Json catalog(json_loadb(text.data(), text.size(), 0, nullptr));
    json_t* all = json_loadb(kOwn.data(), kOwn.size(), 0, nullptr);
    const json_t* campaign = items_of(catalog.get(), "campaigns");
    const json_t* group = items_of(campaign, "ad_groups");
    add(all, "Campaign", campaign, nullptr, true);
    add(all, "AdGroup", group, "campaign", true);
    add(all, "Creative", items_of(group, "creatives"), "ad_group", true);
    add(all, "Placement", items_of(catalog.get(), "placements"), nullptr, true);
    add(all, "Experiment", items_of(catalog.get(), "experiments"), "ad_group", true);
    for (const char* name :
         {"Advertiser", "Campaign", "AdGroup", "Creative", "Placement", "Experiment"}) {
        add_list(all, name);
    }
    return all;
}

}  // namespace ads::api
