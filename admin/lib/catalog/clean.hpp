// Checks creatives before they are stored: markup is sanitized, and the URLs of third parties are
// checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ads::admin {

// What was removed from a creative.
struct Removed {
    uint64_t creative = 0;
    std::vector<std::string> what;  // "onclick on <img>"
};

// The sanitized markup. Throws Failure if all of it is refused.
std::string clean_markup(uint64_t creative, std::string_view markup, std::vector<Removed>& removed);

// Throws Failure for a URL that dispatch would refuse.
void check_pixel(uint64_t creative, std::string_view url);

// Sanitizes a valid catalog document; everything else in it is unchanged, byte for byte.
std::string clean_document(std::string_view document, std::vector<Removed>& removed);

}  // namespace ads::admin
