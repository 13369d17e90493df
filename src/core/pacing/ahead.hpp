// The remaining time of a goal or a lifetime budget, and today's part of
// it.
#pragma once

#include <span>

#include "core/image/image.hpp"
#include "core/pacing/week.hpp"

namespace ads::pacing {

// The active time from today on.
struct Ahead {
    std::span<const Interval> open;   // of the next eight days, as in the image
    std::span<const uint32_t> later;  // seconds after those, by hour of the week; empty: none
    Seconds start = 0;                // of the flight
    Seconds end = 0;                  // 0: none, thirty days are assumed
};

// The expected supply of [from, day_end) divided by that of all active time from then on: by the
// learned traffic of `weeks` if all of them are warm, else by active time only.
double todays_part(const Ahead& ahead, std::span<const WeekSums* const> weeks, Seconds from,
                   Seconds day_end) noexcept;

// Today's part of a limit, fixed when the day begins. Zeroed memory has no day.
struct DayShare {
    Seconds from = 0;  // start of the part: of the day, or when the limit was created
    double part = 0;
    uint64_t key = 0;  // of the flight from which it was computed
    Day day = 0;
};

}  // namespace ads::pacing
