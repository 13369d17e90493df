#include "api/schemas.hpp"

#include <string>
#include <string_view>

#include "core/catalog/schema.hpp"
#include "lib/base/json.hpp"

namespace ads::api {

using admin::Json;

namespace {

// An object has all of its properties and no others, unless it says so: see close().
constexpr std::string_view kOwn = R"json({
"Nothing": {"type": "object", "maxProperties": 0},
"New": {"type": "object", "description": "As in the catalog; without an id it gets one"},
"Patch": {"type": "object", "description": "Merged as RFC 7396 says"},
"Clone": {"type": "object", "required": [], "properties": {
    "name": {"type": "string"}, "parent": {"type": "integer", "minimum": 1}}},
"Revert": {"type": "object", "required": [], "properties": {
    "to": {"type": "integer", "minimum": 0, "description": "The version to restore"},
    "before": {"type": "integer", "minimum": 1,
        "description": "A version: the edit that made it is undone, and all later ones"}},
    "minProperties": 1, "maxProperties": 1},
"Stop": {"type": "object", "required": [], "properties": {
    "winner": {"type": ["integer", "null"]}}},
"Request": {"type": "object", "required": ["placements"],
    "properties": {"placements": {"type": "array"}}, "additionalProperties": true},
"Description": {"type": "object", "additionalProperties": true, "properties": {
    "openapi": {"const": "3.1.0"}, "info": {"type": "object"}, "paths": {"type": "object"},
    "components": {"type": "object"}}},

"Image": {"type": "object", "properties": {
    "url": {"type": "string"},
    "type": {"enum": ["png", "jpeg", "gif", "webp", "avif"]},
    "width": {"type": "integer"}, "height": {"type": "integer"}, "bytes": {"type": "integer"},
    "existed": {"type": "boolean"}}},

"Error": {"type": "object", "properties": {
    "error": {"type": "object", "required": ["code", "message", "faults"], "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "faults": {"type": "array", "items": {"type": "object", "properties": {
            "object": {"type": "string"}, "path": {"type": "string"},
            "message": {"type": "string"}}}},
        "version": {"type": "string"},
        "changes": {"$ref": "#/components/schemas/History"}}}}},

"Edited": {"type": "object", "properties": {
    "id": {"type": ["integer", "string"]},
    "dry_run": {"type": "boolean"},
    "changed": {"type": "boolean"},
    "changes": {"$ref": "#/components/schemas/Changes"},
    "removed": {"type": "array", "items": {"type": "object", "properties": {
        "creative": {"type": "integer"},
        "what": {"type": "array", "items": {"type": "string"}}}}},
    "warnings": {"type": "array", "items": {"type": "string"}}}},

"Changes": {"type": "array", "items": {"type": "object",
    "required": ["change", "object", "id", "name", "fields"], "properties": {
    "change": {"enum": ["added", "changed", "archived"]},
    "object": {"type": "string"},
    "id": {"type": ["integer", "string"]},
    "name": {"type": "string"},
    "ad_groups": {"type": "integer", "description": "That came with it"},
    "creatives": {"type": "integer", "description": "The same"},
    "fields": {"type": "array", "items": {"type": "object", "properties": {
        "field": {"type": "string"}, "before": {}, "after": {}}}}}}},
"History": {"type": "array", "items": {"type": "object", "properties": {
    "version": {"type": "string"}, "at": {"type": "string"}, "actor": {"type": "string"},
    "changes": {"$ref": "#/components/schemas/Changes"}}}},

"Advertiser": {"type": "object", "properties": {
    "name": {"type": "string"}, "campaigns": {"type": "array", "items": {
        "type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"},
            "status": {"type": "string"}}}}}},

"Me": {"type": "object", "properties": {
    "user": {"type": "string"},
    "role": {"enum": ["viewer", "operator", "manager", "admin", "advertiser"]},
    "advertiser": {"type": ["string", "null"]},
    "operations": {"type": "array", "items": {"type": "string"}}}},

"Health": {"type": "object", "properties": {
    "version": {"type": "string"},
    "postgresql": {"type": "object", "properties": {
        "server": {"type": "string"}, "database": {"type": "string"}}},
    "node": {"type": ["object", "null"], "description": "As ads_status, without its campaigns"},
    "node_error": {"type": ["string", "null"]}}},

