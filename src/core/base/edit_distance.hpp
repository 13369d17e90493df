// How similar two words are, to suggest the one that was meant.
#pragma once

#include <cstddef>
#include <string_view>

namespace ads {

// The number of edits from a to b: insert, delete, replace, swap neighbours.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace ads
