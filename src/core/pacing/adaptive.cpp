#include "core/pacing/adaptive.hpp"

#include <algorithm>

namespace ads::pacing {

namespace {

// Whether what still comes is likely to be too little: then hold nothing back.
double guard(const Outlook& o, const Delivery& d, double left_over) noexcept {
    const double noise = kNoise * o.supply;
    const double level = (d.seen + noise) / (o.supply * (o.passed - o.missed) + noise);
    const double to_come = level * o.supply * (1 - o.passed) * d.confirm;
    return to_come > 0 ? std::clamp((left_over / (d.unit * to_come) - 0.8) / 0.2, 0.0, 1.0) : 0;
}

}  // namespace

double adaptive(const Outlook& o, const Delivery& d, double previous) noexcept {
    const double left_over = d.amount - d.used;
    if (left_over < d.unit || left_over <= 0) {
        return 0;
    }
    const double left = std::max(1.0, o.total - o.elapsed);
    const double due = d.amount * (o.target_soon - o.target) / kAhead;
    const double behind = d.amount * o.target - d.used;
    const double rate = std::clamp(due + behind / std::min(kTau, std::max(10.0, left / 4)), 0.0,
                                   kKappa * std::max(due, left_over / left));
    const double offered = d.rate * d.unit * d.confirm;
    const double p = offered > 0 ? std::min(1.0, rate / offered) : previous;
    return std::max(p, guard(o, d, left_over));
}

}  // namespace ads::pacing
