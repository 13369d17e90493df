// Cuts the text of a document into pieces, so that the items of a list can be parsed one by
// one. It does not validate: malformed JSON yields a malformed piece, which the parser
// refuses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ads::catalog {

struct Cut {
    std::string rest;  // the document with an empty list in place of the items
    std::vector<std::string_view> items;
};

// Takes the list `key` out of the object `text`; empty without one.
std::optional<Cut> cut_list(std::string_view text, std::string_view key);

}  // namespace ads::catalog
