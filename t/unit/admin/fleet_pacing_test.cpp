// Pacing over a fleet: eight nodes with 1 to 8 parts of the traffic, of which one joins and one
// leaves, on the decision, the ledger, the pacing and the rights that nginx runs. PostgreSQL is the
// grantor of core/rights, Redis the sums of what nodes have told; the clock and the visitors are a
// simulation's, those of nginx-ads simulate. Pixels return to the node that served.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numbers>

#include "fleet/postgres_model.hpp"
#include "ledger/fleet/signals.hpp"
#include "lib/decide/heap_node.hpp"
#include "lib/decide/traffic.hpp"

namespace {

using namespace ads;
using namespace ads::admin;
using fleet_test::PostgresModel;

constexpr Seconds kDay = 86'400;
constexpr Seconds kMidnight = 1'794'873'600;  // 2026-11-17T00:00:00Z
constexpr Seconds kOutageAt = 14 * 3600;
constexpr Seconds kJoins = 9 * 3600;    // the node with the most traffic
constexpr Seconds kLeaves = 18 * 3600;  // the one with half of that
constexpr int kNodes = 8;
constexpr int kLearned = 5;  // days
constexpr Seconds kLearnStep = 30;
constexpr double kLost = 0.08;  // of the pixels
constexpr Seconds kReservation = 120;

enum class Redis { there, away, away_for_an_hour };

struct Case {
    std::string name;
    std::string traffic = "outage";
    bool budget = false;
    double amount = 100'000;  // serves, or impressions that are billed
    Redis redis = Redis::there;
    int days = 1;  // that are simulated; the last is measured
    uint64_t seed = 1;
};

// What the script in Redis does.
class RedisModel {
public:
    std::vector<Signals::Total> exchange(int node, const std::vector<Signals::Line>& lines) {
        std::vector<Signals::Total> totals;
        for (const Signals::Line& line : lines) {
            auto& nodes = told_[line.limit];
            nodes[node] = line.own;
            Signals::Total total{line.limit, line.own, {}};
            for (const auto& [id, counts] : nodes) {
                for (size_t i = 0; i < counts.values.size(); i++) {
                    total.all.values[i] += counts.values[i];
                }
            }
            totals.push_back(total);
        }
        return totals;
    }

private:
    std::map<FleetWall, std::map<int, SignalCounts>> told_;
};

struct Node {
    Node(const catalog::Document& document, uint64_t seed) : heap(document, seed, kReservation) {}

    HeapNode heap;
    Signals signals;
    std::optional<RightsClient> rights;
    std::optional<std::vector<Signals::Total>> heard;
    Seconds heard_at = 0;
};

struct Figures {
    double delivered = 0;  // of the amount
    double over = 0;
    double rmse = 0;      // to what the nodes aim for
    double rmse_one = 0;  // to what one node with all of the traffic would
    double worst = 0;
    double worst_after = 0;
    double dark = 0;
    double caught_up = -1;  // minutes
};

class Fleet {
public:
    explicit Fleet(const Case& of)
        : case_(of),
          document_(catalog::parse(json()).document),
          traffic_(of.traffic, 1'000'000, 1, of.seed, kMidnight + kOutageAt),
          arrivals_(of.seed * 4 + 2),
          after_(of.seed * 4 + 3),
          whole_(document_, of.seed) {
        unit_ = of.budget ? 250'000 : 1;  // micro-cents of an impression
    }

    Figures run() {
        begin_ = kMidnight - (case_.days - 1) * kDay;
        for (int i = 0; i < kNodes - 1; i++) {
            add(i);
        }
        learn();
        for (Seconds second = begin_; second < kMidnight + kDay; second++) {
            step(second);
        }
        // Reservations of the last seconds.
        for (Seconds second = kMidnight + kDay; second < kMidnight + kDay + 600; second++) {
            pixels(second);
        }
        return measure();
    }

