#include "ledger/completion.hpp"

namespace ads {

Completion Completion::of(const Image& image, const Slots& slots, const Event& event,
                          uint32_t entry) noexcept {
    // Invalid events are in the spool only, with their reason.
    Completion completion{.type = event.type,
                          .invalid = event.invalid,
                          .counts = event.invalid == Invalid::none,
                          .entry = entry};
    const uint32_t group = image.find_group(event.ad_group);
    if (group != kNone) {
        // A pixel belongs to its serve's local day, the rest to the day it arrives.
        const bool pixel = event.type == EventType::impression || event.type == EventType::viewable;
        const auto& campaign = image.campaign_of(image.groups()[group]);
        completion.slot = slots.groups[group].counters;
        completion.today = image.day_of(campaign, event.time / 1000);
        completion.day = pixel ? image.day_of(campaign, event.issued / 1000) : completion.today;
        completion.spend = event.price;
        completion.time = event.time;
        completion.delay = event.time - event.issued;
        completion.ad_group = event.ad_group;
    }
    return completion;
}

}  // namespace ads
