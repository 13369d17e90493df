#include "ledger/fleet_start.hpp"

namespace ads {

void renew_identity(State state, uint32_t node) noexcept {
    for (uint32_t i = 0; i < state.slots(); i++) {
        const SlotHead& head = state.slot(i).head;
        const SlotKind kind = head.kind.load(std::memory_order_relaxed);
        if (head.id.load(std::memory_order_relaxed) != 0 && is_wall(kind)) {
            state.clear_slot(i);
        }
    }
    FleetState& fleet = state.head().fleet;
    fleet.instance.store(0);
    for (auto& asked : fleet.asked) {
        asked.store(0);
    }
    fleet.sequence.store(0);
    state.head().node = node;
}

void begin_in_fleet(State state, const std::optional<RunMark>& mark, uint32_t new_node) noexcept {
    FleetState& fleet = state.head().fleet;
    const FleetMode mode = fleet.mode.load();
    const uint64_t instance = fleet.instance.load();
    const uint64_t sequence = fleet.sequence.load();
    const bool continues = mark && mode == FleetMode::open && mark->instance == instance &&
                           (mark->sequence == sequence || mark->sequence + 1 == sequence);
    if (continues) {
        fleet.clean.store(0);
        return;
    }
    // One that has never been accepted has no rights that anybody else could have.
    const bool untouched = mode == FleetMode::sealed && instance == 0;
    // After so many unanswered swaps a state gives up.
    const bool full = fleet.asked.back().load() != 0;
    const bool known = !mark && mode != FleetMode::fenced && fleet.clean.load() != 0 && !full;
    if (!untouched && !known) {
        renew_identity(state, new_node);
    }
    fleet.mode.store(FleetMode::sealed);
}

}  // namespace ads
