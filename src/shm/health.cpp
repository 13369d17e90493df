#include "shm/health.hpp"

namespace ads {

namespace {

HealthState outside(double value, double low, double high, double worst_low,
                    double worst_high) noexcept {
    return value > worst_high || value < worst_low ? HealthState::alert
           : value > high || value < low           ? HealthState::warning
                                                   : HealthState::ok;
}

}  // namespace

uint64_t Health::read(const Hours& hours, Seconds now) noexcept {
    uint64_t sum = 0;
    for (const Seconds at : {now, now - 3600}) {
        const DayCount count(
            hours[static_cast<size_t>(at / 3600) & 1].load(std::memory_order_relaxed));
        sum += count.day() == hour_of(at) ? count.used() : 0;
    }
    return sum;
}

HealthReport Health::report(Seconds now) const noexcept {
    HealthReport report;
    const uint64_t serves = read(serves_, now);
    const uint64_t impressions = read(impressions_, now);
    if (serves >= kEnough && impressions > 0) {
        report.serves_per_impression.value =
            static_cast<double>(serves) / static_cast<double>(impressions);
        report.serves_per_impression.state =
            outside(report.serves_per_impression.value, 1.0, 1.15, 0.95, 1.2);
    } else if (serves >= kEnough) {
        report.serves_per_impression = {0, HealthState::alert};  // nobody sees anything
    }
    if (impressions >= kEnough) {
        uint64_t below = 0;
        size_t i = 0;
        for (; i < kEnds.size(); i++) {
            below += read(delays_[i], now);
            if (below * 2 >= impressions) {
                break;
            }
        }
        const Millis end = i < kEnds.size() ? kEnds[i] : 2 * kEnds.back();
        report.pixel_delay.value = static_cast<double>(end) / 1000;
        report.pixel_delay.state = outside(report.pixel_delay.value, 0, 30, 0, 60);
    }
    const uint32_t limits = passed.load(std::memory_order_relaxed);
    report.caps = {static_cast<double>(limits), limits > 0 ? HealthState::alert : HealthState::ok};
    return report;
}

}  // namespace ads
