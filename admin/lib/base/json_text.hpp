// Parts of a JSON text that is known to be valid, byte for byte: numbers stay
// as they are written, and nothing is copied. Of one that is not, parts make no
// sense, but are parts of it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ads::admin {

// The members of an object or the items of an array. An item's key is empty;
// a key is as it is written, without its quotes. Nothing if it is neither.
using Part = std::pair<std::string_view, std::string_view>;
std::vector<Part> parts_of(std::string_view json);

// A member's value; empty if it is not there.
std::string_view member_of(std::string_view object, std::string_view key);

// With a line for each member and item.
std::string indented(std::string_view json);

}  // namespace ads::admin
