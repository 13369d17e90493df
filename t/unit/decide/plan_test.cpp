// Decisions in two steps: what is planned, and what becomes of it with other grants.
#include "core/decide/plan.hpp"

#include <gtest/gtest.h>

#include "engine_fixture.hpp"
#include "ledger/planner.hpp"

namespace {

using namespace engine_test;

// Capped groups are served only as granted, in the given placements.
struct Caps : Keeper {
    bool coin(uint32_t group) { return !held.contains(group); }
    void count_toss(uint32_t group) { tossed.push_back(group); }
    bool exhausted() const { return false; }
    bool capped(uint32_t group) const { return caps.contains(group); }
    bool admits(const Pick& pick) const { return !known.contains(pick.group); }
    Reason take(const Pick& pick) {
        if (capped(pick.group)) {
            const auto grant = granted.find(pick.group);
            if (grant == granted.end()) {
                return Reason::frequency;
            }
            granted.erase(grant);
        }
        return Keeper::take(pick);
    }

    std::set<uint32_t> caps;
    std::set<uint32_t> known;  // to be capped, on this node
    std::multiset<uint32_t> granted;
};

class Planned : public Engine {
public:
    using Engine::Engine;

    Plan plan(const std::vector<uint32_t>& placements, Caps& ledger) {
        Plan plan;
        Page page;
        Planner planner(ledger, plan);
        decide(view(), request_, placements, page, rng(), planner);
        EXPECT_TRUE(ledger.taken.empty());
        EXPECT_TRUE(ledger.tossed.empty());
        EXPECT_TRUE(ledger.refusals.empty());
        EXPECT_EQ(plan.ends.size(), placements.size());
        return plan;
    }

    // The ids on the page, 0 where there is none.
    std::vector<Id> carry_out(const std::vector<uint32_t>& placements, const Plan& plan,
                              Caps& ledger) {
        Page page;
        Decision<Caps>(view(), request_, page, rng(), ledger).carry_out(placements, plan);
        expect_balance(page, ledger);
        std::vector<Id> ids;
        for (const Pick& pick : page.picks()) {
            ids.push_back(pick.filled() ? image().groups()[pick.group].id : 0);
        }
        return ids;
    }

