// The declarations of a style attribute.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ads::creative {

struct Style {
    std::string text;                  // the allowed declarations; empty: none
    std::vector<std::string> removed;  // properties of the removed ones
};

Style clean_style(std::string_view value);

}  // namespace ads::creative
