#include "core/catalog/calendar.hpp"

// The library is built for the system's own database; its classes have another
// layout without this.
#define USE_OS_TZDB 1
#include <date/tz.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <new>

namespace ads::catalog {
namespace {

constexpr Seconds kDaySeconds = 86400;

// Days since 1970-01-01 of the date before Day 1.
constexpr int64_t kDayZero =
    (date::sys_days{date::year{2026} / 1 / 1} - date::days{1}).time_since_epoch().count();
constexpr int64_t kLastDay = kDayZero + std::numeric_limits<Day>::max();

// The farthest any clock is from UTC, and the longest jump (a whole day, when
// an island changes sides of the date line), with room to spare.
constexpr Seconds kMargin = 4 * kDaySeconds;

// Changes of the clock are known so far ahead; later ones move an hour of a goal's
// share by an hour.
constexpr Seconds kAhead = 400 * kDaySeconds;

// Of more flights than this the union is taken as if they all began and ended together.
constexpr size_t kMostFlights = 100;

constexpr int64_t floor_div(int64_t a, int64_t b) noexcept {
    return a / b - (a % b < 0 ? 1 : 0);
}

// 1970-01-01 was a Thursday.
constexpr unsigned weekday(int64_t local_day) noexcept {
    return static_cast<unsigned>(((local_day + 4) % 7 + 7) % 7);
}

bool always_utc(std::string_view name) noexcept {
    return name == "UTC" || name == "Etc/UTC";
}

date::sys_seconds at(Seconds t) {
    return date::sys_seconds{std::chrono::seconds{t}};
}

void add(Intervals& out, Seconds begin, Seconds end) {
    if (begin < end) {
        out.emplace_back(begin, end);
    }
}

void merge(Intervals& list) {
    std::sort(list.begin(), list.end());
    size_t kept = 0;
    for (size_t i = 0; i < list.size(); i++) {
        if (kept > 0 && list[i].first <= list[kept - 1].second) {
            list[kept - 1].second = std::max(list[kept - 1].second, list[i].second);
        } else {
            list[kept++] = list[i];
        }
    }
    list.resize(kept);
}

// When the schedule is open in [low, high), during which local time is UTC + offset.
void add_open(Intervals& open, const std::vector<Schedule>& schedule, Seconds offset, Seconds low,
              Seconds high) {
    // The day before may reach into this stretch by wrapping.
    const int64_t first = floor_div(low + offset, kDaySeconds) - 1;
    const int64_t last = floor_div(high - 1 + offset, kDaySeconds);
    for (const Schedule& item : schedule) {
        const Seconds wrap = item.to <= item.from ? kDaySeconds : 0;
        for (int64_t day = first; day <= last; day++) {
            if ((item.days >> weekday(day) & 1) == 0) {
                continue;
            }
            const Seconds midnight = day * kDaySeconds - offset;
            add(open, std::max(low, midnight + item.from * 60),
                std::min(high, midnight + wrap + item.to * 60));
        }
    }
}

// Of the flights that are on in all of [begin, end): when any of them is open.
Intervals open_together(const std::vector<Flight>& flights, bool few, Seconds offset, Seconds begin,
                        Seconds end) {
    Intervals open;
    for (const Flight& flight : flights) {
        const bool on = few ? flight.start <= begin && (flight.end == 0 || flight.end >= end)
                            : flight.start < end && (flight.end == 0 || flight.end > begin);
        if (on && flight.schedule.empty()) {
            return {{begin, end}};
        }
        if (on) {
            add_open(open, flight.schedule, offset, begin, end);
        }
    }
    merge(open);
    return open;
}

void count_hours(const Intervals& open, Seconds shift, Seconds times, WeekSeconds& out) {
    constexpr Seconds kHour = 3600;
    for (const auto& [begin, end] : open) {
        for (Seconds t = begin + shift; t < end + shift;) {
            const Seconds next = std::min(end + shift, (floor_div(t, kHour) + 1) * kHour);
            out[pacing::week_hour(static_cast<double>(t))] +=
                static_cast<uint32_t>(times * (next - t));
            t = next;
        }
    }
}

}  // namespace

bool timezone_exists(std::string_view name) {
    if (always_utc(name)) {
        return true;
    }
    // "localtime" is a link to the zone of this machine: one document would mean
    // different hours on two nodes.
    if (name.empty() || name == "localtime") {
        return false;
    }
    try {
        // Reading it is part of the question: the folder also holds other files.
        date::locate_zone(name)->get_info(at(0));
        return true;
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception&) {
        return false;
    }
}

Calendar::Calendar(const std::string& zone_name, Seconds from, Seconds to)
    : from_(from), to_(std::max(from, to)) {
    const Seconds begin = from_ - kMargin;
    // Reaches Day 1 even when `to` is long before it: see local_days.
    const Seconds end = std::max(to_, kDayZero * kDaySeconds) + kAhead;
    if (always_utc(zone_name)) {
        periods_.push_back({begin, end, 0});
        return;
    }
    const date::time_zone* zone = date::locate_zone(zone_name);
    for (Seconds t = begin; t < end;) {
        const date::sys_info info = zone->get_info(at(t));
        const Seconds until = std::min(end, Seconds{info.end.time_since_epoch().count()});
        periods_.push_back({t, until, info.offset.count()});
        t = until;
    }
}

const Calendar::Period& Calendar::period_at(Seconds t) const {
    const auto after =
        std::upper_bound(periods_.begin(), periods_.end(), t,
                         [](Seconds when, const Period& period) { return when < period.begin; });
    return after == periods_.begin() ? periods_.front() : *std::prev(after);
}

Seconds Calendar::offset(Seconds t) const {
    return period_at(t).offset;
}

// The first instant whose local date is `local_day` or later: midnight, or the
// jump that skipped it. Where the clock goes back over midnight and the date
// begins twice, it is the first time.
Seconds Calendar::first_instant(int64_t local_day) const {
    for (const Period& period : periods_) {
        const Seconds midnight = local_day * kDaySeconds - period.offset;
        if (midnight < period.end) {
            return std::max(midnight, period.begin);
        }
    }
    return local_day * kDaySeconds - periods_.back().offset;
}

DayTable Calendar::local_days() const {
    // A day early and late, because the date at an instant within a fold may
    // belong to a day that, by its first instant, is already over.
    int64_t day = floor_div(from_ + offset(from_), kDaySeconds) - 1;
    day = std::clamp(day, kDayZero + 1, kLastDay);
    while (day < kLastDay && first_instant(day + 1) <= from_) {
        day++;
    }
    DayTable table;
    table.first = static_cast<Day>(day - kDayZero);
    table.starts.push_back(first_instant(day));
    while (day < kLastDay && table.starts.back() <= to_) {
        table.starts.push_back(first_instant(++day));
    }
    return table;
}

Intervals Calendar::open_intervals(const std::vector<Schedule>& schedule,
                                   std::optional<Seconds> start, std::optional<Seconds> end) const {
    const Seconds begin = std::max(from_, start.value_or(from_));
    const Seconds until = std::min(to_, end.value_or(to_));
    Intervals open;
    if (schedule.empty()) {
        add(open, begin, until);
        return open;
    }
    for (const Period& period : periods_) {
        const Seconds low = std::max(begin, period.begin);
        const Seconds high = std::min(until, period.end);
        if (low >= high) {
            continue;
        }
        add_open(open, schedule, period.offset, low, high);
    }
    merge(open);
    return open;
}

WeekSeconds Calendar::open_seconds(std::vector<Flight> flights, Seconds begin, Seconds end) const {
    WeekSeconds seconds{};
    if (begin >= end) {
        return seconds;
    }
    std::sort(flights.begin(), flights.end());
    flights.erase(std::unique(flights.begin(), flights.end()), flights.end());
    const bool few = flights.size() <= kMostFlights;
    // Between two of these the same flights are on and the clock is not changed, so that
    // each week is like the other.
    std::vector<Seconds> bounds = {begin, end};
    const auto cut = [&](Seconds at) {
        if (begin < at && at < end) {
            bounds.push_back(at);
        }
    };
    for (const Period& period : periods_) {
        cut(period.begin);
    }
    for (const Flight& flight : flights) {
        if (few) {
            cut(flight.start);
            cut(flight.end);
        }
    }
    std::sort(bounds.begin(), bounds.end());
    constexpr Seconds kWeek = 7 * kDaySeconds;
    for (size_t i = 0; i + 1 < bounds.size(); i++) {
        const Seconds low = bounds[i];
        const Seconds high = bounds[i + 1];
        if (low == high) {
            continue;
        }
        const Seconds now = offset(low);
        const Seconds weeks = (high - low) / kWeek;
        if (weeks > 0) {
            count_hours(open_together(flights, few, now, low, low + kWeek), now - offset(from_),
                        weeks, seconds);
        }
        if (low + weeks * kWeek < high) {
            count_hours(open_together(flights, few, now, low + weeks * kWeek, high),
                        now - offset(from_), 1, seconds);
        }
    }
    return seconds;
}

Intervals joined(Intervals all) {
    std::sort(all.begin(), all.end());
    Intervals open;
    for (const auto& [from, to] : all) {
        if (!open.empty() && from <= open.back().second) {
            open.back().second = std::max(open.back().second, to);
        } else {
            open.emplace_back(from, to);
        }
    }
    return open;
}

DayTable local_days(const std::string& zone_name, Seconds from, Seconds to) {
    return Calendar(zone_name, from, to).local_days();
}

Intervals open_intervals(const std::string& zone_name, const std::vector<Schedule>& schedule,
                         std::optional<Seconds> start, std::optional<Seconds> end, Seconds from,
                         Seconds to) {
    return Calendar(zone_name, from, to).open_intervals(schedule, start, end);
}

}  // namespace ads::catalog
