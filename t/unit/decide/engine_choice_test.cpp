// Who is chosen, and how often: weights, prices, floors, experiments.
#include "core/decide/estimate.hpp"
#include "engine_fixture.hpp"

namespace {

using namespace engine_test;

constexpr int kDraws = 1'000'000;

std::map<Id, int> groups_drawn(Engine& e, Keeper& ledger, int draws = kDraws) {
    std::map<Id, int> seen;
    for (int i = 0; i < draws; i++) {
        const Pick pick = e.draw(ledger);
        seen[pick.filled() ? e.image().groups()[pick.group].id : 0]++;
    }
    return seen;
}

// ---- weights ----

TEST(EngineChoice, GroupsOfATierByWeight) {
    Engine e(document({campaign(
        1, {group(2, weighted(1)), group(3, weighted(2)), group(4, weighted(7)),
            group(5, weighted(90)), group(6, weighted(1000, R"("priority": "remnant")"))})}));
    Keeper ledger;
    expect_shares(groups_drawn(e, ledger), {{2, 1}, {3, 2}, {4, 7}, {5, 90}});
}

TEST(EngineChoice, TheSharesOfTheRefusedGoToTheOthersByWeight) {
    Engine e(document(
        {campaign(1, {group(2, weighted(1)), group(3, weighted(2)), group(4, weighted(7)),
                      group(5, weighted(90)), group(6, weighted(30)), group(7, weighted(50))})}));
    Keeper ledger;
    ledger.refuse = {{e.group_at(5), Reason::cap}};
    ledger.held = {e.group_at(6)};
    ledger.vetoed = {e.creative_at(1007)};
    expect_shares(groups_drawn(e, ledger), {{2, 1}, {3, 2}, {4, 7}});
    ledger.refuse[e.group_at(4)] = Reason::frequency;
    expect_shares(groups_drawn(e, ledger), {{2, 1}, {3, 2}});
}

// A coin that falls right one time in two halves who tosses it, and no other:
// its losses go to the others by weight.
TEST(EngineChoice, ACoinIsTossedByWhoIsDrawn) {
    struct Coin : Keeper {
        bool toss(uint32_t group) { return group != paced || random.below(2) == 0; }
        uint32_t paced = kNone;
        Rng random{99};
    };
    Engine e(document(
        {campaign(1, {group(2, weighted(5)), group(3, weighted(3)), group(4, weighted(2))})}));
    Coin coin;
    coin.paced = e.group_at(2);
    std::map<Id, int> seen;
    const uint32_t placement = 0;
    for (int i = 0; i < kDraws; i++) {
        Page page;
        coin.clear();
        decide(e.view(), {}, {&placement, 1}, page, e.rng(), coin);
        seen[e.image().groups()[page.picks()[0].group].id]++;
    }
    expect_shares(seen, {{2, 0.25}, {3, 0.3 + 0.25 * 0.6}, {4, 0.2 + 0.25 * 0.4}});
}

TEST(EngineChoice, CreativesByWeight) {
    Engine e(document(
        {campaign(1, {group(2, "",
                            joined({creative(11, weighted(1)), creative(12, weighted(3)),
                                    creative(13, weighted(6)), creative(14, weighted(5)),
                                    creative(15, weighted(9, R"("status": "paused")"))}))})}));
    Keeper ledger;
    const auto drawn = [&] {
        std::map<Id, int> seen;
        for (int i = 0; i < kDraws; i++) {
            seen[e.creative_id(e.draw(ledger))]++;
        }
        return seen;
    };
    expect_shares(drawn(), {{11, 1}, {12, 3}, {13, 6}, {14, 5}});
    ledger.vetoed = {e.creative_at(14)};
    expect_shares(drawn(), {{11, 1}, {12, 3}, {13, 6}});
}

// ---- prices ----

const std::string kByPrice = R"({"id": "p", "select": "price"})";

TEST(EngineChoice, TheDearestWhereThePriceDecides) {
    Engine e(document({campaign(1, {group(2, priced("cpm", 250, weighted(1000))),
                                    group(3, priced("cpm", 300, weighted(1))),
                                    group(4, priced("flat", 1, weighted(1000))),
                                    group(5, priced("cpm", 9000, R"("priority": "remnant")"))})},
                      kByPrice));
    Keeper ledger;
    // A flat price is per impression: a cent each are 1,000 cents per thousand.
    for (const Id expected : {4u, 3u, 2u, 5u, 0u}) {
        ASSERT_EQ(groups_drawn(e, ledger, 1000), (std::map<Id, int>{{expected, 1000}}));
        if (expected != 0) {
            ledger.refuse[e.group_at(expected)] = Reason::cap;
        }
    }
}

TEST(EngineChoice, EqualPricesByWeight) {
    Engine e(document({campaign(1, {group(2, priced("cpm", 300, weighted(5))),
                                    group(3, priced("cpm", 100, weighted(100))),
                                    group(4, priced("vcpm", 300, weighted(1))),
                                    group(5, priced("cpm", 300, weighted(4)))})},
                      kByPrice));
    Keeper ledger;
    expect_shares(groups_drawn(e, ledger), {{2, 5}, {4, 1}, {5, 4}});
    ledger.refuse[e.group_at(2)] = Reason::cap;
    expect_shares(groups_drawn(e, ledger), {{4, 1}, {5, 4}});
}

TEST(EngineChoice, EstimatedPricesComeFromTheLedger) {
    Engine e(document({campaign(1, {group(2, priced("cpm", 300)), group(3, priced("cpc", 1)),
                                    group(4, priced("cpa", 9999))})},
                      kByPrice));
    Keeper ledger;
    EXPECT_EQ(groups_drawn(e, ledger, 100).begin()->first, 2u);
    ledger.prices = {{e.group_at(3), 301 * kMicroPerCent}};
    EXPECT_EQ(groups_drawn(e, ledger, 100).begin()->first, 3u);
    ledger.prices[e.group_at(4)] = 302 * kMicroPerCent;
    EXPECT_EQ(groups_drawn(e, ledger, 100).begin()->first, 4u);
}

TEST(EngineChoice, TheFloorAsksForTheEstimate) {
    Engine e(document({campaign(1, {group(2, priced("cpm", 99)), group(3, priced("cpc", 500)),
                                    group(4, priced("cpa", 500)), group(5, priced("cpm", 100))})},
                      R"({"id": "p", "floor_cents": 100})"));
    Keeper ledger;
    ledger.prices = {{e.group_at(3), 100 * kMicroPerCent},
                     {e.group_at(4), 100 * kMicroPerCent - 1}};
    const auto seen = groups_drawn(e, ledger, 2000);
    EXPECT_EQ(seen.size(), 2u);
    EXPECT_TRUE(seen.contains(3) && seen.contains(5)) << "at the floor is not below it";
    EXPECT_EQ(ledger.refusals.size(), 1u);
    EXPECT_EQ(ledger.times(e.group_at(4), Reason::floor), 1u);
    // What has a fixed price below it has no seat, and no refusal.
    EXPECT_EQ(ledger.times(e.group_at(2), Reason::floor), 0u);
    const auto all = explain(e.view(), {.now = kNow * 1000}, e.draw(ledger), ledger.refusals);
    for (const auto& one : all) {
        const Id id = e.image().groups()[one.group].id;
        EXPECT_EQ(one.reason == Reason::floor, id == 2 || id == 4) << id;
    }
}

TEST(EngineChoice, TheFloorAsksForMoreThanTheEstimateWhileLittleIsKnown) {
    Engine e(document({campaign(1, {group(3, priced("cpc", 500))})},
                      R"({"id": "p", "floor_cents": 100})"));
    Keeper ledger;
    ledger.prices = {{e.group_at(3), 99 * kMicroPerCent}};
    ledger.allowance = kMicroPerCent;
    EXPECT_TRUE(groups_drawn(e, ledger, 10).contains(3));
}

TEST(Estimate, FewEventsAreNoReasonToRefuse) {
    constexpr MicroCents kPrice = 50 * kMicroPerCent;
    EXPECT_EQ(expected_ecpm(kPrice, {}), kPrice);
    EXPECT_EQ(floor_ecpm(kPrice, {}), 3 * kPrice);
    EXPECT_GE(floor_ecpm(kPrice, {2000, 0}), kPrice) << "an unlucky start";
    EXPECT_LT(floor_ecpm(kPrice, {2001, 0}), kPrice) << "no luck any more";
    EXPECT_GT(floor_ecpm(kPrice, {5000, 9}), expected_ecpm(kPrice, {5000, 9}));
    EXPECT_EQ(floor_ecpm(kPrice, {5000, 10}), expected_ecpm(kPrice, {5000, 10})) << "known";
}

// ---- experiments ----

std::string three_variants(const std::string& status = "running") {
    return with_experiment(
        document(
            {campaign(1, {group(2, "",
                                joined({creative(11, weighted(1)), creative(12, weighted(1)),
                                        creative(13, weighted(1)), creative(14, weighted(1))}))})},
            R"({"id": "p"}, {"id": "q"})"),
        R"({"id": 3, "ad_group": 2, "status": ")" + status +
            R"(", "variants": [{"creative": 11, "share": 0.5}, {"creative": 12, "share": 0.3},
                               {"creative": 13, "share": 0.2}]})");
}

