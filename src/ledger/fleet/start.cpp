#include "ledger/fleet/start.hpp"

namespace ads {

namespace {

void clear(DayCounter& counter) noexcept {
    for (auto& word : counter.words) {
        word.store(0);
    }
}

void clear(DayRights& rights) noexcept {
    clear(rights.got);
    clear(rights.gave);
    rights.returning.store(0);
    rights.stranded.store(0);
    rights.part.store(0);
    rights.wanted.store(0);
    rights.denied.store(0);
}

// Takes what was returned out of the words again.
void keep_used(DayCounter& used, DayRights& rights) noexcept {
    for (size_t i = 0; i < used.words.size(); i++) {
        const DayCount gave(rights.gave.words[i].load());
        used.give_back(gave.day(), gave.used());
    }
    clear(rights);
}

// Calls `wall` with the index of each wall, and `group` with that of each ad group.
template <class Wall, class Group>
void for_each_limit(State state, Wall&& wall, Group&& group) noexcept {
    for (uint32_t i = 0; i < state.slots(); i++) {
        const SlotHead& head = state.slot(i).head;
        const SlotKind kind = head.kind.load(std::memory_order_relaxed);
        if (head.id.load(std::memory_order_relaxed) == 0) {
            continue;
        }
        if (is_wall(kind)) {
            wall(i);
        } else if (kind == SlotKind::group) {
            group(i);
        }
    }
}

}  // namespace

void join_fleet(State state) noexcept {
    const auto grant = [](const DayCounter& used, DayRights& rights) {
        for (const auto& word : used.words) {
            const DayCount count(word.load());
            rights.got.raise(count.day(), count.used());
        }
    };
    for_each_limit(
        state,
        [&](uint32_t i) {
            WallSlot& wall = state.wall(i);
            grant(wall.used, wall.rights);
            wall.lifetime_rights.got.store(wall.lifetime.load());
        },
        [&](uint32_t i) { grant(state.slot(i).anonymous, state.slot(i).anonymous_rights); });
    state.head().fleet.mode.store(FleetMode::sealed);
}

void leave_fleet(State state) noexcept {
    for_each_limit(
        state,
        [&](uint32_t i) {
            WallSlot& wall = state.wall(i);
            keep_used(wall.used, wall.rights);
            LifetimeRights& rights = wall.lifetime_rights;
            const uint64_t used = wall.spent_ever();
            wall.lifetime.store(used);
            for (auto* word : {&rights.got, &rights.gave, &rights.returning, &rights.stranded}) {
                word->store(0);
            }
        },
        [&](uint32_t i) { keep_used(state.slot(i).anonymous, state.slot(i).anonymous_rights); });
    FleetState& fleet = state.head().fleet;
    fleet.sharing.store(0);
    fleet.mode.store(FleetMode::none);
}

void renew_identity(State state, uint32_t node) noexcept {
    for_each_limit(
        state, [&](uint32_t i) { state.clear_slot(i); },
        [&](uint32_t i) {
            clear(state.slot(i).anonymous);
            clear(state.slot(i).anonymous_rights);
        });
    FleetState& fleet = state.head().fleet;
    fleet.instance.store(0);
    for (auto& asked : fleet.asked) {
        asked.store(0);
    }
    fleet.sequence.store(0);
    fleet.cursor.store(0);
    fleet.frozen.store(0);
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
    // What was used outside of a fleet is in no register, and counts as what is stored of the old
    // id.
    const bool member = mode == FleetMode::open || mode == FleetMode::sealed;
    const bool known = !mark && member && fleet.clean.load() != 0 && !full;
    if (!untouched && !known) {
        renew_identity(state, new_node);
    }
    fleet.mode.store(FleetMode::sealed);
}

}  // namespace ads
