// The content of a <style> element.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ads::creative {

struct Sheet {
    std::string text;                  // rules of plain selectors; empty if there are none
    std::vector<std::string> removed;  // for people: "@media in <style>"
};

// Cleaning what is clean changes nothing.
Sheet clean_sheet(std::string_view css);

}  // namespace ads::creative