"Fleet": {"type": "object", "properties": {
    "nodes": {"type": "array", "items": {"type": "object", "properties": {
        "node": {"type": "integer"}, "name": {"type": "string"}, "version": {"type": "string"},
        "protocol": {"type": "integer"}, "catalog": {"type": "string"},
        "generation": {"type": "string"}, "exactness": {"type": "string"},
        "state": {"enum": ["active", "silent", "forgotten"]}, "seen_at": {"type": "string"},
        "silent_seconds": {"type": "integer"}, "limits": {"type": "integer"}}}},
    "limits": {"type": "array", "items": {"type": "object", "properties": {
        "kind": {"type": "string"}, "id": {"type": "integer"}, "name": {"type": "string"},
        "day": {"type": ["string", "null"]}, "unit": {"enum": ["micro_cents", "count"]},
        "limit": {"type": "integer"}, "used": {"type": "integer"}, "held": {"type": "integer"},
        "stranded": {"type": "integer"}, "free": {"type": "integer"},
        "needed": {"type": "integer"},
        "nodes": {"type": "array", "items": {"type": "object", "properties": {
            "node": {"type": "integer"}, "name": {"type": "string"},
            "active": {"type": "boolean"}, "seen_at": {"type": "string"},
            "used": {"type": "integer"}, "held": {"type": "integer"},
            "needed": {"type": "integer"}}}}}}}}},
"Outcomes": {"type": "array", "items": {"type": "object", "properties": {
    "outcome": {"type": "string", "description": "Empty: an ad; else why there was none"},
    "requests": {"type": "integer"}}}},

"Figures": {"type": "object", "properties": {
    "requests": {"type": ["integer", "null"]}, "unfilled": {"type": ["integer", "null"]},
    "fill_rate": {"type": ["number", "null"]}, "serves": {"type": "integer"},
    "impressions": {"type": "integer"}, "viewables": {"type": "integer"},
    "viewable_rate": {"type": ["number", "null"]}, "clicks": {"type": "integer"},
    "ctr": {"type": ["number", "null"]}, "conversions": {"type": "integer"},
    "invalid": {"type": "integer"}, "spend_cents": {"type": "number"},
    "ecpm_cents": {"type": ["number", "null"]},
    "viewable_share": {"type": ["number", "null"]},
    "viewable_seconds": {"type": ["integer", "null"]}}},
"Report": {"type": "object", "required": ["by", "from", "to", "currency", "rows", "total"],
    "properties": {
    "by": {"type": "string"}, "from": {"type": "string"}, "to": {"type": "string"},
    "currency": {"type": ["string", "null"]},
    "previous": {"type": "object", "properties": {
        "from": {"type": "string"}, "to": {"type": "string"}}},
    "rows": {"type": "array", "items": {"$ref": "#/components/schemas/ReportRow"}},
    "total": {"$ref": "#/components/schemas/ReportRow"}}},

"Forecast": {"type": "object", "properties": {
    "summary": {"type": "string"}, "campaign": {"type": "integer"}, "name": {"type": "string"},
    "status": {"type": "string"}, "timezone": {"type": "string"},
    "currency": {"type": ["string", "null"]},
    "flight": {"enum": ["ahead", "running", "over"]},
    "delivery": {"type": ["number", "null"]}, "deliver_by": {"type": ["string", "null"]},
    "starts_on": {"type": ["string", "null"]}, "ends_on": {"type": ["string", "null"]},
    "days_to_end": {"type": ["number", "null"]}, "budget_type": {"type": ["string", "null"]},
    "budget_cents": {"type": ["number", "null"]}, "spent_cents": {"type": "number"},
    "average_daily_spend": {"type": "number"}, "days_remaining": {"type": ["number", "null"]},
    "exhaustion_date": {"type": ["string", "null"]}, "will_exhaust_early": {"type": "boolean"},
    "projected_total_spend": {"type": "number"}, "goal_count": {"type": ["integer", "null"]},
    "goal_done": {"type": ["integer", "null"]}, "goal_projected": {"type": ["integer", "null"]},
    "goal_daily": {"type": ["number", "null"]}, "goal_open": {"type": "boolean"},
    "days": {"type": "array", "items": {"type": "object", "properties": {
        "day": {"type": "string"}, "spend_cents": {"type": "number"}}}}}},

