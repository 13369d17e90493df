// The content of a <style> element.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ads::creative {

struct Sheet {
    std::string text;                  // rules with simple selectors; empty: none
    std::vector<std::string> removed;  // for people: "@media in <style>"
};

// Sanitizing twice gives the same result.
Sheet clean_sheet(std::string_view css);

}  // namespace ads::creative
