#include "core/pacing/curve.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/pacing/periodic.hpp"

namespace ads::pacing {

namespace {

// A longer silence of the tick is a gap: what came in it is of no bin.
constexpr double kGap = 60;
constexpr double kWatchedEnough = 0.9 * kBinSeconds;

bool is_known(const Curve& curve, size_t bin) noexcept {
    return (curve.known[bin / 64] >> (bin % 64) & 1) != 0;
}

double mean_of(const Curve& curve) noexcept {
    double total = 0;
    for (size_t i = 0; i < kBins; i++) {
        total += is_known(curve, i) ? static_cast<double>(curve.bins[i]) : 0;
    }
    return total / static_cast<double>(std::max<size_t>(1, curve.known_bins()));
}

}  // namespace

std::optional<ClosedBin> Curve::tick(double now, uint64_t total) noexcept {
    const double from = last;
    const double seconds = now - from;
    const auto more = total > requests ? static_cast<double>(total - requests) : 0;
    last = now;
    requests = total;
    const double begin = std::floor(from / kBinSeconds) * kBinSeconds;
    const double end = begin + kBinSeconds;
    if (from == 0 || seconds < 0 || seconds > kGap) {
        if (now < begin || now >= end) {
            count = 0;
            watched = 0;
        }
        return std::nullopt;
    }
    if (now < end) {
        count += more;
        watched += seconds;
        return std::nullopt;
    }
    const double before = seconds > 0 ? (end - from) / seconds : 0;
    count += more * before;
    watched += end - from;
    std::optional<ClosedBin> learned;
    if (watched >= kWatchedEnough) {
        learned = {begin, count * kBinSeconds / watched};
        close(static_cast<size_t>(begin / kBinSeconds) % kBins, learned->requests);
    }
    count = more * (1 - before);
    watched = now - end;
    return learned;
}

void Curve::close(size_t bin, double value) noexcept {
    const auto old = static_cast<double>(bins[bin]);
    const double usual = kMostTimes * std::max(old, mean_of(*this));
    bins[bin] = static_cast<float>(
        is_known(*this, bin) ? (1 - kNewShare) * old + kNewShare * std::min(value, usual) : value);
    known[bin / 64] |= uint64_t{1} << (bin % 64);
}

size_t Curve::known_bins() const noexcept {
    int n = 0;
    for (const uint64_t word : known) {
        n += std::popcount(word);
    }
    return static_cast<size_t>(n);
}

CurveSums::CurveSums(const Curve& curve) noexcept : warm_(curve.warm()) {
    const double mean = mean_of(curve);
    const auto bin = [&](size_t i) {
        return is_known(curve, i % kBins) ? static_cast<double>(curve.bins[i % kBins]) : mean;
    };
    for (size_t i = 0; i < kBins; i++) {
        const double smooth = (bin(i + kBins - 1) + bin(i) + bin(i + 1)) / 3;
        sums_[i + 1] = sums_[i] + std::max(smooth, kCurveFloor * mean);
    }
    warm_ = warm_ && sums_[kBins] > 0;
}

double CurveSums::until(double moment) const noexcept {
    return requests_until(sums_, kBinSeconds, moment);
}

}  // namespace ads::pacing
