// The reasons for refusals. "Why is my ad not showing?" is the most frequent question of ad
// operations, and these are the answers.
#pragma once

#include "core/base/types.hpp"

namespace ads {

enum class Reason : uint8_t {
    none,
    status,    // the placement, the campaign, the group or all creatives are not active
    flight,    // before its start or after its end
    schedule,  // not at this hour
    creative,  // no creative fits the placement's size and types
    floor,     // below the placement's floor price
    weight,    // weight 0: never drawn
    device,
    geo,
    language,
    key,        // a key-value does not match
    url,        // no include pattern matches, or an exclude pattern does
    frequency,  // this visitor has seen it often enough
    page,       // all its creatives are on the page already
    exclusive,  // an ad of the same advertiser or category is on the page
    together,   // its set could not be filled
    pacing,     // refused by the pacing coin
    cap,        // the budget or cap is used up
    rights,     // the node holds no rights to it that are left, but other nodes may
    lost,       // eligible, but another was drawn
};

template <>
struct Names<Reason> {
    static constexpr auto list = std::to_array<std::string_view>(
        {"none",      "status",   "flight",   "schedule", "creative", "floor",     "weight",
         "device",    "geo",      "language", "key",      "url",      "frequency", "page",
         "exclusive", "together", "pacing",   "cap",      "rights",   "lost"});
};

// These depend on the request and the catalog only. The others depend on earlier serves, and are
// counted each time.
constexpr bool is_targeting(Reason reason) noexcept {
    return reason >= Reason::status && reason <= Reason::url;
}

}  // namespace ads
