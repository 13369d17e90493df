#include "ledger/campaign_sums.hpp"

#include <vector>

namespace ads {

namespace {

static_assert(CampaignSums::kCounts == kCounters);

std::atomic_ref<uint64_t> shared(const uint64_t& word) noexcept {
    return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(word));
}

}  // namespace

void sum_campaigns(const Image& image, const Slots& slots, const State& state, Seconds now) {
    const auto campaigns = image.campaigns();
    std::vector<CampaignSums> sums(campaigns.size());
    for (size_t i = 0; i < sums.size(); i++) {
        sums[i].day = image.day_of(campaigns[i], now);
    }
    for (size_t i = 0; i < image.groups().size(); i++) {
        const uint32_t slot = slots.groups[i].counters;
        CampaignSums& sum = sums[image.groups()[i].campaign];
        for (size_t c = 0; slot != kNone && c < kCounters; c++) {
            sum.counts[c] += state.slot(slot).counters[c].read(static_cast<Day>(sum.day));
        }
    }
    for (size_t i = 0; i < sums.size(); i++) {
        const CampaignSums& kept = image.campaign_sums()[i];
        shared(kept.day).store(sums[i].day, std::memory_order_relaxed);
        for (size_t c = 0; c < kCounters; c++) {
            shared(kept.counts[c]).store(sums[i].counts[c], std::memory_order_relaxed);
        }
    }
}

std::array<uint64_t, kCounters> campaign_sum(const Image& image, uint32_t campaign,
                                             Seconds now) noexcept {
    std::array<uint64_t, kCounters> sum{};
    const CampaignSums& kept = image.campaign_sums()[campaign];
    if (shared(kept.day).load(std::memory_order_relaxed) ==
        image.day_of(image.campaigns()[campaign], now)) {
        for (size_t c = 0; c < kCounters; c++) {
            sum[c] = shared(kept.counts[c]).load(std::memory_order_relaxed);
        }
    }
    return sum;
}

}  // namespace ads
