#include "core/pacing/week.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/pacing/periodic.hpp"

namespace ads::pacing {

static_assert(std::is_trivially_copyable_v<Week>);
static_assert(sizeof(Week) <= 1024);

namespace {

constexpr size_t kDayHours = 24;
constexpr uint32_t kHourBins = 12;
static_assert(kHourBins * kBinSeconds == kHourSeconds);

// The mean of the known hours out of `first`, `first + step`, …; 0 where none is known.
double mean_of(const Week& week, size_t first, size_t step) noexcept {
    double total = 0;
    double known = 0;
    for (size_t i = first; i < kWeekHours; i += step) {
        if (week.weeks[i] > 0) {
            total += static_cast<double>(week.hours[i]);
            known++;
        }
    }
    return known > 0 ? total / known : 0;
}

}  // namespace

size_t week_hour(double moment) noexcept {
    const double hours = std::floor(moment / kHourSeconds);
    const double weeks = std::floor(hours / kWeekHours);
    return static_cast<size_t>(hours - weeks * kWeekHours);
}

bool Week::add(const ClosedBin& bin) noexcept {
    const double its_hour = std::floor(bin.begin / kHourSeconds);
    bool learned = false;
    if (its_hour != hour) {
        learned = close();  // its last bin is the one that is missing
        hour = its_hour;
    }
    count += bin.requests;
    bins++;
    if (bin.begin + kBinSeconds >= (hour + 1) * kHourSeconds) {
        learned = close() || learned;
    }
    return learned;
}

bool Week::close() noexcept {
    const bool enough = bins + 1 >= kHourBins;
    if (enough) {
        const size_t i = week_hour(hour * kHourSeconds);
        const double value = count * kHourBins / bins;
        const auto old = static_cast<double>(hours[i]);
        // The mean of the first weeks; then a new week counts three tenths.
        const double part = std::max(kNewShare, 1.0 / (weeks[i] + 1));
        const double usual = weeks[i] == 0 ? std::numeric_limits<double>::infinity()
                                           : kMostTimes * std::max(old, mean_of(*this, 0, 1));
        hours[i] = static_cast<float>((1 - part) * old + part * std::min(value, usual));
        weeks[i] = static_cast<uint8_t>(std::min(weeks[i] + 1, 255));
    }
    count = 0;
    bins = 0;
    return enough;
}

bool Week::warm() const noexcept {
    const auto known =
        std::count_if(weeks.begin(), weeks.end(), [](uint8_t n) { return n >= kKnownWeeks; });
    return static_cast<size_t>(known) >= kKnownWeekHours;
}

WeekSums::WeekSums(const Week& week) noexcept {
    const double mean = mean_of(week, 0, 1);
    for (size_t i = 0; i < kWeekHours; i++) {
        // An hour that was never learned is like the same hour of other days.
        const double expected = week.weeks[i] > 0 ? static_cast<double>(week.hours[i])
                                                  : mean_of(week, i % kDayHours, kDayHours);
        sums_[i + 1] = sums_[i] + std::max(expected, kWeekFloor * mean);
    }
    warm_ = week.warm() && mean > 0;
}

double WeekSums::mass(std::span<const uint32_t, kWeekHours> seconds) const noexcept {
    double total = 0;
    for (size_t i = 0; i < kWeekHours; i++) {
        total += static_cast<double>(seconds[i]) * (sums_[i + 1] - sums_[i]);
    }
    return total / kHourSeconds;
}

double WeekSums::until(double moment) const noexcept {
    return requests_until(sums_, kHourSeconds, moment);
}

}  // namespace ads::pacing
