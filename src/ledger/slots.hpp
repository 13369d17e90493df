// The slots of the state that an image needs, stored in the image.
#pragma once

#include <vector>

#include "core/image/image.hpp"
#include "ledger/counters.hpp"

namespace ads {

// The slots of an image's counters in a state.
struct Slots {
    std::span<const GroupSlots> groups;
    std::span<const CampaignSlots> campaigns;
};

struct SlotList {
    std::vector<SlotKey> keys;
    std::vector<uint32_t*> places;  // where to store the slot of each key

    SlotList(const Image& image, std::span<GroupSlots> groups, std::span<CampaignSlots> campaigns) {
        for (size_t i = 0; i < groups.size(); i++) {
            const auto& group = image.groups()[i];
            add({group.id, SlotKind::group}, groups[i].counters);
            if (group.limits(EventType::impression)) {
                add({group.id, SlotKind::impressions}, groups[i].impressions);
                add({group.id, SlotKind::pace_impressions}, groups[i].impressions_pace);
            }
            if (group.limits(EventType::click)) {
                add({group.id, SlotKind::clicks}, groups[i].clicks);
                add({group.id, SlotKind::pace_clicks}, groups[i].clicks_pace);
            }
        }
        for (size_t i = 0; i < campaigns.size(); i++) {
            const auto& campaign = image.campaigns()[i];
            if (!campaign.has_budget) {
                continue;
            }
            add({campaign.id, SlotKind::budget}, campaigns[i].budget);
            for (size_t s = 0; s < kCount<Strategy>; s++) {
                if ((campaign.strategies >> s & 1) != 0) {
                    add({campaign.id, pace_of(static_cast<Strategy>(s))}, campaigns[i].paces[s]);
                }
            }
        }
    }

    void set(std::span<const uint32_t> slots) const noexcept {
        for (size_t i = 0; i < slots.size(); i++) {
            *places[i] = slots[i];
        }
    }

private:
    void add(SlotKey key, uint32_t& place) {
        keys.push_back(key);
        places.push_back(&place);
    }
};

}  // namespace ads
