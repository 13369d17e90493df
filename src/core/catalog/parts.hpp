// Cutting the text of a document apart, so that the items of a list can be
// parsed one by one. Nothing is checked here: of well-formed JSON the pieces are the right ones,
// and what is not well-formed leaves a piece that is not, for the parser to refuse.
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

// Takes the list `key` out of the object that `text` is. Nothing if there is none.
std::optional<Cut> cut_list(std::string_view text, std::string_view key);

}  // namespace ads::catalog
