// Suggestions for misspelled words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ads::admin {

// The one of `known` that is most like the word; empty if none is.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace ads::admin
