// The ledger of a plan: it takes nothing and counts nothing, but notes in the plan what the draw
// tries. Capped candidates that this node knows to be capped are not asked for.
#pragma once

#include "core/decide/plan.hpp"
#include "core/image/image.hpp"

namespace ads {

template <class L>
class Planner {
public:
    static constexpr uint32_t kMostAsked = 8;        // candidates of a placement
    static constexpr uint32_t kMostAskedInAll = 64;  // of a page

    Planner(L& ledger, Plan& plan) noexcept : ledger_(ledger), plan_(plan) { plan.clear(); }

    bool toss(uint32_t group) noexcept {
        tossed_ = true;
        return ledger_.coin(group);
    }
    bool allows(uint32_t group, uint32_t creative) noexcept {
        return ledger_.allows(group, creative);
    }
    Reason take(Pick& pick) noexcept {
        const bool asks = ledger_.capped(pick.group);
        const bool room = plan_.asks < kMostAskedInAll && asked_ < kMostAsked;
        if (asks && (!room || !ledger_.admits(pick))) {
            return Reason::frequency;
        }
        plan_.tries.push_back({pick, Reason::none, tossed_, asks});
        tossed_ = false;
        if (likely_.group == kNone) {
            likely_ = pick;
        }
        if (!asks) {
            return Reason::none;
        }
        plan_.asks++;
        asked_++;
        noted_ = true;
        return Reason::frequency;
    }
    void give_back(const Pick&) noexcept {}
    MicroCents ecpm(uint32_t group) noexcept { return ledger_.ecpm(group); }
    MicroCents floor_ecpm(uint32_t group) noexcept { return ledger_.floor_ecpm(group); }
    void refused(uint32_t placement, uint32_t group, Reason reason) noexcept {
        if (noted_) {
            noted_ = false;
            return;
        }
        const bool empty = reason == Reason::pacing && ledger_.exhausted();
        plan_.tries.push_back({{.placement = placement, .group = group},
                               empty ? Reason::cap : reason,
                               tossed_,
                               false});
        tossed_ = false;
    }

    // The next placements are planned for a page that has the first candidate.
    void planned(Pick& pick) noexcept {
        if (likely_.group != kNone) {
            pick = likely_;
        }
        likely_ = {};
        asked_ = 0;
        plan_.ends.push_back(static_cast<uint32_t>(plan_.tries.size()));
    }

private:
    L& ledger_;
    Plan& plan_;
    bool tossed_ = false;  // the coin of the try at hand
    bool noted_ = false;   // it is in the plan, and goes on as though refused
    uint32_t asked_ = 0;   // candidates of this placement
    Pick likely_;
};

}  // namespace ads
