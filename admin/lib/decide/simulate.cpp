#include "lib/decide/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/catalog/calendar.hpp"
#include "core/token/token.hpp"
#include "lib/base/failure.hpp"
#include "lib/base/nearest.hpp"
#include "lib/decide/heap_node.hpp"
#include "lib/decide/traffic.hpp"

namespace ads::admin {

namespace {

constexpr Seconds kDay = 86'400;
constexpr Seconds kFirstDay = 1'767'225'600;  // 2026-01-01: local days are counted from there
constexpr Seconds kAfter = 600;               // for the pixels of the last seconds
constexpr size_t kWheel = 8192;               // seconds that an event may take
constexpr size_t kMostLines = 20'000;

// Of pixels: the median delay is 2 s, one in 150 comes after its reservation.
constexpr double kMedianDelay = 2;
constexpr double kSpread = 1.65;
constexpr double kViewable = 0.7;  // of impressions

catalog::Document with_strategy(catalog::Document document, std::optional<Strategy> strategy) {
    for (auto& campaign : document.campaigns) {
        for (auto& group : campaign.ad_groups) {
            group.pacing.strategy = strategy.value_or(group.pacing.strategy);
        }
    }
    return document;
}

// Counts the coins: a group that is asked for and is not served is in the dark.
class CountingLedger : public Ledger {
public:
    CountingLedger(const Source& source, const Request& request, std::vector<uint64_t>& coins)
        : Ledger(source, request, kNoAnonymousCap, nullptr), coins_(coins) {}

    bool toss(uint32_t group) noexcept {
        coins_[group]++;
        return Ledger::toss(group);
    }

private:
    std::vector<uint64_t>& coins_;
};

class Engine {
public:
    Engine(const Scenario& scenario, const catalog::Document& document,
           const std::function<void(uint64_t)>& progress)
        : scenario_(scenario),
          document_(with_strategy(document, scenario.strategy)),
          progress_(progress),
          traffic_(scenario.traffic, scenario.requests, scenario.weekend, scenario.seed,
                   scenario.day + scenario.outage_at),
          node_(document_, scenario.seed * 4 + 1),
          arrivals_(scenario.seed * 4 + 2),
          after_(scenario.seed * 4 + 3),
          wheel_(kWheel) {}

    Simulated run() {
        prepare();
        for (Seconds second = begin_; second < end_ + kAfter; second++) {
            progress_(static_cast<uint64_t>(second - begin_));
            step(second);
        }
        for (auto& tracked : tracked_) {
            result_.lines.push_back(std::move(tracked.line));
        }
        result_.outage = traffic_.outage();
        for (const uint64_t coins : coins_) {
            result_.coins += coins;
        }
        return std::move(result_);
    }

private:
    // An event that is under way.
    struct Coming {
        EventType type = EventType::impression;
        ServedAd ad;
    };

    // A line while it is made.
    struct Tracked {
        Line line;
        uint32_t group = kNone;  // kNone: the campaign
        uint32_t campaign = 0;
        Day day = 0;  // today
        Seconds day_begin = 0;
        Seconds day_end = 0;
        DayResult yesterday;
        std::vector<Interval> open;  // on the day that is shown
        double active = 0;           // seconds of that day
    };

    void prepare() {
        const auto day = static_cast<Day>((scenario_.day - kFirstDay) / kDay + 1);
        const auto first = static_cast<Day>(day - scenario_.days + 1);
        begin_ = scenario_.day - static_cast<Seconds>(scenario_.days - 1) * kDay;
        end_ = scenario_.day + kDay;
        const Seconds from = begin_ - 2 * kDay;
        for (const auto& campaign : document_.campaigns) {
            const auto days = catalog::local_days(campaign.timezone, from, end_ + 2 * kDay);
            const auto start = [&](Day of) {
                return days.starts[static_cast<size_t>(of - days.first)];
            };
            begin_ = std::min(begin_, start(first));
            last_begin_.push_back(start(day));
            last_end_.push_back(start(static_cast<Day>(day + 1)));
        }
        for (const Seconds end : last_end_) {
            end_ = std::max(end_, end);
        }
        node_.publish(begin_);
        coins_.assign(image().groups().size(), 0);
        find_placements();
        track_lines();
    }

