// Slices of a valid JSON text, byte for byte: numbers keep their form, and
// nothing is copied. For invalid JSON the slices are meaningless, but within the
// text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ads::admin {

// The members of an object or the items of an array. The key of an item is empty; keys are as
// written, without quotes. Empty if the text is neither.
using Part = std::pair<std::string_view, std::string_view>;
std::vector<Part> parts_of(std::string_view json);

// The value of a member; empty if it is missing.
std::string_view member_of(std::string_view object, std::string_view key);

// Formatted with one line for each member and item.
std::string indented(std::string_view json);

}  // namespace ads::admin
