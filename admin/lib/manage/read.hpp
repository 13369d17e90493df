// One object, and its history. Objects are named by their id, or by a name that only one of them
// has. All throw NotFound and SqlError.
#pragma once

#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/manage/kinds.hpp"

namespace ads::admin {

// As in the catalog, with its delivery. An ad group and a creative have what they stand in.
Json read_object(Database& database, Kind kind, const std::string& id);

struct HistoryQuery {
    Kind kind = Kind::campaign;
    std::string id;
    bool all = false;    // what is below, too
    uint64_t limit = 0;  // 0: no limit
};

// Who changed what, and when, the newest first: at, actor, action, table, id, before, after. What
// is gone, and what never was, has a history by its id alone.
Rows read_history(Database& database, const HistoryQuery& query);
std::string history_json(Database& database, const HistoryQuery& query);  // the same, an array

// The version of an object: the last entry of the audit log that is about it or about what is below
// it; "0" without one.
std::string version_of(Database& database, Kind kind, const std::string& id);

// What was done since that version, as history_json() has it, at most 100 entries.
std::string changes_since(Database& database, Kind kind, const std::string& id,
                          const std::string& version);

}  // namespace ads::admin
