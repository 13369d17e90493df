// The pacer in shared memory.
#include <cmath>

#include "pacing_fixture.hpp"

namespace {

using namespace pacing_test;
using pacing::kUnlimited;

using LedgerPacer = PacingFixture;

TEST_F(LedgerPacer, TheFirstRoundComesBeforeTheFirstRequest) {
    load({{R"({"strategy": "asap", "daily_impression_cap": 3})"},
          {R"({"strategy": "adaptive", "daily_impression_cap": 100000})"},
          {R"({"strategy": "even", "daily_impression_cap": 1000})"},
          {""}});
    EXPECT_EQ(pace(0).threshold, pacing::kAlways);
    EXPECT_GT(pace(1).threshold, pacing::kNever);
    EXPECT_LT(pace(1).threshold, pacing::kAlways);
    EXPECT_EQ(pace(2).allowed_on(320, Strategy::even), 500u) << "noon";
    EXPECT_EQ(pace(2).allowed_on(321, Strategy::even), 0u) << "a new day begins with nothing";
    EXPECT_EQ(pace(1).allowed_on(321, Strategy::adaptive), kUnlimited);
    EXPECT_EQ(groups_[3].impressions_pace, kNone);
}

// A catalog of the afternoon is behind from the start, but not for want of traffic:
// it catches up at twice the rate, and does not pour everything out.
TEST_F(LedgerPacer, ACatalogOfTheAfternoonCatchesUpSmoothly) {
    load({{R"({"daily_impression_cap": 86400})"}});
    Rng rng(5);
    uint64_t served = 0;
    for (Seconds second = kNoon; second < kNoon + 3600; second++) {
        tick(second * 1000);
        served += ask(second, 100, rng);
    }
    EXPECT_GT(served, 1.9 * 2 * 3600);
    EXPECT_LT(served, 2.3 * 2 * 3600);
}

TEST_F(LedgerPacer, UsedUpUntilMidnight) {
    load({{R"({"strategy": "asap", "daily_impression_cap": 3})"}}, "", "America/New_York");
    for (int i = 0; i < 3; i++) {
        EXPECT_TRUE(serve(kNow));
    }
    tick(kNow + 1000);
    EXPECT_TRUE(pace().exhausted);
    EXPECT_EQ(pace().threshold, pacing::kNever);
    tick((kNoon + 17 * 3600 - 1) * 1000);  // 23:59:59 there
    EXPECT_TRUE(pace().exhausted);
    tick((kNoon + 17 * 3600) * 1000);
    state_.mark_tossed(groups_[0].counters);
    tick((kNoon + 17 * 3600 + 1) * 1000);
    EXPECT_FALSE(pace().exhausted);
    EXPECT_EQ(pace().threshold, pacing::kAlways);
}

TEST_F(LedgerPacer, OnlyTheTossedAreLookedAtEachSecond) {
    load({{R"({"strategy": "even", "daily_impression_cap": 86400})"},
          {R"({"strategy": "even", "daily_impression_cap": 86400})"}});
    state_.mark_tossed(groups_[1].counters);
    tick(kNow + 1'000);
    EXPECT_EQ(pace(0).allowed_on(320, Strategy::even), 43'200u);
    EXPECT_EQ(pace(1).allowed_on(320, Strategy::even), 43'201u);
    for (Seconds s = 2; s <= 61; s++) {
        tick(kNow + s * 1000);
    }
    EXPECT_GT(pace(0).allowed_on(320, Strategy::even), 43'201u) << "within a minute each is";
    tick(kNow + 3600'000);
    EXPECT_EQ(pace(0).allowed_on(320, Strategy::even), 46'800u) << "all are after a leap";
}

// A whole day of requests, each second a tick: what the simulator shows of the core
// holds for the walls in shared memory, too.
TEST_F(LedgerPacer, ADayIsDeliveredAndNotPassed) {
    constexpr uint64_t kCap = 20'000;
    const Seconds midnight = kNoon - 43'200;
    load({{R"({"daily_impression_cap": 20000})"}}, "", "UTC", midnight);
    Rng rng(3);
    uint64_t served = 0;
    uint64_t at_noon = 0;
    for (Seconds second = midnight; second < midnight + 86'400; second++) {
        tick(second * 1000);
        served += ask(second, 2, rng);
        at_noon = second == kNoon ? served : at_noon;
    }
    EXPECT_LE(served, kCap);
    EXPECT_GE(served, kCap * 999 / 1000);
    EXPECT_NEAR(static_cast<double>(at_noon), kCap / 2.0, kCap * 0.01);
}

// Nobody ticks while the keeper is stopped, or waits to be started again: each limit lets through
// the same part of its requests as before. A minute of that with eight times the traffic is less
// than 0.6 % of a day's cap, and is made up for.
TEST_F(LedgerPacer, WithoutTicksTheSamePartIsServed) {
    constexpr double kCap = 86'400;  // one a second
    const Seconds midnight = kNoon - 43'200;
    load({{R"({"daily_impression_cap": 86400})"}}, "", "UTC", midnight);
    Rng rng(7);
    uint64_t served = 0;
    const auto run = [&](Seconds from, Seconds to, int requests, bool ticks) {
        for (Seconds second = from; second < to; second++) {
            if (ticks) {
                tick(second * 1000);
            }
            served += ask(second, requests, rng);
        }
    };
    const Seconds silent = midnight + 2 * 3600;
    run(midnight, silent, 10, true);
    const double p = pace().probability;
    EXPECT_NEAR(p, 0.1, 0.02);
    const uint64_t before = served;
    run(silent, silent + 60, 80, false);
    const double expected = p * 80 * 60;
    EXPECT_NEAR(static_cast<double>(served - before), expected, 5 * std::sqrt(expected));
    EXPECT_LT(static_cast<double>(served - before), 60 + 0.006 * kCap);
    run(silent + 60, silent + 900, 10, true);
    EXPECT_NEAR(static_cast<double>(served), pace().ideal, 0.001 * kCap);
}

// Nor does anything change between two ticks. Where traffic is so thin that all of it is served, a
// burst is taken whole until the next tick; after that nothing is served until it is due again.
TEST_F(LedgerPacer, ABurstIsHeldBackFromTheNextTickOn) {
    const Seconds midnight = kNoon - 43'200;
    load({{R"({"daily_impression_cap": 86400})"}}, "", "UTC", midnight);
    Rng rng(9);
    Seconds second = midnight;
    for (; second < midnight + 1800; second++) {
        tick(second * 1000);
        ask(second, second % 20 == 0 ? 1 : 0, rng);
    }
    EXPECT_EQ(pace().threshold, pacing::kAlways);
    EXPECT_EQ(ask(second, 5000, rng), 5000u) << "1.4 hours' worth";
    uint64_t after = 0;
    for (const Seconds end = second + 1800; second < end;) {
        tick(++second * 1000);
        after += ask(second, 100, rng);
    }
    EXPECT_EQ(after, 0u);
    for (const Seconds end = midnight + 3 * 3600; second < end;) {
        tick(++second * 1000);
        after += ask(second, 100, rng);
    }
    EXPECT_NEAR(static_cast<double>(after + 5090), pace().ideal, 0.001 * 86'400);
}

}  // namespace