    std::vector<Id> asked(const Plan& plan) const {
        std::vector<Id> ids;
        for (const PlannedTry& one : plan.tries) {
            if (one.asks) {
                ids.push_back(image().groups()[one.pick.group].id);
            }
        }
        return ids;
    }

private:
    Request request_{.now = kNow * 1000};
};

std::string tiers() {
    return document({campaign(1, {group(1, R"("priority": "sponsorship")"), group(2),
                                  group(3, R"("priority": "house")")})});
}

TEST(Plan, ListsWhatMayBeServedInItsOrder) {
    Planned d(tiers());
    Caps ledger;
    ledger.caps = {d.group_at(1), d.group_at(2)};
    const Plan plan = d.plan({0}, ledger);
    EXPECT_EQ(plan.asks, 2u);
    EXPECT_EQ(d.asked(plan), (std::vector<Id>{1, 2}));
    ASSERT_EQ(plan.tries.size(), 3u);
    EXPECT_EQ(plan.tries[2].pick.group, d.group_at(3));
}

TEST(Plan, AsksNothingForWhatHasNoCap) {
    Planned d(tiers());
    Caps ledger;
    ledger.caps = {d.group_at(3)};
    const Plan plan = d.plan({0}, ledger);
    EXPECT_EQ(plan.asks, 0u);
    EXPECT_EQ(d.carry_out({0}, plan, ledger), std::vector<Id>{1});
}

TEST(Plan, KnowsWhatTheNodeKnows) {
    Planned d(tiers());
    Caps ledger;
    ledger.caps = {d.group_at(1), d.group_at(2)};
    ledger.known = {d.group_at(1)};
    EXPECT_EQ(d.asked(d.plan({0}, ledger)), std::vector<Id>{2});
}

TEST(Plan, ServesTheFirstThatIsGranted) {
    Planned d(tiers());
    for (const Id id : {1u, 2u, 3u}) {
        Caps ledger;
        ledger.caps = {d.group_at(1), d.group_at(2)};
        const Plan plan = d.plan({0}, ledger);
        if (id < 3) {
            ledger.granted = {d.group_at(id)};
        }
        EXPECT_EQ(d.carry_out({0}, plan, ledger), std::vector<Id>{id});
        // Only what was drawn before it is counted.
        EXPECT_EQ(ledger.tossed.size(), id);
        EXPECT_EQ(ledger.refusals.size(), id - 1);
        EXPECT_EQ(ledger.times(d.group_at(1), Reason::frequency), id == 1 ? 0u : 1u);
    }
}

TEST(Plan, GoesOnWhenAWallRefuses) {
    Planned d(tiers());
    Caps ledger;
    ledger.caps = {d.group_at(1)};
    const Plan plan = d.plan({0}, ledger);
    ledger.granted = {d.group_at(1)};
    ledger.refuse = {{d.group_at(1), Reason::cap}};
    EXPECT_EQ(d.carry_out({0}, plan, ledger), std::vector<Id>{2});
    EXPECT_EQ(ledger.times(d.group_at(1), Reason::cap), 1u);
}

TEST(Plan, CountsTheCoinsThatWereNeeded) {
    Planned d(tiers());
    Caps ledger;
    ledger.caps = {d.group_at(2)};
    ledger.held = {d.group_at(1)};
    const Plan plan = d.plan({0}, ledger);
    ledger.granted = {d.group_at(2)};
    EXPECT_EQ(d.carry_out({0}, plan, ledger), std::vector<Id>{2});
    EXPECT_EQ(ledger.tossed, (std::vector<uint32_t>{d.group_at(1), d.group_at(2)}));
    EXPECT_EQ(ledger.times(d.group_at(1), Reason::pacing), 1u);
}

const std::string kTwo = R"({"id": "a"}, {"id": "b"})";

TEST(Plan, ExpectsTheFirstCandidateOnThePage) {
    Planned d(document({campaign(1, {group(1), group(2, R"("priority": "house")")})}, kTwo));
    Caps ledger;
    ledger.caps = {d.group_at(1)};
    const Plan plan = d.plan({0, 1}, ledger);
    EXPECT_EQ(plan.asks, 1u);  // it has one creative
    ledger.granted = {d.group_at(1)};
    EXPECT_EQ(d.carry_out({0, 1}, plan, ledger), (std::vector<Id>{1, 2}));
}

TEST(Plan, KeepsToTheRulesOfThePage) {
    Planned d(document(
        {campaign(1,
                  {group(1, R"("exclusive": "advertiser")"), group(2, R"("priority": "remnant")"),
                   group(3, R"("priority": "house")")},
                  R"("advertiser": "a")"),
         campaign(2, {group(4, R"("priority": "house")")}, R"("advertiser": "b")")},
        kTwo));
    Rng rng(1);
    for (int i = 0; i < 500; i++) {
        Caps ledger;
        ledger.caps = {d.group_at(1), d.group_at(2)};
        const Plan plan = d.plan({0, 1}, ledger);
        for (const PlannedTry& one : plan.tries) {
            if (one.asks && rng.below(2) == 0) {
                ledger.granted.insert(one.pick.group);
            }
        }
        const auto ids = d.carry_out({0, 1}, plan, ledger);
        const bool first = std::ranges::count(ids, 1) > 0;
        const bool others = std::ranges::count(ids, 2) + std::ranges::count(ids, 3) > 0;
        EXPECT_FALSE(first && others);
    }
}

TEST(Plan, GivesBackASetThatIsNotWhole) {
    Planned d(document(
        {campaign(1,
                  {group(1, R"("together": "s", "targeting": {"placements": ["a"]})"),
                   group(2, R"("together": "s", "targeting": {"placements": ["b"]})"),
                   group(3, R"("priority": "house")", creative(1, "") + ", " + creative(2, ""))})},
        kTwo));
    for (const bool whole : {false, true}) {
        Caps ledger;
        ledger.caps = {d.group_at(1), d.group_at(2)};
        const Plan plan = d.plan({0, 1}, ledger);
        EXPECT_EQ(plan.asks, 2u);
        ledger.granted = {d.group_at(1)};
        if (whole) {
            ledger.granted.insert(d.group_at(2));
        }
        EXPECT_EQ(d.carry_out({0, 1}, plan, ledger),
                  whole ? (std::vector<Id>{1, 2}) : (std::vector<Id>{3, 3}));
        EXPECT_EQ(ledger.given.size(), whole ? 0u : 1u);
    }
}

TEST(Plan, DrawsByWeight) {
    Planned d(document({campaign(1, {group(1, R"("weight": 3)"), group(2, R"("weight": 1)")})}));
    std::map<Id, int> seen;
    for (int i = 0; i < 20'000; i++) {
        Caps ledger;
        ledger.caps = {d.group_at(1), d.group_at(2)};
        const Plan plan = d.plan({0}, ledger);
        ledger.granted = {plan.tries[0].pick.group};
        seen[d.carry_out({0}, plan, ledger)[0]]++;
    }
    expect_shares(seen, {{1, 3}, {2, 1}});
}

}  // namespace