    const Image& image() const noexcept { return node_.image(); }

    void find_placements() {
        if (!scenario_.request) {
            return;
        }
        std::vector<std::string> known;
        for (const auto& placement : image().placements()) {
            known.emplace_back(image().text(placement.slug));
        }
        for (const auto& slug : scenario_.request->placements) {
            const uint32_t index = image().find_placement(slug);
            if (index == kNone) {
                const std::string best = nearest(slug, known);
                throw Failure(Exit::bad_input,
                              best.empty()
                                  ? fmt::format("--request: there is no placement \"{}\".", slug)
                                  : fmt::format("--request: there is no placement \"{}\": did you "
                                                "mean \"{}\"?",
                                                slug, best));
            }
            asked_.push_back(index);
        }
        for (const auto& [name, value] : scenario_.request->keys) {
            keys_.push_back({name, value});
        }
    }

    // ---- what is shown ----

    void track_lines() {
        for (size_t i = 0; i < document_.campaigns.size(); i++) {
            const auto& c = document_.campaigns[i];
            for (const auto& g : c.ad_groups) {
                const auto& record = image().groups()[image().find_group(g.id)];
                const bool impressions = record.limits(EventType::impression);
                const bool clicks = record.limits(EventType::click);
                if (impressions) {
                    add_line(LimitOf::impressions, i, &g);
                }
                if (clicks) {
                    add_line(LimitOf::clicks, i, &g);
                }
                if (!impressions && !clicks) {
                    add_line(LimitOf::nothing, i, &g);
                }
            }
            if (c.budget && !c.ad_groups.empty()) {
                add_line(LimitOf::budget, i, nullptr);
            }
        }
        if (tracked_.size() > kMostLines) {
            throw Failure(Exit::bad_input,
                          fmt::format("the catalog has more than {} ad groups, too many to "
                                      "simulate.",
                                      kMostLines));
        }
    }

    // Of an ad group, or with nullptr of the campaign.
    void add_line(LimitOf of, size_t campaign, const catalog::AdGroup* group) {
        const auto& c = document_.campaigns[campaign];
        const auto& any = group != nullptr ? *group : c.ad_groups.front();
        Tracked& t = tracked_.emplace_back();
        const uint32_t index = image().find_group(any.id);
        t.group = group != nullptr ? index : kNone;
        t.campaign = image().groups()[index].campaign;
        Line& line = t.line;
        line.of = of;
        line.campaign = c.id;
        line.ad_group = group != nullptr ? group->id : 0;
        line.name = group != nullptr ? group->name : c.name;
        line.timezone = c.timezone;
        line.currency = document_.currency;
        line.strategy = any.pacing.strategy;
        line.day_begin = last_begin_[campaign];
        line.minutes.resize(static_cast<size_t>((last_end_[campaign] - line.day_begin) / 60));
        const auto& record = image().groups()[index];
        const EventType goal_on = of == LimitOf::clicks ? EventType::click : EventType::impression;
        if (of == LimitOf::budget && c.budget->type == BudgetType::lifetime) {
            line.total = static_cast<double>(c.budget->amount);
        } else if (group != nullptr && record.goal > 0 && record.goal_on == goal_on) {
            line.total = static_cast<double>(record.goal);
        }
    }

    // ---- a second ----

    void step(Seconds second) {
        if (second % kDay == 0 && second > begin_) {
            node_.publish(second);
        }
        now_ = second * 1000;
        node_.tick(now_);
        for (Tracked& t : tracked_) {
            follow(t, second);
        }
        auto& due = wheel_[static_cast<size_t>(second) % kWheel];
        for (const Coming& event : due) {
            result_.pixels++;
            const bool counted = now_ - event.ad.issued <= lives_.of(event.type) &&
                                 node_.track(event.type, event.ad, now_) == Invalid::none;
            result_.late += counted ? 0 : 1;
        }
        due.clear();
        const double mean = traffic_.in_second(second);
        for (double t = gap(); t < mean; t += gap()) {
            now_ = second * 1000 + static_cast<Millis>(t / mean * 1000);
            request();
        }
    }

