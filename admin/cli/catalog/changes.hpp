// The changes of an edit, as text.
#pragma once

#include "cli/common/output.hpp"
#include "lib/catalog/changes_json.hpp"

namespace ads::cli {

// Amounts are printed in `currency`; empty: none is set.
void show_changes(const std::vector<Change>& changes, const std::string& currency);

// A field of a change: "price.amount: 2.50 EUR -> 3.00 EUR".
std::string shown_field(const Change& change, const FieldChange& field,
                        const std::string& currency);

// Prints a line for each change to standard error.
void tell_removed(const std::vector<Removed>& removed);

}  // namespace ads::cli
