// The shape of a placement's week, learned from its requests: 168 hours, in UTC.
// It tells how the traffic of one day compares with another. Any local day,
// schedule or change of the clock is a set of UTC seconds, so one profile serves
// campaigns of every time zone, and a schedule of some hours is weighed by the
// traffic of those hours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/pacing/curve.hpp"

namespace ads::pacing {

inline constexpr size_t kWeekHours = 168;
inline constexpr double kHourSeconds = 3600;
inline constexpr double kWeekSeconds = 604'800;
inline constexpr double kWeekFloor = 0.02;      // of the mean hour
inline constexpr uint8_t kKnownWeeks = 2;       // before the profile is used
inline constexpr size_t kKnownWeekHours = 160;  // 95 %: so many hours have to be known that long

// The hour of the week in which a moment lies; the first is Thursday 00:00, as in 1970.
size_t week_hour(double moment) noexcept;

// Stored in the state. Zeroed memory is empty.
struct Week {
    std::array<float, kWeekHours> hours{};    // requests
    std::array<uint8_t, kWeekHours> weeks{};  // how many weeks each was learned from
    double hour = 0;                          // the one that is open, counted from 1970
    double count = 0;                         // requests in its closed bins
    uint32_t bins = 0;                        // how many those are
    uint32_t spare = 0;

    // Takes a bin that the placement's curve has closed. True if an hour was learned.
    // An hour of which more than one bin is missing is not learned: nginx was down,
    // not the traffic.
    bool add(const ClosedBin& bin) noexcept;

    // Whether two weeks are known.
    bool warm() const noexcept;

private:
    bool close() noexcept;
};

// The week as it is used: with a floor, summed up. To be made anew when an hour was
// learned.
class WeekSums {
public:
    WeekSums() noexcept = default;
    explicit WeekSums(const Week& week) noexcept;

    // Requests that are expected in [from, to), Unix seconds of any weeks.
    double mass(double from, double to) const noexcept { return until(to) - until(from); }

    // The same for the given seconds of each hour of the week.
    double mass(std::span<const uint32_t, kWeekHours> seconds) const noexcept;

    bool warm() const noexcept { return warm_; }

private:
    double until(double moment) const noexcept;

    std::array<double, kWeekHours + 1> sums_{};
    bool warm_ = false;
};

}  // namespace ads::pacing
