#include "simulate_books.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/catalog/calendar.hpp"

namespace ads::cli {

namespace {

using pacing::BucketTimes;
using pacing::kUnlimited;

bool can_run(Status status) {
    return status == Status::active || status == Status::scheduled;
}

template <class Better>
std::optional<Seconds> of_both(std::optional<Seconds> a, std::optional<Seconds> b, Better better) {
    return a && b ? better(*a, *b) : a ? a : b;
}

pacing::Terms terms_of(const catalog::Pacing& pacing, std::optional<Strategy> strategy) {
    pacing::Terms terms;
    terms.strategy = strategy.value_or(pacing.strategy);
    terms.cap_on = pacing.cap_on;
    terms.impression_cap = pacing.daily_impression_cap.value_or(0);
    terms.click_cap = pacing.daily_click_cap.value_or(0);
    if (pacing.goal) {
        terms.goal = pacing.goal->count;
        terms.goal_on = pacing.goal->on;
    }
    return terms;
}

// When any of them is open.
std::vector<Interval> joined(std::vector<Interval> all) {
    std::sort(all.begin(), all.end(),
              [](const Interval& a, const Interval& b) { return a.open < b.open; });
    std::vector<Interval> open;
    for (const Interval& interval : all) {
        if (!open.empty() && interval.open <= open.back().close) {
            open.back().close = std::max(open.back().close, interval.close);
        } else {
            open.push_back(interval);
        }
    }
    return open;
}

// A few placements each have their curve; for many there is the site's.
std::vector<uint32_t> curves_of(const std::set<uint32_t>& placements, size_t site) {
    if (placements.size() > pacing::kMaxCurves) {
        return {static_cast<uint32_t>(site)};
    }
    return {placements.begin(), placements.end()};
}

}  // namespace

void LocalDays::at(Seconds now, Day& day, Seconds& begin, Seconds& end) const {
    const auto after = std::upper_bound(starts.begin(), starts.end() - 1, now);
    const auto index = std::max<ptrdiff_t>(1, after - starts.begin());
    day = static_cast<Day>(first + index - 1);
    begin = starts[static_cast<size_t>(index) - 1];
    end = starts[static_cast<size_t>(index)];
}

// ---- walls ----

bool Wall::take(Day day, uint64_t n, uint64_t limit, uint64_t lifetime_limit) noexcept {
    if (!used.take(day, n, limit)) {
        return false;
    }
    if (!lifetime.take(0, n, lifetime_limit)) {
        used.give_back(day, n);
        return false;
    }
    return true;
}

void Wall::give_back(Day day, uint64_t n) noexcept {
    used.give_back(day, n);
    lifetime.give_back(0, n);
}

void Wall::reserve(const BucketTimes& times, Millis now, uint64_t n) noexcept {
    const auto step = reservations.reserve(times, now, n);
    if (step.freed > 0) {
        const Day day = times.day_of(step.stamp);
        give_back(day, step.freed);
        expired.count(day, step.freed);
    }
}

void Wall::expire(const BucketTimes& times, Millis now) noexcept {
    reservations.expire(times, now, [&](Day day, uint64_t n) {
        give_back(day, n);
        expired.count(day, n);
    });
}

bool Wall::confirm(const BucketTimes& served, Millis at, uint64_t n, uint64_t limit,
                   uint64_t lifetime_limit) noexcept {
    const uint64_t there = reservations.settle(served, at, n);
    if (there < n && !take(served.day, n - there, limit, lifetime_limit)) {
        give_back(served.day, there);
        return false;
    }
    confirmed.count(served.day, n);
    return true;
}

void Wall::release(const BucketTimes& served, Millis at, uint64_t n) noexcept {
    const uint64_t there = reservations.settle(served, at, n);
    give_back(served.day, there);
    confirmed.count(served.day, there);
}

// ---- the catalog ----

void Books::open(const Image& image, Seconds begin, Seconds end) {
    image_ = image;
    groups_ = std::vector<SimGroup>(image.groups().size());
    campaigns_ = std::vector<SimCampaign>(image.campaigns().size());
    slots_ = std::make_unique<GroupSlot[]>(groups_.size());
    for (uint32_t i = 0; i < groups_.size(); i++) {
        groups_[i].index = i;
        groups_[i].campaign = image.groups()[i].campaign;
    }
    for (uint32_t i = 0; i < campaigns_.size(); i++) {
        campaigns_[i].index = i;
        campaigns_[i].thresholds.fill(pacing::kAlways);
    }
    for (const auto& campaign : document_.campaigns) {
        open_campaign(campaign, begin, end);
    }
}

void Books::open_campaign(const catalog::Campaign& campaign, Seconds begin, Seconds end) {
    const auto record = std::find_if(image_.campaigns().begin(), image_.campaigns().end(),
                                     [&](const auto& c) { return c.id == campaign.id; });
    SimCampaign& c = campaigns_[static_cast<size_t>(record - image_.campaigns().begin())];
    const catalog::Calendar calendar(campaign.timezone, begin - 2 * 86'400, end + 2 * 86'400);
    const auto days = calendar.local_days();
    c.days = {days.first, days.starts};
    if (campaign.budget && campaign.budget->type == BudgetType::lifetime) {
        c.wall.lifetime.count(0, static_cast<uint64_t>(campaign.budget->spent));
    }
    const size_t site = image_.placements().size();
    std::set<uint32_t> everywhere;
    std::set<uint32_t> all;
    std::vector<Interval> open;
    for (const auto& group : campaign.ad_groups) {
        SimGroup& g = groups_[image_.find_group(group.id)];
        g.terms = terms_of(group.pacing, strategy_);
        if (can_run(campaign.status) && can_run(group.status)) {
            const auto latest = [](Seconds a, Seconds b) { return std::max(a, b); };
            const auto soonest = [](Seconds a, Seconds b) { return std::min(a, b); };
            for (const auto& [from, to] : calendar.open_intervals(
                     group.targeting.schedule, of_both(campaign.start, group.start, latest),
                     of_both(campaign.end, group.end, soonest))) {
                g.open.push_back({from, to});
            }
        }
        std::set<uint32_t> placements;
        for (const auto& slug : group.targeting.placements) {
            placements.insert(image_.find_placement(slug));
        }
        for (uint32_t i = 0; placements.empty() && i < site; i++) {
            everywhere.insert(i);
        }
        placements = placements.empty() ? everywhere : placements;
        g.curves = curves_of(placements, site);
        all.insert(placements.begin(), placements.end());
        open.insert(open.end(), g.open.begin(), g.open.end());
        c.groups.push_back(g.index);
    }
    c.curves = curves_of(all, site);
    c.open = joined(std::move(open));
}

void Books::set_time(Seconds second) {
    now = second * 1000;
    for (SimCampaign& c : campaigns_) {
        if (second >= c.day_end || c.day == 0) {
            c.days.at(second, c.day, c.day_begin, c.day_end);
            c.times = BucketTimes::of(c.day, c.day_begin, kReservation);
        }
    }
}

// ---- counters ----

uint64_t Books::tosses(uint32_t group, Day day) const {
    const GroupSlot& s = slots_[group];
    const DayCount held(s.refusals[refusal_index(Reason::pacing)].load(std::memory_order_relaxed));
    return s.at(Counter::serves).read(day) + (held.day() == day ? held.used() : 0);
}

uint64_t Books::events(uint32_t group, Day day) const {
    const bool clicks = record(group).price_model == PriceModel::cpc;
    return slots_[group].at(clicks ? Counter::clicks : Counter::conversions).read(day);
}

double Books::expected_price(uint32_t group) const {
    const Day day = campaigns_[groups_[group].campaign].day;
    return pacing::expected_price(record(group).price_model, record(group).price,
                                  events(group, day),
                                  slots_[group].at(Counter::impressions).read(day));
}

pacing::Walls Books::walls(const SimGroup& group) const {
    const auto& c = campaign_record(group.campaign);
    return pacing::budget_walls(c.budget_type, c.budget, static_cast<double>(c.hard_cap),
                                group.terms.strategy);
}

uint64_t Books::impression_wall(const SimGroup& group) const noexcept {
    return group.terms.impression_cap > 0 ? group.terms.impression_cap : kUnlimited;
}

uint64_t Books::allowed_today(const Limit& limit) noexcept {
    return static_cast<uint64_t>(std::ceil(limit.pace.allowed - 1e-6));
}

// ---- the ledger ----

bool Books::toss(uint32_t index) noexcept {
    coins++;
    SimGroup& group = groups_[index];
    SimCampaign& campaign = campaigns_[group.campaign];
    group.tossed = true;
    campaign.tossed = true;
    const auto threshold = pacing::combined(
        group.threshold, campaign.thresholds[static_cast<size_t>(group.terms.strategy)]);
    return pacing::passes(rng_.next(), threshold);
}

Reason Books::take(const Pick& pick) noexcept {
    SimGroup& group = groups_[pick.group];
    SimCampaign& campaign = campaign_of(group);
    GroupSlot& counters = slots_[pick.group];
    const Day day = campaign.day;
    const auto& terms = group.terms;
    if (terms.click_cap > 0 && counters.at(Counter::clicks).read(day) >= terms.click_cap) {
        return Reason::cap;
    }
    if (terms.goal_on == EventType::click && terms.goal > 0 &&
        group.clicks.lifetime.read(0) >= terms.goal) {
        return Reason::cap;
    }
    const bool has_goal = terms.goal > 0 && terms.goal_on == EventType::impression;
    const bool limited = group.impressions_limit.aim.limited;
    if (limited &&
        !group.wall.take(day, 1,
                         std::min(impression_wall(group), allowed_today(group.impressions_limit)),
                         has_goal ? terms.goal : kUnlimited)) {
        return Reason::cap;
    }
    last_reserved = 0;
    if (campaign_record(group.campaign).has_budget) {
        const auto& r = record(pick.group);
        const uint64_t price =
            pacing::reserved_price(r.price_model, r.price, events(pick.group, day),
                                   counters.at(Counter::impressions).read(day));
        const auto wall = walls(group);
        const auto& limit = campaign.budget[static_cast<size_t>(terms.strategy)];
        if (price > 0 && !campaign.wall.take(day, price, std::min(wall.day, allowed_today(limit)),
                                             wall.lifetime)) {
            if (limited) {
                group.wall.give_back(day, 1);
            }
            return Reason::cap;
        }
        if (price > 0) {
            campaign.wall.reserve(campaign.times, now, price);
        }
        last_reserved = price;
    }
    if (limited && terms.billed()) {
        group.wall.reserve(campaign.times, now, 1);
    }
    counters.at(Counter::serves).count(day, 1);
    return Reason::none;
}

void Books::give_back(const Pick& pick) noexcept {
    SimGroup& group = groups_[pick.group];
    SimCampaign& campaign = campaign_of(group);
    const Day day = campaign.day;
    slots_[pick.group].at(Counter::serves).give_back(day, 1);
    if (group.impressions_limit.aim.limited) {
        if (group.terms.billed()) {
            group.wall.reservations.settle(campaign.times, now, 1);
        }
        group.wall.give_back(day, 1);
    }
    if (campaign_record(group.campaign).has_budget) {
        const auto& r = record(pick.group);
        const uint64_t price =
            pacing::reserved_price(r.price_model, r.price, events(pick.group, day),
                                   slots_[pick.group].at(Counter::impressions).read(day));
        campaign.wall.give_back(day, campaign.wall.reservations.settle(campaign.times, now, price));
    }
}

MicroCents Books::ecpm(uint32_t group) noexcept {
    return static_cast<MicroCents>(expected_price(group) * 1000);
}

void Books::refused(uint32_t, uint32_t group, Reason reason) noexcept {
    count_day(slots_[group].refusals[refusal_index(reason)],
              campaigns_[groups_[group].campaign].day, 1);
}

// ---- pixels ----

bool Books::bill(SimGroup& group, const Pixel& pixel, uint64_t price, bool reserved) noexcept {
    SimCampaign& campaign = campaign_of(group);
    Day day = campaign.day;
    if (campaign_record(group.campaign).has_budget && price > 0) {
        const auto wall = walls(group);
        if (reserved) {
            Seconds begin = 0;
            Seconds end = 0;
            campaign.days.at(pixel.served / 1000, day, begin, end);
            if (!campaign.wall.confirm(BucketTimes::of(day, begin, kReservation), pixel.served,
                                       price, wall.day, wall.lifetime)) {
                return false;
            }
        } else if (!campaign.wall.take(day, price, wall.day, wall.lifetime)) {
            return false;  // over budget: redirected, recorded, unbilled
        }
    }
    slots_[group.index].at(Counter::spend).count(day, price);
    return true;
}

bool Books::track(const Pixel& pixel) {
    SimGroup& group = groups_[pixel.group];
    SimCampaign& campaign = campaign_of(group);
    GroupSlot& counters = slots_[pixel.group];
    const auto& r = record(pixel.group);
    const auto price = static_cast<uint64_t>(r.price_of(pixel.type));
    Day served_day = 0;
    Seconds begin = 0;
    Seconds end = 0;
    campaign.days.at(pixel.served / 1000, served_day, begin, end);
    const BucketTimes served = BucketTimes::of(served_day, begin, kReservation);

    switch (pixel.type) {
        case EventType::impression: {
            const bool has_goal = group.terms.goal > 0 && group.terms.goal_on == pixel.type;
            if (group.impressions_limit.aim.limited && group.terms.billed() &&
                !group.wall.confirm(served, pixel.served, 1, impression_wall(group),
                                    has_goal ? group.terms.goal : kUnlimited)) {
                campaign.wall.release(served, pixel.served, pixel.reserved);
                return false;  // late
            }
            counters.at(Counter::impressions).count(served_day, 1);
            if (price > 0) {
                bill(group, pixel, price, true);
            } else if (r.price_model != PriceModel::vcpm) {
                campaign.wall.release(served, pixel.served, pixel.reserved);
            }
            return true;
        }
        case EventType::viewable:
            counters.at(Counter::viewables).count(served_day, 1);
            return price == 0 || bill(group, pixel, price, true);
        case EventType::click:
            if ((group.terms.click_cap > 0 &&
                 counters.at(Counter::clicks).read(campaign.day) >= group.terms.click_cap) ||
                (group.terms.goal > 0 && group.terms.goal_on == EventType::click &&
                 group.clicks.lifetime.read(0) >= group.terms.goal)) {
                return false;  // recorded, unbilled
            }
            counters.at(Counter::clicks).count(campaign.day, 1);
            group.clicks.lifetime.count(0, 1);
            return price == 0 || bill(group, pixel, price, false);
        case EventType::conversion:
            counters.at(Counter::conversions).count(campaign.day, 1);
            return price == 0 || bill(group, pixel, price, false);
        case EventType::serve:
            break;
    }
    return false;
}

}  // namespace ads::cli
