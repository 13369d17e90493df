#include "simulate_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/catalog/formats.hpp"
#include "output.hpp"
#include "usage.hpp"

namespace ads::cli {

namespace {

// A day's part of a goal or a lifetime budget, all days alike.
double equal_part(Seconds day_begin, Seconds end) {
    constexpr double kDaysWithoutEnd = 30;
    return end == 0 ? 1 / kDaysWithoutEnd
                    : 1 / std::max(1.0, static_cast<double>(end - day_begin) / pacing::kDaySeconds);
}

constexpr Seconds kDay = 86'400;
constexpr Seconds kFirstDay = 1'767'225'600;  // 2026-01-01: local days are counted from there
constexpr Seconds kAfter = 600;               // for the pixels of the last seconds
constexpr size_t kWheel = 8192;               // seconds that a pixel may take
constexpr size_t kMostLines = 20'000;

// Of pixels: the median delay is 2 s, one in 150 comes after its reservation.
constexpr double kMedianDelay = 2;
constexpr double kSpread = 1.65;
constexpr double kViewable = 0.7;      // of impressions
constexpr double kConversions = 0.05;  // of clicks

class Engine {
public:
    Engine(const Scenario& scenario, const catalog::Document& document, Progress& progress)
        : scenario_(scenario),
          document_(document),
          progress_(progress),
          traffic_(scenario.traffic, scenario.requests, scenario.seed, scenario.day),
          chance_(scenario.seed * 4 + 1),
          arrivals_(scenario.seed * 4 + 2),
          after_(scenario.seed * 4 + 3),
          books_(document, scenario.strategy, chance_),
          wheel_(kWheel) {}

    Simulated run() {
        prepare();
        for (Seconds second = begin_; second < end_ + kAfter; second++) {
            progress_.at(static_cast<uint64_t>(second - begin_));
            step(second);
        }
        for (auto& tracked : tracked_) {
            result_.lines.push_back(std::move(tracked.line));
        }
        result_.outage = traffic_.outage();
        result_.coins = books_.coins;
        return std::move(result_);
    }

private:
    // A line while it is made. `group` or `campaign`, the other is kNone.
    struct Tracked {
        Line line;
        Limit* limit = nullptr;
        uint32_t group = kNone;
        uint32_t campaign = kNone;
        Day day = 0;
        double active = 0;  // seconds of that day
    };

    void prepare() {
        const auto day = static_cast<Day>((scenario_.day - kFirstDay) / kDay + 1);
        const auto first = static_cast<Day>(day - scenario_.days + 1);
        const Seconds around = scenario_.day - static_cast<Seconds>(scenario_.days) * kDay;
        compile(around);
        books_.open(view_.image(), around - kDay, scenario_.day + 2 * kDay);
        begin_ = scenario_.day - static_cast<Seconds>(scenario_.days - 1) * kDay;
        end_ = scenario_.day + kDay;
        for (const auto& campaign : books_.campaigns()) {
            const auto start = [&](Day of) {
                return campaign.days.starts[static_cast<size_t>(of - campaign.days.first)];
            };
            begin_ = std::min(begin_, start(first));
            end_ = std::max(end_, start(static_cast<Day>(day + 1)));
        }
        const size_t placements = view_.image().placements().size();
        requests_.assign(placements + 1, 0);
        curves_.assign(placements + 1, {});
        sums_.assign(placements + 1, {});
        for (const auto& sum : sums_) {
            sum_pointers_.push_back(&sum);
        }
        find_placements();
        track_lines(day);
        compile(begin_);
    }

    void compile(Seconds at) {
        bytes_ = catalog::lay_out(document_, 0, at);
        view_.bind(Image(bytes_.data()));
        books_.bind(view_.image());
    }

