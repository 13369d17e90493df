#include "ledger/fleet/verdicts.hpp"

namespace ads {

namespace {

constexpr Millis kSilent = 5000;  // then on_error applies
constexpr Millis kFreeze = 3000;  // then no reservation is freed
constexpr Millis kThaw = 10'000;

}  // namespace

void apply_verdicts(State state, const Image& image, const Slots& slots, Seconds reservation,
                    uint64_t after, const Verdicts& verdicts) {
    FleetState& fleet = state.head().fleet;
    if (verdicts.next <= after || !fleet.cursor.compare_exchange_strong(after, verdicts.next)) {
        return;
    }
    const uint32_t node = state.head().node;
    Billing billing(image, slots, state, reservation);
    for (const VerdictRow& row : verdicts.rows) {
        fleet.verdicts[static_cast<size_t>(row.verdict)].fetch_add(1, std::memory_order_relaxed);
        const uint32_t group = image.find_group(row.event.ad_group);
        if (group == kNone) {
            continue;
        }
        if (row.verdict == Verdict::confirmed && row.recorder != node) {
            billing.confirm_elsewhere(row.event, group);
        } else if (row.verdict != Verdict::confirmed && row.recorder == node) {
            billing.uncount(row.event, group);
        }
    }
}

bool has_verdicts(State state, uint64_t before, std::optional<uint64_t> newest) noexcept {
    auto& cursor = state.head().fleet.cursor;
    if (newest && *newest < before) {
        cursor.compare_exchange_strong(before, *newest);
    }
    return !newest || *newest > cursor.load();
}

void FleetSilence::begin(Millis now) noexcept {
    last_answer_ = now;
    answers_since_ = 0;
}

void FleetSilence::before_call(Millis now, bool shares) noexcept {
    const Millis silent = now - last_answer_;
    if (silent > kFreeze) {
        fleet().frozen.store(1, std::memory_order_relaxed);
        answers_since_ = 0;
    }
    fleet().sharing.store(shares && silent > kSilent ? 1 : 0, std::memory_order_relaxed);
}

void FleetSilence::answered(Millis now) noexcept {
    last_answer_ = now;
    fleet().sharing.store(0, std::memory_order_relaxed);
}

void FleetSilence::heard_all(Millis now) noexcept {
    if (fleet().frozen.load(std::memory_order_relaxed) == 0) {
        if (left_) {
            left_ = false;
            free_overdue();
        }
        return;
    }
    if (answers_since_ == 0) {
        answers_since_ = now;
    }
    if (now - answers_since_ >= kThaw) {
        fleet().frozen.store(0, std::memory_order_relaxed);
        free_overdue();
        left_ = true;
    }
}

void FleetSilence::free_overdue() const noexcept {
    for (uint32_t i = 0; i < state_.slots(); i++) {
        const SlotHead& head = state_.slot(i).head;
        if (head.id.load(std::memory_order_relaxed) != 0 &&
            is_wall(head.kind.load(std::memory_order_relaxed))) {
            state_.wall(i).free_overdue();
        }
    }
}

}  // namespace ads
