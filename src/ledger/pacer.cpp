#include "ledger/pacer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ads {

using pacing::BucketTimes;

void PaceSlot::publish(Day day, const pacing::DayPlan& plan, const pacing::Pace& pace) noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    threshold.store(pacing::threshold_of(pace.probability), relaxed);
    // A share of a unit is one that may be served.
    const double most = std::ceil(pace.allowed - 1e-6);
    const bool limited = most < static_cast<double>(pacing::kUnlimited);
    allowed.store(DayCount::pack(day, limited ? static_cast<uint64_t>(most) : pacing::kUnlimited),
                  relaxed);
    probability.store(pace.probability, relaxed);
    amount.store(plan.limited ? plan.amount : 0, relaxed);
    ideal.store(pace.ideal, relaxed);
    utilization.store(pace.utilization, relaxed);
    status.store(pace.status, relaxed);
    exhausted.store(pace.exhausted, relaxed);
}

pacing::Terms terms_of(const GroupRecord& group) noexcept {
    return {.strategy = group.strategy,
            .cap_on = group.cap_on,
            .goal_on = group.goal_on,
            .impression_cap = group.impression_cap,
            .click_cap = group.click_cap,
            .goal = group.goal};
}

void Pacer::bind(const Image& image, Slots slots) {
    image_ = image;
    slots_ = slots;
    group_at_.assign(state_.slots(), kNone);
    groups_.clear();
    campaigns_.clear();
    group_due_.assign(image.groups().size(), false);
    campaign_due_.assign(image.campaigns().size(), false);
    for (uint32_t i = 0; i < image.groups().size(); i++) {
        const auto& group = image.groups()[i];
        const bool paced = group.limits(EventType::impression) || group.limits(EventType::click) ||
                           image.campaign_of(group).has_budget;
        const uint32_t slot = slots_.groups[i].counters;
        if (paced && slot < group_at_.size()) {
            group_at_[slot] = i;
        }
    }
    curve_.assign(image.placements().size(), 0);
    for (size_t i = 0; i < curve_.size(); i++) {
        curve_[i] = state_.curve_of(image.placements()[i].hash);
    }
    passed_.clear();
    state_.head().health.passed.store(0, std::memory_order_relaxed);
    sums_.clear();
    weeks_.clear();
    for (const auto& slot : state_.curves()) {
        sums_.emplace_back(slot.curve);
        weeks_.emplace_back(slot.week);
    }
    last_round_ = 0;
    sweep_ = 0;
    sweep_left_ = 0;
}

void Pacer::due(uint32_t group) {
    if (!group_due_[group]) {
        group_due_[group] = true;
        groups_.push_back(group);
    }
    const uint32_t campaign = image_.groups()[group].campaign;
    if (image_.campaigns()[campaign].has_budget && !campaign_due_[campaign]) {
        campaign_due_[campaign] = true;
        campaigns_.push_back(campaign);
    }
}

// The next slots of the round: 64 with tosses, or next in the sweep.
// False: there were none left.
bool Pacer::collect() {
    const auto words = state_.tossed();
    if (word_ < words.size()) {
        const uint32_t w = word_++;
        if (words[w].load(std::memory_order_relaxed) == 0) {
            return true;
        }
        for (uint64_t bits = words[w].exchange(0, std::memory_order_relaxed); bits != 0;
             bits &= bits - 1) {
            const auto first = w * 64 + static_cast<uint32_t>(std::countr_zero(bits));
            for (size_t slot = first; slot < group_at_.size(); slot += kTossedBits) {
                due_at(slot);
            }
        }
        return true;
    }
    const bool more = sweep_left_ > 0;
    for (int i = 0; i < 64 && sweep_left_ > 0; i++, sweep_left_--) {
        sweep_ = sweep_ + 1 < group_at_.size() ? sweep_ + 1 : 0;
        due_at(sweep_);
    }
    return more;
}

void Pacer::due_at(size_t slot) {
    if (slot < group_at_.size() && group_at_[slot] != kNone) {
        due(group_at_[slot]);
    }
}

void Pacer::tick_curves() {
    const double now = static_cast<double>(now_) / 1000;
    for (size_t i = 0; i < kCurves; i++) {
        CurveSlot& slot = state_.curves()[i];
        if (i > 0 && slot.placement.load(std::memory_order_relaxed) == 0) {
            continue;
        }
        if (const auto bin = slot.curve.tick(now, slot.requests.load(std::memory_order_relaxed))) {
            sums_[i] = pacing::CurveSums(slot.curve);
            if (slot.week.add(*bin)) {
                weeks_[i] = pacing::WeekSums(slot.week);
            }
        }
    }
}

