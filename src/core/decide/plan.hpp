// A decision in two steps, for caps that are counted elsewhere. First a plan: what the draw tries
// for each placement, in its order, as though each capped candidate were refused. When it is known
// which of these are granted, Decision::carry_out() walks the plan up to the first that may be
// served.
#pragma once

#include <cstdint>
#include <vector>

#include "core/decide/page.hpp"
#include "core/image/reason.hpp"

namespace ads {

struct PlannedTry {
    Pick pick;                     // of a candidate; its group is always set
    Reason reason = Reason::none;  // none: a candidate
    bool tossed = false;           // its coin
    bool asks = false;             // whether a cap has to be asked for
};

struct Plan {
    std::vector<PlannedTry> tries;
    FixedVector<uint32_t, kMaxPage> ends;  // of the tries of each placement
    uint32_t asks = 0;

    void clear() noexcept {
        tries.clear();
        ends.clear();
        asks = 0;
    }
};

}  // namespace ads
