#include "core/pacing/active_day.hpp"

namespace ads::pacing {

ActiveDay::ActiveDay(std::span<const Interval> open, Seconds begin, Seconds end) noexcept
    : begin_(begin), end_(end) {
    const auto first = std::partition_point(open.begin(), open.end(),
                                            [&](const Interval& i) { return i.close <= begin; });
    const auto last =
        std::partition_point(first, open.end(), [&](const Interval& i) { return i.open < end; });
    open_ = {first, last};
    total_ = elapsed(static_cast<double>(end));
}

double ActiveDay::moment(double active) const noexcept {
    auto last = static_cast<double>(begin_);
    for (const Interval& interval : open_) {
        const auto from = static_cast<double>(std::max(interval.open, begin_));
        const auto to = static_cast<double>(std::min(interval.close, end_));
        if (active <= to - from) {
            return from + std::max(0.0, active);
        }
        active -= to - from;
        last = to;
    }
    return last;
}

}  // namespace ads::pacing
