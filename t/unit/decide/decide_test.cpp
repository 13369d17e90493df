#include "core/decide/decide.hpp"

#include <cmath>
#include <map>
#include <set>

#include "decide_catalog.hpp"

namespace {

using namespace decide_test;

constexpr int kDraws = 1'000'000;

// Upper 0.001 quantile of chi-squared (Wilson, Hilferty).
double critical(size_t freedom) {
    const double k = static_cast<double>(freedom);
    const double z = 3.0902;
    return k * std::pow(1 - 2 / (9 * k) + z * std::sqrt(2 / (9 * k)), 3);
}

void expect_shares(const std::map<Id, int>& seen, const std::map<Id, double>& weights) {
    double total = 0;
    int draws = 0;
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
    EXPECT_LT(chi, critical(weights.size() - 1));
}

TEST(Decide, AnEmptyPlacementServesNothing) {
    Decider none(document({}));
    EXPECT_EQ(none.serve(), 0u);
    Decider elsewhere(document({campaign(1, {group(2, R"("targeting": {"placements": ["q"]})")})},
                               R"({"id": "p"}, {"id": "q"})"));
    EXPECT_EQ(elsewhere.serve("p"), 0u);
    EXPECT_EQ(elsewhere.serve("q"), 2u);
}

TEST(Decide, TiersInTheirOrder) {
    // Written in another order, and with weights that would turn it round.
    Decider d(document({campaign(1, {group(5, R"("priority": "house", "weight": 1000)"),
                                     group(4, R"("priority": "remnant", "weight": 1000)"),
                                     group(2, R"("priority": "sponsorship", "weight": 1)"),
                                     group(3, R"("priority": "standard", "weight": 100)")})}));
    const auto index = [&](Id id) { return d.image().find_group(id); };
    Tally tally;
    for (const Id expected : {2u, 3u, 4u, 5u, 0u}) {
        for (int i = 0; i < 100; i++) {
            Page page;
            tally.asked.clear();
            ASSERT_EQ(d.serve(page, tally), expected);
            ASSERT_EQ(tally.asked.size(), tally.refuse.size() + (expected != 0 ? 1 : 0));
        }
        if (expected != 0) {
            tally.refuse.push_back(index(expected));
        }
    }
}

TEST(Decide, AHouseAdOnlyWhenNothingElse) {
    Decider d(document({campaign(1, {group(5, R"("priority": "house", "weight": 1000)"),
                                     group(3, R"("end": "2026-11-16T13:00:00Z")")})}));
    EXPECT_EQ(d.serve_at(kNow), 3u);
    EXPECT_EQ(d.serve_at(kNow + kHour - 1), 3u);
    EXPECT_EQ(d.serve_at(kNow + kHour), 5u);
}

TEST(Decide, GroupsByTheirWeights) {
    const std::map<Id, double> weights = {{2, 1}, {3, 2}, {4, 7}, {5, 10}, {6, 80}};
    std::vector<std::string> groups;
    for (const auto& [id, weight] : weights) {
        groups.push_back(group(static_cast<int>(id),
                               R"("weight": )" + std::to_string(static_cast<int>(weight))));
    }
    Decider d(document({campaign(1, groups)}));
    std::map<Id, int> seen;
    for (int i = 0; i < kDraws; i++) {
        Page page;
        Tally tally;
        seen[d.serve(page, tally)]++;
    }
    expect_shares(seen, weights);
}

// More groups than one word of bits holds, of two tiers that meet inside one.
TEST(Decide, ManyGroupsByTheirWeights) {
    std::map<Id, double> weights;
    std::vector<std::string> groups;
    for (int i = 0; i < 150; i++) {
        const bool first = i >= 50;
        groups.push_back(group(i + 1, R"("weight": )" + std::to_string(i % 10 + 1) +
                                          R"(, "priority": ")" + (first ? "standard" : "remnant") +
                                          "\""));
        if (first) {
            weights[static_cast<Id>(i + 1)] = i % 10 + 1;
        }
    }
    Decider d(document({campaign(1, groups)}));
    std::map<Id, int> seen;
    for (int i = 0; i < kDraws / 4; i++) {
        Page page;
        Tally tally;
        seen[d.serve(page, tally)]++;
    }
    expect_shares(seen, weights);
}

