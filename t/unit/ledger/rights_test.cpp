#include "ledger/fleet/rights.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "ledger/fleet/start.hpp"
#include "ledger/fleet/verdicts.hpp"
#include "ledger_memory.hpp"

namespace {

using namespace ads;
using ledger_test::Memory;

constexpr uint64_t kEntries = 64;
constexpr Day kToday = 320;

class LedgerRights : public testing::Test {
protected:
    LedgerRights() : memory_(State::size(kEntries, 4)) {
        State::format(memory_.span(), kEntries, 4, 77);
        state_ = State::attach(memory_.data());
        const std::vector<SlotKey> keys{{5, SlotKind::impressions}};
        std::vector<uint32_t> slots(1);
        EXPECT_EQ(state_.assign_slots(keys, slots, 1'794'787'200), 0u);
        slot_ = slots[0];
    }
    WallSlot& wall() { return state_.wall(slot_); }
    FleetState& fleet() { return state_.head().fleet; }

    RightsClient client() {
        return RightsClient(state_, {.random = [this] { return ++random_; },
                                     .store =
                                         [this] {
                                             stored_++;
                                             return true;
                                         }});
    }

    Memory memory_;
    State state_;
    uint32_t slot_ = 0;
    uint64_t random_ = 1000;
    int stored_ = 0;
};

TEST_F(LedgerRights, AReturnIsATake) {
    Holding holding(wall(), kToday);
    holding.receive(10);
    EXPECT_TRUE(wall().take(kToday, 4, holding.got(), pacing::kUnlimited, kToday));
    EXPECT_FALSE(holding.give(7));
    EXPECT_TRUE(holding.give(5));
    EXPECT_EQ(holding.word(), 9u);
    EXPECT_EQ(holding.gave(), 5u);
    EXPECT_EQ(holding.idle(), 1u);
    EXPECT_EQ(wall().spent(kToday), 4u);
    EXPECT_FALSE(wall().take(kToday, 2, holding.got(), pacing::kUnlimited, kToday));
}

TEST_F(LedgerRights, RegistersOnlyGrow) {
    for (const Day day : {kToday, Day{0}}) {
        Holding holding(wall(), day);
        holding.receive(10);
        holding.receive(7);
        EXPECT_EQ(holding.got(), 10u);
    }
}

TEST_F(LedgerRights, RightsOfADayAreNotThoseOfAnother) {
    Holding today(wall(), kToday);
    today.receive(10);
    EXPECT_TRUE(today.give(3));
    Holding later(wall(), kToday + 2);  // in the same words
    EXPECT_EQ(later.got(), 0u);
    later.receive(4);
    EXPECT_EQ(later.gave(), 0u);
    EXPECT_EQ(today.got(), 0u);
    EXPECT_FALSE(today.give(1));
}

TEST_F(LedgerRights, WhatWasBeingReturnedWhenAKeeperDiedIsStranded) {
    wall().rights.returning = DayCount::pack(kToday, 3);
    wall().lifetime_rights.returning = 2;
    Holding day(wall(), kToday);
    Holding ever(wall(), 0);
    day.strand();
    ever.strand();
    EXPECT_EQ(day.stranded(), 3u);
    EXPECT_EQ(ever.stranded(), 2u);
    day.strand();
    EXPECT_EQ(day.stranded(), 3u);
}

TEST_F(LedgerRights, NoReturnPassesWhatServesTakeAtTheSameTime) {
    Holding holding(wall(), kToday);
    holding.receive(20'000);
    std::atomic<uint64_t> served{0};
    std::thread worker([&] {
        while (wall().take(kToday, 1, Holding(wall(), kToday).got(), pacing::kUnlimited, kToday)) {
            served++;
        }
    });
    while (holding.idle() > 0) {
        holding.give(3);
        holding.give(1);
    }
    worker.join();
    EXPECT_EQ(served.load() + holding.gave(), 20'000u);
    EXPECT_EQ(holding.word(), 20'000u);
}

TEST_F(LedgerRights, ANodeIsUnsealedByTheAnswerToItsSwap) {
    begin_in_fleet(state_, {}, 88);
    EXPECT_EQ(fleet().mode, FleetMode::sealed);
    RightsClient keeper = client();
    RightsCall call;
    ASSERT_TRUE(keeper.prepare({}, 1000, call));
    EXPECT_EQ(stored_, 1);
    EXPECT_EQ(call.sequence, 0u);
    EXPECT_NE(call.next, 0u);
    fleet().clean = 1;
    keeper.receive(call, {});
    EXPECT_EQ(fleet().mode, FleetMode::open);
    EXPECT_EQ(fleet().instance, call.next);
    EXPECT_EQ(fleet().clean, 0u);
    EXPECT_EQ(stored_, 2);
}

TEST_F(LedgerRights, AnotherProcessNamesTheInstancesThatWereNotAnswered) {
    begin_in_fleet(state_, {}, 88);
    RightsClient first = client();
    RightsClient second = client();
    RightsCall lost, call;
    ASSERT_TRUE(first.prepare({}, 1000, lost));
    ASSERT_TRUE(second.prepare({}, 1000, call));
    EXPECT_EQ(call.known, (std::vector<uint64_t>{0, lost.next, call.next}));
    EXPECT_NE(call.next, lost.next);
    // The first one's call arrives after it, and is refused: it asks again with both.
    second.receive(call, {});
    first.receive(lost, {.admission = rights::Admission::refused});
    EXPECT_EQ(fleet().mode, FleetMode::open);
}

TEST_F(LedgerRights, ARefusalIsFinalOnlyIfTheCallNamedAllInstances) {
    begin_in_fleet(state_, {}, 88);
    RightsClient first = client();
    RightsClient second = client();
    RightsCall early, late;
    ASSERT_TRUE(first.prepare({}, 1000, early));
    ASSERT_TRUE(second.prepare({}, 1000, late));
    first.receive(early, {.admission = rights::Admission::refused});
    EXPECT_EQ(fleet().mode, FleetMode::sealed);
    ASSERT_TRUE(first.prepare({}, 2000, early));
    first.receive(early, {.admission = rights::Admission::refused});
    EXPECT_EQ(fleet().mode, FleetMode::fenced);
    EXPECT_FALSE(second.prepare({}, 3000, late));
}

TEST_F(LedgerRights, CallsCountUpAndOnlyTheLatestAnswerCounts) {
    fleet().mode = FleetMode::open;
    fleet().instance = 7;
    RightsClient keeper = client();
    const std::vector<OpenWall> walls{{.wall = {SlotKind::impressions, 5, kToday}, .slot = slot_}};
    RightsCall early, late;
    ASSERT_TRUE(keeper.prepare(walls, 1000, early));
    ASSERT_TRUE(keeper.prepare(walls, 2000, late));
    EXPECT_EQ(early.sequence, 1u);
    EXPECT_EQ(late.sequence, 2u);
    RightsAnswer answer;
    answer.grants.push_back({.wall = walls[0].wall, .got = 4});
    keeper.receive(early, answer);
    EXPECT_EQ(Holding(wall(), kToday).got(), 0u);
    keeper.receive(late, answer);
    EXPECT_EQ(Holding(wall(), kToday).got(), 4u);
}

TEST_F(LedgerRights, ANodeThatJoinsHasWhatItHasUsed) {
    EXPECT_TRUE(wall().take(kToday, 6, 10, pacing::kUnlimited, kToday));
    join_fleet(state_);
    EXPECT_EQ(fleet().mode, FleetMode::sealed);
    for (const Day day : {kToday, Day{0}}) {
        EXPECT_EQ(Holding(wall(), day).got(), 6u);
        EXPECT_EQ(Holding(wall(), day).idle(), 0u);
    }
    begin_in_fleet(state_, {}, 88);
    EXPECT_EQ(state_.head().node, 77u) << "it keeps its identity";
    EXPECT_EQ(Holding(wall(), kToday).got(), 6u);
}

TEST_F(LedgerRights, ANodeThatLeavesKeepsWhatItHasUsed) {
    fleet().mode = FleetMode::open;
    Holding holding(wall(), kToday);
    holding.receive(10);
    EXPECT_TRUE(wall().take(kToday, 6, holding.got(), pacing::kUnlimited, kToday));
    EXPECT_TRUE(holding.give(3));
    leave_fleet(state_);
    EXPECT_EQ(fleet().mode, FleetMode::none);
    EXPECT_EQ(wall().used.read(kToday), 6u);
    EXPECT_EQ(holding.got(), 0u);
}

TEST_F(LedgerRights, WithoutAnAnswerItGoesOnWithItsPart) {
    Holding holding(wall(), kToday);
    holding.receive(4);
    holding.note_part(3);
    const WallLimits limits{.day = 100};
    EXPECT_EQ(wall().with_rights(kToday, limits, pacing::kUnlimited, false).day, 4u);
    EXPECT_EQ(wall().with_rights(kToday, limits, pacing::kUnlimited, true).day, 7u);
    EXPECT_EQ(wall().with_rights(kToday, {.day = 5}, pacing::kUnlimited, true).day, 5u);
}

TEST_F(LedgerRights, WhatIsOverdueStaysTakenUntilItIsConfirmed) {
    const auto times = pacing::BucketTimes::of(kToday, 0, 15);
    const Millis width = times.width;
    const Millis later = 20 * width;  // in the bucket of 4 * width
    ASSERT_TRUE(wall().take(kToday, 2, 10, pacing::kUnlimited, kToday));
    ASSERT_TRUE(wall().reserve(times, 4 * width, 2, true));
    ASSERT_TRUE(wall().take(kToday, 1, 10, pacing::kUnlimited, kToday));
    ASSERT_TRUE(wall().reserve(times, later, 1, true));
    EXPECT_EQ(wall().used.read(kToday), 3u);
    EXPECT_EQ(wall().overdue.read(kToday), 2u);
    EXPECT_TRUE(wall().confirm(times, 4 * width, 1, 3, 3, kToday));
    EXPECT_EQ(wall().used.read(kToday), 3u) << "it was taken already";
    EXPECT_EQ(wall().confirmed.read(kToday), 1u);
    wall().free_overdue();
    EXPECT_EQ(wall().used.read(kToday), 2u);
    EXPECT_EQ(wall().overdue.read(kToday), 0u);
}

TEST_F(LedgerRights, AFailoverThatForgotVerdictsTakesTheCursorBack) {
    fleet().cursor = 9;
    EXPECT_FALSE(has_verdicts(state_, 9, 9));
    EXPECT_TRUE(has_verdicts(state_, 9, 10));
    EXPECT_TRUE(has_verdicts(state_, 9, {})) << "the protocol before does not tell";
    EXPECT_FALSE(has_verdicts(state_, 7, 8)) << "another keeper was faster";
    EXPECT_EQ(fleet().cursor, 9u);
    EXPECT_FALSE(has_verdicts(state_, 9, 6));
    EXPECT_EQ(fleet().cursor, 6u);
}

TEST_F(LedgerRights, ReservationsAreFreedSomeTimeAfterASilence) {
    FleetSilence silence(state_);
    silence.begin(1000);
    silence.before_call(4000, true);
    EXPECT_EQ(fleet().frozen, 0u);
    silence.before_call(6100, true);
    EXPECT_EQ(fleet().frozen, 1u);
    EXPECT_EQ(fleet().sharing, 1u);
    const auto call = [&](Millis at) {
        silence.before_call(at, true);
        silence.answered(at);
        silence.heard_all(at);
    };
    call(7000);
    EXPECT_EQ(fleet().sharing, 0u);
    for (Millis at = 8000; at < 17'000; at += 1000) {
        call(at);
    }
    EXPECT_EQ(fleet().frozen, 1u) << "others ship what they have";
    wall().overdue.count(kToday, 5);
    wall().used.count(kToday, 5, kToday);
    call(17'000);
    EXPECT_EQ(fleet().frozen, 0u);
    EXPECT_EQ(wall().used.read(kToday), 0u);
    wall().overdue.count(kToday, 2);  // of a worker that was in the middle
    wall().used.count(kToday, 2, kToday);
    call(18'000);
    EXPECT_EQ(wall().used.read(kToday), 0u);
}

class LedgerFleetStart : public LedgerRights {
protected:
    LedgerFleetStart() {
        fleet().mode = FleetMode::open;
        fleet().instance = 7;
        fleet().sequence = 30;
        fleet().clean = 1;
        Holding(wall(), kToday).receive(10);
        state_.head().node = 66;
    }
    bool is_renewed() {
        const bool renewed = state_.head().node == 88;
        EXPECT_EQ(Holding(wall(), kToday).got(), renewed ? 0u : 10u);
        EXPECT_EQ(fleet().instance, renewed ? 0u : 7u);
        return renewed;
    }
};

TEST_F(LedgerFleetStart, ARestartWithinTheBootGoesOn) {
    for (const uint64_t noted : {30u, 29u}) {  // noted after the state
        fleet().clean = 1;
        begin_in_fleet(state_, RunMark{7, noted}, 88);
        EXPECT_EQ(fleet().mode, FleetMode::open);
        EXPECT_EQ(fleet().clean, 0u) << "the caller makes it durable";
        EXPECT_FALSE(is_renewed());
    }
}

TEST_F(LedgerFleetStart, AnotherMarkThanTheStatesMeansANewId) {
    begin_in_fleet(state_, RunMark{7, 31}, 88);
    EXPECT_EQ(fleet().mode, FleetMode::sealed);
    EXPECT_TRUE(is_renewed());
}

TEST_F(LedgerFleetStart, ACleanStateIsSealedAndKeepsItsRights) {
    begin_in_fleet(state_, {}, 88);
    EXPECT_EQ(fleet().mode, FleetMode::sealed);
    EXPECT_FALSE(is_renewed());
}

TEST_F(LedgerFleetStart, AnUncleanOrFencedStateGetsANewId) {
    fleet().clean = 0;
    begin_in_fleet(state_, {}, 88);
    EXPECT_TRUE(is_renewed());
    state_.head().node = 66;
    fleet().mode = FleetMode::fenced;
    fleet().clean = 1;
    begin_in_fleet(state_, {}, 88);
    EXPECT_EQ(state_.head().node, 88u);
    EXPECT_EQ(fleet().mode, FleetMode::sealed);
}

// What it used meanwhile is in no register, and what it had returned is not in its state.
TEST_F(LedgerFleetStart, AStateThatHasLeftAFleetEntersItAsANewNode) {
    leave_fleet(state_);
    begin_in_fleet(state_, {}, 88);
    EXPECT_EQ(fleet().mode, FleetMode::sealed);
    EXPECT_TRUE(is_renewed());
}

}  // namespace
