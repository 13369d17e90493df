// Times to the millisecond, as text.
#pragma once

#include <jansson.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/base/types.hpp"

namespace ads::admin {

// RFC 3339, or a number since 1970: of seconds, perhaps with a fraction, or if
// that would be after the year 9999, of milliseconds.
std::optional<Millis> parse_moment(std::string_view text);
std::optional<Millis> moment_of(const json_t* json);

// Of an option: now if it is empty.
Millis moment_or_now(const std::string& text);

// 2026-11-16T04:00:00.123Z; a number of milliseconds for what could not be read
// back, in a far future. `when` is not negative.
std::string moment_text(Millis when);

}  // namespace ads::admin
