// How much PostgreSQL grants, wall by wall.
#include "core/rights/grantor.hpp"

#include <gtest/gtest.h>

#include <array>

#include "core/base/rng.hpp"

namespace ads::rights {
namespace {

constexpr Others kAlone{.charged = 0, .denied = false, .active = 0};

TEST(Grantor, ChargesANodeWithWhatItHoldsOrWhatWasBilledIfThatIsMore) {
    EXPECT_EQ((Account{.got = 10, .gave = 3, .billed = 2}).charge(), 7u);
    EXPECT_EQ((Account{.got = 10, .gave = 3, .billed = 9}).charge(), 9u);
    EXPECT_EQ((Account{.got = 3, .gave = 10, .billed = 1}).held(), 0u);
}

TEST(Grantor, FreeIsWhatIsNeitherSettledNorChargedAndMayBeNegative) {
    EXPECT_EQ(free_of({.limit = 100, .settled = 30}, 50), 20);
    EXPECT_EQ(free_of({.limit = 100, .settled = 30}, 90), -20);
}

TEST(Grantor, GrantsWhatIsWantedUpToAShareOfWhatIsFree) {
    Account alone;
    EXPECT_EQ(grant(alone, {.need = 10}, {.limit = 100}, kAlone), 10u);
    Account greedy;
    EXPECT_EQ(grant(greedy, {.need = 90}, {.limit = 100}, kAlone), 50u);
    EXPECT_EQ(greedy.got, 50u);
    EXPECT_EQ(greedy.denied, 40u);
    Account one_of_five;
    EXPECT_EQ(grant(one_of_five, {.need = 90}, {.limit = 100}, {.active = 4}), 10u);
}

TEST(Grantor, GrantsAQuantumOrMoreOfWhatIsNearlyUsedUp) {
    const Wall wall{.limit = 100, .quantum = 10, .settled = 85};
    Account account;
    EXPECT_EQ(grant(account, {.need = 30}, wall, {.active = 3}), 10u);
    EXPECT_EQ(grant(account, {.got = 10, .need = 20}, wall, {.active = 3}), 0u);
    EXPECT_EQ(account.denied, 20u);
}

TEST(Grantor, BillsWhatNodesHoldOnlyUpToTheHighestLimit) {
    // Both were granted the same 60, since a failover has forgotten the first grant.
    Account account{.got = 60};
    const Others others{.charged = 60, .billed = 60, .active = 1};
    const Wall wall{.limit = 80, .settled = 10, .highest = 100};
    EXPECT_TRUE(bill(account, 30, wall, others));
    EXPECT_FALSE(bill(account, 1, wall, others));
    EXPECT_EQ(account.billed, 30u);
    EXPECT_TRUE(bill(account, 1, {.limit = 101, .settled = 10, .highest = 100}, others));
}

TEST(Grantor, GrantsTheLastUnit) {
    Account account;
    EXPECT_EQ(grant(account, {.ahead = 1}, {.limit = 1}, {.active = 15}), 1u);
    Account late;
    EXPECT_EQ(grant(late, {.need = 1}, {.limit = 1}, {.charged = 1, .active = 15}), 0u);
    EXPECT_EQ(late.denied, 1u);
}

TEST(Grantor, GrantsNothingAheadWhileAnotherNodeIsDenied) {
    const Others others{.charged = 0, .denied = true, .active = 1};
    Account account;
    EXPECT_EQ(grant(account, {.need = 2, .ahead = 20}, {.limit = 100}, others), 2u);
    EXPECT_EQ(account.denied, 0u);
    EXPECT_EQ(grant(account, {.got = 2, .ahead = 20}, {.limit = 100}, others), 0u);
}

TEST(Grantor, OnlyWhatIsNeededCountsAsDenied) {
    Account account;
    EXPECT_EQ(grant(account, {.need = 3, .ahead = 50}, {.limit = 1}, kAlone), 1u);
    EXPECT_EQ(account.denied, 2u);
}

TEST(Grantor, SendsALostGrantAgainAndGrantsNothing) {
    Account account{.got = 10};
    EXPECT_EQ(grant(account, {.got = 4, .need = 8}, {.limit = 100}, kAlone), 0u);
    EXPECT_EQ(account.got, 10u);
    EXPECT_EQ(account.denied, 2u);
}

TEST(Grantor, AdoptsAGrantThatAFailoverHasForgotten) {
    Account account{.got = 10};
    EXPECT_EQ(grant(account, {.got = 120, .need = 5}, {.limit = 100}, kAlone), 0u);
    EXPECT_EQ(account.got, 120u);
    EXPECT_EQ(free_of({.limit = 100}, account.charge()), -20);
}

TEST(Grantor, WhatWasReturnedDoesNotBecomeLess) {
    Account account{.got = 10, .gave = 6};
    grant(account, {.got = 10, .gave = 4}, {.limit = 10}, kAlone);
    EXPECT_EQ(account.gave, 6u);
    grant(account, {.got = 10, .gave = 7}, {.limit = 10}, kAlone);
    EXPECT_EQ(account.gave, 7u);
}

TEST(Grantor, GrantsNothingWhileMoreIsHeldThanALoweredLimit) {
    Account account{.got = 50};
    EXPECT_EQ(grant(account, {.got = 50, .need = 1}, {.limit = 40}, kAlone), 0u);
    EXPECT_TRUE(wants_back({.limit = 40}, 50, false));
    EXPECT_EQ(grant(account, {.got = 50, .gave = 20, .need = 1}, {.limit = 40}, kAlone), 1u);
}

TEST(Grantor, WantsIdleRightsBackIfAnotherNodeIsDeniedAndLessThanAQuantumIsFree) {
    const Wall wall{.limit = 100, .quantum = 10};
    EXPECT_TRUE(wants_back(wall, 95, true));
    EXPECT_FALSE(wants_back(wall, 95, false));
    EXPECT_FALSE(wants_back(wall, 90, true));
}

TEST(Grantor, BillsWhatANodeHoldsAndBeyondThatOnlyWhatIsFree) {
    const Wall wall{.limit = 10};
    Account account{.got = 3, .gave = 1};
    EXPECT_TRUE(bill(account, 2, wall, {.charged = 7}));
    EXPECT_EQ(account.got, 3u);
    EXPECT_TRUE(bill(account, 1, wall, {.charged = 7}));
    EXPECT_EQ(account, (Account{.got = 4, .gave = 1, .billed = 3}));
    EXPECT_FALSE(bill(account, 1, wall, {.charged = 7}));
    EXPECT_EQ(account.billed, 3u);
}

// Of a node that is closed there is no account: its late events go to `settled`.
TEST(Grantor, BillsAClosedNodeWhatIsFree) {
    Wall wall{.limit = 10, .settled = 4};
    EXPECT_TRUE(bill_closed(wall, 2, 4));
    EXPECT_EQ(wall.settled, 6u);
    EXPECT_FALSE(bill_closed(wall, 1, 4));
    EXPECT_EQ(wall.settled, 6u);
}

TEST(Grantor, SettlingKeepsWhatWasBilledAndFreesTheRest) {
    Wall wall{.limit = 10, .settled = 1};
    Account account{.got = 8, .gave = 2, .billed = 4, .denied = 3};
    settle(account, wall);
    EXPECT_EQ(wall.settled, 5u);
    EXPECT_EQ(account, Account{});
    EXPECT_EQ(free_of(wall, account.charge()), 5);
}

TEST(Grantor, JoiningChargesWhatANodeHasUsedOnce) {
    Wall wall{.limit = 20, .settled = 9};
    Account account;
    join(account, wall, 7, 5);
    EXPECT_EQ(wall.settled, 4u);
    EXPECT_EQ(account, (Account{.got = 7, .billed = 5}));
    EXPECT_EQ(free_of(wall, account.charge()), 9);
}

// A node's calls arrive in any order and number; whatever it does, no more is granted than there
// is, and a repeated call grants nothing.
TEST(Grantor, NeverGrantsMoreThanThereIsInRandomSequences) {
    struct Node {
        Account account;
        uint64_t got = 0, gave = 0, used = 0;
    };
    for (uint64_t seed = 1; seed <= 300; seed++) {
        Rng rng(seed);
        Wall wall{.limit = 1 + rng.below(60), .quantum = 1 + rng.below(4)};
        wall.settled = rng.below(wall.limit + 1);
        std::array<Node, 4> nodes;
        const auto others = [&](const Node& of) {
            Others found{.active = 3};
            for (const Node& node : nodes) {
                found.charged += &node == &of ? 0 : node.account.charge();
                found.denied = found.denied || (&node != &of && node.account.denied > 0);
            }
            return found;
        };
        for (int step = 0; step < 200; step++) {
            Node& node = nodes[rng.below(nodes.size())];
            const uint64_t idle = node.got - node.gave - node.used;
            switch (rng.below(4)) {
                case 0:
                    node.used += rng.below(idle + 1);
                    break;
                case 1:
                    node.gave += rng.below(idle + 1);
                    break;
                case 2: {
                    const uint64_t billed = node.account.billed;
                    if (billed < node.used) {
                        EXPECT_TRUE(bill(node.account, 1, wall, others(node)));
                    }
                    break;
                }
                case 3: {
                    const Ask ask{node.got, node.gave, rng.below(8), rng.below(8)};
                    grant(node.account, ask, wall, others(node));
                    const Account after = node.account;
                    if (after.got > ask.got) {
                        EXPECT_EQ(grant(node.account, ask, wall, others(node)), 0u);
                        EXPECT_EQ(node.account.got, after.got);
                    }
                    node.got = rng.below(3) > 0 ? after.got : node.got;  // or it is lost
                    break;
                }
            }
            const uint64_t all = others(node).charged + node.account.charge();
            ASSERT_LE(wall.settled + all, wall.limit) << "seed " << seed;
        }
    }
}

}  // namespace
}  // namespace ads::rights
