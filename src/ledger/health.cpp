#include "ledger/health.hpp"

#include <algorithm>

namespace ads {

namespace {

constexpr Seconds kLasts = 60;

// Where a sign is a warning or an alert, and how far within that it has to be again
// to be over.
struct Thresholds {
    double worst_low;
    double low;
    double high;
    double worst_high;
    double margin;
    Seconds lasts;  // so long, before it is believed

    HealthState of(double value, HealthState was) const noexcept {
        const auto outside = [&](HealthState level, double from, double to) {
            const double inner = was >= level ? margin : 0;
            return value < from + inner || value > to - inner;
        };
        return outside(HealthState::alert, worst_low, worst_high) ? HealthState::alert
               : outside(HealthState::warning, low, high)         ? HealthState::warning
                                                                  : HealthState::ok;
    }
};

constexpr std::array<Thresholds, kCount<Sign>> kThresholds = {{
    {0.95, 1.0, 1.15, 1.2, 0.02, kLasts},
    {-1, -1, 30, 60, 10, kLasts},
    {-1, -1, 0, 0, 0, 0},  // a count, which is right at once
}};

}  // namespace

void HealthMemory::follow(HealthState wanted, Seconds now, Seconds lasts) noexcept {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    const HealthState is = state.load(kRelaxed);
    if (wanted == is) {
        since.store(0, kRelaxed);
        return;
    }
    // Unknown, or good for the first time.
    if (wanted == HealthState::unknown ||
        (is == HealthState::unknown && wanted == HealthState::ok)) {
        state.store(wanted, kRelaxed);
        since.store(0, kRelaxed);
        return;
    }
    const Seconds began = since.load(kRelaxed);
    // A value that goes on to get worse does not start the minute again.
    const bool same = began != 0 && began <= now && (next.load(kRelaxed) > is) == (wanted > is);
    next.store(wanted, kRelaxed);
    if (!same) {
        since.store(now, kRelaxed);
    }
    if (now - (same ? began : now) >= lasts) {
        state.store(wanted, kRelaxed);
        since.store(0, kRelaxed);
    }
}

uint64_t Health::read(const Hours& hours, Seconds now) noexcept {
    uint64_t sum = 0;
    for (const Seconds at : {now, now - 3600}) {
        const DayCount count(
            hours[static_cast<size_t>(at / 3600) & 1].load(std::memory_order_relaxed));
        sum += count.day() == hour_of(at) ? count.used() : 0;
    }
    return sum;
}

bool Health::value(Sign sign, Seconds now, double& value) const noexcept {
    const uint64_t serves = read(serves_, now);
    const uint64_t impressions = read(impressions_, now);
    switch (sign) {
        case Sign::serves_per_impression:
            value = static_cast<double>(serves) /
                    static_cast<double>(std::max<uint64_t>(1, impressions));
            return serves >= kEnough;
        case Sign::pixel_delay: {
            uint64_t below = 0;
            size_t i = 0;
            for (; i < kEnds.size(); i++) {
                below += read(delays_[i], now);
                if (below * 2 >= impressions) {
                    break;
                }
            }
            const Millis end = i < kEnds.size() ? kEnds[i] : 2 * kEnds.back();
            value = static_cast<double>(end) / 1000;
            return impressions >= kEnough;
        }
        case Sign::limits:
            value = static_cast<double>(passed.load(std::memory_order_relaxed));
            return true;
    }
    return false;
}

HealthReport Health::report(Seconds now, const HealthStates& states) const noexcept {
    HealthReport report;
    for (size_t i = 0; i < report.size(); i++) {
        HealthState state = states[i].state.load(std::memory_order_relaxed);
        if (!value(static_cast<Sign>(i), now, report[i].value)) {
            continue;
        }
        if (kThresholds[i].lasts == 0) {
            state = kThresholds[i].of(report[i].value, state);
        }
        // Before the first judgement it is not alarming.
        report[i].state = std::max(HealthState::ok, state);
    }
    return report;
}

void Health::judge(Seconds now, HealthStates& states) const noexcept {
    for (size_t i = 0; i < states.size(); i++) {
        double found = 0;
        const HealthState was = states[i].state.load(std::memory_order_relaxed);
        const HealthState wanted = value(static_cast<Sign>(i), now, found)
                                       ? kThresholds[i].of(found, was)
                                       : HealthState::unknown;
        states[i].follow(wanted, now, kThresholds[i].lasts);
    }
}

}  // namespace ads
