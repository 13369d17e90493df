// Lookups in a traffic profile that repeats, such as a day or a week.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace ads::pacing {

// The expected requests from 1970 up to a moment. `sums` are the prefix sums of bins of
// `seconds` each; within a bin traffic is constant.
template <size_t N>
double requests_until(const std::array<double, N>& sums, double seconds, double moment) noexcept {
    constexpr size_t kLast = N - 1;
    const double length = seconds * static_cast<double>(kLast);
    const double periods = std::floor(moment / length);
    const double place = (moment - periods * length) / seconds;
    const auto bin = std::min(static_cast<size_t>(std::max(0.0, place)), kLast - 1);
    return periods * sums[kLast] + sums[bin] +
           (place - static_cast<double>(bin)) * (sums[bin + 1] - sums[bin]);
}

}  // namespace ads::pacing
