#include "core/pacing/ahead.hpp"

#include <algorithm>
#include <numeric>

#include "core/pacing/active_day.hpp"

namespace ads::pacing {

namespace {

constexpr Seconds kDay = 86'400;

class Mass {
public:
    Mass(const Ahead& ahead, std::span<const WeekSums* const> weeks) noexcept
        : ahead_(ahead), weeks_(weeks) {
        if (!std::all_of(weeks.begin(), weeks.end(), [](const auto* w) { return w->warm(); })) {
            weeks_ = {};
        }
    }

    double between(Seconds from, Seconds to) const noexcept {
        const ActiveDay time(ahead_.open, from, to);
        return weeks_.empty() ? time.total()
                              : time.sum(static_cast<double>(to), [this](double a, double b) {
                                    return sum([&](const WeekSums& w) { return w.mass(a, b); });
                                });
    }

    double later() const noexcept {
        if (ahead_.later.size() != kWeekHours) {
            return 0;
        }
        if (weeks_.empty()) {
            return std::accumulate(ahead_.later.begin(), ahead_.later.end(), 0.0);
        }
        const std::span<const uint32_t, kWeekHours> seconds(ahead_.later);
        return sum([&](const WeekSums& w) { return w.mass(seconds); });
    }

private:
    template <class F>
    double sum(F mass) const noexcept {
        double total = 0;
        for (const WeekSums* week : weeks_) {
            total += mass(*week);
        }
        return total;
    }

    const Ahead& ahead_;
    std::span<const WeekSums* const> weeks_;
};

}  // namespace

double todays_part(const Ahead& ahead, std::span<const WeekSums* const> weeks, Seconds from,
                   Seconds day_end) noexcept {
    from = std::max(from, ahead.start);
    if (ahead.open.empty() || from >= day_end) {
        return 0;
    }
    const Mass mass(ahead, weeks);
    const double today = mass.between(from, day_end);
    if (today <= 0) {
        return 0;
    }
    double all = 0;
    if (ahead.end == 0) {
        // Thirty days are four weeks, each like the next one, and two days.
        all = 4 * mass.between(from, from + 7 * kDay) + mass.between(from, from + 2 * kDay);
    } else {
        all = mass.between(from, std::max(day_end, ahead.open.back().close)) + mass.later();
    }
    return std::min(1.0, today / std::max(all, today));
}

}  // namespace ads::pacing
