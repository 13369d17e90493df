#include "ngx/worker/catalog_view.hpp"

namespace ads::ngx {

void CatalogView::follow() noexcept {
    view_.bind(process_.zone().pin(process_.pin(), generation_));
    find_slots();
}

// An image names the slots of one state. A worker whose configuration has another state (a reload
// has changed ads_state) looks its own up.
void CatalogView::find_slots() noexcept {
    own_groups_.clear();
    own_campaigns_.clear();
    if (image().head().node == process_.node()) {
        slots_ = {image().group_slots(), image().campaign_slots()};
        return;
    }
    own_groups_.resize(image().groups().size());
    own_campaigns_.resize(image().campaigns().size());
    const SlotList list(image(), own_groups_, own_campaigns_);
    std::vector<uint32_t> slots(list.keys.size());
    process_.state().find_slots(list.keys, slots);
    list.set(slots);
    slots_ = {own_groups_, own_campaigns_};
}

}  // namespace ads::ngx
