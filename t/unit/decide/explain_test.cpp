// The reasons: told to the ledger as they happen, and complete afterwards.
#include "core/decide/explain.hpp"

#include "engine_fixture.hpp"

namespace {

using namespace engine_test;

std::map<Id, Reason> reasons_of(Engine& e, const Request& request, const Pick& pick,
                                const Keeper& ledger) {
    std::map<Id, Reason> reasons;
    for (const auto& one : explain(e.view(), request, pick, ledger.refusals)) {
        const Id id = e.image().groups()[one.group].id;
        EXPECT_TRUE(reasons.emplace(id, one.reason).second) << id << " twice";
    }
    return reasons;
}

std::string targeted(const std::string& targeting) {
    return R"("targeting": {)" + targeting + "}";
}

// At the floor of all_reasons().
std::string dear(int id, const std::string& more = "", const std::string& creatives = "") {
    return group(id, priced("cpm", 100, more), creatives);
}

// A group for each reason there is.
std::string all_reasons() {
    const std::string tuesdays =
        R"("schedule": [{"days": ["tue"], "from": "00:00", "to": "24:00"}])";
    return document(
        {campaign(1, {dear(1),
                      dear(2, R"("status": "paused")"),
                      dear(3, R"("start": "2026-11-17T00:00:00Z")"),
                      dear(4, R"("start": "2028-01-01T00:00:00Z")"),
                      dear(5, targeted(tuesdays)),
                      dear(6, "", sized(1006, 300, 250)),
                      dear(7, weighted(0)),
                      dear(8, targeted(R"("devices": ["tv"])")),
                      dear(9, targeted(R"("geos": ["FR"])")),
                      dear(10, targeted(R"("languages": ["fr"])")),
                      dear(11, targeted(R"("keys": {"k": ["v"]})")),
                      dear(12, targeted(R"("urls": {"include": ["^https://b\\."]})")),
                      dear(13, targeted(R"("urls": {"exclude": ["^https://a\\."]})")),
                      group(14, priced("cpm", 99)),
                      group(15, priced("cpc", 99)),
                      dear(16),
                      dear(17),
                      dear(18, targeted(R"("placements": ["other"])")),
                      dear(19, R"("priority": "house")"),
                      dear(20, "", creative(1020, R"("status": "draft")")),
                      dear(21, R"("end": "2026-11-16T12:00:00Z")"),
                      dear(22, R"("together": "s")"),
                      dear(23, R"("together": "s")")}),
         campaign(2, {dear(30)}, R"("status": "draft")")},
        R"({"id": "p", "width": 728, "height": 90, "floor_cents": 100}, {"id": "other"})");
}

TEST(Explain, EachGroupOnceWithItsReason) {
    Engine e(all_reasons());
    Keeper ledger;
    ledger.refuse = {{e.group_at(16), Reason::cap}};
    ledger.held = {e.group_at(17)};
    ledger.prices = {{e.group_at(15), 1}};
    const Request request{.now = kNow * 1000,
                          .device = static_cast<uint8_t>(Device::desktop),
                          .geo = "US-CA",
                          .language = "en-us",
                          .url = "https://a.example/"};
    int last = 0;
    for (int i = 0; i < 50; i++) {
        const Pick pick = e.draw(ledger, request);
        ASSERT_TRUE(pick.filled());
        const Id served = e.image().groups()[pick.group].id;
        ASSERT_EQ(served, 1u);
        auto reasons = reasons_of(e, request, pick, ledger);
        const std::map<Id, Reason> fixed = {
            {1, Reason::none},     {2, Reason::status},    {3, Reason::flight}, {4, Reason::flight},
            {5, Reason::schedule}, {6, Reason::creative},  {7, Reason::weight}, {8, Reason::device},
            {9, Reason::geo},      {10, Reason::language}, {11, Reason::key},   {12, Reason::url},
            {13, Reason::url},     {14, Reason::floor},    {15, Reason::floor}, {19, Reason::lost},
            {20, Reason::status},  {21, Reason::flight},   {30, Reason::status}};
        // These were refused if they were drawn before the one that is served.
        const std::map<Id, Reason> drawn = {{16, Reason::cap},
                                            {17, Reason::pacing},
                                            {22, Reason::together},
                                            {23, Reason::together}};
        for (const auto& [id, reason] : drawn) {
            ASSERT_TRUE(reasons.at(id) == reason || reasons.at(id) == Reason::lost) << id;
            last += reasons.at(id) == Reason::lost ? 1 : 0;
            reasons.erase(id);
        }
        ASSERT_EQ(reasons, fixed) << "and the group of another placement is not there";
    }
    EXPECT_GT(last, 0);
    EXPECT_LT(last, 200);
}

TEST(Explain, OfManyTheFirstAndTheServed) {
    std::vector<std::string> groups;
    for (int id = 1; id <= 10; id++) {
        groups.push_back(group(id));
    }
    Engine e(document({campaign(1, groups)}));
    const Request request{.now = kNow * 1000};
    for (int i = 0; i < 50; i++) {
        Keeper ledger;
        const Pick pick = e.draw(ledger, request);
        ASSERT_TRUE(pick.filled());
        const auto all = explain(e.view(), request, pick, ledger.refusals);
        const auto some = explain(e.view(), request, pick, ledger.refusals, 3);
        ASSERT_EQ(all.size(), candidates_of(e.image(), e.image().placements()[pick.placement]));
        ASSERT_LE(some.size(), 4u);
        int served = 0;
        for (size_t at = 0; at < some.size(); at++) {
            served += some[at].reason == Reason::none ? 1 : 0;
            if (at < 3) {
                EXPECT_EQ(some[at].group, all[at].group);
                EXPECT_EQ(some[at].reason, all[at].reason);
            }
        }
        ASSERT_EQ(served, 1);
    }
}

TEST(Explain, APausedPlacementServesNothing) {
    const std::string groups = campaign(1, {group(1), group(2, R"("status": "draft")")});
    for (const char* status : {"active", "paused"}) {
        const bool active = std::string(status) == "active";
        Engine e(document({groups}, R"({"id": "p", "width": 728, "height": 90, "status": ")" +
                                        std::string(status) + "\"}"));
        Keeper ledger;
        const Request request{.now = kNow * 1000};
        const Pick pick = e.draw(ledger, request);
        EXPECT_EQ(pick.filled(), active) << status;
        const std::map<Id, Reason> expected = {{1, active ? Reason::none : Reason::status},
                                               {2, Reason::status}};
        EXPECT_EQ(reasons_of(e, request, pick, ledger), expected) << status;
    }
}

TEST(Explain, WithoutAnAd) {
    Engine e(document({campaign(1, {group(1), group(2), group(3, R"("status": "draft")")})}));
    Keeper ledger;
    ledger.refuse = {{e.group_at(1), Reason::cap}, {e.group_at(2), Reason::frequency}};
    const Request request{.now = kNow * 1000};
    const Pick pick = e.draw(ledger, request);
    EXPECT_FALSE(pick.filled());
    EXPECT_EQ(
        reasons_of(e, request, pick, ledger),
        (std::map<Id, Reason>{{1, Reason::cap}, {2, Reason::frequency}, {3, Reason::status}}));
}

TEST(Explain, TheLedgerHearsOfEachRefusalOnce) {
    Engine e(
        document({campaign(1, {group(1), group(2), group(3), group(4, R"("priority": "house")")})},
                 R"({"id": "p"}, {"id": "q"})"));
    Keeper ledger;
    ledger.refuse = {{e.group_at(1), Reason::cap}};
    ledger.held = {e.group_at(2)};
    ledger.vetoed = {e.creative_at(1003)};
    EXPECT_EQ(e.fill({"p", "q"}, ledger), (std::vector<Id>{4, 0}));
    for (const auto& [id, reason] :
         {std::pair<Id, Reason>{1, Reason::cap}, {2, Reason::pacing}, {3, Reason::frequency}}) {
        EXPECT_EQ(ledger.times(e.group_at(id), reason), 2u) << "once a placement: " << id;
    }
    EXPECT_EQ(ledger.times(e.group_at(4), Reason::page), 1u);
    EXPECT_EQ(ledger.refusals.size(), 7u);
}

// Two placements of one page differ in what was refused there.
TEST(Explain, OfAPlacementNotOfThePage) {
    Engine e(document({campaign(1, {group(1, R"("priority": "sponsorship")"), group(2)})},
                      R"({"id": "p"}, {"id": "q"})"));
    Keeper ledger;
    Page page;
    const Request request{.now = kNow * 1000};
    ASSERT_EQ(e.fill({"p", "q"}, page, ledger, request), (std::vector<Id>{1, 2}));
    EXPECT_EQ(reasons_of(e, request, page.picks()[1], ledger),
              (std::map<Id, Reason>{{1, Reason::page}, {2, Reason::none}}));
    // In the first place the second was never drawn.
    Keeper strict;
    strict.refuse = {{e.group_at(2), Reason::cap}};
    Page other;
    ASSERT_EQ(e.fill({"p", "q"}, other, strict, request), (std::vector<Id>{1, 0}));
    EXPECT_EQ(reasons_of(e, request, other.picks()[0], strict),
              (std::map<Id, Reason>{{1, Reason::none}, {2, Reason::lost}}));
}

// ---- samples ----

std::string many(int count) {
    std::vector<std::string> groups;
    for (int i = 1; i <= count; i++) {
        groups.push_back(group(i, i % 2 == 0   ? targeted(R"("geos": ["FR"])")
                                  : i % 5 == 0 ? R"("status": "paused")"
                                               : ""));
    }
    return document({campaign(1, groups)});
}

struct Sample {
    double each = 0;
    std::map<uint32_t, Reason> found;
    size_t calls = 0;
};

Sample sampled(Engine& e, uint32_t from, uint32_t most) {
    Sample sample;
    e.view().patterns().start({});
    sample.each =
        sample_reasons(e.view(), {.now = kNow * 1000, .geo = "US"}, e.image().placements()[0], from,
                       most, [&](uint32_t group, Reason reason) {
                           sample.found[group] = reason;
                           sample.calls++;
                       });
    return sample;
}

TEST(SampleReasons, AllOfAFew) {
    Engine e(many(100));
    for (const uint32_t from : {0u, 1u, 99u, 100u, 12345u, 0x7fff'ffffu}) {
        const Sample sample = sampled(e, from, 512);
        ASSERT_EQ(sample.each, 1.0);
        ASSERT_EQ(sample.calls, 60u) << "50 by geo, 10 by status, each once";
        ASSERT_EQ(sample.found.size(), 60u);
        for (const auto& [group, reason] : sample.found) {
            ASSERT_EQ(reason, e.image().groups()[group].id % 2 == 0 ? Reason::geo : Reason::status);
        }
    }
}

TEST(SampleReasons, WhereverTheCircleBegins) {
    Engine e(many(100));
    for (const uint32_t from : {0xffff'ffffu, 0xffff'ffc0u}) {
        const Sample sample = sampled(e, from, 512);
        EXPECT_EQ(sample.calls, 60u) << from;
        EXPECT_EQ(sample.found.size(), 60u) << from;
    }
}

// Scaled, a part says on the average what the whole would.
TEST(SampleReasons, APartIsScaled) {
    Engine e(many(1000));
    double geo = 0;
    double status = 0;
    for (uint32_t from = 0; from < 1000; from++) {
        const Sample sample = sampled(e, from, 64);
        ASSERT_EQ(sample.each, 1000.0 / 64);
        for (const auto& [group, reason] : sample.found) {
            (reason == Reason::geo ? geo : status) += sample.each;
        }
    }
    EXPECT_DOUBLE_EQ(geo / 1000, 500);
    EXPECT_DOUBLE_EQ(status / 1000, 100);
}

TEST(SampleReasons, OfNothing) {
    Engine e(document({}));
    const Sample sample = sampled(e, 7, 512);
    EXPECT_EQ(sample.each, 0);
    EXPECT_EQ(sample.calls, 0u);
    Engine one(many(10));
    EXPECT_EQ(sampled(one, 3, 0).each, 0);
}

}  // namespace