void Pacer::begin(Millis now) {
    now_ = now;
    tick_curves();
    // Within a minute each is visited; after a step of the clock, all at once.
    const Seconds second = now / 1000;
    const Seconds since = second - last_round_;
    const size_t share =
        since > 0 && since < kAll
            ? group_at_.size() * static_cast<size_t>(since) / static_cast<size_t>(kAll) + 1
            : group_at_.size();
    sweep_left_ = std::min(group_at_.size(), sweep_left_ + (since == 0 ? 0 : share));
    last_round_ = second;
    word_ = 0;
}

bool Pacer::step(uint32_t most) {
    while (most > 0) {
        if (!groups_.empty()) {
            const uint32_t group = groups_.back();
            groups_.pop_back();
            group_due_[group] = false;
            pace_group(group);
            most--;
        } else if (!collect()) {
            break;
        }
    }
    for (; most > 0 && !campaigns_.empty(); most--) {
        const uint32_t campaign = campaigns_.back();
        campaigns_.pop_back();
        campaign_due_[campaign] = false;
        pace_campaign(campaign);
    }
    return most == 0;
}

template <class Placements>
Pacer::Times Pacer::times(const CampaignRecord& campaign, std::span<const Interval> open,
                          uint32_t flight, const Placements& placements) const noexcept {
    Times times{.day = LocalDay::of(image_, campaign, now_ / 1000, reservation_),
                .day_end = image_.next_day(campaign, now_ / 1000),
                .open = open,
                .flight = flight};
    if (placements.size() > pacing::kMaxCurves) {
        times.curves.push_back(0);
        return times;
    }
    for (const uint32_t placement : placements) {
        const uint32_t curve = curve_[placement];
        if (std::find(times.curves.begin(), times.curves.end(), curve) == times.curves.end()) {
            times.curves.push_back(curve);
        }
    }
    return times;
}

pacing::Supply Pacer::supply(const Times& times, Seconds from) const noexcept {
    FixedVector<const pacing::CurveSums*, pacing::kMaxCurves> curves;
    for (const uint32_t curve : times.curves) {
        curves.push_back(&sums_[curve]);
    }
    return {pacing::ActiveDay(times.open, from, times.day_end), curves};
}

pacing::Supply Pacer::observe(PaceSlot& pace, const pacing::Reading& reading, const Times& times,
                              bool whole_flight) const noexcept {
    const bool knew_today = pace.state.last != 0 && pace.state.day == reading.day;
    pacing::observe(pace.state, reading);
    const Day day = times.day.day;
    const Seconds now = now_ / 1000;
    pacing::DayShare& share = pace.share;
    const bool new_day = share.day != day;
    if (new_day) {
        const bool from_start =
            knew_today || reading.used + reading.in_flight > 0 || now < times.day.begin + kMidnight;
        share.from = from_start ? times.day.begin : now;
        share.day = day;
    }
    // `from` is kept meanwhile: the limit may become one for longer than a day, today.
    if (!whole_flight || times.flight == kNone) {
        share.part = 1;
        share.key = 0;
        return supply(times, times.day.begin);
    }
    if (const FlightRecord& flight = image_.flight(times.flight);
        new_day || share.key != flight.key) {
        share.part = part(times, flight, share.from);
        share.key = flight.key;
    }
    return supply(times, share.from);
}

double Pacer::part(const Times& times, const FlightRecord& flight, Seconds from) const noexcept {
    FixedVector<const pacing::WeekSums*, pacing::kMaxCurves> weeks;
    for (const uint32_t curve : times.curves) {
        weeks.push_back(&weeks_[curve]);
    }
    const pacing::Ahead ahead{.open = times.open,
                              .later = image_.get(flight.later),
                              .start = flight.start,
                              .end = flight.end};
    return pacing::todays_part(ahead, weeks, from, times.day_end);
}

// While PostgreSQL does not answer a node of a fleet, another node may have the pixel.
void Pacer::free_expired(WallSlot& wall, const BucketTimes& times) noexcept {
    if (state_.head().fleet.frozen.load(std::memory_order_relaxed) == 0) {
        wall.expire(times, now_);
    }
}