// However many there are: they are looked up in two ways.
TEST(Decide, EachOfManyValuesIsFound) {
    for (const int values : {1, 2, 50, 256, 257, 700}) {
        std::vector<std::string> groups;
        for (int i = 1; i <= values; i++) {
            groups.push_back(
                group(i, R"("targeting": {"keys": {"k": ["v)" + std::to_string(i) + R"("]}})"));
        }
        Decider d(document({campaign(1, groups)}));
        const uint32_t placement = d.image().find_placement("p");
        for (int i = 0; i <= values + 1; i++) {
            const std::string value = "v" + std::to_string(i);
            const KeyValue key{"k", value};
            Page page;
            Tally tally;
            decide(d.view(), {.now = kNow * 1000, .keys = {&key, 1}}, {&placement, 1}, page,
                   d.rng(), tally);
            const Pick& pick = page.picks().back();
            const Id served = pick.filled() ? d.image().groups()[pick.group].id : 0;
            ASSERT_EQ(served, i <= values ? static_cast<Id>(i) : 0u) << value << " of " << values;
        }
    }
}

TEST(Decide, CreativesByTheirWeights) {
    Decider d(document(
        {campaign(1, {group(2, "",
                            joined({creative(11, R"("weight": 1)"), creative(12, R"("weight": 3)"),
                                    creative(13, R"("weight": 0)"), creative(14, R"("weight": 6)"),
                                    creative(15, R"("weight": 9, "status": "paused")")}))})}));
    std::map<Id, int> seen;
    for (int i = 0; i < kDraws; i++) {
        Page page;
        Tally tally;
        ASSERT_EQ(d.serve(page, tally), 2u);
        seen[d.creative_id(page.picks()[0])]++;
    }
    expect_shares(seen, {{11, 1}, {12, 3}, {14, 6}});
}

TEST(Decide, WhatHasNoWeightIsNeverServed) {
    Decider d(document({campaign(1, {group(2, R"("weight": 0)"), group(3, R"("weight": 1)"),
                                     group(4, "", creative(40, R"("weight": 0)"))})}));
    for (int i = 0; i < 1000; i++) {
        ASSERT_EQ(d.serve(), 3u);
    }
    Decider none(document(
        {campaign(1, {group(2, R"("weight": 0)"), group(4, "", creative(40, R"("weight": 0)"))})}));
    EXPECT_EQ(none.serve(), 0u);
}

TEST(Decide, WhatIsRefusedGoesToTheNext) {
    Decider d(document(
        {campaign(1, {group(2), group(3), group(4), group(5, R"("priority": "remnant")")})}));
    std::set<Id> served;
    for (int i = 0; i < 300; i++) {
        Page page;
        Tally tally;
        tally.refuse = {d.image().find_group(2), d.image().find_group(4)};
        ASSERT_EQ(d.serve(page, tally), 3u);
        ASSERT_LE(tally.asked.size(), 3u) << "each is asked once";
        ASSERT_EQ(tally.taken.size(), 1u);
    }
    Page page;
    Tally tally;
    tally.refuse = {d.image().find_group(2), d.image().find_group(3), d.image().find_group(4)};
    EXPECT_EQ(d.serve(page, tally), 5u);
    EXPECT_EQ(tally.asked.size(), 4u);
    EXPECT_EQ(tally.asked.back(), d.image().find_group(5)) << "the next tier comes after";

    tally = {};
    tally.refuse = {0, 1, 2, 3};
    EXPECT_EQ(d.serve(page, tally), 0u);
    EXPECT_EQ(tally.taken.size(), 0u);
    EXPECT_NE(d.serve(), 0u) << "the next request starts anew";
}

TEST(Decide, TheShareOfTheRefusedGoesToTheOthers) {
    Decider d(document({campaign(1, {group(2, R"("weight": 50)"), group(3, R"("weight": 10)"),
                                     group(4, R"("weight": 30)")})}));
    std::map<Id, int> seen;
    for (int i = 0; i < kDraws / 10; i++) {
        Page page;
        Tally tally;
        tally.refuse = {d.image().find_group(2)};
        seen[d.serve(page, tally)]++;
    }
    expect_shares(seen, {{3, 10}, {4, 30}});
}

TEST(Decide, NothingIsTakenFromWhoHasNoCreativeLeft) {
    Decider d(document({campaign(1, {group(2)})}, R"({"id": "p"}, {"id": "q"})"));
    Page page;
    Tally tally;
    EXPECT_EQ(d.serve(page, tally, "p"), 2u);
    EXPECT_EQ(d.serve(page, tally, "q"), 0u) << "its only creative is on the page";
    EXPECT_EQ(tally.taken.size(), 1u);
    EXPECT_EQ(tally.asked.size(), 1u);
}

