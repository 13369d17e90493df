// The active time of one local day: the seconds in which the flight is on and
// the schedule open. Days of 23 and 25 hours need nothing special, a start or
// an end in the middle of the day neither: all is counted in seconds that are
// open, as a continuous quantity.
#pragma once

#include <algorithm>
#include <span>

#include "core/image/image.hpp"

namespace ads::pacing {

class ActiveDay {
public:
    ActiveDay() noexcept = default;

    // `open` is sorted and disjoint, as the image has it; [begin, end) is the
    // local day. Nothing is copied.
    ActiveDay(std::span<const Interval> open, Seconds begin, Seconds end) noexcept;

    Seconds begin() const noexcept { return begin_; }
    Seconds end() const noexcept { return end_; }

    // All active seconds of the day, and those before a moment.
    double total() const noexcept { return total_; }
    double elapsed(double now) const noexcept {
        return sum(now, [](double from, double to) { return to - from; });
    }

    // The moment at which this many active seconds have passed.
    double moment(double active) const noexcept;

    // The sum of mass(from, to) over the active time before a moment.
    template <class Mass>
    double sum(double until, Mass mass) const noexcept {
        double total = 0;
        for (const Interval& interval : open_) {
            const auto from = static_cast<double>(std::max(interval.open, begin_));
            if (from >= until) {
                break;
            }
            total +=
                mass(from, std::min(until, static_cast<double>(std::min(interval.close, end_))));
        }
        return total;
    }

private:
    std::span<const Interval> open_;  // those that touch the day
    Seconds begin_ = 0;
    Seconds end_ = 0;
    double total_ = 0;
};

}  // namespace ads::pacing
