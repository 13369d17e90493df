// Local time for the compiler: where the days of a time zone begin, and when a
// schedule is open, both as plain UTC seconds.
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

// The UTC second of a local date's first instant, day after day. Day i lasts
// from starts[i] up to starts[i + 1]; the last entry only ends the day before it.
struct DayTable {
    Day first = 1;  // of starts[0]
    std::vector<Seconds> starts;
};

// Sorted, disjoint, none touching the next; each open from first up to, but
// not including, second.
using Intervals = std::vector<std::pair<Seconds, Seconds>>;

// So many seconds of each hour of the week.
using WeekSeconds = std::array<uint32_t, pacing::kWeekHours>;

// One time zone over one stretch of time [from, to]. Building it asks the
// database; using it is arithmetic, so one serves all campaigns of the zone.
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

    // How long any of the flights is open in [begin, end), which may lie beyond `to`, by
    // the hour of the week. The hours are those of UTC as long as the local clock is
    // set as it is at `from`; later they move with it, as traffic does.
    WeekSeconds open_seconds(std::vector<Flight> flights, Seconds begin, Seconds end) const;

    // Seconds east of UTC at t, for t in [from, to].
    Seconds offset(Seconds t) const;

private:
    // A stretch during which local time is UTC + offset. Gaps and folds lie
    // between two periods, never inside one.
    struct Period {
        Seconds begin;
        Seconds end;
        Seconds offset;
    };

    const Period& period_at(Seconds t) const;
    Seconds first_instant(int64_t local_day) const;

    Seconds from_;
    Seconds to_;
    std::vector<Period> periods_;  // without a hole, from before from_ to a year after to_
};

// When any of them is open.
Intervals joined(Intervals all);

DayTable local_days(const std::string& zone_name, Seconds from, Seconds to);

Intervals open_intervals(const std::string& zone_name, const std::vector<Schedule>& schedule,
                         std::optional<Seconds> start, std::optional<Seconds> end, Seconds from,
                         Seconds to);

}  // namespace ads::catalog
