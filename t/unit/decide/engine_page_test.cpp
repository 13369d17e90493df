// What ads of one page have to do with each other: exclusive ones, and sets
// that fill it all or none.
#include "engine_fixture.hpp"

namespace {

using namespace engine_test;

using Ids = std::vector<Id>;

std::string places(int count) {
    std::string list;
    for (int i = 0; i < count; i++) {
        list += (i == 0 ? "" : ", ") + (R"({"id": "p)" + std::to_string(i) + "\"}");
    }
    return list;
}

std::vector<std::string> slugs(int count) {
    std::vector<std::string> list;
    for (int i = 0; i < count; i++) {
        list.push_back("p" + std::to_string(i));
    }
    return list;
}

std::string in(int place, const std::string& more) {
    return at_placement("p" + std::to_string(place)) + (more.empty() ? "" : ", " + more);
}

std::string together(const std::string& name) {
    return R"("together": ")" + name + "\"";
}

// ---- exclusive ----

// Group 2 in the first place and 3 in the second, each with what is said of it.
Ids pair_on_a_page(const std::string& first, const std::string& second,
                   const std::string& advertisers = R"("acme" "acme")") {
    const size_t space = advertisers.find(' ');
    Engine e(document(
        {campaign(1, {group(2, in(0, first))}, R"("advertiser": )" + advertisers.substr(0, space)),
         campaign(4, {group(3, in(1, second))},
                  R"("advertiser": )" + advertisers.substr(space + 1))},
        places(2)));
    Keeper ledger;
    const Ids ids = e.fill({"p0", "p1"}, ledger);
    if (ids == Ids{2, 0}) {
        EXPECT_EQ(ledger.times(e.group_at(3), Reason::exclusive), 1u);
        EXPECT_EQ(ledger.tossed.size(), 1u) << "no coin for who cannot be served";
    }
    return ids;
}

TEST(EnginePage, AnExclusiveAdvertiserEitherWayRound) {
    const std::string exclusive = R"("exclusive": "advertiser")";
    EXPECT_EQ(pair_on_a_page(exclusive, ""), (Ids{2, 0}));
    EXPECT_EQ(pair_on_a_page("", exclusive), (Ids{2, 0})) << "who comes first stays";
    EXPECT_EQ(pair_on_a_page(exclusive, exclusive), (Ids{2, 0}));
    EXPECT_EQ(pair_on_a_page("", ""), (Ids{2, 3}));
    EXPECT_EQ(pair_on_a_page(exclusive, exclusive, R"("acme" "other")"), (Ids{2, 3}));
    EXPECT_EQ(pair_on_a_page(exclusive, "", R"("acme" "")"), (Ids{2, 3}));
    EXPECT_EQ(pair_on_a_page("", "", R"("" "")"), (Ids{2, 3}));
}

TEST(EnginePage, AnExclusiveCategoryEitherWayRound) {
    const std::string cars = R"("category": "cars")";
    const std::string only = cars + R"(, "exclusive": "category")";
    EXPECT_EQ(pair_on_a_page(only, cars), (Ids{2, 0}));
    EXPECT_EQ(pair_on_a_page(cars, only), (Ids{2, 0}));
    EXPECT_EQ(pair_on_a_page(cars, cars), (Ids{2, 3}));
    EXPECT_EQ(pair_on_a_page(only, R"("category": "bikes", "exclusive": "category")"), (Ids{2, 3}));
    EXPECT_EQ(pair_on_a_page(only, ""), (Ids{2, 3}));
}

TEST(EnginePage, AnExclusiveGroupIsThereOnce) {
    Engine e(document(
        {campaign(1,
                  {group(2, R"("exclusive": "advertiser")", joined({creative(11), creative(12)}))},
                  R"("advertiser": "acme")")},
        places(2)));
    Keeper ledger;
    EXPECT_EQ(e.fill({"p0", "p1"}, ledger), (Ids{2, 0}));
}

// ---- together ----

