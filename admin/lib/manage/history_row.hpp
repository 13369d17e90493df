// An entry of the audit log in the words of the catalog.
#pragma once

#include <string_view>
#include <vector>

#include "lib/catalog/diff.hpp"

namespace ads::admin {

struct LogEntry {
    std::string_view action;  // insert, update, delete, verdict
    std::string_view table;
    std::string_view id;
    std::string_view before;  // rows as JSON; empty: none
    std::string_view after;
};

// Adds what it changed, to the change of the same object if there is one. Entries come the newest
// first.
void add_entry(const LogEntry& entry, std::vector<Change>& changes);

// When all entries of an edit are there: the changes in the order in which they were made, without
// the fields of what is new.
void settle(std::vector<Change>& changes);

}  // namespace ads::admin