"Analysis": {"type": "object", "properties": {
    "id": {"type": "integer"}, "name": {"type": "string"}, "ad_group": {"type": "integer"},
    "status": {"type": "string"}, "metric": {"type": "string"}, "alpha": {"type": "number"},
    "min_sample": {"type": "integer"}, "mde": {"type": "number"},
    "winner": {"type": ["integer", "null"]}, "trials": {"type": "integer"},
    "since": {"type": ["string", "null"]},
    "needed_trials": {"type": ["integer", "null"],
        "description": "Of each variant, for a verdict on an effect of mde"},
    "analysis": {"type": "object", "properties": {
        "verdict": {"type": "string"}, "winner": {"type": ["integer", "null"]},
        "why": {"type": "string"}, "alpha": {"type": "number"},
        "chi_square": {"$ref": "#/components/schemas/Statistic"},
        "sample_ratio": {"$ref": "#/components/schemas/Statistic"},
        "variants": {"type": "array", "items": {"type": "object", "properties": {
            "creative": {"type": "integer"}, "name": {"type": "string"},
            "share": {"type": "number"}, "trials": {"type": "integer"},
            "successes": {"type": "integer"}, "rate": {"type": ["number", "null"]},
            "wilson": {"type": ["array", "null"], "items": {"type": "number"}},
            "effect": {"type": ["number", "null"]},
            "interval": {"type": ["array", "null"], "items": {"type": "number"}},
            "p": {"type": ["number", "null"]}}}}}}}},
"Statistic": {"type": "object", "properties": {
    "statistic": {"type": "number"}, "p": {"type": "number"}}},

"Diagnoses": {"type": "object", "properties": {
    "warnings": {"type": "array", "items": {"type": "string"}},
    "ad_groups": {"type": "array", "items": {"type": "object", "properties": {
        "ad_group": {"type": "integer"}, "name": {"type": "string"},
        "campaign": {"type": "integer"}, "campaign_name": {"type": "string"},
        "verdict": {"enum": ["blocked", "limited", "used_up", "off", "fine"]},
        "causes": {"type": "array", "items": {"type": "object", "properties": {
            "reason": {"type": "string"}, "extent": {"enum": ["all", "some", "maybe"]},
            "object": {"type": "object", "properties": {"kind": {"type": "string"},
                "id": {"type": ["integer", "string"]}, "name": {"type": "string"}}},
            "what": {"type": "string"}, "remedy": {"type": "string"},
            "placements": {"type": "array", "items": {"type": "string"}}}}},
        "delivery": {"type": ["number", "null"]},
        "flight_delivery": {"type": ["number", "null"]},
        "day": {"type": ["string", "null"]}, "stopped": {"type": ["string", "null"]},
        "serves": {"type": ["integer", "null"]}, "anonymous": {"type": ["integer", "null"]},
        "impressions": {"type": ["integer", "null"]},
        "viewables": {"type": ["integer", "null"]}, "clicks": {"type": ["integer", "null"]},
        "conversions": {"type": ["integer", "null"]},
        "spend_cents": {"type": ["number", "null"]},
        "refused": {"type": ["array", "null"], "items": {"type": "object", "properties": {
            "reason": {"type": "string"}, "count": {"type": "integer"},
            "estimate": {"type": "boolean"}, "what": {"type": "string"},
            "hint": {"type": "string"}}}}}}}}},

"Decision": {"type": "object", "properties": {
    "at": {"type": "string"}, "seed": {"type": "integer"}, "repeat": {"type": "integer"},
    "device": {"type": "string"},
    "placements": {"type": "array", "items": {"type": "object", "properties": {
        "placement": {"type": "string"}, "unfilled": {"type": "integer"},
        "served": {"type": "array", "items": {"type": "object", "properties": {
            "campaign": {"type": "integer"}, "ad_group": {"type": "integer"},
            "creative": {"type": "integer"}, "experiment": {"type": ["integer", "null"]},
            "count": {"type": "integer"}, "share": {"type": "number"}}}},
        "not_served": {"type": "array", "items": {"type": "object", "properties": {
            "campaign": {"type": "integer"}, "ad_group": {"type": "integer"},
            "reason": {"type": "string"}}}}}}}}}
})json";

// What an object of the catalog has delivered.
constexpr std::string_view kDelivered = R"json({
"Campaign": {"type": "object", "properties": {
    "of": {"enum": ["day", "flight", null], "description": "Null: it has no budget"},
    "spent_cents": {"type": "number", "description": "Without a budget: today"},
    "budget_cents": {"type": ["number", "null"]}, "delivered": {"type": ["number", "null"]},
    "aim": {"type": ["number", "null"]}, "active_ad_groups": {"type": "integer"}}},
"AdGroup": {"type": ["object", "null"], "properties": {
    "of": {"enum": ["day", "flight"]}, "unit": {"type": "string"}, "done": {"type": "integer"},
    "target": {"type": "integer"}, "delivered": {"type": ["number", "null"]},
    "aim": {"type": ["number", "null"]}}},