    double gap() { return -std::log(1 - arrivals_.unit()); }

    void request() {
        Request r{.now = now_};
        uint32_t one = 0;
        std::span<const uint32_t> placements = asked_;
        if (scenario_.request) {
            r.device = static_cast<uint8_t>(scenario_.request->device);
            r.geo = scenario_.request->geo;
            r.language = scenario_.request->language;
            r.url = scenario_.request->url;
            r.keys = keys_;
        } else {
            // Two phones to each desktop and some tablets; any placement.
            const uint64_t device = arrivals_.below(100);
            r.device = static_cast<uint8_t>(device < 62   ? Device::mobile
                                            : device < 95 ? Device::desktop
                                                          : Device::tablet);
            one = static_cast<uint32_t>(arrivals_.below(image().placements().size()));
            placements = {&one, 1};
        }
        for (const uint32_t placement : placements) {
            node_.count_request(placement);
        }
        result_.requests++;
        Page page;
        CountingLedger ledger(node_.ledger_source(), r, coins_);
        decide(node_.view(), r, placements, page, node_.rng(), ledger);
        for (const Pick& pick : page.picks()) {
            if (pick.filled()) {
                result_.served++;
                serve(pick);
            }
        }
    }

    // ---- after the serve ----

    void serve(const Pick& pick) {
        if (after_.unit() < scenario_.pixel_loss) {
            return;
        }
        const auto& group = image().groups()[pick.group];
        Coming event{.ad = {.campaign = image().campaign_of(group).id,
                            .ad_group = group.id,
                            .creative = image().creatives()[pick.creative].id,
                            .issued = now_,
                            .reserved = std::min(pick.reserved, kTokenMaxMoney)}};
        const double normal = std::sqrt(-2 * std::log(1 - after_.unit())) *
                              std::cos(2 * std::numbers::pi * after_.unit());
        const double delay = kMedianDelay * std::exp(kSpread * normal);
        put(event, delay);
        if (after_.unit() < kViewable) {
            event.type = EventType::viewable;
            put(event, delay + 1 + 2 * after_.unit());
        }
        if (after_.unit() < scenario_.click_rate) {
            event.type = EventType::click;
            const double click = delay + 1 + 20 * after_.unit();
            put(event, click);
            if (after_.unit() < scenario_.conversion_rate) {
                event.type = EventType::conversion;
                put(event, click + 60 + 600 * after_.unit());
            }
        }
    }

    void put(const Coming& event, double delay) {
        const Millis at = event.ad.issued + static_cast<Millis>(delay * 1000);
        const Seconds second = std::min(at / 1000 + 1, now_ / 1000 + Seconds{kWheel} - 1);
        wheel_[static_cast<size_t>(second) % kWheel].push_back(event);
    }

    // ---- measuring ----

    const CampaignRecord& campaign_of(const Tracked& t) const {
        return image().campaigns()[t.campaign];
    }

    // The limit's slots in the state; kNone for what has no limit.
    uint32_t pace_slot(const Tracked& t) const {
        switch (t.line.of) {
            case LimitOf::impressions:
                return node_.slots().groups[t.group].impressions_pace;
            case LimitOf::clicks:
                return node_.slots().groups[t.group].clicks_pace;
            case LimitOf::budget:
                return node_.slots()
                    .campaigns[t.campaign]
                    .paces[static_cast<size_t>(t.line.strategy)];
            case LimitOf::nothing:
                break;
        }
        return kNone;
    }

    uint32_t wall_slot(const Tracked& t) const {
        switch (t.line.of) {
            case LimitOf::impressions:
                return node_.slots().groups[t.group].impressions;
            case LimitOf::clicks:
                return node_.slots().groups[t.group].clicks;
            case LimitOf::budget:
                return node_.slots().campaigns[t.campaign].budget;
            case LimitOf::nothing:
                break;
        }
        return kNone;
    }