    bool over_granted() const { return postgres_.over_granted; }

private:
    struct Pixel {
        int node;
        ServedAd ad;
    };

    std::string json() const {
        const std::string pacing = case_.budget
                                       ? "{}"
                                       : R"({"daily_impression_cap": )" +
                                             std::to_string(static_cast<uint64_t>(case_.amount)) +
                                             R"(, "cap_on": "serve"})";
        const std::string budget =
            case_.budget ? R"("budget": {"type": "daily", "amount_cents": )" +
                               std::to_string(static_cast<uint64_t>(case_.amount / 4)) + "},"
                         : "";
        return R"({"placements": [{"id": "top"}], "campaigns": [{"id": 1, )" + budget +
               R"("ad_groups": [{"id": 10, "price": {"model": "cpm", "amount_cents": 250},
                  "pacing": )" +
               pacing + R"(, "creatives": [{"id": 100, "type": "native",
                  "content": {"title": "t"}, "click_url": "https://a.example/"}]}]}]})";
    }

    void add(int i) {
        nodes_[i] = std::make_unique<Node>(document_, case_.seed * 100 + static_cast<uint64_t>(i));
        if (case_.redis != Redis::away) {
            nodes_[i]->heap.use(&nodes_[i]->signals);
        }
    }

    void open(int i) {
        Node& node = *nodes_[i];
        node.heap.state().head().fleet.mode.store(FleetMode::sealed);
        RightsClient::Outside outside;
        outside.random = [this] { return arrivals_.next() >> 1 | 1; };
        outside.store = [] { return true; };
        node.rights.emplace(node.heap.state(), std::move(outside));
    }

    FleetWall wall(Seconds now) const {
        const Image& image = whole_.image();
        return {case_.budget ? SlotKind::budget : SlotKind::impressions, case_.budget ? 1u : 10u,
                image.day_of(image.campaigns()[0], now)};
    }

    // The traffic of the days before, without its decisions.
    void learn() {
        const Seconds from = begin_ - kLearned * kDay;
        whole_.publish(from);
        for (int i = 0; i < kNodes - 1; i++) {
            nodes_[i]->heap.publish(from);
        }
        for (Seconds second = from; second < begin_; second += kLearnStep) {
            if (second % kDay == 0 && second > from) {
                whole_.publish(second);
            }
            double mean = 0;
            for (Seconds s = second; s < second + kLearnStep; s++) {
                mean += traffic_.in_second(s);
            }
            for (double t = gap(); t < mean; t += gap()) {
                count(pick(false));
            }
            for (int i = 0; i < kNodes - 1; i++) {
                nodes_[i]->heap.tick((second + kLearnStep) * 1000);
            }
            whole_.tick((second + kLearnStep) * 1000);
        }
        for (int i = 0; i < kNodes - 1; i++) {
            nodes_[i]->heap.publish(begin_);
            open(i);
        }
        whole_.publish(begin_);
    }

    void count(int i) {
        whole_.count_request(0);
        nodes_[i]->heap.count_request(0);
    }

    double gap() { return -std::log(1 - arrivals_.unit()); }

    // Node i has i + 1 parts of the traffic.
    int pick(bool all) {
        uint64_t parts = 0;
        for (int i = 0; i < kNodes; i++) {
            parts += has_traffic(i, all) ? static_cast<uint64_t>(i) + 1 : 0;
        }
        uint64_t at = arrivals_.below(parts);
        for (int i = 0; i < kNodes; i++) {
            const uint64_t own = has_traffic(i, all) ? static_cast<uint64_t>(i) + 1 : 0;
            if (at < own) {
                return i;
            }
            at -= own;
        }
        return 0;
    }
    bool has_traffic(int i, bool all) const {
        return nodes_[i] != nullptr && (i < kNodes - 1 || all) && !gone_[i];
    }

    void step(Seconds second) {
        now_ = second;
        if (second % kDay == 0 && second > begin_) {
            whole_.publish(second);
            for (const auto& node : nodes_) {
                if (node != nullptr) {
                    node->heap.publish(second);
                }
            }
        }
        const auto quantum = static_cast<uint64_t>(unit_);
        const auto limit = static_cast<uint64_t>(case_.amount * unit_);
        postgres_.set_limit(wall(second), limit, quantum);
        postgres_.set_limit(wall(second + 700), limit, quantum);
        if (second == kMidnight + kJoins) {
            add(kNodes - 1);
            nodes_[kNodes - 1]->heap.publish(second);
            open(kNodes - 1);
        }
        if (second == kMidnight + kLeaves) {
            leave(kNodes / 2 - 1);
        }
        tick(second);
        pixels(second);
        if (second % 60 == 0 && second >= kMidnight) {
            minutes_.push_back({target(), ideal(whole_), used(), 0, 0});
        }
        const double mean = traffic_.in_second(second);
        for (double t = gap(); t < mean; t += gap()) {
            request(pick(true), second * 1000 + static_cast<Millis>(t / mean * 1000));
        }
    }

    double ideal(HeapNode& node) const {
        const auto& slots = node.slots();
        return node.state()
            .pace(case_.budget ? slots.campaigns[0].paces[size_t(Strategy::adaptive)]
                               : slots.groups[0].impressions_pace)
            .ideal.load();
    }

    // What the nodes aim for. With Redis each aims for all that they use together, and shows its
    // part of that; the one that joins follows the others. Without it each aims for its own part,
    // and one that has left has what it has used.
    double target() {
        const size_t leader = kNodes - 2;
        const double own = used_by(leader);
        if (case_.redis == Redis::there && own > 0) {
            return ideal(nodes_[leader]->heap) / own * used();
        }
        double sum = 0;
        for (size_t i = 0; i < kNodes; i++) {
            sum += nodes_[i] == nullptr ? 0 : gone_[i] ? used_by(i) : ideal(nodes_[i]->heap);
        }
        return sum;
    }

    double used_by(size_t i) const {
        const auto& accounts = postgres_.walls().at(wall(kMidnight)).accounts;
        const auto at = accounts.find(static_cast<uint32_t>(i) + 1);
        return at == accounts.end() ? 0 : static_cast<double>(at->second.billed);
    }

    // In any order: some hear of what others have told a moment ago, some of the second before.
    void tick(Seconds second) {
        std::array<int, kNodes> order;
        for (int i = 0; i < kNodes; i++) {
            order[static_cast<size_t>(i)] = i;
        }
        for (size_t i = kNodes - 1; i > 0; i--) {
            std::swap(order[i], order[after_.below(i + 1)]);
        }
        const Seconds since = second - kMidnight;
        const bool redis =
            case_.redis == Redis::there ||
            (case_.redis == Redis::away_for_an_hour && (since < 11 * 3600 || since >= 12 * 3600));
        for (const int i : order) {
            if (nodes_[i] == nullptr || gone_[i]) {
                continue;
            }
            Node& node = *nodes_[i];
            node.signals.begin(second * 1000);
            if (node.heard) {
                node.signals.receive(*node.heard, node.heard_at * 1000);
                node.heard.reset();
            }
            node.heap.tick(second * 1000);
            if (const auto lines = node.signals.take(); !lines.empty() && redis) {
                node.heard = redis_.exchange(i, lines);
                node.heard_at = second;
            } else if (!lines.empty()) {
                node.signals.lost();
            }
            call(i, second);
        }
        whole_.tick(second * 1000);
    }

    void call(int i, Seconds second) {
        Node& node = *nodes_[i];
        RightsCall call;
        const auto walls = open_walls(node.heap.image(), node.heap.slots(), second);
        if (node.rights->prepare(walls, second * 1000, call)) {
            node.rights->receive(call, postgres_.call(static_cast<uint32_t>(i) + 1, call, second));
        }
    }

    void leave(int i) {
        Node& node = *nodes_[i];
        node.rights->drain(open_walls(node.heap.image(), node.heap.slots(), now_));
        call(i, now_);
        gone_[i] = true;
    }

    void request(int i, Millis at) {
        count(i);
        Node& node = *nodes_[i];
        Request r{.now = at};
        const uint32_t placement = 0;
        Page page;
        Ledger ledger(node.heap.ledger_source(), r, kNoAnonymousCap, nullptr);
        decide(node.heap.view(), r, {&placement, 1}, page, node.heap.rng(), ledger);
        if (!minutes_.empty()) {
            minutes_.back().asked++;
        }
        for (const Pick& pick : page.picks()) {
            if (!pick.filled()) {
                continue;
            }
            if (!minutes_.empty()) {
                minutes_.back().serves++;
            }
            if (!case_.budget) {
                postgres_.store(static_cast<uint32_t>(i) + 1, {{wall(at / 1000), 1}}, true);
            }
            if (after_.unit() >= kLost) {
                const double normal = std::sqrt(-2 * std::log(1 - after_.unit())) *
                                      std::cos(2 * std::numbers::pi * after_.unit());
                const Seconds due =
                    at / 1000 + 1 + static_cast<Seconds>(2 * std::exp(1.65 * normal));
                due_[due].push_back({i,
                                     {.campaign = 1,
                                      .ad_group = 10,
                                      .creative = 100,
                                      .issued = at,
                                      .reserved = pick.reserved}});
            }
        }
    }

    // An hour after the serve nobody believes the token any more.
    void pixels(Seconds second) {
        const auto at = due_.find(second);
        if (at == due_.end()) {
            return;
        }
        for (const Pixel& pixel : at->second) {
            if (second * 1000 - pixel.ad.issued > 3'600'000 || gone_[pixel.node]) {
                continue;
            }
            const Invalid invalid =
                nodes_[pixel.node]->heap.track(EventType::impression, pixel.ad, second * 1000);
            if (case_.budget && invalid == Invalid::none) {
                postgres_.store(static_cast<uint32_t>(pixel.node) + 1,
                                {{wall(pixel.ad.issued / 1000), static_cast<uint64_t>(unit_)}},
                                false);
            }
        }
        due_.erase(at);
    }

    double used() const {
        const auto at = postgres_.walls().find(wall(kMidnight));
        return at == postgres_.walls().end() ? 0 : static_cast<double>(at->second.billed);
    }

    Figures measure() const {
        const double amount = case_.amount * unit_;
        Figures f;
        double squares = 0;
        double squares_one = 0;
        int dark = 0;
        const Seconds outage_end = kOutageAt + 45 * 60;
        for (size_t m = 0; m < minutes_.size(); m++) {
            const bool last = m + 1 == minutes_.size();
            const Seconds at = static_cast<Seconds>(m) * 60;
            const double off = (minutes_[m].used - minutes_[m].target) / amount;
            squares += off * off;
            const double off_one = (minutes_[m].used - minutes_[m].target_of_one) / amount;
            squares_one += off_one * off_one;
            if (std::getenv("ADS_TRACE") != nullptr && m % 30 == 0) {
                std::printf("%02zu:%02zu %7.3f%%\n", m / 60, m % 60, 100 * off_one);
            }
            const double more = case_.budget
                                    ? (last ? used() : minutes_[m + 1].used) - minutes_[m].used
                                    : static_cast<double>(minutes_[m].serves);
            const bool after =
                case_.traffic == "outage" && at >= outage_end && at < outage_end + 3600;
            double& worst = after ? f.worst_after : f.worst;
            worst = std::max(worst, more * 1440 / amount);
            const double due = (last ? amount : minutes_[m + 1].target) - minutes_[m].target;
            dark += due / unit_ >= 10 && minutes_[m].asked > 0 && minutes_[m].serves == 0;
            if (case_.traffic == "outage" && at >= outage_end && f.caught_up < 0 &&
                off >= -0.0005) {
                f.caught_up = static_cast<double>(at - outage_end) / 60;
            }
        }
        f.delivered = used() / amount;
        f.over = std::max(0.0, used() - amount) / unit_;
        f.rmse = std::sqrt(squares / static_cast<double>(minutes_.size()));
        f.rmse_one = std::sqrt(squares_one / static_cast<double>(minutes_.size()));
        f.dark = dark / static_cast<double>(minutes_.size());
        return f;
    }

    struct Minute {
        double target = 0;
        double target_of_one = 0;
        double used = 0;
        uint64_t serves = 0;
        uint64_t asked = 0;
    };

    const Case case_;
    const catalog::Document document_;
    admin::Traffic traffic_;
    Rng arrivals_;
    Rng after_;
    HeapNode whole_;  // sees all requests, and has the target of one node with all of the traffic
    std::array<std::unique_ptr<Node>, kNodes> nodes_;
    std::array<bool, kNodes> gone_{};
    PostgresModel postgres_;
    RedisModel redis_;
    std::map<Seconds, std::vector<Pixel>> due_;
    std::vector<Minute> minutes_;
    Seconds begin_ = 0;
    Seconds now_ = 0;
    double unit_ = 1;
};

