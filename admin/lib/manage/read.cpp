#include "lib/manage/read.hpp"

#include <fmt/format.h>

#include "lib/catalog/catalog_list.hpp"
#include "lib/manage/edits.hpp"

namespace ads::admin {

namespace {

constexpr int kMostChanges = 100;

[[noreturn]] void not_there(Kind kind, const std::string& id) {
    throw NotFound(fmt::format("there is no {}.", called(kind, id)));
}

Json document_of(Database& database, uint64_t campaign) {
    const std::string text =
        database.value("SELECT ads.campaign_document($1)", {std::to_string(campaign)});
    return Json(json_loadb(text.data(), text.size(), 0, nullptr));
}

Json placement_object(Database& database, const std::string& id) {
    const Json document = document_of(database, 0);
    size_t i = 0;
    json_t* item = nullptr;
    json_array_foreach(json_object_get(document.get(), "placements"), i, item) {
        if (text_at(item, "id") == id) {
            return Json(json_incref(item));
        }
    }
    not_there(Kind::placement, id);
}

// As in the catalog; an ad group and a creative name their parent.
Json object_of(Database& database, Kind kind, const std::string& id) {
    if (kind == Kind::advertiser) {
        Json object = advertiser_object(database, id);
        return object ? std::move(object) : throw no_such(database, kind, id);
    }
    if (kind == Kind::placement) {
        return placement_object(database, id);
    }
    const uint64_t number = id_of(kind, id);
    const Place place =
        kind == Kind::campaign ? Place{number, 0} : place_of(database, kind, number);
    const Json document = document_of(database, place.campaign);
    json_t* found = json_array_get(json_object_get(document.get(), "campaigns"), 0);
    if (found == nullptr) {
        not_there(kind, id);
    }
    if (kind == Kind::campaign) {
        return Json(json_incref(found));
    }
    if (kind == Kind::experiment) {
        return Json(json_incref(with_id(json_object_get(document.get(), "experiments"), number)));
    }
    found = with_id(json_object_get(found, "ad_groups"), place.group);
    if (kind == Kind::creative) {
        found = with_id(json_object_get(found, "creatives"), number);
    }
    json_object_set_new(found, words_of(kind).parent,
                        number_json(kind == Kind::ad_group ? place.campaign : place.group));
    return Json(json_incref(found));
}

// Of $1.
std::string entries_of(const HistoryQuery& query) {
    std::string where =
        fmt::format("(table_name = '{}' AND row_id = $1)", words_of(query.kind).table);
    if (query.kind == Kind::ad_group || (query.kind == Kind::campaign && query.all)) {
        const char* groups = query.kind == Kind::ad_group
                                 ? "SELECT $1::bigint"
                                 : "SELECT id FROM ads.ad_groups WHERE campaign_id = $1::bigint";
        where += fmt::format(
            " OR (table_name = 'ad_group_placements' AND row_id IN (SELECT g || '/' || p.id FROM "
            "({}) AS t (g), ads.placements p))",
            groups);
        if (query.all) {
            where += fmt::format(
                " OR (table_name = 'ad_groups' AND row_id IN (SELECT g::text FROM ({0}) AS t (g)))"
                " OR (table_name = 'creatives' AND row_id IN (SELECT k.id::text FROM ads.creatives "
                "k WHERE k.ad_group_id IN ({0})))"
                " OR (table_name = 'experiments' AND row_id IN (SELECT e.id::text FROM "
                "ads.experiments e WHERE e.ad_group_id IN ({0})))",
                groups);
        }
    }
    if (query.kind == Kind::experiment) {
        where +=
            " OR (table_name = 'variants' AND row_id IN (SELECT e.id || '/' || k.id FROM "
            "ads.experiments e JOIN ads.creatives k ON k.ad_group_id = e.ad_group_id "
            "WHERE e.id = $1::bigint))";
    }
    return where;
}

constexpr const char* kEntry =
    "SELECT ads.moment_text(at) AS at, actor, action, table_name AS \"table\", row_id AS id, "
    "before, after FROM ads.audit_log";

std::string history_sql(const HistoryQuery& query) {
    return fmt::format("{} WHERE {} ORDER BY audit_log.id DESC{}", kEntry, entries_of(query),
                       query.limit == 0 ? "" : fmt::format(" LIMIT {}", query.limit));
}

std::string as_array(const std::string& sql) {
    return fmt::format("SELECT coalesce(json_agg(to_json(list)), '[]') FROM ({}) list", sql);
}

// With its id in place of a name.
HistoryQuery named(Database& database, HistoryQuery query) {
    if (query.kind != Kind::placement) {
        query.id = found_id(database, query.kind, query.id);
    }
    return query;
}

}  // namespace

Json read_object(Database& database, Kind kind, const std::string& text) {
    const std::string id = found_id(database, kind, text);
    Json object = object_of(database, kind, id);
    if (Json delivery = delivery_of(database, kind, id)) {
        json_object_set_new(object.get(), kDelivery, delivery.release());
    }
    return object;
}

Rows read_history(Database& database, const HistoryQuery& asked) {
    const HistoryQuery query = named(database, asked);
    Rows rows = database.run(history_sql(query), {query.id});
    if (rows.empty()) {
        object_of(database, query.kind, query.id);  // says so if there is none
    }
    return rows;
}

std::string history_json(Database& database, const HistoryQuery& asked) {
    const HistoryQuery query = named(database, asked);
    const std::string text = database.value(as_array(history_sql(query)), {query.id});
    if (text == "[]") {
        object_of(database, query.kind, query.id);
    }
    return text;
}

std::string version_of(Database& database, Kind kind, const std::string& id) {
    return database.value(fmt::format("SELECT coalesce(max(audit_log.id), 0) FROM ads.audit_log "
                                      "WHERE {}",
                                      entries_of({kind, id, true})),
                          {id});
}

std::string changes_since(Database& database, Kind kind, const std::string& id,
                          const std::string& version) {
    return database.value(
        as_array(fmt::format("{} WHERE ({}) AND audit_log.id > $2::bigint ORDER BY audit_log.id "
                             "DESC LIMIT {}",
                             kEntry, entries_of({kind, id, true}), kMostChanges)),
        {id, version});
}

}  // namespace ads::admin