    // Used on a local day, without what is in flight if that is today.
    double used(const Tracked& t, Day day) {
        if (t.line.of == LimitOf::nothing) {
            return static_cast<double>(count(t, Counter::serves, day));
        }
        const WallSlot& wall = node_.state().wall(wall_slot(t));
        const uint64_t all = wall.used.read(day);
        if (t.day != day || t.line.of == LimitOf::clicks) {
            return static_cast<double>(all);
        }
        const bool daily = t.line.of == LimitOf::budget
                               ? campaign_of(t).budget_type == BudgetType::daily
                               : image().groups()[t.group].impression_cap > 0;
        const LocalDay today{day, t.day_begin, node_.reservation()};
        return static_cast<double>(all - std::min(all, wall.in_flight(today.times(daily))));
    }

    double used_ever(const Tracked& t) {
        return static_cast<double>(
            node_.state().wall(wall_slot(t)).lifetime.load(std::memory_order_relaxed));
    }

    // Of a group, or of all groups of the campaign.
    template <class F>
    uint64_t sum(const Tracked& t, F of) {
        if (t.group != kNone) {
            return of(t.group);
        }
        uint64_t sum = 0;
        for (uint32_t i = 0; i < image().groups().size(); i++) {
            sum += image().groups()[i].campaign == t.campaign ? of(i) : 0;
        }
        return sum;
    }

    uint64_t count(const Tracked& t, Counter counter, Day day) {
        return sum(t, [&](uint32_t group) {
            return node_.state().slot(node_.slots().groups[group].counters).at(counter).read(day);
        });
    }

    uint64_t tosses(const Tracked& t) {
        return sum(t, [&](uint32_t group) { return coins_[group]; });
    }

    // Counts up to the beginning of each minute.
    void follow(Tracked& t, Seconds second) {
        Line& line = t.line;
        const uint32_t slot = pace_slot(t);
        const PaceSlot* const pace = slot == kNone ? nullptr : &node_.state().pace(slot);
        if (second >= t.day_end) {
            t.yesterday = {t.day_begin, t.yesterday.amount, 0};
            t.day = image().local_day(campaign_of(t), second, t.day_begin);
            t.day_end = image().next_day(campaign_of(t), second);
        }
        if (second == t.day_begin + kAfter - 1 && t.yesterday.begin > 0) {
            // Before the counters change to another day; nothing is in flight.
            t.yesterday.used = used(t, static_cast<Day>(t.day - 1));
            line.days.push_back(t.yesterday);
        }
        if (second == t.day_end - 1 && pace != nullptr) {
            t.yesterday.amount = pace->amount.load(std::memory_order_relaxed);
        }
        const Seconds since = second - line.day_begin;
        const auto minute = static_cast<size_t>(since / 60);
        if (since == static_cast<Seconds>(line.minutes.size()) * 60 + kAfter - 1) {
            finish(t);
        }
        if (since < 0 || minute >= line.minutes.size()) {
            return;
        }
        if (since == 0) {
            const auto open = t.group != kNone ? image().get(image().groups()[t.group].open)
                                               : image().get(campaign_of(t).open);
            t.open.assign(open.begin(), open.end());
            t.active = pacing::ActiveDay(t.open, t.day_begin, t.day_end).total();
        }
        if (since % 60 == 0) {
            line.minutes[minute] = {
                pace == nullptr ? 0 : pace->ideal.load(std::memory_order_relaxed), used(t, t.day),
                count(t, Counter::serves, t.day), tosses(t)};
            line.amount = pace == nullptr ? 0 : pace->amount.load(std::memory_order_relaxed);
        }
        if (line.exhausted_at == 0 && pace != nullptr &&
            pace->exhausted.load(std::memory_order_relaxed)) {
            line.exhausted_at = second;
        }
    }

