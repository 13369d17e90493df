// Checks of option values whose messages say what would be right.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <string>
#include "cli/common/arguments.hpp"

namespace ads::cli {

inline Validator whole_number(uint64_t least, uint64_t most) {
    return Validator(
        [=](const std::string& text) {
            uint64_t value = 0;
            const char* end = text.data() + text.size();
            const auto parsed = std::from_chars(text.data(), end, value);
            if (parsed.ec == std::errc() && parsed.ptr == end && value >= least && value <= most) {
                return std::string();
            }
            return fmt::format("must be a whole number from {} to {}, not \"{}\"", least, most,
                               text);
        },
        "N");
}

}  // namespace ads::cli
