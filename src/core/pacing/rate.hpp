// Events per second, as two averages: the fast one follows a burst within seconds, the slow one
// remembers it.
#pragma once

#include <algorithm>
#include <cmath>

namespace ads::pacing {

inline constexpr double kFastHalfLife = 3;
inline constexpr double kSlowHalfLife = 60;

// Zeroed memory is an unknown rate.
struct Rate {
    double fast = 0;
    double slow = 0;
    bool known = false;

    // Adds a number of events in `seconds`; the first ones set both averages.
    void add(double count, double seconds) noexcept {
        if (!(seconds > 0)) {
            return;
        }
        const double now = count / seconds;
        fast = known ? blend(fast, now, seconds / kFastHalfLife) : now;
        slow = known ? blend(slow, now, seconds / kSlowHalfLife) : now;
        known = true;
    }

    // A tick observed this many events within its last `period`, `seconds` after the last tick that
    // observed any. Silence is not counted until it ends: one or two events are spread over it,
    // several at once are returning traffic.
    void tick(double count, double seconds, double period) noexcept {
        if (!(count > 0) || !(seconds > 0)) {
            return;
        }
        period = std::min(period, seconds);
        const bool back = count >= kSeveral && seconds > kSilence * period;
        add(count, back ? period : seconds);
        if (back) {
            fast = count / period;
        }
    }

    double value() const noexcept { return std::max(fast, slow); }

private:
    static constexpr double kSeveral = 3;
    static constexpr double kSilence = 20;  // periods

    static double blend(double old, double now, double half_lives) noexcept {
        return now + (old - now) * std::exp2(-half_lives);
    }
};

}  // namespace ads::pacing
