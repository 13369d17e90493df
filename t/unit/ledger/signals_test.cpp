#include "ledger/fleet/signals.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ads;

const FleetWall kLimit{SlotKind::impressions, 10, 320};

SignalCounts counts(uint64_t tosses, uint64_t used) {
    SignalCounts of;
    of[Signal::tosses] = tosses;
    of[Signal::used] = used;
    return of;
}

// A node that has tossed as often as the second says.
class LedgerSignals : public ::testing::Test {
protected:
    void round(Millis now, const SignalCounts& own) {
        signals.begin(now);
        signals.note(kLimit, own);
    }
    void answer(Millis now, const SignalCounts& own, const SignalCounts& all) {
        const Signals::Total total{kLimit, own, all};
        signals.receive({&total, 1}, now);
    }
    // One second, in which the others have so much.
    void second(Millis now, uint64_t own, uint64_t others) {
        round(now, counts(own, own));
        ASSERT_EQ(signals.take().size(), 1u);
        answer(now, counts(own, own), counts(own + others, own + others));
    }

    Signals signals;
};

TEST_F(LedgerSignals, AddsWhatOthersHaveUsedSinceItWasRead) {
    round(1000, counts(10, 10));
    EXPECT_FALSE(signals.fleet(kLimit, counts(10, 10)));
    second(1000, 10, 100);
    EXPECT_FALSE(signals.fleet(kLimit, counts(10, 10))) << "one answer has no rate";
    second(2000, 20, 140);
    signals.begin(3000);
    const auto fleet = signals.fleet(kLimit, counts(30, 30));
    ASSERT_TRUE(fleet);
    // 140, and 40 a second for the second since, and for the half that it was old.
    EXPECT_EQ(fleet->all[Signal::used], 30 + 140 + 60u);
    EXPECT_EQ(fleet->all[Signal::tosses], 30 + 140 + 60u);
    EXPECT_DOUBLE_EQ(fleet->part, 0.2);
}

TEST_F(LedgerSignals, KeepsWhatRedisHasLost) {
    second(1000, 10, 100);
    second(2000, 10, 100);
    second(3000, 10, 0);
    EXPECT_EQ(signals.fleet(kLimit, counts(10, 10))->all[Signal::used], 110u);
}

TEST_F(LedgerSignals, TakesNoReturningNodeForTraffic) {
    Millis now = 1000;
    uint64_t others = 1000;
    for (; now <= 20'000; now += 1000) {
        second(now, static_cast<uint64_t>(now / 100), others += 10);
    }
    const auto before = signals.fleet(kLimit, counts(200, 200));
    // It was cut off for an hour.
    second(now, 210, others += 36'000);
    const auto after = signals.fleet(kLimit, counts(210, 210));
    EXPECT_GE(after->all[Signal::used], before->all[Signal::used] + 36'000) << "it was used";
    EXPECT_LE(after->all[Signal::tosses], before->all[Signal::tosses] + 300);
}

TEST_F(LedgerSignals, KnowsNobodyWithoutAnAnswer) {
    second(1000, 10, 100);
    second(2000, 20, 140);
    round(3000, counts(30, 30));
    EXPECT_EQ(signals.take().size(), 1u);
    round(4000, counts(40, 40));
    EXPECT_TRUE(signals.take().empty()) << "one batch at a time";
    EXPECT_TRUE(signals.fleet(kLimit, counts(40, 40)));
    signals.begin(9000);
    EXPECT_FALSE(signals.fleet(kLimit, counts(40, 40)));
    answer(9000, counts(30, 30), counts(200, 200));
    EXPECT_TRUE(signals.fleet(kLimit, counts(40, 40)));
    signals.lost();
    EXPECT_FALSE(signals.fleet(kLimit, counts(40, 40)));
}

}  // namespace