    void find_placements() {
        if (!scenario_.request) {
            return;
        }
        std::vector<std::string> known;
        for (const auto& placement : view_.image().placements()) {
            known.emplace_back(view_.image().text(placement.slug));
        }
        for (const auto& slug : scenario_.request->placements) {
            const uint32_t index = view_.image().find_placement(slug);
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

    void track_lines(Day day) {
        for (const auto& c : document_.campaigns) {
            uint32_t campaign = 0;
            for (const auto& g : c.ad_groups) {
                SimGroup& group = books_.groups()[view_.image().find_group(g.id)];
                campaign = group.campaign;
                add_line(LimitOf::impressions, c, g, group, day);
                add_line(LimitOf::clicks, c, g, group, day);
                if (tracked_.empty() || tracked_.back().line.ad_group != g.id) {
                    add_line(LimitOf::nothing, c, g, group, day);
                }
            }
            if (c.budget && !c.ad_groups.empty()) {
                SimCampaign& sim = books_.campaigns()[campaign];
                const Strategy strategy = books_.groups()[sim.groups.front()].terms.strategy;
                Tracked& t = tracked_.emplace_back();
                t.limit = &sim.budget[static_cast<size_t>(strategy)];
                t.campaign = campaign;
                t.day = day;
                t.line.of = LimitOf::budget;
                t.line.campaign = c.id;
                t.line.name = c.name;
                t.line.timezone = c.timezone;
                t.line.strategy = strategy;
                place(t, sim, sim.open);
            }
        }
        if (tracked_.size() > kMostLines) {
            throw Failure(Exit::bad_input,
                          fmt::format("the catalog has more than {} ad groups: too many to follow "
                                      "each minute of each.",
                                      kMostLines));
        }
    }

    void add_line(LimitOf of, const catalog::Campaign& c, const catalog::AdGroup& g,
                  SimGroup& group, Day day) {
        const auto& terms = group.terms;
        const bool goal = terms.goal > 0;
        const bool impressions =
            terms.impression_cap > 0 || (goal && terms.goal_on == EventType::impression);
        const bool clicks = terms.click_cap > 0 || (goal && terms.goal_on == EventType::click);
        if ((of == LimitOf::impressions && !impressions) || (of == LimitOf::clicks && !clicks)) {
            return;
        }
        Tracked& t = tracked_.emplace_back();
        t.limit = of == LimitOf::clicks ? &group.clicks_limit : &group.impressions_limit;
        t.group = group.index;
        t.day = day;
        t.line.of = of;
        t.line.campaign = c.id;
        t.line.ad_group = g.id;
        t.line.name = g.name;
        t.line.timezone = c.timezone;
        t.line.strategy = terms.strategy;
        place(t, books_.campaign_of(group), group.open);
    }

    // Where its day is, and how long it is active in it.
    static void place(Tracked& t, const SimCampaign& campaign, const std::vector<Interval>& open) {
        const auto at = static_cast<size_t>(t.day - campaign.days.first);
        const Seconds begin = campaign.days.starts[at];
        const Seconds end = campaign.days.starts[at + 1];
        t.line.day_begin = begin;
        t.line.minutes.resize(static_cast<size_t>((end - begin) / 60));
        t.active = pacing::ActiveDay(open, begin, end).total();
    }

    // ---- a second ----

    void step(Seconds second) {
        if (second % kDay == 0 && second > begin_) {
            compile(second);
        }
        view_.advance(second);
        books_.set_time(second);
        tick(second);
        auto& due = wheel_[static_cast<size_t>(second) % kWheel];
        for (const Pixel& pixel : due) {
            result_.pixels++;
            result_.late += books_.track(pixel) ? 0 : 1;
        }
        due.clear();
        const double mean = traffic_.in_second(second);
        for (double t = gap(); t < mean; t += gap()) {
            books_.now = second * 1000 + static_cast<Millis>(t / mean * 1000);
            request();
        }
    }

    double gap() { return -std::log(1 - arrivals_.unit()); }

    void request() {
        Page page;
        Request r{.now = books_.now};
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
            one = static_cast<uint32_t>(arrivals_.below(requests_.size() - 1));
            placements = {&one, 1};
        }
        for (const uint32_t placement : placements) {
            requests_[placement]++;
        }
        requests_.back()++;
        result_.requests++;
        decide(view_, r, placements, page, chance_, books_);
        for (const Pick& pick : page.picks()) {
            if (pick.filled()) {
                result_.served++;
                serve(pick.group);
            }
        }
    }

    // ---- after the serve ----

    void serve(uint32_t group) {
        if (after_.unit() < scenario_.pixel_loss) {
            return;
        }
        Pixel pixel{EventType::impression, group, books_.now, books_.last_reserved};
        const double normal = std::sqrt(-2 * std::log(1 - after_.unit())) *
                              std::cos(2 * std::numbers::pi * after_.unit());
        const double delay = kMedianDelay * std::exp(kSpread * normal);
        put(pixel, delay);
        if (after_.unit() < kViewable) {
            pixel.type = EventType::viewable;
            put(pixel, delay + 1 + 2 * after_.unit());
        }
        if (after_.unit() < scenario_.click_rate) {
            pixel.type = EventType::click;
            const double click = delay + 1 + 20 * after_.unit();
            put(pixel, click);
            if (after_.unit() < kConversions) {
                pixel.type = EventType::conversion;
                put(pixel, click + 60 + 600 * after_.unit());
            }
        }
    }

    void put(const Pixel& pixel, double delay) {
        const Millis at = pixel.served + static_cast<Millis>(delay * 1000);
        const Seconds second = std::min(at / 1000 + 1, books_.now / 1000 + Seconds{kWheel} - 1);
        wheel_[static_cast<size_t>(second) % kWheel].push_back(pixel);
    }

    // ---- the tick ----

    void tick(Seconds second) {
        const auto now = static_cast<double>(second);
        for (size_t i = 0; i < curves_.size(); i++) {
            if (curves_[i].tick(now, requests_[i])) {
                sums_[i] = pacing::CurveSums(curves_[i]);
            }
        }
        // Like a worker's: the tossed, and now and then all.
        const bool all = second % 60 == 0 || second == begin_;
        for (SimGroup& group : books_.groups()) {
            if (group.tossed || all) {
                visit(group, now);
                group.tossed = false;
            }
        }
        for (SimCampaign& campaign : books_.campaigns()) {
            const bool budget = books_.campaign_record(campaign.index).has_budget;
            if (budget && (campaign.tossed || all)) {
                visit(campaign, now);
                campaign.tossed = false;
            }
        }
        for (Tracked& t : tracked_) {
            follow(t, second);
        }
    }

    pacing::Supply supply(const SimCampaign& campaign, const std::vector<Interval>& open,
                          const std::vector<uint32_t>& curves) const {
        std::array<const pacing::CurveSums*, pacing::kMaxCurves> list{};
        for (size_t i = 0; i < curves.size(); i++) {
            list[i] = sum_pointers_[curves[i]];
        }
        return {pacing::ActiveDay(open, campaign.day_begin, campaign.day_end),
                {list.data(), curves.size()}};
    }

    void visit(SimGroup& group, double now) {
        SimCampaign& campaign = books_.campaign_of(group);
        const auto& record = books_.record(group.index);
        const GroupSlot& counters = books_.slot(group.index);
        const Day day = campaign.day;
        const auto seconds = supply(campaign, group.open, group.curves);
        group.wall.expire(campaign.times, books_.now);
        pacing::Reading reading{.now = now, .day = day, .tosses = books_.tosses(group.index, day)};

        pacing::Reading r = reading;
        const uint64_t in_wall = group.wall.used.read(day);
        r.in_flight = static_cast<double>(group.wall.in_flight(campaign.times));
        r.used = static_cast<double>(in_wall) - r.in_flight;
        r.confirmed = static_cast<double>(group.wall.confirmed.read(day));
        r.resolved = r.confirmed + static_cast<double>(group.wall.expired.read(day));
        r.before = static_cast<double>(group.wall.lifetime.read(0) - in_wall);
        Limit& impressions = group.impressions_limit;
        observe(impressions.state, r);
        impressions.aim = pacing::impressions_aim(group.terms, impressions.state.before,
                                                  equal_part(campaign.day_begin, record.end));
        impressions.pace = pace(impressions.state, impressions.aim, seconds, r);

        r = reading;
        r.used = static_cast<double>(counters.at(Counter::clicks).read(day));
        r.before = static_cast<double>(group.clicks.lifetime.read(0)) - r.used;
        Limit& clicks = group.clicks_limit;
        observe(clicks.state, r);
        const double rate =
            (r.used + 1) /
            (static_cast<double>(counters.at(Counter::impressions).read(day)) + 1000);
        clicks.aim = pacing::clicks_aim(group.terms, rate, clicks.state.before,
                                        equal_part(campaign.day_begin, record.end));
        clicks.pace = pace(clicks.state, clicks.aim, seconds, r);

        group.threshold =
            pacing::threshold_of(std::min(impressions.pace.probability, clicks.pace.probability));
    }

    void visit(SimCampaign& campaign, double now) {
        const auto& record = books_.campaign_record(campaign.index);
        const Day day = campaign.day;
        uint64_t tosses = 0;
        double offered = 0;
        double prices = 0;
        unsigned strategies = 0;
        for (const uint32_t group : campaign.groups) {
            const uint64_t n = books_.tosses(group, day);
            const double price = books_.expected_price(group);
            tosses += n;
            offered += price * static_cast<double>(n);
            prices += price;
            strategies |= 1U << static_cast<unsigned>(books_.groups()[group].terms.strategy);
        }
        const double unit = tosses > 0 ? offered / static_cast<double>(tosses)
                                       : prices / static_cast<double>(campaign.groups.size());
        const auto seconds = supply(campaign, campaign.open, campaign.curves);
        Wall& wall = campaign.wall;
        wall.expire(campaign.times, books_.now);
        const uint64_t in_wall = wall.used.read(day);
        pacing::Reading r{.now = now, .day = day, .tosses = tosses};
        r.in_flight = static_cast<double>(wall.in_flight(campaign.times));
        r.used = static_cast<double>(in_wall) - r.in_flight;
        r.before = static_cast<double>(wall.lifetime.read(0) - in_wall);
        if (unit > 0) {
            r.confirmed = static_cast<double>(wall.confirmed.read(day)) / unit;
            r.resolved = r.confirmed + static_cast<double>(wall.expired.read(day)) / unit;
        }
        for (size_t s = 0; s < kCount<Strategy>; s++) {
            if ((strategies >> s & 1) == 0) {
                continue;
            }
            Limit& limit = campaign.budget[s];
            observe(limit.state, r);
            limit.aim = pacing::budget_aim(record.budget_type, record.budget,
                                           static_cast<double>(record.hard_cap),
                                           static_cast<Strategy>(s), unit, limit.state.before,
                                           equal_part(campaign.day_begin, record.end));
            limit.pace = pace(limit.state, limit.aim, seconds, r);
            campaign.thresholds[s] = pacing::threshold_of(limit.pace.probability);
        }
    }

    // ---- measuring ----

    double used(const Tracked& t) {
        if (t.campaign != kNone) {
            const SimCampaign& campaign = books_.campaigns()[t.campaign];
            return left_in(campaign.wall, t.day, campaign);
        }
        const SimGroup& group = books_.groups()[t.group];
        if (t.line.of == LimitOf::clicks) {
            return static_cast<double>(books_.slot(t.group).at(Counter::clicks).read(t.day));
        }
        if (t.line.of == LimitOf::nothing) {
            return static_cast<double>(books_.slot(t.group).at(Counter::serves).read(t.day));
        }
        return left_in(group.wall, t.day, books_.campaign_of(group));
    }

    static double left_in(const Wall& wall, Day day, const SimCampaign& campaign) {
        const uint64_t in_flight = campaign.day == day ? wall.in_flight(campaign.times) : 0;
        return static_cast<double>(wall.used.read(day) - in_flight);
    }

    uint64_t count(const Tracked& t, Counter counter) {
        if (t.group != kNone) {
            return books_.slot(t.group).at(counter).read(t.day);
        }
        uint64_t sum = 0;
        for (const uint32_t group : books_.campaigns()[t.campaign].groups) {
            sum += books_.slot(group).at(counter).read(t.day);
        }
        return sum;
    }

    uint64_t tosses(const Tracked& t) {
        if (t.group != kNone) {
            return books_.tosses(t.group, t.day);
        }
        uint64_t sum = 0;
        for (const uint32_t group : books_.campaigns()[t.campaign].groups) {
            sum += books_.tosses(group, t.day);
        }
        return sum;
    }

    // Counts up to the beginning of each minute.
    void follow(Tracked& t, Seconds second) {
        Line& line = t.line;
        const Seconds since = second - line.day_begin;
        const auto minute = static_cast<size_t>(since / 60);
        if (since == static_cast<Seconds>(line.minutes.size()) * 60 + kAfter - 1) {
            finish(t);  // before the counters are another day's
        }
        if (since < 0 || minute >= line.minutes.size()) {
            return;
        }
        if (since % 60 == 0) {
            line.minutes[minute] = {t.limit->pace.ideal, used(t), count(t, Counter::serves),
                                    tosses(t)};
            line.amount = t.limit->aim.amount;
        }
        if (line.exhausted_at == 0 && line.of != LimitOf::nothing && t.limit->pace.exhausted) {
            line.exhausted_at = second;
        }
    }

    void finish(Tracked& t) {
        Line& line = t.line;
        line.used = used(t);
        line.serves = count(t, Counter::serves);
        line.impressions = count(t, Counter::impressions);
        line.clicks = count(t, Counter::clicks);
        line.spend = static_cast<MicroCents>(count(t, Counter::spend));
        if (line.of == LimitOf::nothing) {
            return;
        }
        line.over = over(t);
        measure(t);
    }

    // Past the wall of the day, or of the lifetime where the day has none.
    double over(const Tracked& t) {
        double limit = t.line.amount;
        double reached = t.line.used;
        if (t.line.of == LimitOf::budget) {
            const auto& record = books_.campaign_record(t.campaign);
            limit = static_cast<double>(record.budget);
            if (record.budget_type == BudgetType::lifetime) {
                reached = static_cast<double>(books_.campaigns()[t.campaign].wall.lifetime.read(0));
            }
        } else {
            const SimGroup& group = books_.groups()[t.group];
            const uint64_t cap =
                t.line.of == LimitOf::clicks ? group.terms.click_cap : group.terms.impression_cap;
            if (cap == 0) {
                limit = static_cast<double>(group.terms.goal);
                reached = static_cast<double>(
                    (t.line.of == LimitOf::clicks ? group.clicks : group.wall).lifetime.read(0));
            } else {
                limit = static_cast<double>(cap);
            }
        }
        return std::max(0.0, reached - limit);
    }

    void measure(Tracked& t) {
        Line& line = t.line;
        const auto outage = traffic_.outage();
        const auto open = t.group != kNone ? std::span(books_.groups()[t.group].open)
                                           : std::span(books_.campaigns()[t.campaign].open);
        const auto& minutes = line.minutes;
        const pacing::ActiveDay day(open, line.day_begin,
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
    const catalog::Document& document_;
    Progress& progress_;
    Traffic traffic_;
    Rng chance_;    // draws and coins
    Rng arrivals_;  // requests: the same whatever is served
    Rng after_;     // pixels
    Books books_;
    std::vector<char> bytes_;
    View view_;
    Seconds begin_ = 0;
    Seconds end_ = 0;
    std::vector<uint32_t> asked_;
    std::vector<KeyValue> keys_;
    std::vector<uint64_t> requests_;  // by placement, and of the site
    std::vector<pacing::Curve> curves_;
    std::vector<pacing::CurveSums> sums_;
    std::vector<const pacing::CurveSums*> sum_pointers_;
    std::vector<std::vector<Pixel>> wheel_;
    std::vector<Tracked> tracked_;
    Simulated result_;
};

}  // namespace

Simulated simulate(const Scenario& scenario, const catalog::Document& document,
                   Progress& progress) {
    return Engine(scenario, document, progress).run();
}

}  // namespace ads::cli
