// Validators of option values. Their messages state what is allowed.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "cli/common/arguments.hpp"
#include "cli/common/output.hpp"
#include "lib/base/http.hpp"
#include "lib/base/moment.hpp"
#include "lib/diagnosis/node_status.hpp"

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

// An http or https URL.
inline Validator is_web_address() {
    return Validator(web_address_fault, "URL");
}

inline Validator is_timeout() {
    return Validator(
        [](const std::string& text) {
            return parse_timeout(text)
                       ? std::string()
                       : fmt::format("must be a time of at most 1h such as 5s or 500ms, not \"{}\"",
                                     printable(text));
        },
        "TIME");
}

inline Validator is_moment_or_number() {
    return Validator(
        [](const std::string& text) {
            return parse_moment(text)
                       ? std::string()
                       : fmt::format(
                             "must be a time such as 2026-11-16T04:00:00Z or seconds "
                             "since 1970, not \"{}\"",
                             text);
        },
        "TIME");
}

inline void add_decision_time(Arguments& app, std::string& time) {
    app.add_option("--now", time,
                   "Time of the decision, RFC 3339 or seconds since 1970 (default now)")
        ->check(is_moment_or_number())
        ->option_text("TIME");
}

}  // namespace ads::cli
