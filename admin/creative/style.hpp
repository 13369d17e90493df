// The declarations of a style attribute.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ads::creative {

struct Style {
    std::string text;                  // the good declarations; empty if there are none
    std::vector<std::string> removed;  // properties of the bad ones
};

Style clean_style(std::string_view value);

}  // namespace ads::creative