Figures run(const Case& of) {
    Fleet fleet(of);
    const Figures f = fleet.run();
    EXPECT_FALSE(fleet.over_granted());
    std::printf("%-42s %8.3f%% %4.0f %5.2f%% %7.2f%% %5.1f/%.1fx %5.1f%% %5.0f min\n",
                of.name.c_str(), 100 * f.delivered, f.over, 100 * f.rmse, 100 * f.rmse_one, f.worst,
                f.worst_after, 100 * f.dark, f.caught_up);
    return f;
}

void head() {
    std::printf("%-42s %9s %4s %6s %8s %9s %6s %9s\n", "", "delivered", "over", "RMSE", "to one",
                "worst min", "dark", "caught up");
}

bool long_form() {
    return std::getenv("ADS_TEST_LONG") != nullptr;
}

// Those of one node with all of the traffic.
void hold(const Figures& f, double rmse) {
    EXPECT_EQ(f.over, 0);
    EXPECT_GE(f.delivered, 0.999);
    EXPECT_LE(f.rmse, rmse);
    EXPECT_LE(f.rmse_one, 0.01);
    EXPECT_LE(f.worst, 4);
    EXPECT_LE(f.worst_after, 5);
    EXPECT_LE(f.dark, 0.001);
    EXPECT_LE(f.caught_up, 65);
}

TEST(FleetPacing, FollowsTheTargetWithRedis) {
    head();
    hold(run({.name = "cap of 100,000, an outage"}), 0.01);
}

TEST(FleetPacing, PacesItsPartWithoutRedis) {
    head();
    const Figures f = run({.name = "cap of 100,000, an outage, no Redis", .redis = Redis::away});
    EXPECT_EQ(f.over, 0);
    EXPECT_GE(f.delivered, 0.999);
    EXPECT_LE(f.rmse, 0.03);
}

// Figures to look at; what must hold is that nothing is exceeded.
TEST(FleetPacing, OtherLimitsAndTraffic) {
    if (!long_form()) {
        GTEST_SKIP() << "in the long form";
    }
    head();
    for (const Redis redis : {Redis::there, Redis::away_for_an_hour, Redis::away}) {
        EXPECT_EQ(run({.name = "$250 at a CPM of $2.50", .budget = true, .redis = redis}).over, 0);
        EXPECT_EQ(run({.name = "cap of 833,333, no outage",
                       .traffic = "bursty",
                       .amount = 833'333,
                       .redis = redis,
                       .days = 2})
                      .over,
                  0);
    }
}

}  // namespace
