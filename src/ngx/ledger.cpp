#include "ngx/ledger.hpp"

namespace ads::ngx {

// The caps of an ad at this moment, by subject.
struct WorkerLedger::Subjects {
    FixedVector<FrequencyLimit, kMaxCaps> limits;
    FixedVector<FrequencySubject, kCount<CapLevel>> list;
};

WorkerLedger::WorkerLedger(Worker& worker, const Request& request, ngx_int_t anonymous_cap,
                           std::vector<Refusal>* trace) noexcept
    : worker_(worker),
      image_(worker.image()),
      request_(request),
      now_(request.now / 1000),
      anonymous_cap_(anonymous_cap),
      trace_(trace) {
    if (!request.session.empty()) {
        session_ = siphash(worker.state().head().session_key, request.session);
    }
}

Day WorkerLedger::today(const GroupRecord& group) noexcept {
    return image_.day_of(image_.campaign_of(group), now_);
}

Id WorkerLedger::id_of(CapLevel level, uint32_t group, uint32_t creative) const noexcept {
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

// The caps of a level stand together in the image.
void WorkerLedger::gather(uint32_t group, uint32_t creative, bool creative_only,
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

bool WorkerLedger::allows(uint32_t group, uint32_t creative) noexcept {
    if (!capped(image_.groups()[group])) {
        return true;
    }
    Subjects subjects;
    gather(group, creative, true, subjects);
    return subjects.list.empty() || worker_.frequency().allows(session_, subjects.list, second());
}

// The smallest probability of the limits counts. Invalid traffic is not paced.
bool WorkerLedger::toss(uint32_t index) noexcept {
    const GroupRecord& group = image_.groups()[index];
    exhausted_ = false;
    if (request_.invalid || !paced(image_, group)) {
        return true;
    }
    State& state = worker_.state();
    const GroupSlots& slots = worker_.slots().groups[index];
    pacing::Threshold threshold = pacing::kAlways;
    const auto apply = [&](uint32_t slot) noexcept {
        if (slot == kNone) {
            threshold = pacing::kNever;
            return;
        }
        const PaceSlot& pace = state.pace(slot);
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
        const CampaignSlots& campaign = worker_.slots().campaigns[group.campaign];
        apply(campaign.paces[static_cast<size_t>(group.strategy)]);
        if (campaign.budget != kNone) {
            const Day day = today(group);
            WallSlot& wall = state.wall(campaign.budget);
            count_day(wall.tosses, day, 1);
            count_day(wall.offered, day, worker_.billing().price(index, day));
        }
    }
    if (slots.counters != kNone) {
        state.mark_tossed(slots.counters);
    }
    return threshold == pacing::kAlways || pacing::passes(worker_.rng().next(), threshold);
}

bool WorkerLedger::take_frequency(const Pick& pick) noexcept {
    const GroupRecord& group = image_.groups()[pick.group];
    if (capped_together(group)) {
        const uint32_t slot = worker_.slot_of(pick.group);
        const Day day = today(group);
        // Without a counter nothing keeps the cap.
        return slot != kNone && worker_.state().slot(slot).anonymous.take(
                                    day, 1, static_cast<uint64_t>(anonymous_cap_), day);
    }
    if (!capped(group)) {
        return true;
    }
    Subjects subjects;
    gather(pick.group, pick.creative, false, subjects);
    return worker_.frequency().take(session_, subjects.list, second());
}

Reason WorkerLedger::take(Pick& pick) noexcept {
    const GroupRecord& group = image_.groups()[pick.group];
    if (request_.invalid) {
        return Reason::none;
    }
    if (paced(image_, group) && !worker_.billing().take(pick.group, request_.now, pick.reserved)) {
        return Reason::cap;
    }
    if (!take_frequency(pick)) {
        if (paced(image_, group)) {
            worker_.billing().give_back(pick.group, request_.now, pick.reserved);
        }
        return Reason::frequency;
    }
    worker_.count_serve();
    const uint32_t slot = worker_.slot_of(pick.group);
    if (slot != kNone) {
        const Day day = today(group);
        worker_.state().slot(slot).at(Counter::serves).count(day, 1, day);
    }
    return Reason::none;
}

void WorkerLedger::give_back(const Pick& pick) noexcept {
    const GroupRecord& group = image_.groups()[pick.group];
    if (request_.invalid) {
        return;
    }
    if (capped(group)) {
        Subjects subjects;
        gather(pick.group, pick.creative, false, subjects);
        worker_.frequency().give_back(session_, subjects.list, second());
    }
    const uint32_t slot = worker_.slot_of(pick.group);
    if (slot != kNone) {
        GroupSlot& counters = worker_.state().slot(slot);
        counters.at(Counter::serves).give_back(today(group), 1);
        if (capped_together(group)) {
            counters.anonymous.give_back(today(group), 1);
        }
    }
    if (paced(image_, group)) {
        worker_.billing().give_back(pick.group, request_.now, pick.reserved);
    }
}

// One event in a thousand impressions, until it is known better.
MicroCents WorkerLedger::ecpm(uint32_t index) noexcept {
    const GroupRecord& group = image_.groups()[index];
    const uint32_t slot = worker_.slot_of(index);
    if (slot == kNone) {
        return group.price;
    }
    const Day day = today(group);
    const GroupSlot& counters = worker_.state().slot(slot);
    const Counter counted =
        group.price_model == PriceModel::cpc ? Counter::clicks : Counter::conversions;
    const double rate = (static_cast<double>(counters.at(counted).read(day)) + 1) /
                        (static_cast<double>(counters.at(Counter::impressions).read(day)) + 1000);
    return static_cast<MicroCents>(static_cast<double>(group.price) * rate * 1000);
}

void WorkerLedger::refused(uint32_t placement, uint32_t group, Reason reason) noexcept {
    if (reason == Reason::pacing && exhausted_) {
        reason = Reason::cap;
    }
    const uint32_t slot = worker_.slot_of(group);
    if (slot != kNone && !request_.invalid) {
        worker_.state().refuse(slot, reason, today(image_.groups()[group]), 1);
    }
    if (trace_ != nullptr) {
        trace_->push_back({placement, group, reason});
    }
}

}  // namespace ads::ngx
