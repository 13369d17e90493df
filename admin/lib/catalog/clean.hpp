// Creatives on their way into the database: markup is cleaned, a third party's
// address is checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ads::admin {

// What was taken out of a creative.
struct Removed {
    uint64_t creative = 0;
    std::vector<std::string> what;  // "onclick on <img>"
};

// The markup as it may be stored. Throws Failure if all of it is refused.
std::string clean_markup(uint64_t creative, std::string_view markup, std::vector<Removed>& removed);

// Throws Failure for an address that nothing may be fetched from.
void check_pixel(uint64_t creative, std::string_view url);

// A valid catalog document, all else in it byte for byte as it was.
std::string clean_document(std::string_view document, std::vector<Removed>& removed);

}  // namespace ads::admin
