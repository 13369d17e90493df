// Shared by the formats of ads_status: the filter of the query and today's counts.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "ngx/worker/worker.hpp"

namespace ads::ngx {

inline constexpr size_t kDefaultLimit = 100;
inline constexpr size_t kMaxLimit = 1000;

struct Filter {
    Id ad_group = 0;
    Id campaign = 0;
    Id after = 0;
    size_t limit = kDefaultLimit;
    bool prometheus = false;
};

// Today's counts of a group, or of all groups of a campaign.
struct Row {
    Id id = 0;
    Day day = 0;
    std::array<uint64_t, kCounters> counts{};
    uint64_t operator[](Counter c) const noexcept { return counts[static_cast<size_t>(c)]; }
};

inline Row row_of(Worker& worker, const Image& image, uint32_t group) noexcept {
    Row row;
    const Seconds now = worker.process.now() / 1000;
    const uint32_t slot = worker.catalog.slot_of(group);
    row.id = image.groups()[group].id;
    row.day = image.day_of(image.campaign_of(image.groups()[group]), now);
    for (size_t i = 0; slot != kNone && i < kCounters; i++) {
        row.counts[i] = worker.process.state().slot(slot).counters[i].read(row.day);
    }
    return row;
}

// The sum of a campaign's groups on its local day.
Row campaign_row(Worker& worker, const Image& image, uint32_t campaign) noexcept;

// Calls f(group) for the selected groups, in the order of their ids, at most `limit`.
template <class F>
void each_group(const Image& image, const Filter& filter, F f) noexcept {
    if (filter.ad_group != 0) {
        const uint32_t group = image.find_group(filter.ad_group);
        if (group != kNone && (filter.campaign == 0 ||
                               image.campaign_of(image.groups()[group]).id == filter.campaign)) {
            f(group);
        }
        return;
    }
    const auto by_id = image.get(image.head().by_id);
    const auto groups = image.groups();
    auto at = std::upper_bound(by_id.begin(), by_id.end(), filter.after,
                               [&](Id after, uint32_t group) { return after < groups[group].id; });
    for (size_t shown = 0; at != by_id.end() && shown < filter.limit; at++) {
        if (filter.campaign == 0 || image.campaign_of(groups[*at]).id == filter.campaign) {
            f(*at);
            shown++;
        }
    }
}

// Calls f(campaign) for the selected campaigns with a budget, at most `limit`.
template <class F>
void each_campaign(const Image& image, const Filter& filter, F f) noexcept {
    size_t shown = 0;
    const uint32_t group = filter.ad_group == 0 ? kNone : image.find_group(filter.ad_group);
    for (uint32_t i = 0; i < image.campaigns().size() && shown < filter.limit; i++) {
        const auto& campaign = image.campaigns()[i];
        const bool asked =
            (filter.campaign == 0 || campaign.id == filter.campaign) &&
            (filter.ad_group == 0 || (group != kNone && image.groups()[group].campaign == i));
        if (asked && campaign.has_budget) {
            f(i);
            shown++;
        }
    }
}

inline constexpr std::pair<Total, std::string_view> kEvents[] = {
    {Total::written, "written"}, {Total::duplicate, "duplicate"}, {Total::invalid, "invalid"},
    {Total::dropped, "dropped"}, {Total::expired, "expired"},     {Total::rejected, "rejected"},
};

inline constexpr std::pair<Total, std::string_view> kShipped[] = {
    {Total::shipped, "shipped"},
    {Total::repeated, "repeated"},
    {Total::quarantined, "quarantined"},
};

}  // namespace ads::ngx
