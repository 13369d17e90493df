// The expected revenue of a thousand impressions of an ad group that is paid by click or
// conversion, from today's counts. Pure: the same counts give the same estimate.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/types.hpp"

namespace ads {

// One event in this many impressions, until the rate is known.
inline constexpr double kExpectedImpressions = 1000;
// With fewer events the rate is uncertain: the floor is compared with an optimistic estimate, so
// that an unlucky start does not exclude the ad group from proving its rate.
inline constexpr uint64_t kKnownEvents = 10;
// Events that the optimistic estimate adds. An ad group without any event whose true rate is just
// at the floor is still served after 2000 impressions; 13 of 100 such groups are refused then.
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
