// The weekly traffic profile of a placement, learned from its requests: 168 hours, in
// UTC. It compares the traffic of one day with that of another. Any local day,
// schedule or clock change is a set of UTC seconds, so one profile serves campaigns of
// every time zone, and a schedule of some hours is weighted by the traffic of those
// hours.
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
inline constexpr size_t kKnownWeekHours = 160;  // 95 %: this many hours must be known that long

// The hour of the week of a moment; the first is Thursday 00:00, as in 1970.
size_t week_hour(double moment) noexcept;

// Stored in the state. Zeroed memory is empty.
struct Week {
    std::array<float, kWeekHours> hours{};    // requests
    std::array<uint8_t, kWeekHours> weeks{};  // the number of weeks from which each was learned
    double hour = 0;                          // the current one, counted from 1970
    double count = 0;                         // requests in its closed bins
    uint32_t bins = 0;                        // their number
    uint32_t spare = 0;

    // Adds a bin that the placement's curve has closed. True if an hour was learned. An
    // hour with more than one missing bin is not learned: nginx was down, not the
    // traffic.
    bool add(const ClosedBin& bin) noexcept;

    // Whether two weeks are known.
    bool warm() const noexcept;

private:
    bool close() noexcept;
};

// The profile for lookups: with a floor, as prefix sums. To be rebuilt when an hour was
// learned.
class WeekSums {
public:
    WeekSums() noexcept = default;
    explicit WeekSums(const Week& week) noexcept;

    // Expected requests in [from, to), Unix seconds of any weeks.
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