"Creative": {"type": "object", "properties": {
    "of": {"const": "7 days"}, "impressions": {"type": "integer"},
    "clicks": {"type": "integer"}, "ctr": {"type": ["number", "null"]}}},
"Placement": {"type": "object", "properties": {
    "of": {"const": "24 hours"}, "requests": {"type": "integer"},
    "unfilled": {"type": "integer"}, "fill_rate": {"type": ["number", "null"]}}},
"Experiment": {"type": "object", "properties": {"trials": {"type": "integer"}}}
})json";

Json parsed(std::string_view text) {
    return Json(json_loadb(text.data(), text.size(), 0, nullptr));
}

// Writes out the rule of the schemas here.
void close(json_t* schema) {
    const char* key = nullptr;
    json_t* value = nullptr;
    json_object_foreach(schema, key, value) {
        close(value);
    }
    const json_t* properties = json_object_get(schema, "properties");
    const bool of_objects = !json_is_object(json_object_get(schema, "type"));
    if (!json_is_object(properties) || !of_objects) {
        return;
    }
    if (json_object_get(schema, "additionalProperties") == nullptr) {
        json_object_set_new(schema, "additionalProperties", json_false());
    }
    if (json_object_get(schema, "required") == nullptr) {
        json_t* names = json_array();
        const char* name = nullptr;
        json_object_foreach(const_cast<json_t*>(properties), name, value) {
            json_array_append_new(names, json_string(name));
        }
        json_object_set_new(schema, "required", names);
    }
}

json_t* items_of(const json_t* schema, const char* key) {
    return json_object_get(json_object_get(json_object_get(schema, "properties"), key), "items");
}

// An object of the catalog as it is answered: with its delivery, and what it stands in.
void add(json_t* all, const char* name, const json_t* shape, const char* within,
         const json_t* delivered) {
    json_t* copy = json_deep_copy(shape);
    json_t* properties = json_object_get(copy, "properties");
    json_t* required = json_pack("[s,s,s,s]", "id", "name", "status", "delivery");
    json_object_set(properties, "delivery", json_object_get(delivered, name));
    if (within != nullptr) {
        json_object_set_new(properties, within, json_pack("{s:s}", "type", "integer"));
        json_array_append_new(required, json_string(within));
    }
    json_object_set_new(copy, "required", required);
    json_object_set_new(all, name, copy);
}

// A row of a report, or its total: figures with what they are of.
void add_row(json_t* all) {
    json_t* row = json_deep_copy(json_object_get(all, "Figures"));
    json_t* properties = json_object_get(row, "properties");
    for (const char* key : {"key", "key2"}) {
        json_object_set_new(properties, key, json_pack("{s:[s,s]}", "type", "string", "integer"));
    }
    for (const char* key : {"name", "name2"}) {
        json_object_set_new(properties, key, json_pack("{s:s}", "type", "string"));
    }
    json_object_set_new(properties, "previous",
                        json_pack("{s:s}", "$ref", "#/components/schemas/Figures"));
    json_object_set_new(all, "ReportRow", row);
}

void add_list(json_t* all, const std::string& name) {
    json_object_set_new(all, (name + "List").c_str(),
                        json_pack("{s:s,s:{s:s}}", "type", "array", "items", "$ref",
                                  ("#/components/schemas/" + name).c_str()));
}

}  // namespace

json_t* schemas() {
    const Json catalog = parsed(catalog::schema());
    const Json delivered = parsed(kDelivered);
    json_t* all = parsed(kOwn).release();
    for (json_t* own : {all, delivered.get()}) {
        close(own);
    }
    add_row(all);
    const json_t* campaign = items_of(catalog.get(), "campaigns");
    const json_t* group = items_of(campaign, "ad_groups");
    add(all, "Campaign", campaign, nullptr, delivered.get());
    add(all, "AdGroup", group, "campaign", delivered.get());
    add(all, "Creative", items_of(group, "creatives"), "ad_group", delivered.get());
    add(all, "Placement", items_of(catalog.get(), "placements"), nullptr, delivered.get());
    add(all, "Experiment", items_of(catalog.get(), "experiments"), "ad_group", delivered.get());
    for (const char* name :
         {"Advertiser", "Campaign", "AdGroup", "Creative", "Placement", "Experiment"}) {
        add_list(all, name);
    }
    return all;
}

}  // namespace ads::api
