// Local time for the compiler: the start of each local day, and the openings of a schedule, as UTC
// seconds.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/types.hpp"
#include "core/catalog/model.hpp"
#include "core/pacing/week.hpp"

namespace ads::catalog {

// Whether the machine's time zone database knows the name. UTC needs no database.
bool timezone_exists(std::string_view name);

// The UTC second at which each local date begins. Day i lasts from starts[i] up to starts[i + 1];
// the last entry only ends the day before it.
struct DayTable {
    Day first = 1;  // of starts[0]
    std::vector<Seconds> starts;
};

// Sorted, disjoint, none touching the next; each open from first up to, but
// not including, second.
using Intervals = std::vector<std::pair<Seconds, Seconds>>;

// Seconds in each hour of the week.
using WeekSeconds = std::array<uint32_t, pacing::kWeekHours>;

// One time zone in the period [from, to]. Building it queries the time zone database; using it is
// arithmetic, so one object serves all campaigns of the zone.
class Calendar {
public:
    // Throws std::runtime_error for a zone that does not exist.
    Calendar(const std::string& zone_name, Seconds from, Seconds to);

    // Every day that touches [from, to], and the start of the next. Days before
    // 2026-01-01 have no number and are left out; if none is left, the table is
    // that one date's start.
    DayTable local_days() const;

    // When the flight is on and the local clock is in the schedule, within
    // [from, to). No schedule means always.
    Intervals open_intervals(const std::vector<Schedule>& schedule, std::optional<Seconds> start,
                             std::optional<Seconds> end) const;

    // How long any of the flights is open in [begin, end), by the hour of the week; `end` may be
    // after `to`. The hours are in UTC, shifted when the local offset differs from the one at
    // `from`, since traffic follows local time.
    WeekSeconds open_seconds(std::vector<Flight> flights, Seconds begin, Seconds end) const;

    // Seconds east of UTC at t, for t in [from, to].
    Seconds offset(Seconds t) const;

private:
    // A period in which local time is UTC + offset. Gaps and folds are between two periods, never
    // inside one.
    struct Period {
        Seconds begin;
        Seconds end;
        Seconds offset;
    };

    const Period& period_at(Seconds t) const;
    Seconds first_instant(int64_t local_day) const;

    Seconds from_;
    Seconds to_;
    std::vector<Period> periods_;  // contiguous, from before from_ to a year after to_
};

// The union of the openings.
Intervals joined(Intervals all);

DayTable local_days(const std::string& zone_name, Seconds from, Seconds to);

Intervals open_intervals(const std::string& zone_name, const std::vector<Schedule>& schedule,
                         std::optional<Seconds> start, std::optional<Seconds> end, Seconds from,
                         Seconds to);

}  // namespace ads::catalog
