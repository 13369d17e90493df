// What the terms of a campaign come to: whether it may run, when, and for how much.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include "core/catalog/model.hpp"

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

// What a thousand impressions bring. Of clicks and actions it depends on how
// many come: the price of one is what an estimate scales.
inline MicroCents ecpm(const Price& price) {
    constexpr MicroCents kMost = std::numeric_limits<MicroCents>::max() / 1000;
    return price.model == PriceModel::flat ? std::min(price.amount, kMost) * 1000 : price.amount;
}

}  // namespace ads::catalog
