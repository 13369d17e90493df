// The effective terms of a campaign: whether and when it may run, budgets and caps.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "core/catalog/model.hpp"
#include "core/image/image.hpp"

namespace ads::catalog {

inline bool can_run(Status status) {
    return status == Status::active || status == Status::scheduled;
}

inline std::optional<Seconds> later(std::optional<Seconds> a, std::optional<Seconds> b) {
    return a && b ? std::max(*a, *b) : a ? a : b;
}

inline std::optional<Seconds> sooner(std::optional<Seconds> a, std::optional<Seconds> b) {
    return a && b ? std::min(*a, *b) : a ? a : b;
}

inline MicroCents unit_price(const Price& price) {
    const bool per_thousand = price.model == PriceModel::cpm || price.model == PriceModel::vcpm;
    return per_thousand ? (price.amount + 500) / 1000 : price.amount;
}

// The revenue of a thousand impressions. For clicks and actions it depends on their rate,
// which is estimated.
inline MicroCents ecpm(const Price& price) {
    constexpr MicroCents kMost = std::numeric_limits<MicroCents>::max() / 1000;
    return price.model == PriceModel::flat ? std::min(price.amount, kMost) * 1000 : price.amount;
}

using Caps = std::vector<CapRecord>;

// The caps of one level, without duplicates.
inline void add_caps(const std::vector<FrequencyCap>& caps, CapLevel level, Caps& records) {
    for (const auto& cap : caps) {
        const CapRecord record{cap.count, cap.seconds, cap.unit, cap.level};
        if (cap.level == level && records.size() < kMaxCaps &&
            std::find(records.begin(), records.end(), record) == records.end()) {
            records.push_back(record);
        }
    }
}

// A campaign cap applies to all its groups, whichever declares it, so that all count
// their serves.
inline Caps campaign_caps(const Campaign& campaign) {
    Caps records;
    for (const auto& group : campaign.ad_groups) {
        add_caps(group.frequency_caps, CapLevel::campaign, records);
    }
    return records;
}

inline Caps group_caps(const AdGroup& group, const Caps& of_campaign) {
    Caps records;
    add_caps(group.frequency_caps, CapLevel::ad_group, records);
    for (const CapRecord& record : of_campaign) {
        if (records.size() < kMaxCaps) {
            records.push_back(record);
        }
    }
    add_caps(group.frequency_caps, CapLevel::creative, records);
    return records;
}

}  // namespace ads::catalog
