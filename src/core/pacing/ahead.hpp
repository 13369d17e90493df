// What a goal or a lifetime budget still has ahead of it, and which part of that is
// today's.
#pragma once

#include <span>

#include "core/image/image.hpp"
#include "core/pacing/week.hpp"

namespace ads::pacing {

// When it may be used, from today on.
struct Ahead {
    std::span<const Interval> open;   // of the next days: eight, as the image has it
    std::span<const uint32_t> later;  // seconds after those, by hour of the week; empty: none
    Seconds start = 0;                // of the flight
    Seconds end = 0;                  // 0: none, then thirty days count
};

// The expected supply of [from, day_end) over that of all that is ahead from then on. By
// the learned traffic of `weeks` if all of them are warm, else by active time alone.
double todays_part(const Ahead& ahead, std::span<const WeekSums* const> weeks, Seconds from,
                   Seconds day_end) noexcept;

// Today's part of a limit, fixed when the day begins. Zeroed memory is of no day.
struct DayShare {
    Seconds from = 0;  // since when it counts: the day's start, or when the limit came
    double part = 0;
    uint64_t key = 0;  // of the flight it was computed for
    Day day = 0;
};

}  // namespace ads::pacing
