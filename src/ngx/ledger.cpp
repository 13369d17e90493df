#include "ngx/ledger.hpp"

namespace ads::ngx {

// The caps of an ad at this moment, by subject.
struct WorkerLedger::Subjects {
    FixedVector<FrequencyLimit, kMaxCaps> limits;
    FixedVector<FrequencySubject, kCount<CapLevel>> list;
};

WorkerLedger::WorkerLedger(Worker& worker, const Request& request,
                           std::vector<Refusal>* trace) noexcept
    : worker_(worker),
      image_(worker.image()),
      request_(request),
      now_(request.now / 1000),
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

Reason WorkerLedger::take(const Pick& pick) noexcept {
    const GroupRecord& group = image_.groups()[pick.group];
    if (request_.invalid) {
        return Reason::none;
    }
    if (capped(group)) {
        Subjects subjects;
        gather(pick.group, pick.creative, false, subjects);
        if (!worker_.frequency().take(session_, subjects.list, second())) {
            return Reason::frequency;
        }
    }
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
        worker_.state().slot(slot).at(Counter::serves).give_back(today(group), 1);
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
    const uint32_t slot = worker_.slot_of(group);
    if (slot != kNone) {
        worker_.state().refuse(slot, reason, today(image_.groups()[group]), 1);
    }
    if (trace_ != nullptr) {
        trace_->push_back({placement, group, reason});
    }
}

}  // namespace ads::ngx
