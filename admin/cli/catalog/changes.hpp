// What an edit changed, for people and for programs.
#pragma once

#include <jansson.h>

#include <array>

#include "cli/catalog/diff.hpp"

namespace ads::cli {

// By ChangeKind.
inline constexpr auto kChangeKinds =
    std::to_array<std::string_view>({"added", "changed", "archived"});

// A value of a field; null if it is not there.
json_t* value_json(const std::string& text);

// Money in its currency; empty: none is set.
void show_changes(const std::vector<Change>& changes, const std::string& currency);
json_t* changes_json(const std::vector<Change>& changes);

}  // namespace ads::cli
