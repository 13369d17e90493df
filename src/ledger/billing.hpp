// The effect of events on walls: a serve takes and reserves, a pixel confirms or is too late, a
// click is paid while the budget lasts.
#pragma once

#include "core/event/event.hpp"
#include "ledger/local_day.hpp"
#include "ledger/slots.hpp"
#include "ledger/state.hpp"

namespace ads {

inline constexpr uint64_t kNoAnonymousCap = std::numeric_limits<uint64_t>::max();

// What charging an event changed in the walls, so that it can be undone.
struct Charged {
    bool capped = false;    // an impression was confirmed
    bool clicked = false;   // a click was taken
    bool reserved = false;  // the price was confirmed
    bool paid = false;      // the price was taken
    uint64_t seen = 0;      // of the impression, in flight until then
    uint64_t money = 0;     // of the price, in flight until then
    uint64_t resolved = 0;  // of what was expected
};

class Billing {
public:
    Billing(const Image& image, const Slots& slots, State& state, Seconds reservation) noexcept
        : image_(image),
          slots_(slots),
          state_(state),
          reservation_(reservation),
          fleet_(state.head().fleet.effective()) {}

    // A serve of the group at `now`: takes from all its walls or none. `reserved` is set to
    // the reserved part of the campaign's budget.
    bool take(uint32_t group, Millis now, MicroCents& reserved) noexcept;
    // Whether it was refused for want of rights.
    bool lacks_rights() const noexcept { return lacks_rights_; }
    // Undoes a take of the same moment.
    void give_back(uint32_t group, Millis now, MicroCents reserved) noexcept;

    // A serve of the group to a visitor without a session: true if fewer than `cap` of them were
    // served on that day. Undone by giving it back to the counter.
    bool take_anonymous(uint32_t group, Day day, uint64_t cap) noexcept;

    // Charges an event that is about to be written to the walls. Returns the reason if it is
    // not billed.
    Invalid charge(const Event& event, uint32_t group, MicroCents reserved,
                   Charged& charged) noexcept;
    Invalid charge(const Event& event, uint32_t group, MicroCents reserved) noexcept {
        Charged charged;
        return charge(event, group, reserved, charged);
    }
    // The event could not be written: restores the walls.
    void undo(const Event& event, uint32_t group, const Charged& charged) noexcept;

    // Charges an event that is about to be written, and sets its `invalid` if it is not billed.
    // The result can be undone.
    Charged bill(Event& event, MicroCents reserved) noexcept;

    // Of an event of a serve of this node in a fleet, which another node has recorded: it is
    // billed, even past what the node holds.
    void confirm_elsewhere(const Event& event, uint32_t group) noexcept;
    // This node has counted an event which PostgreSQL does not bill.
    void uncount(const Event& event, uint32_t group) noexcept;

    // Adds today's counts to limits that are new in this catalog.
    void catch_up(Seconds now) noexcept;

    // The expected cost of a serve.
    uint64_t price(uint32_t group, Day day) const noexcept;

private:
    static WallLimits limits(const GroupRecord& group, uint64_t cap, EventType on) noexcept;
    static WallLimits impression_limits(const GroupRecord& group) noexcept;
    static WallLimits click_limits(const GroupRecord& group) noexcept;
    WallLimits budget_limits(const GroupRecord& group) const noexcept;
    // The maximum of a wall's words.
    WallLimits own(const WallSlot& wall, Day day, WallLimits limits) const noexcept {
        return fleet_ == FleetMode::none ? limits : in_fleet(wall, day, limits, pacing::kUnlimited);
    }
    WallLimits in_fleet(const WallSlot& wall, Day day, WallLimits limits,
                        uint64_t released) const noexcept;
    // `released`: the part of the day's amount that pacing admits.
    bool take_wall(WallSlot& wall, Day day, uint64_t n, WallLimits limits,
                   uint64_t released = pacing::kUnlimited) noexcept {
        return fleet_ == FleetMode::none
                   ? wall.take(day, n, std::min(limits.day, released), limits.lifetime, day)
                   : take_in_fleet(wall, day, n, limits, released);
    }
    bool take_in_fleet(WallSlot& wall, Day day, uint64_t n, WallLimits limits,
                       uint64_t released) noexcept;
    // Returns a unit, because a later wall has refused.
    void free_blocked(WallSlot& wall, Day day) noexcept;
    // Always false.
    bool refuse(WallSlot& wall, Day day, uint64_t n, WallLimits limits, uint64_t released) noexcept;
    uint32_t budget_slot(const GroupRecord& group) const noexcept;
    bool clicks_left(uint32_t group, Day day) noexcept;
    bool take_budget(uint32_t group, Millis now, const LocalDay& today,
                     MicroCents& reserved) noexcept;
    void cancel_budget(const GroupRecord& group, Millis now, MicroCents reserved) noexcept;
    bool displace(WallSlot& wall, const LocalDay& today, const GroupRecord& group, uint64_t price,
                  WallLimits limits) noexcept;
    bool has_room(WallSlot& wall, Day day, WallLimits limits, MicroCents price,
                  uint64_t released = pacing::kUnlimited) noexcept;
    bool confirm_impression(const GroupRecord& group, uint32_t slot, const LocalDay& served,
                            Millis issued, Day today, uint64_t& in_flight) noexcept;
    LocalDay day_of(const GroupRecord& group, Millis at) const noexcept;
    pacing::BucketTimes budget_times(const GroupRecord& group, const LocalDay& day) const noexcept;

    const Image& image_;
    const Slots& slots_;
    State& state_;
    const Seconds reservation_;
    const FleetMode fleet_;
    bool frozen() const noexcept {
        return fleet_ != FleetMode::none &&
               state_.head().fleet.frozen.load(std::memory_order_relaxed) != 0;
    }
    bool billed_already_ = false;  // by PostgreSQL: limits do not matter
    bool lacks_rights_ = false;    // the last refusal was for want of them
};

}  // namespace ads
