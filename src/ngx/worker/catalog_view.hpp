// This worker's view of the published catalog: pinned, so that it stays in memory until the worker
// follows the next one.
#pragma once

#include <vector>

#include "core/image/view.hpp"
#include "ledger/billing.hpp"
#include "ledger/slots.hpp"
#include "ngx/worker/process.hpp"

namespace ads::ngx {

class CatalogView {
public:
    explicit CatalogView(Process& process) noexcept : process_(process) {}

    // No catalog has been published yet.
    bool empty() const noexcept { return generation_ == 0; }
    bool is_newest() const noexcept { return process_.zone().generation() == generation_; }
    uint64_t generation() const noexcept { return generation_; }
    // Follows the newest catalog. References to the former one become invalid.
    void follow() noexcept;

    View& view() noexcept { return view_; }
    const Image& image() const noexcept { return view_.image(); }

    // The slots of the image's counters in the state.
    const Slots& slots() const noexcept { return slots_; }
    uint32_t slot_of(uint32_t group) const noexcept { return slots_.groups[group].counters; }

    Billing billing() noexcept {
        return {image(), slots_, process_.state(), process_.reservation()};
    }

private:
    void find_slots() noexcept;

    Process& process_;
    uint64_t generation_ = 0;
    View view_;
    Slots slots_;  // those of the image, or if those are of another state, these:
    std::vector<GroupSlots> own_groups_;
    std::vector<CampaignSlots> own_campaigns_;
};

}  // namespace ads::ngx
