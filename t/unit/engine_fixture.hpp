// What the tests of the engine share: a ledger that refuses what it is told
// to and keeps exact books, pages of several placements, and chi-squared.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/decide/explain.hpp"
#include "decide_catalog.hpp"

namespace engine_test {

using namespace decide_test;

// By group index, but for `vetoed`, which has creative indexes.
struct Keeper {
    bool toss(uint32_t group) {
        tossed.push_back(group);
        return !held.contains(group);
    }
    bool allows(uint32_t, uint32_t creative) { return !vetoed.contains(creative); }
    Reason take(const Pick& pick) {
        asked.push_back(pick.group);
        if (const auto no = refuse.find(pick.group); no != refuse.end()) {
            return no->second;
        }
        taken.push_back(pick);
        return Reason::none;
    }
    void give_back(const Pick& pick) { given.push_back(pick); }
    MicroCents ecpm(uint32_t group) { return prices.contains(group) ? prices.at(group) : 0; }
    MicroCents floor_ecpm(uint32_t group) { return ecpm(group) + allowance; }
    void refused(uint32_t placement, uint32_t group, Reason reason) {
        refusals.push_back({placement, group, reason});
    }

    void clear() {
        tossed.clear();
        asked.clear();
        taken.clear();
        given.clear();
        refusals.clear();
    }

    size_t times(uint32_t group, Reason reason) const {
        return static_cast<size_t>(std::count_if(
            refusals.begin(), refusals.end(),
            [&](const Refusal& r) { return r.group == group && r.reason == reason; }));
    }

    std::set<uint32_t> held;
    std::set<uint32_t> vetoed;
    std::map<uint32_t, Reason> refuse;
    std::map<uint32_t, MicroCents> prices;
    MicroCents allowance = 0;  // for the floor
    std::vector<uint32_t> tossed;
    std::vector<uint32_t> asked;
    std::vector<Pick> taken;
    std::vector<Pick> given;
    std::vector<Refusal> refusals;
};

using Key = std::pair<uint32_t, uint32_t>;  // group, creative

inline std::multiset<Key> keys_of(std::span<const Pick> picks) {
    std::multiset<Key> keys;
    for (const Pick& pick : picks) {
        if (pick.filled()) {
            keys.insert({pick.group, pick.creative});
        }
    }
    return keys;
}

// What is on the page is what was taken and not given back.
inline void expect_balance(const Page& page, const Keeper& ledger) {
    auto held = keys_of(ledger.taken);
    for (const Key& key : keys_of(ledger.given)) {
        const auto at = held.find(key);
        ASSERT_NE(at, held.end()) << "given back without having been taken";
        held.erase(at);
    }
    EXPECT_EQ(held, keys_of(page.picks()));
}

class Engine : public Decider {
public:
    explicit Engine(const std::string& json) : Decider(json) {}

    uint32_t group_at(Id id) const { return image().find_group(id); }
    uint32_t creative_at(Id id) const { return image().find_creative(id); }

    // The ids of the groups on the page, 0 where there is none.
    std::vector<Id> fill(const std::vector<std::string>& slugs, Page& page, Keeper& ledger,
                         Request request = {}) {
        std::vector<uint32_t> placements;
        for (const auto& slug : slugs) {
            placements.push_back(image().find_placement(slug));
            EXPECT_NE(placements.back(), kNone) << slug;
        }
        request.now = kNow * 1000;
        decide(view(), request, placements, page, rng(), ledger);
        std::vector<Id> ids;
        for (const Pick& pick : page.picks()) {
            ids.push_back(pick.filled() ? image().groups()[pick.group].id : 0);
        }
        expect_balance(page, ledger);
        return ids;
    }
    std::vector<Id> fill(const std::vector<std::string>& slugs, Keeper& ledger,
                         const Request& request = {}) {
        Page page;
        ledger.clear();
        return fill(slugs, page, ledger, request);
    }

    // One placement, as fast as it goes.
    Pick draw(Keeper& ledger, const Request& request = {}, uint32_t placement = 0) {
        Page page;
        ledger.clear();
        decide(view(), request, {&placement, 1}, page, rng(), ledger);
        return page.picks()[0];
    }
};

// Whether the counts are as the weights say, with p > 0.001.
inline void expect_shares(const std::map<Id, int>& seen, const std::map<Id, double>& weights) {
    double total = 0;
    double draws = 0;
    for (const auto& [id, weight] : weights) {
        total += weight;
    }
    for (const auto& [id, count] : seen) {
        EXPECT_TRUE(weights.contains(id)) << id;
        draws += count;
    }
    double chi = 0;
    for (const auto& [id, weight] : weights) {
        const double expected = draws * weight / total;
        const double off = (seen.contains(id) ? seen.at(id) : 0) - expected;
        chi += off * off / expected;
    }
    // The upper 0.001 quantile (Wilson, Hilferty).
    const double k = static_cast<double>(weights.size() - 1);
    const double most = k * std::pow(1 - 2 / (9 * k) + 3.0902 * std::sqrt(2 / (9 * k)), 3);
    EXPECT_LT(chi, most);
}

inline std::string weighted(int weight, const std::string& more = "") {
    return R"("weight": )" + std::to_string(weight) + (more.empty() ? "" : ", " + more);
}

inline std::string priced(const std::string& model, int cents, const std::string& more = "") {
    return R"("price": {"model": ")" + model + R"(", "amount_cents": )" + std::to_string(cents) +
           "}" + (more.empty() ? "" : ", " + more);
}

inline std::string at_placement(const std::string& slug) {
    return R"("targeting": {"placements": [")" + slug + R"("]})";
}

inline std::string with_experiment(std::string json, const std::string& experiment) {
    json.pop_back();
    return json + R"(, "experiments": [)" + experiment + "]}";
}

}  // namespace engine_test