TEST(Decide, NoCreativeTwiceOnAPage) {
    Decider d(document(
        {campaign(1, {group(2, "", joined({creative(11), creative(12)})),
                      group(3, R"("priority": "house")", joined({creative(13), creative(14)}))})}));
    std::set<std::vector<Id>> orders;
    for (int i = 0; i < 200; i++) {
        Page page;
        Tally tally;
        std::vector<Id> ids;
        while (d.serve(page, tally) != 0) {
            ids.push_back(d.creative_id(page.picks().back()));
        }
        ASSERT_EQ(ids.size(), 4u);
        ASSERT_EQ(std::set<Id>(ids.begin(), ids.end()), (std::set<Id>{11, 12, 13, 14}));
        ASSERT_LE(std::max(ids[0], ids[1]), 12u) << "the house comes last";
        orders.insert(ids);
    }
    EXPECT_EQ(orders.size(), 4u) << "in every order there is";
}

TEST(Decide, PlacementsTakeWhatFits) {
    Decider d(
        document({campaign(1, {group(2, "", sized(11, 728, 90)), group(3, "", sized(12, 300, 250)),
                               group(4, "", sized(13, 728, 90, "html")), group(5)})},
                 R"({"id": "banner", "width": 728, "height": 90, "types": ["image"]},
           {"id": "any"},
           {"id": "html", "types": ["html"]},
           {"id": "box", "width": 300, "height": 250},
           {"id": "turned", "width": 90, "height": 728, "types": ["image", "html"]})"));
    const auto all = [&](const std::string& slug) {
        std::set<Id> seen;
        for (int i = 0; i < 300; i++) {
            seen.insert(d.serve(slug));
        }
        return seen;
    };
    using Ids = std::set<Id>;
    EXPECT_EQ(all("banner"), (Ids{2}));
    EXPECT_EQ(all("any"), (Ids{2, 3, 4, 5}));
    EXPECT_EQ(all("html"), (Ids{4}));
    EXPECT_EQ(all("box"), (Ids{3, 5})) << "a creative without a size fits any";
    EXPECT_EQ(all("turned"), (Ids{0}));
}

TEST(Decide, OneGroupsCreativesFitDifferentPlacements) {
    Decider d(
        document({campaign(1, {group(2, "", joined({sized(11, 728, 90), sized(12, 300, 250)}))})},
                 R"({"id": "banner", "width": 728, "height": 90},
           {"id": "box", "width": 300, "height": 250})"));
    for (int i = 0; i < 100; i++) {
        Page page;
        Tally tally;
        ASSERT_EQ(d.serve(page, tally, "banner"), 2u);
        ASSERT_EQ(d.serve(page, tally, "box"), 2u);
        ASSERT_EQ(d.creative_id(page.picks()[0]), 11u);
        ASSERT_EQ(d.creative_id(page.picks()[1]), 12u);
    }
}

TEST(Decide, OnlyWhatRunsIsServed) {
    for (const std::string status :
         {"draft", "scheduled", "active", "paused", "completed", "archived"}) {
        const bool runs = status == "active" || status == "scheduled";
        const std::string said = R"("status": ")" + status + "\"";
        EXPECT_EQ(Decider(document({campaign(1, {group(2)}, said)})).serve(), runs ? 2u : 0u);
        EXPECT_EQ(Decider(document({campaign(1, {group(2, said)})})).serve(), runs ? 2u : 0u);
    }
    for (const std::string status : {"draft", "paused", "completed", "archived"}) {
        Decider d(document(
            {campaign(1, {group(2, "", creative(11, R"("status": ")" + status + "\""))})}));
        EXPECT_EQ(d.serve(), 0u) << status;
        EXPECT_NE(d.image().find_creative(11), kNone) << "its click target is kept";
    }
}

TEST(Decide, FlightsOpenAndClose) {
    Decider d(
        document({campaign(1, {group(2, R"("start": "2026-11-16T14:00:00Z")")},
                           R"("start": "2026-11-16T13:00:00Z", "end": "2026-11-18T00:00:00Z")"),
                  campaign(3, {group(4, R"("priority": "house")")},
                           R"("status": "scheduled", "start": "2026-11-16T13:00:00Z")")}));
    EXPECT_EQ(d.serve_at(kNow), 0u);
    EXPECT_EQ(d.serve_at(kNow + kHour - 1), 0u);
    EXPECT_EQ(d.serve_at(kNow + kHour), 4u);
    EXPECT_EQ(d.serve_at(kNow + 2 * kHour - 1), 4u);
    EXPECT_EQ(d.serve_at(kNow + 2 * kHour), 2u);
    EXPECT_EQ(d.serve_at(kNow + 36 * kHour - 1), 2u);
    EXPECT_EQ(d.serve_at(kNow + 36 * kHour), 4u);
    EXPECT_EQ(d.serve_at(kNow + 7 * kDay), 4u) << "a leap over all boundaries";
}

