#include "ledger/ledger.hpp"

#include <algorithm>

#include "core/base/siphash.hpp"

namespace ads {

Ledger::Ledger(const Source& source, const Request& request, uint64_t anonymous_cap,
               std::vector<Refusal>* trace) noexcept
    : image_(source.image),
      slots_(source.slots),
      state_(source.state),
      frequency_(source.frequency),
      rng_(source.rng),
      serves_(source.serves),
      traffic_(source.traffic),
      billing_(source.image, source.slots, source.state, source.reservation),
      request_(request),
      now_(request.now / 1000),
      anonymous_cap_(anonymous_cap),
      trace_(trace) {
    if (!request.session.empty()) {
        session_ = siphash(state_.head().session_key, request.session);
    }
}

Day Ledger::today(const GroupRecord& group) noexcept {
    return image_.day_of(image_.campaign_of(group), now_);
}

Id Ledger::id_of(CapLevel level, uint32_t group, uint32_t creative) const noexcept {
    const GroupRecord& record = image_.groups()[group];
    switch (level) {
        case CapLevel::ad_group:
            return record.id;
        case CapLevel::campaign:
            return image_.campaign_of(record).id;
        case CapLevel::creative:
            return image_.creatives()[creative].id;
    }
    return 0;
}

// The caps of a level are adjacent in the image.
void Ledger::gather(uint32_t group, uint32_t creative, bool creative_only,
                    Subjects& subjects) const noexcept {
    const GroupRecord& record = image_.groups()[group];
    Seconds day_start = 0;
    image_.local_day(image_.campaign_of(record), now_, day_start);
    for (const auto& cap : image_.get(record.caps)) {
        if (creative_only && cap.level != CapLevel::creative) {
            continue;
        }
        if (subjects.list.empty() || subjects.list.back().level != cap.level) {
            subjects.list.push_back({cap.level, id_of(cap.level, group, creative), {}});
        }
        subjects.limits.push_back(FrequencyLimit::at(cap.unit, cap.count, cap.seconds,
                                                     static_cast<uint32_t>(day_start), second()));
        auto& limits = subjects.list.back().limits;
        limits = {subjects.limits.end() - limits.size() - 1, limits.size() + 1};
    }
}

bool Ledger::allows(uint32_t group, uint32_t creative) noexcept {
    if (!capped(image_.groups()[group])) {
        return true;
    }
    Subjects subjects;
    gather(group, creative, true, subjects);
    return subjects.list.empty() || frequency_.allows(session_, subjects.list, second());
}

bool Ledger::admits(const Pick& pick) noexcept {
    Subjects subjects;
    gather(pick.group, pick.creative, false, subjects);
    return frequency_.allows(session_, subjects.list, second());
}

// Invalid traffic is not paced.
void Ledger::count_toss(uint32_t index) noexcept {
    const GroupRecord& group = image_.groups()[index];
    if (request_.invalid || !paced(image_, group)) {
        return;
    }
    if (image_.campaign_of(group).has_budget) {
        const CampaignSlots& campaign = slots_.campaigns[group.campaign];
        if (campaign.budget != kNone) {
            const Day day = today(group);
            WallSlot& wall = state_.wall(campaign.budget);
            count_day(wall.tosses, day, 1);
            count_day(wall.offered, day, billing_.price(index, day));
        }
    }
    if (const uint32_t slot = slot_of(index); slot != kNone) {
        state_.mark_tossed(slot);
    }
}

// The smallest probability of the limits counts.
bool Ledger::coin(uint32_t index) noexcept {
    const GroupRecord& group = image_.groups()[index];
    exhausted_ = false;
    if (request_.invalid || !paced(image_, group)) {
        return true;
    }
    const GroupSlots& slots = slots_.groups[index];
    pacing::Threshold threshold = pacing::kAlways;
    const auto apply = [&](uint32_t slot) noexcept {
        if (slot == kNone) {
            threshold = pacing::kNever;
            return;
        }
        const PaceSlot& pace = state_.pace(slot);
        threshold = pacing::combined(threshold, pace.threshold.load(std::memory_order_relaxed));
        exhausted_ = exhausted_ || pace.exhausted.load(std::memory_order_relaxed);
    };
    if (group.limits(EventType::impression)) {
        apply(slots.impressions_pace);
    }
    if (group.limits(EventType::click)) {
        apply(slots.clicks_pace);
    }
    if (image_.campaign_of(group).has_budget) {
        apply(slots_.campaigns[group.campaign].paces[static_cast<size_t>(group.strategy)]);
    }
    if (threshold == pacing::kAlways) {
        return true;
    }
    const uint64_t random = rng_.next();
    return pacing::passes(random, threshold) ||
           (group.strategy == Strategy::adaptive && pacing::passes(random, first_today(index)));
}

// The threshold without those limits that have served nothing today: whoever starts a
// campaign, or asks for an ad after midnight, sees one at once.
pacing::Threshold Ledger::first_today(uint32_t index) noexcept {
    const GroupRecord& group = image_.groups()[index];
    const GroupSlots& slots = slots_.groups[index];
    const Day day = today(group);
    pacing::Threshold threshold = pacing::kAlways;
    const auto apply = [&](uint32_t slot, bool served) noexcept {
        if (slot == kNone) {
            threshold = pacing::kNever;
        } else if (const PaceSlot& pace = state_.pace(slot); served || pace.exhausted_on(day)) {
            threshold = pacing::combined(threshold, pace.threshold.load(std::memory_order_relaxed));
        }
    };
    const bool served =
        slots.counters == kNone || state_.slot(slots.counters).at(Counter::serves).read(day) > 0;
    if (group.limits(EventType::impression)) {
        apply(slots.impressions_pace, served);
    }
    if (group.limits(EventType::click)) {
        apply(slots.clicks_pace, served);
    }
    if (image_.campaign_of(group).has_budget) {
        const CampaignSlots& campaign = slots_.campaigns[group.campaign];
        apply(campaign.paces[static_cast<size_t>(group.strategy)],
              campaign.budget == kNone || !state_.wall(campaign.budget).untouched(day));
    }
    return threshold;
}

bool Ledger::take_frequency(const Pick& pick) noexcept {
    const GroupRecord& group = image_.groups()[pick.group];
    if (capped_together(group)) {
        const uint32_t slot = slot_of(pick.group);
        const Day day = today(group);
        // Without a counter nothing keeps the cap.
        return slot != kNone && billing_.take_anonymous(pick.group, day, anonymous_cap_);
    }
    if (!capped(group)) {
        return true;
    }
    Subjects subjects;
    gather(pick.group, pick.creative, false, subjects);
    return frequency_.take(session_, subjects.list, second());
}

Reason Ledger::take(Pick& pick) noexcept {
    const GroupRecord& group = image_.groups()[pick.group];
    if (request_.invalid) {
        return Reason::none;
    }
    if (grants_ != nullptr && capped(group) && !grants_->has(pick)) {
        return Reason::frequency;
    }
    if (paced(image_, group) && !billing_.take(pick.group, request_.now, pick.reserved)) {
        return billing_.lacks_rights() ? Reason::rights : Reason::cap;
    }
    if (!take_frequency(pick)) {
        if (paced(image_, group)) {
            billing_.give_back(pick.group, request_.now, pick.reserved);
        }
        return capped_together(group) && billing_.lacks_rights() ? Reason::rights
                                                                 : Reason::frequency;
    }
    if (grants_ != nullptr) {
        grants_->use(pick, true);
    }
    serves_++;
    const uint32_t slot = slot_of(pick.group);
    if (slot != kNone) {
        const Day day = today(group);
        state_.slot(slot).at(Counter::serves).count(day, 1, day);
    }
    return Reason::none;
}

void Ledger::give_back(const Pick& pick) noexcept {
    const GroupRecord& group = image_.groups()[pick.group];
    if (request_.invalid) {
        return;
    }
    if (capped(group)) {
        Subjects subjects;
        gather(pick.group, pick.creative, false, subjects);
        frequency_.give_back(session_, subjects.list, second());
        if (grants_ != nullptr) {
            grants_->use(pick, false);
        }
    }
    const uint32_t slot = slot_of(pick.group);
    if (slot != kNone) {
        GroupSlot& counters = state_.slot(slot);
        counters.at(Counter::serves).give_back(today(group), 1);
        if (capped_together(group)) {
            counters.anonymous.give_back(today(group), 1);
        }
    }
    if (paced(image_, group)) {
        billing_.give_back(pick.group, request_.now, pick.reserved);
    }
}

// Without counters nothing has been seen.
Evidence Ledger::evidence(uint32_t index) noexcept {
    const GroupRecord& group = image_.groups()[index];
    const uint32_t slot = slot_of(index);
    if (slot == kNone) {
        return {};
    }
    const Day day = today(group);
    const GroupSlot& counters = state_.slot(slot);
    const Counter counted =
        group.price_model == PriceModel::cpc ? Counter::clicks : Counter::conversions;
    return {counters.at(Counter::impressions).read(day), counters.at(counted).read(day)};
}

MicroCents Ledger::ecpm(uint32_t index) noexcept {
    return expected_ecpm(image_.groups()[index].price, evidence(index));
}

MicroCents Ledger::floor_ecpm(uint32_t index) noexcept {
    return ads::floor_ecpm(image_.groups()[index].price, evidence(index));
}

void Ledger::refused(uint32_t placement, uint32_t group, Reason reason) noexcept {
    if (reason == Reason::pacing && exhausted_) {
        reason = Reason::cap;
    }
    auto last = std::find_if(last_.begin(), last_.end(),
                             [&](const Refusal& one) { return one.placement == placement; });
    if (last == last_.end()) {
        last_.push_back({placement, group, reason});  // no page has more placements
    } else {
        last->reason = reason;
    }
    if (traffic_ != nullptr && !request_.invalid) {
        traffic_->refused(reason);
    }
    const uint32_t slot = slot_of(group);
    if (slot != kNone && !request_.invalid) {
        state_.refuse(slot, reason, today(image_.groups()[group]), 1);
    }
    if (trace_ != nullptr) {
        trace_->push_back({placement, group, reason});
    }
}

Unfilled Ledger::unfilled(uint32_t placement) const noexcept {
    for (const Refusal& one : last_) {
        if (one.placement == placement) {
            return unfilled_by(one.reason);
        }
    }
    return Unfilled::targeting;
}

}  // namespace ads