TEST(EngineChoice, VariantsBySession) {
    Engine e(three_variants());
    Keeper ledger;
    std::map<Id, int> seen;
    for (int i = 0; i < kDraws; i++) {
        const std::string session = "session-" + std::to_string(i);
        const Pick pick = e.draw(ledger, {.session = session});
        ASSERT_EQ(pick.experiment, 3u);
        ASSERT_TRUE(pick.by_session);
        seen[e.creative_id(pick)]++;
    }
    expect_shares(seen, {{11, 5}, {12, 3}, {13, 2}});
}

TEST(EngineChoice, VariantsByRequestWithoutASession) {
    Engine e(three_variants());
    Keeper ledger;
    std::map<Id, int> seen;
    for (int i = 0; i < kDraws; i++) {
        const Pick pick = e.draw(ledger);
        ASSERT_EQ(pick.experiment, 3u);
        ASSERT_FALSE(pick.by_session);
        seen[e.creative_id(pick)]++;
    }
    expect_shares(seen, {{11, 5}, {12, 3}, {13, 2}});
}

// The same on any node, at any time: by the number of the experiment, a colon
// and the session, and by nothing else.
TEST(EngineChoice, ASessionKeepsItsVariant) {
    Engine e(three_variants());
    Engine other(three_variants());
    Keeper ledger;
    for (int i = 0; i < 2000; i++) {
        const std::string session = std::to_string(i * 7919);
        const uint64_t place = bucket(mix13(fnv1a64("3:" + session)), 10'000);
        const Id expected = place < 5000 ? 11 : place < 8000 ? 12 : 13;
        for (int again = 0; again < 3; again++) {
            ASSERT_EQ(e.creative_id(e.draw(ledger, {.session = session}, again % 2)), expected);
        }
        ASSERT_EQ(other.creative_id(other.draw(ledger, {.session = session})), expected);
    }
}

TEST(EngineChoice, TwoExperimentsDoNotDependOnEachOther) {
    std::string json = document({campaign(1, {group(2, "", joined({creative(11), creative(12)})),
                                              group(3, "", joined({creative(21), creative(22)}))})},
                                R"({"id": "p"})");
    const auto half = [](int id, int group, int first) {
        return R"({"id": )" + std::to_string(id) + R"(, "ad_group": )" + std::to_string(group) +
               R"(, "status": "running", "variants": [{"creative": )" + std::to_string(first) +
               R"(, "share": 0.5}, {"creative": )" + std::to_string(first + 1) +
               R"(, "share": 0.5}]})";
    };
    Engine e(with_experiment(json, half(1, 2, 11) + ", " + half(2, 3, 21)));
    Keeper ledger;
    std::map<Id, int> seen;
    for (int i = 0; i < kDraws / 4; i++) {
        const std::string session = std::to_string(i);
        ledger.refuse = {{e.group_at(3), Reason::cap}};
        const Id first = e.creative_id(e.draw(ledger, {.session = session}));
        ledger.refuse = {{e.group_at(2), Reason::cap}};
        const Id second = e.creative_id(e.draw(ledger, {.session = session}));
        seen[(first - 11) * 2 + second - 21]++;
    }
    expect_shares(seen, {{0, 1}, {1, 1}, {2, 1}, {3, 1}});
}

TEST(EngineChoice, OnlyARunningExperimentCounts) {
    for (const std::string status : {"draft", "completed"}) {
        Engine e(three_variants(status));
        Keeper ledger;
        std::map<Id, int> seen;
        for (int i = 0; i < kDraws / 10; i++) {
            const Pick pick = e.draw(ledger, {.session = "always the same"});
            ASSERT_EQ(pick.experiment, 0u);
            ASSERT_FALSE(pick.by_session);
            seen[e.creative_id(pick)]++;
        }
        expect_shares(seen, {{11, 1}, {12, 1}, {13, 1}, {14, 1}});
    }
}

// A part of the variants would be an experiment with other shares.
TEST(EngineChoice, VariantsThatDoNotAllFitLeaveItToTheWeights) {
    const std::string variants =
        R"({"id": 3, "ad_group": 2, "status": "running",
            "variants": [{"creative": 11, "share": 0.9}, {"creative": 12, "share": 0.1}]})";
    Engine e(with_experiment(
        document({campaign(1, {group(2, "",
                                     joined({sized(11, 728, 90), sized(12, 300, 250),
                                             sized(13, 728, 90), sized(14, 300, 250)}))})},
                 R"({"id": "banner", "width": 728, "height": 90}, {"id": "any"})"),
        variants));
    Keeper ledger;
    std::map<Id, int> seen;
    const Request request{.session = "s"};
    for (int i = 0; i < kDraws / 10; i++) {
        const Pick pick = e.draw(ledger, request, e.image().find_placement("banner"));
        ASSERT_EQ(pick.experiment, 0u);
        seen[e.creative_id(pick)]++;
    }
    expect_shares(seen, {{11, 1}, {13, 1}});
    EXPECT_EQ(e.draw(ledger, request, e.image().find_placement("any")).experiment, 3u);

    Engine paused(with_experiment(
        document({campaign(1, {group(2, "",
                                     joined({creative(11), creative(12, R"("status": "paused")"),
                                             creative(13)}))})}),
        variants));
    for (int i = 0; i < 100; i++) {
        const Pick pick = paused.draw(ledger, request);
        ASSERT_TRUE(pick.filled());
        ASSERT_EQ(pick.experiment, 0u);
        ASSERT_NE(paused.creative_id(pick), 12u);
    }
}

TEST(EngineChoice, AVariantIsNotReplaced) {
    Engine e(three_variants());
    Keeper ledger;
    const Request request{.session = "s"};
    const Pick pick = e.draw(ledger, request);
    ASSERT_TRUE(pick.filled());
    ledger.vetoed = {pick.creative};
    EXPECT_FALSE(e.draw(ledger, request).filled()) << "another variant would spoil the numbers";
    EXPECT_EQ(ledger.times(pick.group, Reason::frequency), 1u);
    ledger.vetoed.clear();
    EXPECT_EQ(e.fill({"p", "q"}, ledger, request), (std::vector<Id>{2, 0}));
    EXPECT_EQ(ledger.times(pick.group, Reason::page), 1u);
}

}  // namespace