TEST(EnginePage, ASetFollowsItsFirst) {
    // The others weigh more and stand in a higher tier, but a set goes on.
    Engine e(
        document({campaign(1, {group(2, in(0, together("s"))), group(3, in(1, together("s"))),
                               group(4, in(2, together("s") + R"(, "priority": "house")")),
                               group(5, in(1, weighted(1000))),
                               group(6, in(2, weighted(1000, R"("priority": "sponsorship")")))})},
                 places(3)));
    Keeper ledger;
    for (int i = 0; i < 200; i++) {
        ASSERT_EQ(e.fill(slugs(3), ledger), (Ids{2, 3, 4}));
        ASSERT_TRUE(ledger.given.empty());
    }
}

TEST(EnginePage, ASetIsNotBegunWhereItCannotFit) {
    Engine e(document({campaign(1, {group(2, together("s")), group(3, together("s")),
                                    group(4, R"("priority": "house")")})},
                      places(2)));
    Keeper ledger;
    EXPECT_EQ(e.fill({"p0"}, ledger), (Ids{4}));
    EXPECT_EQ(ledger.times(e.group_at(2), Reason::together), 1u);
    EXPECT_EQ(ledger.times(e.group_at(3), Reason::together), 1u);
    EXPECT_EQ(ledger.asked.size(), 1u) << "nothing is taken to be given back";
    const Ids both = e.fill({"p0", "p1"}, ledger);
    EXPECT_EQ(std::set<Id>(both.begin(), both.end()), (std::set<Id>{2, 3}));
}

TEST(EnginePage, WhatCannotBeWholeIsGivenBack) {
    Engine e(document({campaign(1, {group(2, in(0, together("s"))), group(3, in(1, together("s"))),
                                    group(4, in(2, together("s"))),
                                    group(5, R"("priority": "house")",
                                          joined({creative(11), creative(12), creative(13)}))})},
                      places(3)));
    Keeper ledger;
    ledger.refuse = {{e.group_at(4), Reason::cap}};
    for (int i = 0; i < 200; i++) {
        ASSERT_EQ(e.fill(slugs(3), ledger), (Ids{5, 5, 5}));
        ASSERT_EQ(keys_of(ledger.given),
                  (std::multiset<Key>{{e.group_at(2), e.creative_at(1002)},
                                      {e.group_at(3), e.creative_at(1003)}}));
        ASSERT_EQ(ledger.times(e.group_at(2), Reason::together), 1u)
            << "not again where the place is filled anew";
        // It is not begun again on this page.
        ASSERT_EQ(std::count(ledger.asked.begin(), ledger.asked.end(), e.group_at(2)), 1);
        ASSERT_EQ(std::count(ledger.asked.begin(), ledger.asked.end(), e.group_at(3)), 1);
    }
}

TEST(EnginePage, ARefusedMemberIsAskedOnce) {
    Engine e(document(
        {campaign(1, {group(2, in(0, together("s"))), group(3, in(1, together("s"))),
                      group(4, R"("priority": "house")", joined({creative(11), creative(12)}))})},
        places(2)));
    Keeper ledger;
    ledger.refuse = {{e.group_at(3), Reason::cap}};
    EXPECT_EQ(e.fill(slugs(2), ledger), (Ids{4, 4}));
    EXPECT_EQ(std::count(ledger.asked.begin(), ledger.asked.end(), e.group_at(3)), 1);
    EXPECT_EQ(ledger.times(e.group_at(3), Reason::cap), 1u) << "a refusal counts once a place";
    ledger.refuse.clear();
    ledger.held = {e.group_at(3)};
    EXPECT_EQ(e.fill(slugs(2), ledger), (Ids{4, 4}));
    EXPECT_EQ(std::count(ledger.tossed.begin(), ledger.tossed.end(), e.group_at(3)), 1)
        << "a second toss would make the coin another one";
}

TEST(EnginePage, TwoSetsOnAPage) {
    Engine e(document(
        {campaign(1, {group(2, in(0, together("a"))), group(3, in(1, together("b"))),
                      group(4, in(2, together("a"))), group(5, in(3, together("b"))),
                      group(6, R"("priority": "house")",
                            joined({creative(11), creative(12), creative(13), creative(14)}))})},
        places(4)));
    Keeper ledger;
    EXPECT_EQ(e.fill(slugs(4), ledger), (Ids{2, 3, 4, 5}));
    ledger.refuse = {{e.group_at(5), Reason::cap}};
    EXPECT_EQ(e.fill(slugs(4), ledger), (Ids{2, 6, 4, 6})) << "one of them fails alone";
    EXPECT_EQ(keys_of(ledger.given), (std::multiset<Key>{{e.group_at(3), e.creative_at(1003)}}));
    ledger.refuse[e.group_at(4)] = Reason::cap;
    EXPECT_EQ(e.fill(slugs(4), ledger), (Ids{6, 6, 6, 6})) << "or both";
    EXPECT_EQ(ledger.given.size(), 2u);
}

