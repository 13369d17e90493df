// Suggestions for misspelled words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ads::admin {

// The most similar of `known`; empty if none is similar.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace ads::admin
