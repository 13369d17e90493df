// The strategies except `adaptive`, and the status of pacing. Spend and serves are treated alike,
// as the used part of an amount.
#pragma once

#include <algorithm>

#include "core/base/types.hpp"

namespace ads {

enum class PaceStatus : uint8_t { under_pace, on_pace, over_pace };

template <>
struct Names<PaceStatus> {
    static constexpr auto list =
        std::to_array<std::string_view>({"under_pace", "on_pace", "over_pace"});
};

}  // namespace ads

namespace ads::pacing {

inline constexpr double kUnderPace = 0.8;
inline constexpr double kOnPace = 1.2;

// Used amount relative to the ideal; exceeding it by one price is not too fast.
double utilization(double used, double ideal, double unit) noexcept;

constexpr PaceStatus pace_status(double utilization) noexcept {
    return utilization <= kUnderPace ? PaceStatus::under_pace
           : utilization <= kOnPace  ? PaceStatus::on_pace
                                     : PaceStatus::over_pace;
}

// No throttling up to 1.2 times the ideal, then one in `utilization`
// requests is served; nothing at the stop.
double probabilistic(double used, double utilization, double stop) noexcept;

// As much as the cap allows, as fast as possible.
inline double asap(double used, double cap) noexcept {
    return used < cap ? 1 : 0;
}

// The amount allowed by now: the cap grows with the day.
inline double even_limit(double cap, double elapsed, double total) noexcept {
    return total > 0 ? cap * std::min(1.0, elapsed / total) : 0;
}

// A PID controller that is independent of the interval between its steps.
struct Pid {
    static constexpr double kp = 0.6;
    static constexpr double ki = 0.2;
    static constexpr double kd = 0.2;
    static constexpr double kMinute = 60;
    static constexpr double kMostIntegral = 5;

    double integral = 0;
    double error = 0;
    bool started = false;

    // `seconds` since the last step; returns the probability until the next.
    double step(double used, double target, double seconds) noexcept;
};

}  // namespace ads::pacing
