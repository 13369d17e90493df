// The pacing coin: a probability as the number below which a random word has
// to fall. A request makes this one comparison; the tick does the thinking.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ads::pacing {

using Threshold = uint64_t;

inline constexpr Threshold kNever = 0;
inline constexpr Threshold kAlways = ~Threshold{0};

// However small a probability is, only 0 is never.
constexpr Threshold threshold_of(double probability) noexcept {
    if (!(probability > 0)) {
        return kNever;
    }
    if (probability >= 1) {
        return kAlways;
    }
    return std::max<Threshold>(1, static_cast<Threshold>(probability * 0x1.0p64));
}

// A budget is the campaign's, caps and goals are the group's: the smaller
// probability counts. Who has no limit has kAlways.
constexpr Threshold combined(Threshold group, Threshold campaign) noexcept {
    return std::min(group, campaign);
}

constexpr bool passes(uint64_t random, Threshold threshold) noexcept {
    return random < threshold || threshold == kAlways;
}

}  // namespace ads::pacing