TEST(Decide, AClockThatGoesBack) {
    Decider d(document({campaign(1, {group(2, R"("start": "2026-11-16T14:00:00Z",
                                                  "end": "2026-11-17T12:00:00Z")")})}));
    const std::vector<std::pair<Seconds, Id>> walk = {
        {3 * kHour, 2}, {kHour, 0},          {2 * kHour, 2}, {30 * kHour, 0}, {23 * kHour, 2},
        {0, 0},         {-5 * kHour, 0},     {-kHour, 0},    {2 * kHour, 2},  {2 * kHour - 1, 0},
        {-kDay, 0},     {24 * kHour - 1, 2}, {24 * kHour, 0}};
    for (const auto& [offset, expected] : walk) {
        EXPECT_EQ(d.serve_at(kNow + offset), expected) << offset;
    }
}

// Compiled at noon: what opened in the morning was not open before.
TEST(Decide, AClockThatGoesBackBeforeTheImage) {
    Decider d(document({campaign(
        1, {group(2, R"("start": "2026-11-16T11:30:00Z")"), group(3, R"("priority": "house")")})}));
    for (const auto& [offset, expected] : std::vector<std::pair<Seconds, Id>>{
             {0, 2}, {-kHour, 3}, {-1800, 2}, {-1801, 3}, {-kDay, 3}, {-60, 2}, {kHour, 2}}) {
        EXPECT_EQ(d.serve_at(kNow + offset), expected) << offset;
    }
}

TEST(Decide, SchedulesOpenAndClose) {
    // Mondays to Wednesdays, 09:00 to 17:00 in New York: 14:00Z to 22:00Z.
    Decider d(document(
        {campaign(1, {group(2, R"("targeting": {"schedule": [{"days": ["mon", "tue", "wed"],
                     "from": "09:00", "to": "17:00"}]})")},
                  R"("timezone": "America/New_York")")}));
    for (int hour = 0; hour < 7 * 24; hour++) {
        const Seconds at = kNow + hour * kHour;
        const int utc_hour = static_cast<int>(at / kHour % 24);
        const auto weekday = (at / kDay + 4) % 7;  // 1970-01-01 was a Thursday
        const bool open = weekday >= 1 && weekday <= 3 && utc_hour >= 14 && utc_hour < 22;
        ASSERT_EQ(d.serve_at(at), open ? 2u : 0u) << hour;
        ASSERT_EQ(d.serve_at(at + kHour - 1), open ? 2u : 0u) << hour;
    }
}

// At random moments, in any order, the view says what the intervals say.
TEST(Decide, TheViewAgreesWithTheIntervals) {
    std::vector<std::string> groups;
    for (int i = 0; i < 70; i++) {
        char clock[64];
        std::snprintf(clock, sizeof clock, R"("from": "%02d:%02d", "to": "%02d:30")", i % 24,
                      i * 7 % 60, i * 5 % 24);
        groups.push_back(group(i + 1, R"("targeting": {"schedule": [{)" + std::string(clock) +
                                          R"(, "days": ["mon", "thu", "sat"]}]})"));
    }
    Decider d(document({campaign(1, groups, R"("timezone": "Asia/Kolkata")")}));
    const Image& image = d.image();
    const PlacementRecord& placement = image.placements()[0];
    Rng random(77);
    for (int i = 0; i < 3000; i++) {
        const Seconds at = kNow + static_cast<Seconds>(random.below(8 * kDay));
        d.view().advance(at);
        const auto open = d.view().open(placement);
        const auto seated = image.get(placement.groups);
        for (size_t seat = 0; seat < seated.size(); seat++) {
            bool expected = false;
            for (const Interval& interval : image.get(image.groups()[seated[seat]].open)) {
                expected |= interval.open <= at && at < interval.close;
            }
            ASSERT_EQ((open[seat / 64] >> (seat % 64) & 1) != 0, expected) << at;
        }
    }
}

// All words are looked at.
Bits bits_of(std::vector<uint64_t>& words) {
    static const std::vector<uint32_t> all = {0, 1, 2, 3};
    return {words, std::span(all).first(words.size())};
}

uint32_t draw_by_weight(std::vector<uint64_t>& survivors, uint32_t begin, uint32_t end,
                        const std::vector<uint32_t>& weights, Rng& rng) {
    std::vector<uint64_t> sums(survivors.size(), 99);
    std::vector<uint32_t> places(survivors.size(), 99);
    return Lottery(bits_of(survivors), begin, end, weights, sums, places).draw(rng);
}

TEST(Draw, OnlyFromTheRangeAndTheSurvivors) {
    const std::vector<uint32_t> weights(200, 3);
    std::vector<uint64_t> survivors(4, 0);
    Rng rng(1);
    EXPECT_EQ(draw_by_weight(survivors, 0, 200, weights, rng), kNone);
    const auto set = [&](uint32_t at) { survivors[at / 64] |= uint64_t{1} << (at % 64); };
    for (const uint32_t at : {0u, 63u, 64u, 127u, 128u, 199u}) {
        set(at);
    }
    EXPECT_EQ(draw_by_weight(survivors, 1, 63, weights, rng), kNone);
    EXPECT_EQ(draw_by_weight(survivors, 65, 127, weights, rng), kNone);
    EXPECT_EQ(draw_by_weight(survivors, 64, 64, weights, rng), kNone);
    EXPECT_EQ(draw_by_weight(survivors, 63, 64, weights, rng), 63u);
    EXPECT_EQ(draw_by_weight(survivors, 64, 65, weights, rng), 64u);
    EXPECT_EQ(draw_by_weight(survivors, 129, 200, weights, rng), 199u);
    std::set<uint32_t> seen;
    for (int i = 0; i < 500; i++) {
        seen.insert(draw_by_weight(survivors, 63, 129, weights, rng));
    }
    EXPECT_EQ(seen, (std::set<uint32_t>{63, 64, 127, 128}));
}

TEST(Draw, EachOnceUntilNobodyIsLeft) {
    std::vector<uint32_t> weights(200);
    std::vector<uint64_t> survivors(4, ~uint64_t{0});
    std::vector<uint64_t> sums(4);
    std::vector<uint32_t> places(4);
    Rng rng(3);
    for (uint32_t i = 0; i < weights.size(); i++) {
        weights[i] = 1 + i % 7;
    }
    Lottery lottery(bits_of(survivors), 10, 150, weights, sums, places);
    std::set<uint32_t> seen;
    for (uint32_t at = lottery.draw(rng); at != kNone; at = lottery.draw(rng)) {
        EXPECT_TRUE(seen.insert(at).second) << at;
        lottery.remove_drawn();
    }
    EXPECT_EQ(seen.size(), 140u);
    EXPECT_EQ(*seen.begin(), 10u);
    EXPECT_EQ(*seen.rbegin(), 149u);
    EXPECT_EQ(survivors[0], (uint64_t{1} << 10) - 1);  // the others stay
}

TEST(Draw, WhatIsLeftKeepsItsShares) {
    const std::vector<uint32_t> weights = {1, 5, 2, 3};
    std::map<Id, int> seen;
    Rng rng(4);
    for (int i = 0; i < 300'000; i++) {
        std::vector<uint64_t> survivors = {0xf};
        std::vector<uint64_t> sums(1);
        std::vector<uint32_t> places(1);
        Lottery lottery(bits_of(survivors), 0, 4, weights, sums, places);
        if (lottery.draw(rng) == 1) {
            lottery.remove_drawn();
            seen[lottery.draw(rng)]++;
        }
    }
    expect_shares(seen, {{0, 1}, {2, 2}, {3, 3}});
}

TEST(Draw, GreatWeightsDoNotOverflow) {
    const std::vector<uint32_t> weights(64, 0xffff'ffff);
    std::vector<uint64_t> survivors = {~uint64_t{0}};
    Rng rng(2);
    std::map<Id, int> seen;
    std::map<Id, double> expected;
    for (int i = 0; i < 200'000; i++) {
        seen[draw_by_weight(survivors, 0, 64, weights, rng)]++;
    }
    for (Id i = 0; i < 64; i++) {
        expected[i] = 1;
    }
    expect_shares(seen, expected);
}

TEST(Page, HoldsAsManyAsARequestMayAskFor) {
    Page page;
    for (uint32_t i = 0; i < kMaxPage; i++) {
        EXPECT_FALSE(page.has_creative(i));
        page.add(0);
        page.picks().back() = {.placement = 0, .group = 0, .creative = i};
        EXPECT_TRUE(page.has_creative(i));
    }
    EXPECT_EQ(page.picks().size(), kMaxPage);
}

}  // namespace
