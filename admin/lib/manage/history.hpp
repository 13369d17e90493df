// Who changed what, from the audit log: an edit at a time, its fields named as in the catalog.
// Objects are named by their id, or by a name that only one of them has. All throw NotFound and
// SqlError.
#pragma once

#include <string>
#include <vector>

#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/catalog/diff.hpp"
#include "lib/manage/kinds.hpp"

namespace ads::admin {

// What one person changed in one transaction.
struct HistoryEdit {
    std::string version;  // the last entry of the audit log
    std::string at;
    std::string actor;
    std::vector<Change> changes;
};

struct HistoryQuery {
    Kind kind = Kind::campaign;
    std::string id;
    bool all = false;    // with what is below it
    uint64_t limit = 0;  // entries of the log; 0: no limit
};

// The newest first. What is gone has a history by its id alone.
std::vector<HistoryEdit> read_history(Database& database, const HistoryQuery& query);

// Of all objects: those before an entry, those by an actor; empty: all.
std::vector<HistoryEdit> read_audit(Database& database, const std::string& before,
                                    const std::string& actor, uint64_t limit);

json_t* history_json(const std::vector<HistoryEdit>& history);

// The version of an object: the last entry of the audit log that is about it or about what is below
// it; "0" without one.
std::string version_of(Database& database, Kind kind, const std::string& id);

// What was done since that version; at most 100 entries.
std::vector<HistoryEdit> changes_since(Database& database, Kind kind, const std::string& id,
                                       const std::string& version);

// The version that an object had before the edit that this entry belongs to. Throws Failure if the
// entry is of something else.
std::string version_before(Database& database, Kind kind, const std::string& id,
                           const std::string& entry);

// The object as the catalog had it at that version, and what it stands in. In a transaction, which
// is as before afterwards. Throws Failure.
Json object_at(Database& database, Kind kind, const std::string& id, const std::string& version);

}  // namespace ads::admin
