// Local dates and times of a campaign's time zone. A date stands for the whole day: as a start for
// its first instant, as an end for the first instant of the next day.
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

// The text that parse_local() reads as this moment: a date if the moment is the start of one.
std::string local_text(Seconds when, const std::string& zone, Edge edge);

// The moment with the same local date and time in another zone.
Seconds moved(Seconds when, const std::string& from, const std::string& to);

}  // namespace ads::admin
