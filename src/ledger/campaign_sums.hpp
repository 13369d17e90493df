// The sums of the groups' counters per campaign of the image.
#pragma once

#include "ledger/slots.hpp"
#include "ledger/state.hpp"

namespace ads {

// Sums up the counters of all groups. The image is one in the zone, where it can be written.
void sum_campaigns(const Image& image, const Slots& slots, const State& state, Seconds now);

// The sum of a campaign on its local day.
std::array<uint64_t, kCounters> campaign_sum(const Image& image, uint32_t campaign,
                                             Seconds now) noexcept;

}  // namespace ads
