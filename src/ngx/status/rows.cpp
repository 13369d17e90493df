#include "ngx/status/rows.hpp"

#include "ledger/campaign_sums.hpp"

namespace ads::ngx {

namespace {

// For larger catalogs the keeper's sums are used.
constexpr size_t kMostAdded = 5000;

// The groups of a campaign: those of one priority stand together, and among them those
// of one campaign.
using Ranges = std::array<std::span<const GroupRecord>, kCount<Priority>>;

Ranges groups_of(const Image& image, uint32_t campaign) noexcept {
    using Key = std::pair<size_t, uint32_t>;
    const auto groups = image.groups();
    const auto first = [&](Key key) {
        const auto before = [](const GroupRecord& group, const Key& wanted) {
            return Key{static_cast<size_t>(group.priority), group.campaign} < wanted;
        };
        return std::lower_bound(groups.begin(), groups.end(), key, before);
    };
    Ranges ranges;
    for (size_t priority = 0; priority < ranges.size(); priority++) {
        ranges[priority] = {first({priority, campaign}), first({priority, campaign + 1})};
    }
    return ranges;
}

}  // namespace

Row campaign_row(Worker& worker, const Image& image, uint32_t campaign) noexcept {
    Row sum;
    sum.id = image.campaigns()[campaign].id;
    if (image.groups().size() > kMostAdded) {
        sum.counts = campaign_sum(image, campaign, worker.process.now() / 1000);
        return sum;
    }
    for (const auto& range : groups_of(image, campaign)) {
        for (const auto& group : range) {
            const auto index = static_cast<uint32_t>(&group - image.groups().data());
            const Row row = row_of(worker, image, index);
            for (size_t c = 0; c < kCounters; c++) {
                sum.counts[c] += row.counts[c];
            }
        }
    }
    return sum;
}

}  // namespace ads::ngx
