// What a thousand impressions are expected to bring of an ad group that is paid by click or
// conversion, by what was counted today. Pure: the same counts give the same estimate.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/types.hpp"

namespace ads {

// One event in so many impressions, until it is known better.
inline constexpr double kExpectedImpressions = 1000;
// With fewer events the rate is not known yet: the floor is compared with an optimistic estimate,
// so that an unlucky start does not end the ad group, nor keep it from proving its rate.
inline constexpr uint64_t kKnownEvents = 10;
// Events that the optimistic estimate adds. Without any event an ad group whose true rate is just
// at the floor is still served after 2000 impressions; 13 in 100 such are refused then.
inline constexpr uint64_t kLearningEvents = 2;

// Of one day.
struct Evidence {
    uint64_t impressions = 0;
    uint64_t events = 0;  // clicks of cpc, conversions of cpa
};

// `price` is that of one event.
inline MicroCents expected_ecpm(MicroCents price, Evidence seen) noexcept {
    constexpr double kMost = 9e18;  // fits
    const double brought = static_cast<double>(price) * (static_cast<double>(seen.events) + 1);
    const double impressions = static_cast<double>(seen.impressions) + kExpectedImpressions;
    return static_cast<MicroCents>(std::min(brought * 1000 / impressions, kMost));
}

// What is compared with the floor of a placement.
inline MicroCents floor_ecpm(MicroCents price, Evidence seen) noexcept {
    seen.events += seen.events < kKnownEvents ? kLearningEvents : 0;
    return expected_ecpm(price, seen);
}

}  // namespace ads
