// The effect of an event on the walls: a serve takes and reserves, a pixel confirms or
// is too late, a click is paid while the budget lasts.
#pragma once

#include "core/event/event.hpp"
#include "ledger/local_day.hpp"
#include "ledger/slots.hpp"
#include "ledger/state.hpp"

namespace ads {

// What settling an event changed in the walls, so that it can be undone.
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
        : image_(image), slots_(slots), state_(state), reservation_(reservation) {}

    // A serve of the group at `now`: takes from all its walls or none. `reserved` is set to
    // the reserved part of the campaign's budget.
    bool take(uint32_t group, Millis now, MicroCents& reserved) noexcept;
    // Undoes a take of the same moment.
    void give_back(uint32_t group, Millis now, MicroCents reserved) noexcept;

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

    // Adds today's counts to limits that are new in this catalog.
    void catch_up(Seconds now) noexcept;

    // The expected cost of a serve.
    uint64_t price(uint32_t group, Day day) const noexcept;

private:
    struct Limits {
        uint64_t day = pacing::kUnlimited;
        uint64_t lifetime = pacing::kUnlimited;
    };

    static Limits limits(const GroupRecord& group, uint64_t cap, EventType on) noexcept;
    static Limits impression_limits(const GroupRecord& group) noexcept;
    static Limits click_limits(const GroupRecord& group) noexcept;
    Limits budget_limits(const GroupRecord& group) const noexcept;
    uint32_t budget_slot(const GroupRecord& group) const noexcept;
    bool clicks_left(uint32_t group, Day day) const noexcept;
    bool take_budget(uint32_t group, Millis now, const LocalDay& today,
                     MicroCents& reserved) noexcept;
    void cancel_budget(const GroupRecord& group, Millis now, MicroCents reserved) noexcept;
    bool displace(WallSlot& wall, const LocalDay& today, const GroupRecord& group, uint64_t price,
                  const Limits& limits) noexcept;
    static bool has_room(const WallSlot& wall, Day day, const Limits& limits,
                         MicroCents price) noexcept;
    LocalDay day_of(const GroupRecord& group, Millis at) const noexcept;
    pacing::BucketTimes budget_times(const GroupRecord& group, const LocalDay& day) const noexcept;

    const Image& image_;
    const Slots& slots_;
    State& state_;
    const Seconds reservation_;
};

}  // namespace ads
