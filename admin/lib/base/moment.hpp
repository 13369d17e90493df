// Times to the millisecond, as text.
#pragma once

#include <jansson.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/base/types.hpp"

namespace ads::admin {

// RFC 3339, or a number since 1970: of seconds, possibly with a fraction, or, if that would be
// after the year 9999, of milliseconds.
std::optional<Millis> parse_moment(std::string_view text);
std::optional<Millis> moment_of(const json_t* json);

// The value of an option; empty: now.
Millis moment_or_now(const std::string& text);

// 2026-11-16T04:00:00.123Z, or a number of milliseconds if the year has more than four digits.
// `when` is not negative.
std::string moment_text(Millis when);

}  // namespace ads::admin
