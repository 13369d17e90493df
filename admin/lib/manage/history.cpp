#include "lib/manage/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/base/text.hpp"
#include "lib/catalog/changes_json.hpp"
#include "lib/manage/edits.hpp"
#include "lib/manage/history_row.hpp"
#include "lib/manage/read.hpp"

namespace ads::admin {

namespace {

constexpr int kMostChanges = 100;

// The entries of object $1.
std::string entries_of(Kind kind, bool all, bool experiments = true) {
    std::string where = fmt::format("(table_name = '{}' AND row_id = $1)", words_of(kind).table);
    if (kind == Kind::ad_group || (kind == Kind::campaign && all)) {
        const char* groups = kind == Kind::ad_group
                                 ? "SELECT $1::bigint"
                                 : "SELECT id FROM ads.ad_groups WHERE campaign_id = $1::bigint";
        where += fmt::format(
            " OR (table_name = 'ad_group_placements' AND row_id IN (SELECT g || '/' || p.id FROM "
            "({}) AS t (g), ads.placements p))",
            groups);
        if (all) {
            where += fmt::format(
                " OR (table_name = 'ad_groups' AND row_id IN (SELECT g::text FROM ({0}) AS t (g)))"
                " OR (table_name = 'creatives' AND row_id IN (SELECT k.id::text FROM ads.creatives "
                "k WHERE k.ad_group_id IN ({0})))",
                groups);
        }
        if (all && experiments) {
            where += fmt::format(
                " OR (table_name = 'experiments' AND row_id IN (SELECT e.id::text FROM "
                "ads.experiments e WHERE e.ad_group_id IN ({0})))",
                groups);
        }
    }
    if (kind == Kind::experiment) {
        where +=
            " OR (table_name = 'variants' AND row_id IN (SELECT e.id || '/' || k.id FROM "
            "ads.experiments e JOIN ads.creatives k ON k.ad_group_id = e.ad_group_id "
            "WHERE e.id = $1::bigint))";
    }
    return "(" + where + ")";
}

// With its id in place of a name.
HistoryQuery named(Database& database, HistoryQuery query) {
    if (query.kind != Kind::placement) {
        query.id = found_id(database, query.kind, query.id);
    }
    return query;
}

std::vector<HistoryEdit> read(Database& database, const std::string& where, uint64_t limit,
                              std::initializer_list<Param> params) {
    const Rows rows = database.run(
        fmt::format("SELECT id, ads.moment_text(at), actor, action, table_name, row_id, before, "
                    "after, at FROM ads.audit_log WHERE {} ORDER BY audit_log.id DESC{}",
                    where, limit == 0 ? "" : fmt::format(" LIMIT {}", limit)),
        params);
    std::vector<HistoryEdit> history;
    std::string moment;  // as exact as it is
    for (size_t i = 0; i < rows.size(); i++) {
        if (history.empty() || moment != rows.at(i, 8) || history.back().actor != rows.at(i, 2)) {
            history.push_back({std::string(rows.at(i, 0)),
                               std::string(rows.at(i, 1)),
                               std::string(rows.at(i, 2)),
                               {}});
            moment = rows.at(i, 8);
        }
        add_entry({rows.at(i, 3), rows.at(i, 4), rows.at(i, 5), rows.at(i, 6), rows.at(i, 7)},
                  history.back().changes);
    }
    for (auto& edit : history) {
        settle(edit.changes);
    }
    return history;
}

}  // namespace

std::vector<HistoryEdit> read_history(Database& database, const HistoryQuery& asked) {
    const HistoryQuery query = named(database, asked);
    auto history = read(database, entries_of(query.kind, query.all), query.limit, {query.id});
    if (history.empty()) {
        catalog_object(database, query.kind, query.id);  // says so if there is none
    }
    return history;
}

std::vector<HistoryEdit> read_audit(Database& database, const std::string& before,
                                    const std::string& actor, uint64_t limit) {
    return read(database,
                "($1 = '' OR audit_log.id < nullif($1, '')::bigint) AND ($2 = '' OR actor = $2)",
                limit, {before, actor});
}

json_t* history_json(const std::vector<HistoryEdit>& history) {
    json_t* list = json_array();
    for (const auto& edit : history) {
        json_t* item = json_object();
        json_object_set_new(item, "version", text_json(edit.version));
        json_object_set_new(item, "at", text_json(edit.at));
        json_object_set_new(item, "actor", text_json(edit.actor));
        json_object_set_new(item, "changes", changes_json(edit.changes));
        json_array_append_new(list, item);
    }
    return list;
}

std::string version_of(Database& database, Kind kind, const std::string& id) {
    return database.value(
        fmt::format("SELECT coalesce(max(audit_log.id), 0) FROM ads.audit_log WHERE {}",
                    entries_of(kind, true)),
        {id});
}

std::vector<HistoryEdit> changes_since(Database& database, Kind kind, const std::string& id,
                                       const std::string& version) {
    return read(database, entries_of(kind, true) + " AND audit_log.id > $2::bigint", kMostChanges,
                {id, version});
}

std::string version_before(Database& database, Kind kind, const std::string& id,
                           const std::string& entry) {
    const std::string where = entries_of(kind, true);
    const Rows rows = database.run(
        fmt::format("SELECT min(l.id) - 1 FROM (SELECT * FROM ads.audit_log WHERE {0}) l JOIN "
                    "(SELECT at, actor FROM ads.audit_log WHERE id = $2::bigint AND {0}) e "
                    "ON l.at = e.at AND l.actor = e.actor",
                    where),
        {id, entry});
    if (rows.null(0, 0)) {
        throw Failure(Exit::bad_input, fmt::format("version {} is not in the history of {}.", entry,
                                                   called(kind, id)));
    }
    return std::string(rows.at(0, 0));
}

Json object_at(Database& database, Kind kind, const std::string& id, const std::string& version) {
    const std::string entries = database.value(
        fmt::format("SELECT coalesce(array_agg(audit_log.id ORDER BY audit_log.id DESC), '{{}}') "
                    "FROM ads.audit_log WHERE audit_log.id > $2::bigint AND {}",
                    entries_of(kind, true, false)),
        {id, version});
    database.run("SAVEPOINT past");
    Json object;
    try {
        database.run("SELECT ads.undo($1)", {entries});
        object = catalog_object(database, kind, id);
    } catch (const NotFound&) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} did not exist at version {}.", called(kind, id), version));
    } catch (const SqlError& e) {
        if (!is_refusal(e)) {
            throw;
        }
        throw Failure(Exit::bad_input, fmt::format("{} cannot return to version {}: {}",
                                                   called(kind, id), version, e.what()));
    }
    database.run("ROLLBACK TO SAVEPOINT past");
    return object;
}

}  // namespace ads::admin
