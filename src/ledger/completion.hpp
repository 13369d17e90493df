// Counts an event after it is written, or undoes what was charged if it could not be.
#pragma once

#include "core/event/event.hpp"
#include "ledger/billing.hpp"
#include "ledger/slots.hpp"
#include "ledger/state.hpp"

namespace ads {

struct Completion {
    EventType type = EventType::serve;
    Invalid invalid = Invalid::none;
    bool counts = false;  // serves were counted when they were taken
    uint32_t slot = kNone;
    uint32_t entry = kNone;  // of the dedupe table
    Day day = 0;             // to which it belongs
    Day today = 0;           // on which it came
    MicroCents spend = 0;
    Millis time = 0;
    Millis delay = 0;  // since the serve
    Id ad_group = 0;
    Charged charged;  // what it changed in the walls

    static Completion of(const Image& image, const Slots& slots, const Event& event,
                         uint32_t entry) noexcept;

    // Adds it to its ad group's counters. Call only if it counts.
    void count(State& state, Seconds now) const noexcept {
        if (type == EventType::impression) {
            state.head().health.seen(now, delay);
        }
        if (slot != kNone) {
            GroupSlot& group = state.slot(slot);
            group.at(counter_of(type)).count(day, 1, today);
            if (spend > 0) {
                group.at(Counter::spend).count(day, static_cast<uint64_t>(spend), today);
            }
        }
    }
};

}  // namespace ads