// What it holds and its part of what is free: of all nodes together that is the limit. Always one
// unit more than is used, or it would never ask for it.
pacing::DayPlan Pacer::in_fleet(pacing::DayPlan plan, const FleetWall& of, uint32_t slot,
                                uint64_t limit, double used) const noexcept {
    if (state_.head().fleet.mode.load(std::memory_order_relaxed) == FleetMode::none ||
        !plan.limited || limit == 0) {
        return plan;
    }
    const Holding holding = Holding::at(state_, of, slot);
    const uint64_t got = holding.got();
    const uint64_t gave = holding.gave();
    const uint64_t own = (got > gave ? got - gave : 0) + holding.part();
    const double part = std::min(1.0, static_cast<double>(own) / static_cast<double>(limit));
    plan.amount = std::max(std::min(plan.amount, used + plan.unit), plan.amount * part);
    plan.stop = std::min(plan.stop, plan.amount);
    return plan;
}

uint64_t Pacer::tosses(uint32_t group, Day day) const noexcept {
    GroupSlot& slot = state_.slot(slots_.groups[group].counters);
    const DayCount held(
        slot.refusal(refusal_index(Reason::pacing)).load(std::memory_order_relaxed));
    return slot.at(Counter::serves).read(day) + (held.day() == day ? held.used() : 0);
}

void Pacer::watch(uint32_t pace_slot, bool passed) noexcept {
    const auto at = std::find(passed_.begin(), passed_.end(), pace_slot);
    if (passed == (at != passed_.end())) {
        return;
    }
    if (passed) {
        passed_.push_back(pace_slot);
    } else {
        passed_.erase(at);
    }
    state_.head().health.passed.store(static_cast<uint32_t>(passed_.size()),
                                      std::memory_order_relaxed);
}

void Pacer::pace_group(uint32_t index) {
    const auto& group = image_.groups()[index];
    if (!group.limits(EventType::impression) && !group.limits(EventType::click)) {
        return;
    }
    FixedVector<uint32_t, pacing::kMaxCurves + 1> placements;
    for (const auto& at : image_.get(group.positions)) {
        placements.push_back(at.placement);  // one more than fits is enough
    }
    const Times open =
        times(image_.campaign_of(group), image_.get(group.open), group.flight, placements);
    pace_impressions(index, open);
    pace_clicks(index, open);
}

void Pacer::pace_impressions(uint32_t index, const Times& open) {
    const LocalDay& day = open.day;
    const auto& group = image_.groups()[index];
    const GroupSlots& slots = slots_.groups[index];
    if (slots.impressions == kNone || slots.impressions_pace == kNone) {
        return;
    }
    WallSlot& wall = state_.wall(slots.impressions);
    PaceSlot& pace = state_.pace(slots.impressions_pace);
    const BucketTimes times = day.times(group.impression_cap > 0);
    free_expired(wall, times);
    const uint64_t in_wall = wall.spent(day.day);
    pacing::Reading reading{
        .now = static_cast<double>(now_) / 1000, .day = day.day, .tosses = tosses(index, day.day)};
    reading.in_flight = static_cast<double>(std::min(in_wall, wall.in_flight(times)));
    reading.used = static_cast<double>(in_wall) - reading.in_flight;
    reading.confirmed = static_cast<double>(wall.confirmed.read(day.day));
    reading.resolved = reading.confirmed + static_cast<double>(wall.expired.read(day.day));
    const uint64_t whole = wall.spent_ever();
    reading.before = static_cast<double>(whole > in_wall ? whole - in_wall : 0);
    const auto supply =
        observe(pace, reading, open, group.goal > 0 && group.goal_on == EventType::impression);
    const bool capped = group.impression_cap > 0;
    const auto plan =
        in_fleet(pacing::impressions_plan(terms_of(group), pace.state.before, pace.share.part),
                 {SlotKind::impressions, group.id, capped ? day.day : Day{0}}, slots.impressions,
                 capped ? group.impression_cap : group.goal, static_cast<double>(in_wall));
    watch(slots.impressions_pace, group.impression_cap > 0 && in_wall > group.impression_cap);
    pace.publish(day.day, plan, pacing::pace(pace.state, plan, supply, reading));
}

