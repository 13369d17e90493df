#include "ledger/billing.hpp"

namespace ads {

using pacing::BucketTimes;
using pacing::kUnlimited;

LocalDay Billing::day_of(const GroupRecord& group, Millis at) const noexcept {
    return LocalDay::of(image_, image_.campaign_of(group), at / 1000, reservation_);
}

BucketTimes Billing::budget_times(const GroupRecord& group, const LocalDay& day) const noexcept {
    return day.times(image_.campaign_of(group).budget_type == BudgetType::daily);
}

WallLimits Billing::limits(const GroupRecord& group, uint64_t cap, EventType on) noexcept {
    WallLimits limits;
    if (cap > 0) {
        limits.day = cap;
    }
    if (group.goal > 0 && group.goal_on == on) {
        limits.lifetime = group.goal;
    }
    return limits;
}

WallLimits Billing::impression_limits(const GroupRecord& group) noexcept {
    return limits(group, group.impression_cap, EventType::impression);
}

WallLimits Billing::click_limits(const GroupRecord& group) noexcept {
    return limits(group, group.click_cap, EventType::click);
}

WallLimits Billing::budget_limits(const GroupRecord& group) const noexcept {
    const auto& campaign = image_.campaign_of(group);
    // In a fleet no strategy goes beyond the budget: rights end there.
    const Strategy strategy = fleet_ == FleetMode::none ? group.strategy : Strategy::adaptive;
    const auto walls = pacing::budget_walls(campaign.budget_type, campaign.budget,
                                            static_cast<double>(campaign.hard_cap), strategy);
    return {walls.day, walls.lifetime};
}

uint32_t Billing::budget_slot(const GroupRecord& group) const noexcept {
    return image_.campaign_of(group).has_budget ? slots_.campaigns[group.campaign].budget : kNone;
}

uint64_t Billing::price(uint32_t index, Day day) const noexcept {
    const auto& group = image_.groups()[index];
    if (!group.estimated()) {
        return static_cast<uint64_t>(std::max<MicroCents>(0, group.price));
    }
    const uint32_t slot = slots_.groups[index].counters;
    const Counter counted =
        group.price_model == PriceModel::cpc ? Counter::clicks : Counter::conversions;
    // Yesterday counts as well, or the value of a serve would be lost each midnight.
    const auto read = [&](Counter counter) -> uint64_t {
        if (slot == kNone) {
            return 0;
        }
        const DayCounter& counts = state_.slot(slot).at(counter);
        return counts.read(day) + counts.read(static_cast<Day>(day - 1));
    };
    return pacing::reserved_price(group.price_model, group.price, read(counted),
                                  read(Counter::impressions));
}

WallLimits Billing::in_fleet(const WallSlot& wall, Day day, WallLimits limits,
                             uint64_t released) const noexcept {
    if (billed_already_) {
        return {};
    }
    const bool sharing = state_.head().fleet.sharing.load(std::memory_order_relaxed) != 0;
    return fleet_ == FleetMode::open ? wall.with_rights(day, limits, released, sharing)
                                     : WallLimits{0, 0};
}

bool Billing::take_in_fleet(WallSlot& wall, Day day, uint64_t n, WallLimits limits,
                            uint64_t released) noexcept {
    const WallLimits most = in_fleet(wall, day, limits, released);
    return wall.take(day, n, most.day, most.lifetime, day) ||
           refuse(wall, day, n, limits, released);
}

bool Billing::refuse(WallSlot& wall, Day day, uint64_t n, WallLimits limits,
                     uint64_t released) noexcept {
    lacks_rights_ = wall.note_refused(day, n, limits, released);
    if (lacks_rights_) {
        state_.head().fleet.bell.fetch_add(1, std::memory_order_relaxed);
    }
    lacks_rights_ = lacks_rights_ || fleet_ != FleetMode::open;
    return false;
}

bool Billing::take_anonymous(uint32_t group, Day day, uint64_t cap) noexcept {
    GroupSlot& slot = state_.slot(slots_.groups[group].counters);
    lacks_rights_ = false;
    if (fleet_ == FleetMode::none) {
        return slot.anonymous.take(day, 1, cap, day);
    }
    DayRights& rights = slot.anonymous_rights;
    const uint64_t most =
        std::min(kUnlimited, cap) + rights.gave.read(day, std::memory_order_acquire);
    const bool sharing = state_.head().fleet.sharing.load(std::memory_order_relaxed) != 0;
    const uint64_t got = rights.got.read(day) + (sharing ? units_on(rights.part, day) : 0);
    if (fleet_ == FleetMode::open && slot.anonymous.take(day, 1, std::min(most, got), day)) {
        return true;
    }
    if (slot.anonymous.read(day) < most) {
        rights.refused.fetch_add(1, std::memory_order_relaxed);
        state_.head().fleet.bell.fetch_add(1, std::memory_order_relaxed);
        lacks_rights_ = true;
    }
    return false;
}

void Billing::free_blocked(WallSlot& wall, Day day) noexcept {
    wall.give_back(day, 1);
    if (fleet_ != FleetMode::none) {
        wall.note_blocked(1);
    }
}

bool Billing::clicks_left(uint32_t index, Day day) noexcept {
    const uint32_t slot = slots_.groups[index].clicks;
    return slot != kNone &&
           has_room(state_.wall(slot), day, click_limits(image_.groups()[index]), 1);
}

bool Billing::take_budget(uint32_t index, Millis now, const LocalDay& today,
                          MicroCents& reserved) noexcept {
    const auto& group = image_.groups()[index];
    const CampaignSlots& slots = slots_.campaigns[group.campaign];
    const uint32_t pace = slots.paces[static_cast<size_t>(group.strategy)];
    if (slots.budget == kNone || pace == kNone) {
        return false;  // without a wall nothing keeps the budget
    }
    const uint64_t price = this->price(index, today.day);
    if (price == 0) {
        return true;
    }
    const WallLimits limits = budget_limits(group);
    const uint64_t released = state_.pace(pace).allowed_on(today.day, group.strategy);
    WallSlot& wall = state_.wall(slots.budget);
    if (group.estimated() && !has_room(wall, today.day, limits, group.price, released)) {
        return false;  // what comes of it could not be paid
    }
    if (!take_wall(wall, today.day, price, limits, released)) {
        return false;
    }
    if (!wall.reserve(budget_times(group, today), now, price, frozen())) {
        return false;
    }
    reserved = static_cast<MicroCents>(price);
    return true;
}

// A click goes before what is only expected of others: that is in flight, and all
// that is in flight here. Two that do so at once may both be refused, not both paid.
bool Billing::displace(WallSlot& wall, const LocalDay& today, const GroupRecord& group,
                       uint64_t price, WallLimits limits) noexcept {
    const BucketTimes times = budget_times(group, today);
    const auto with = [](uint64_t limit, uint64_t more) {
        return std::min(kUnlimited, limit + more);
    };
    const WallLimits most = own(wall, today.day, limits);
    const uint64_t expected = wall.in_flight(times);
    if (!wall.take(today.day, price, with(most.day, expected), with(most.lifetime, expected),
                   today.day)) {
        return false;
    }
    const uint64_t still = wall.in_flight(times);
    if (wall.used.read(today.day) > with(most.day, still) ||
        wall.lifetime.load(std::memory_order_relaxed) > with(most.lifetime, still)) {
        wall.give_back(today.day, price);
        return false;
    }
    return true;
}

bool Billing::has_room(WallSlot& wall, Day day, WallLimits limits, MicroCents price,
                       uint64_t released) noexcept {
    const auto n = static_cast<uint64_t>(std::max<MicroCents>(0, price));
    const WallLimits most = fleet_ == FleetMode::none
                                ? WallLimits{std::min(limits.day, released), limits.lifetime}
                                : in_fleet(wall, day, limits, released);
    return (wall.used.read(day) + n <= most.day &&
            wall.lifetime.load(std::memory_order_relaxed) + n <= most.lifetime) ||
           (fleet_ != FleetMode::none && refuse(wall, day, n, limits, released));
}

// The group's wall before the campaign's.
bool Billing::take(uint32_t index, Millis now, MicroCents& reserved) noexcept {
    const auto& group = image_.groups()[index];
    const GroupSlots& slots = slots_.groups[index];
    const LocalDay today = day_of(group, now);
    lacks_rights_ = false;
    if (group.limits(EventType::click) && !clicks_left(index, today.day)) {
        return false;
    }
    const bool limited = group.limits(EventType::impression);
    if (limited) {
        if (slots.impressions == kNone || slots.impressions_pace == kNone) {
            return false;
        }
        const uint64_t released =
            state_.pace(slots.impressions_pace).allowed_on(today.day, group.strategy);
        if (!take_wall(state_.wall(slots.impressions), today.day, 1, impression_limits(group),
                       released)) {
            return false;
        }
    }
    if (image_.campaign_of(group).has_budget && !take_budget(index, now, today, reserved)) {
        if (limited) {
            free_blocked(state_.wall(slots.impressions), today.day);
        }
        return false;
    }
    if (limited && group.cap_on == CapOn::impression &&
        !state_.wall(slots.impressions)
             .reserve(today.times(group.impression_cap > 0), now, 1, frozen())) {
        cancel_budget(group, now, reserved);
        return false;
    }
    return true;
}

void Billing::give_back(uint32_t index, Millis now, MicroCents reserved) noexcept {
    const auto& group = image_.groups()[index];
    const LocalDay today = day_of(group, now);
    if (group.limits(EventType::impression)) {
        WallSlot& wall = state_.wall(slots_.groups[index].impressions);
        if (group.cap_on == CapOn::impression) {
            wall.cancel(today.times(group.impression_cap > 0), now, 1);
        } else {
            wall.give_back(today.day, 1);
        }
    }
    cancel_budget(group, now, reserved);
}

void Billing::cancel_budget(const GroupRecord& group, Millis now, MicroCents reserved) noexcept {
    if (reserved > 0 && budget_slot(group) != kNone) {
        const LocalDay today = day_of(group, now);
        state_.wall(budget_slot(group))
            .cancel(budget_times(group, today), now, static_cast<uint64_t>(reserved));
    }
}

// Serves count for a cap on serves, pixels for one on impressions, what was billed for
// a budget. None can exceed its wall once that counts.
void Billing::catch_up(Seconds now) noexcept {
    if (fleet_ != FleetMode::none) {
        return;  // what was used before there was a limit is known to PostgreSQL
    }
    std::vector<uint64_t> spent(image_.campaigns().size());
    for (uint32_t i = 0; i < image_.groups().size(); i++) {
        const auto& group = image_.groups()[i];
        const GroupSlots& slots = slots_.groups[i];
        const bool budget = budget_slot(group) != kNone;
        if (slots.counters == kNone ||
            (slots.impressions == kNone && slots.clicks == kNone && !budget)) {
            continue;
        }
        const GroupSlot& counters = state_.slot(slots.counters);
        const Day day = image_.day_of(image_.campaign_of(group), now);
        if (slots.impressions != kNone) {
            const Counter counted =
                group.cap_on == CapOn::impression ? Counter::impressions : Counter::serves;
            state_.wall(slots.impressions).raise(day, counters.at(counted).read(day));
        }
        if (slots.clicks != kNone) {
            state_.wall(slots.clicks).raise(day, counters.at(Counter::clicks).read(day));
        }
        if (budget) {
            spent[group.campaign] += counters.at(Counter::spend).read(day);
        }
    }
    for (uint32_t i = 0; i < spent.size(); i++) {
        if (spent[i] > 0 && slots_.campaigns[i].budget != kNone) {
            state_.wall(slots_.campaigns[i].budget)
                .raise(image_.day_of(image_.campaigns()[i], now), spent[i]);
        }
    }
}

Charged Billing::bill(Event& event, MicroCents reserved) noexcept {
    Charged charged;
    const uint32_t group = image_.find_group(event.ad_group);
    if (event.invalid != Invalid::none || group == kNone) {
        return charged;
    }
    // The rights of the node that has served pay for it, and PostgreSQL decides.
    if (fleet_ != FleetMode::none && event.node != state_.head().node) {
        return charged;
    }
    event.invalid = charge(event, group, reserved, charged);
    if (event.invalid != Invalid::none) {
        event.price = 0;
    }
    return charged;
}

bool Billing::confirm_impression(const GroupRecord& group, uint32_t slot, const LocalDay& served,
                                 Millis issued, Day today, uint64_t& in_flight) noexcept {
    WallSlot& wall = state_.wall(slot);
    const WallLimits most = own(wall, served.day, impression_limits(group));
    return wall.confirm(served.times(group.impression_cap > 0), issued, 1, most.day, most.lifetime,
                        today, &in_flight);
}

Invalid Billing::charge(const Event& event, uint32_t index, MicroCents reserved,
                        Charged& charged) noexcept {
    const auto& group = image_.groups()[index];
    const GroupSlots& slots = slots_.groups[index];
    const LocalDay served = day_of(group, event.issued);
    const Day today = image_.day_of(image_.campaign_of(group), event.time / 1000);
    const uint32_t budget = budget_slot(group);
    const auto price = static_cast<uint64_t>(std::max<MicroCents>(0, event.price));
    const auto limits = budget_limits(group);
    const auto resolve = [&] {
        if (budget != kNone && reserved > 0) {
            charged.resolved = state_.wall(budget).resolve(
                budget_times(group, served), event.issued, static_cast<uint64_t>(reserved), today);
        }
    };
    const auto pay_reserved = [&] {
        if (price == 0 || budget == kNone) {
            return true;
        }
        WallSlot& wall = state_.wall(budget);
        const WallLimits most = own(wall, served.day, limits);
        charged.reserved = wall.confirm(budget_times(group, served), event.issued, price, most.day,
                                        most.lifetime, today, &charged.money);
        return charged.reserved;
    };
    const auto pay_now = [&] {
        if (price == 0 || budget == kNone) {
            return true;
        }
        charged.paid =
            take_wall(state_.wall(budget), today, price, limits) ||
            (image_.campaign_of(group).only_estimates &&
             displace(state_.wall(budget), day_of(group, event.time), group, price, limits));
        return charged.paid;
    };
    switch (event.type) {
        case EventType::serve:
            break;
        case EventType::impression: {
            const bool capped = group.limits(EventType::impression) &&
                                group.cap_on == CapOn::impression && slots.impressions != kNone;
            charged.capped = capped && confirm_impression(group, slots.impressions, served,
                                                          event.issued, today, charged.seen);
            if (capped && !charged.capped) {
                resolve();
                return Invalid::late;
            }
            if (!pay_reserved()) {
                if (capped) {
                    state_.wall(slots.impressions).release_confirmed(served.day, 1);
                    charged.capped = false;
                }
                return Invalid::late;
            }
            // The reservation for a click or an action was only an expectation. A
            // viewable impression is still to come.
            if (price == 0 && group.price_model != PriceModel::vcpm) {
                resolve();
            }
            break;
        }
        case EventType::viewable:
            if (!pay_reserved()) {
                return Invalid::late;
            }
            break;
        case EventType::click: {
            const bool limited = slots.clicks != kNone;
            if (limited && !take_wall(state_.wall(slots.clicks), today, 1, click_limits(group))) {
                return Invalid::over_budget;
            }
            if (!pay_now()) {
                if (limited) {
                    free_blocked(state_.wall(slots.clicks), today);
                }
                return Invalid::over_budget;
            }
            charged.clicked = limited;
            break;
        }
        case EventType::conversion:
            if (!pay_now()) {
                return Invalid::over_budget;
            }
            break;
    }
    return Invalid::none;
}

void Billing::confirm_elsewhere(const Event& event, uint32_t group) noexcept {
    billed_already_ = true;
    charge(event, group, event.price);
    billed_already_ = false;
}

void Billing::uncount(const Event& event, uint32_t index) noexcept {
    const auto& group = image_.groups()[index];
    const GroupSlots& slots = slots_.groups[index];
    const Day served = image_.day_of(image_.campaign_of(group), event.issued / 1000);
    const Day today = image_.day_of(image_.campaign_of(group), event.time / 1000);
    const uint32_t budget = budget_slot(group);
    const auto price = static_cast<uint64_t>(std::max<MicroCents>(0, event.price));
    if (event.type == EventType::click && slots.clicks != kNone) {
        state_.wall(slots.clicks).give_back(today, 1);
    }
    if (event.type == EventType::impression && group.limits(EventType::impression) &&
        group.cap_on == CapOn::impression && slots.impressions != kNone) {
        state_.wall(slots.impressions).release_confirmed(served, 1);
    }
    if (price == 0 || budget == kNone) {
        return;
    }
    if (event.type == EventType::impression || event.type == EventType::viewable) {
        state_.wall(budget).release_confirmed(served, price);
    } else {
        state_.wall(budget).give_back(today, price);
    }
}

void Billing::undo(const Event& event, uint32_t index, const Charged& charged) noexcept {
    const auto& group = image_.groups()[index];
    const GroupSlots& slots = slots_.groups[index];
    const LocalDay served = day_of(group, event.issued);
    const Day today = image_.day_of(image_.campaign_of(group), event.time / 1000);
    const uint32_t budget = budget_slot(group);
    const auto price = static_cast<uint64_t>(std::max<MicroCents>(0, event.price));
    if (charged.capped && slots.impressions != kNone) {
        state_.wall(slots.impressions)
            .undo_confirm(served.times(group.impression_cap > 0), event.issued, 1, charged.seen);
    }
    if (charged.clicked && slots.clicks != kNone) {
        state_.wall(slots.clicks).give_back(today, 1);
    }
    if (budget == kNone) {
        return;
    }
    const BucketTimes times = budget_times(group, served);
    if (charged.reserved) {
        state_.wall(budget).undo_confirm(times, event.issued, price, charged.money);
    }
    if (charged.paid) {
        state_.wall(budget).give_back(today, price);
    }
    if (charged.resolved > 0) {
        WallSlot& wall = state_.wall(budget);
        const WallLimits most = own(wall, served.day, budget_limits(group));
        wall.undo_resolve(times, event.issued, charged.resolved, most.day, most.lifetime, today);
    }
}

}  // namespace ads
