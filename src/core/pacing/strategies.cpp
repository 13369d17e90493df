#include "core/pacing/strategies.hpp"

#include <limits>

namespace ads::pacing {

double utilization(double used, double ideal, double unit) noexcept {
    const double base = std::max(ideal, unit);
    if (base > 0) {
        return used / base;
    }
    return used > 0 ? std::numeric_limits<double>::infinity() : 0;
}

double probabilistic(double used, double utilization, double stop) noexcept {
    if (used >= stop) {
        return 0;
    }
    return utilization <= kOnPace ? 1 : 1 / utilization;
}

double Pid::step(double used, double target, double seconds) noexcept {
    const double now = 1 - used / std::max(1.0, target);
    const bool moves = started && seconds > 0;
    const double slope = moves ? (now - error) / seconds : 0;
    integral = std::clamp(integral + (moves ? now * seconds / kMinute : 0), 0.0, kMostIntegral);
    error = now;
    started = true;
    return std::clamp(kp * now + ki * integral + kd * kMinute * slope, 0.0, 1.0);
}

}  // namespace ads::pacing