    // Of the day that is shown: yesterday.
    void finish(Tracked& t) {
        Line& line = t.line;
        const auto day = static_cast<Day>(t.day - 1);
        line.used = used(t, day);
        line.serves = count(t, Counter::serves, day);
        line.impressions = count(t, Counter::impressions, day);
        line.clicks = count(t, Counter::clicks, day);
        line.spend = static_cast<MicroCents>(count(t, Counter::spend, day));
        if (line.of == LimitOf::nothing) {
            return;
        }
        line.total_used = used_ever(t);
        line.over = over(t);
        measure(t);
    }

    // Past the wall of the day, or of the lifetime where the day has none.
    double over(const Tracked& t) {
        const Line& line = t.line;
        if (line.of == LimitOf::budget) {
            const auto budget = static_cast<double>(campaign_of(t).budget);
            return std::max(0.0, (line.total > 0 ? line.total_used : line.used) - budget);
        }
        const auto& group = image().groups()[t.group];
        const uint64_t cap = line.of == LimitOf::clicks ? group.click_cap : group.impression_cap;
        return std::max({0.0, cap > 0 ? line.used - static_cast<double>(cap) : 0,
                         line.total > 0 ? line.total_used - line.total : 0});
    }

    void measure(Tracked& t) {
        Line& line = t.line;
        const auto outage = traffic_.outage();
        const auto& minutes = line.minutes;
        const pacing::ActiveDay day(t.open, line.day_begin,
                                    line.day_begin + static_cast<Seconds>(minutes.size()) * 60);
        double squares = 0;
        size_t active = 0;
        size_t dark = 0;
        for (size_t m = 0; m < minutes.size() && line.amount > 0; m++) {
            const Seconds at = line.day_begin + static_cast<Seconds>(m) * 60;
            const bool last = m + 1 == minutes.size();
            const auto now = static_cast<double>(at);
            if (day.elapsed(now + 60) == day.elapsed(now)) {
                continue;
            }
            active++;
            const double off = (minutes[m].used - minutes[m].target) / line.amount;
            squares += off * off;
            const uint64_t serves =
                (last ? line.serves : minutes[m + 1].serves) - minutes[m].serves;
            const double used = line.of == LimitOf::impressions
                                    ? static_cast<double>(serves)
                                    : (last ? line.used : minutes[m + 1].used) - minutes[m].used;
            const bool after = outage && at >= outage->close && at < outage->close + 3600;
            double& worst = after ? line.worst_after : line.worst;
            worst = std::max(worst, used * t.active / 60 / line.amount);
            // The target's serves: how many it takes at the rate of the day.
            const double due = (last ? line.amount : minutes[m + 1].target) - minutes[m].target;
            const double wanted = due * static_cast<double>(line.serves) / line.amount;
            const bool asked = last || minutes[m + 1].tosses > minutes[m].tosses;
            dark += wanted >= 10 && asked && serves == 0 ? 1 : 0;
            if (outage && at >= outage->close && !line.caught_up && off >= -0.0005) {
                line.caught_up = static_cast<double>(at - outage->close) / 60;
            }
        }
        line.rmse = active > 0 ? std::sqrt(squares / static_cast<double>(active)) : 0;
        line.dark = active > 0 ? static_cast<double>(dark) / static_cast<double>(active) : 0;
    }

    const Scenario& scenario_;
    const catalog::Document document_;
    const std::function<void(uint64_t)>& progress_;
    Traffic traffic_;
    HeapNode node_;
    Rng arrivals_;  // requests: independent of what is served
    Rng after_;     // pixels
    const TokenLives lives_{};
    Seconds begin_ = 0;
    Seconds end_ = 0;
    Millis now_ = 0;
    std::vector<Seconds> last_begin_;  // of the local day that is shown, by campaign
    std::vector<Seconds> last_end_;
    std::vector<uint32_t> asked_;
    std::vector<KeyValue> keys_;
    std::vector<uint64_t> coins_;  // tossed, by group
    std::vector<std::vector<Coming>> wheel_;
    std::vector<Tracked> tracked_;
    Simulated result_;
};

}  // namespace

Simulated simulate(const Scenario& scenario, const catalog::Document& document,
                   const std::function<void(uint64_t)>& progress) {
    return Engine(scenario, document, progress).run();
}

}  // namespace ads::admin