TEST(EnginePage, TheLongestPage) {
    std::vector<std::string> groups;
    for (int i = 0; i < 64; i++) {
        groups.push_back(group(i + 1, in(i, together("all"))));
    }
    groups.push_back(group(100, R"("priority": "house")"));
    Engine e(document({campaign(1, groups)}, places(64)));
    Keeper ledger;
    Ids all;
    for (Id i = 1; i <= 64; i++) {
        all.push_back(i);
    }
    EXPECT_EQ(e.fill(slugs(64), ledger), all);
    EXPECT_TRUE(ledger.given.empty());
    ledger.refuse = {{e.group_at(64), Reason::cap}};
    Ids house(64, 0);
    house.back() = 100;  // it was there before the others were given back
    EXPECT_EQ(e.fill(slugs(64), ledger), house);
    EXPECT_EQ(ledger.given.size(), 63u);
}

// Many takeovers of other pages: each could begin here, none can be whole.
TEST(EnginePage, MoreSetsThanAPageHasPlaces) {
    std::vector<std::string> groups;
    for (int i = 0; i < 100; i++) {
        const std::string name = together("s" + std::to_string(i));
        groups.push_back(group(2 * i + 1, in(0, name)));
        groups.push_back(group(2 * i + 2, in(2, name)));
    }
    groups.push_back(group(900, R"("priority": "house")", joined({creative(11), creative(12)})));
    Engine e(document({campaign(1, groups)}, places(3)));
    Keeper ledger;
    EXPECT_EQ(e.fill({"p0", "p1"}, ledger), (Ids{900, 900})) << "never a part of a set";
}

// Random sets, random refusals: all or none, and the books balance.
TEST(EnginePage, AllOrNoneWhateverIsRefused) {
    Rng random(4711);
    size_t whole = 0;
    size_t given = 0;
    for (int world = 0; world < 300; world++) {
        const int count = 2 + static_cast<int>(random.below(6));
        std::vector<std::string> groups;
        std::map<std::string, std::vector<Id>> sets;
        for (int id = 1; id <= 3 * count; id++) {
            std::string more = weighted(1 + static_cast<int>(random.below(9)));
            if (random.below(3) > 0) {
                const std::string name(1, static_cast<char>('a' + random.below(3)));
                more += ", " + together(name);
                sets[name].push_back(static_cast<Id>(id));
            }
            if (random.below(4) == 0) {
                more += R"(, "exclusive": "category", "category": "c)" +
                        std::to_string(random.below(2)) + "\"";
            }
            const bool anywhere = random.below(3) == 0;
            groups.push_back(group(
                id,
                anywhere ? more
                         : in(static_cast<int>(random.below(static_cast<uint64_t>(count))), more),
                joined({creative(1000 + 2 * id), creative(1001 + 2 * id)})));
        }
        Engine e(document({campaign(1, groups)}, places(count)));
        for (int i = 0; i < 50; i++) {
            Keeper ledger;
            for (int id = 1; id <= 3 * count; id++) {
                if (random.below(6) == 0) {
                    ledger.refuse[e.group_at(static_cast<Id>(id))] = Reason::cap;
                }
            }
            const Ids ids = e.fill(slugs(count), ledger);
            for (const auto& [name, members] : sets) {
                const auto there = std::count_if(members.begin(), members.end(), [&](Id id) {
                    return std::count(ids.begin(), ids.end(), id) > 0;
                });
                ASSERT_TRUE(there == 0 || there == static_cast<int>(members.size()))
                    << "world " << world << ", set " << name;
                whole += there > 1 ? 1 : 0;
            }
            given += ledger.given.size();
            for (const Pick& pick : ledger.given) {
                ASSERT_GE(ledger.times(pick.group, Reason::together), 1u);
            }
        }
    }
    EXPECT_GT(whole, 100u) << "worlds without sets would prove nothing";
    EXPECT_GT(given, 100u);
}

}  // namespace
