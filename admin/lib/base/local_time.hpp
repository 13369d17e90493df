// Moments as people of a campaign say them: dates and times of its time zone. A date is all
// of its day: a start is its first instant, an end the first instant of the day after.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/types.hpp"

namespace ads::admin {

enum class Edge { start, end };

// "2026-11-18", "2026-11-18 18:30" (or with a T, or with seconds), or RFC 3339. A time that the
// clocks skip is the moment they do, one that comes twice is the first. The zone must exist.
std::optional<Seconds> parse_local(std::string_view text, const std::string& zone, Edge edge);

// What parse_local() reads as this moment: a date if it is the edge of one.
std::string local_text(Seconds when, const std::string& zone, Edge edge);

// The moment with the same local date and time in another zone.
Seconds moved(Seconds when, const std::string& from, const std::string& to);

}  // namespace ads::admin