void Pacer::pace_clicks(uint32_t index, const Times& open) {
    const LocalDay& day = open.day;
    const auto& group = image_.groups()[index];
    const GroupSlots& slots = slots_.groups[index];
    if (slots.clicks == kNone || slots.clicks_pace == kNone) {
        return;
    }
    const GroupSlot& counters = state_.slot(slots.counters);
    PaceSlot& pace = state_.pace(slots.clicks_pace);
    const auto clicks = static_cast<double>(counters.at(Counter::clicks).read(day.day));
    const auto whole = static_cast<double>(state_.wall(slots.clicks).spent_ever());
    const pacing::Reading reading{.now = static_cast<double>(now_) / 1000,
                                  .day = day.day,
                                  .tosses = tosses(index, day.day),
                                  .used = clicks,
                                  .before = std::max(0.0, whole - clicks)};
    const auto supply =
        observe(pace, reading, open, group.goal > 0 && group.goal_on == EventType::click);
    const double rate =
        (clicks + 1) /
        (static_cast<double>(counters.at(Counter::impressions).read(day.day)) + 1000);
    const bool capped = group.click_cap > 0;
    const auto plan =
        in_fleet(pacing::clicks_plan(terms_of(group), rate, pace.state.before, pace.share.part),
                 {SlotKind::clicks, group.id, capped ? day.day : Day{0}}, slots.clicks,
                 capped ? group.click_cap : group.goal, clicks + 1);
    pace.publish(day.day, plan, pacing::pace(pace.state, plan, supply, reading));
}

void Pacer::pace_campaign(uint32_t index) {
    const auto& campaign = image_.campaigns()[index];
    const CampaignSlots& slots = slots_.campaigns[index];
    if (slots.budget == kNone) {
        return;
    }
    const Times open = times(campaign, image_.get(campaign.open), campaign.flight,
                             image_.get(campaign.placements));
    const LocalDay& day = open.day;
    const bool lifetime = campaign.budget_type == BudgetType::lifetime;
    WallSlot& wall = state_.wall(slots.budget);
    const BucketTimes times = day.times(campaign.budget_type == BudgetType::daily);
    free_expired(wall, times);
    // In a fleet this is in PostgreSQL's account, and no right of this node.
    if (lifetime && state_.head().fleet.mode.load(std::memory_order_relaxed) == FleetMode::none) {
        wall.raise_lifetime(static_cast<uint64_t>(std::max<MicroCents>(0, campaign.spent)));
    }
    const auto today = [&](const std::atomic<uint64_t>& word) {
        const DayCount count(word.load(std::memory_order_relaxed));
        return count.day() == day.day ? count.used() : 0;
    };
    const uint64_t tossed = today(wall.tosses);
    const uint64_t in_wall = wall.spent(day.day);
    pacing::Reading reading{
        .now = static_cast<double>(now_) / 1000, .day = day.day, .tosses = tossed};
    reading.in_flight = static_cast<double>(std::min(in_wall, wall.in_flight(times)));
    reading.used = static_cast<double>(in_wall) - reading.in_flight;
    const uint64_t whole = wall.spent_ever();
    reading.before = static_cast<double>(whole > in_wall ? whole - in_wall : 0);
    // The mean cost of a serve, weighted by tosses.
    const double unit = std::max(
        1.0, tossed > 0 ? static_cast<double>(today(wall.offered)) / static_cast<double>(tossed)
                        : campaign.unit);
    reading.confirmed = static_cast<double>(wall.confirmed.read(day.day)) / unit;
    reading.resolved = reading.confirmed + static_cast<double>(wall.expired.read(day.day)) / unit;
    const auto budget = static_cast<uint64_t>(campaign.budget);
    const double most = std::max(1.0, static_cast<double>(campaign.hard_cap));
    watch(slots.budget, lifetime
                            ? whole > budget
                            : static_cast<double>(in_wall) > static_cast<double>(budget) * most);
    for (size_t s = 0; s < kCount<Strategy>; s++) {
        if ((campaign.strategies >> s & 1) == 0 || slots.paces[s] == kNone) {
            continue;
        }
        PaceSlot& pace = state_.pace(slots.paces[s]);
        const auto supply = observe(pace, reading, open, lifetime);
        const auto plan = in_fleet(
            pacing::budget_plan(campaign.budget_type, campaign.budget,
                                static_cast<double>(campaign.hard_cap), static_cast<Strategy>(s),
                                unit, pace.state.before, pace.share.part),
            {SlotKind::budget, campaign.id, lifetime ? Day{0} : day.day}, slots.budget, budget,
            static_cast<double>(in_wall));
        pace.publish(day.day, plan, pacing::pace(pace.state, plan, supply, reading));
    }
}

}  // namespace ads
