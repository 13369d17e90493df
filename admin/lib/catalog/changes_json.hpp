// The changes of an edit, for programs.
#pragma once

#include <jansson.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lib/catalog/clean.hpp"
#include "lib/catalog/diff.hpp"

namespace ads::admin {

// Grouped by ChangeKind.
inline constexpr auto kChangeKinds =
    std::to_array<std::string_view>({"added", "changed", "archived"});

// A value of a field; null if it is missing.
json_t* value_json(const std::string& text);

json_t* changes_json(const std::vector<Change>& changes);
json_t* removed_json(const std::vector<Removed>& removed);

}  // namespace ads::admin
