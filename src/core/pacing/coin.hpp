// The pacing coin: a probability, stored as the number below which a random word has to fall. A
// request needs one comparison only; the tick computes the probability.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ads::pacing {

using Threshold = uint64_t;

inline constexpr Threshold kNever = 0;
inline constexpr Threshold kAlways = ~Threshold{0};

// Only a probability of 0 never passes, however small others are.
constexpr Threshold threshold_of(double probability) noexcept {
    if (!(probability > 0)) {
        return kNever;
    }
    if (probability >= 1) {
        return kAlways;
    }
    return std::max<Threshold>(1, static_cast<Threshold>(probability * 0x1.0p64));
}

// Budgets belong to the campaign, caps and goals to the group: the smaller probability is used.
// Without a limit it is kAlways.
constexpr Threshold combined(Threshold group, Threshold campaign) noexcept {
    return std::min(group, campaign);
}

constexpr bool passes(uint64_t random, Threshold threshold) noexcept {
    return random < threshold || threshold == kAlways;
}

}  // namespace ads::pacing
