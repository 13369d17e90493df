// The signs of delivery: what they say, and that an alarm neither fails nor flaps;
// and the totals of traffic.
#include "ledger/health.hpp"

#include <gtest/gtest.h>

#include "ledger/traffic.hpp"

namespace {

using namespace ads;

constexpr Seconds kNoon = 1'795'003'200;  // 2026-11-18 12:00 UTC

struct Delivery {
    Health health;
    HealthStates states{};
    Seconds now = kNoon;

    HealthSign at(Sign sign) const { return health.report(now, states)[static_cast<size_t>(sign)]; }
    HealthSign ratio() const { return at(Sign::serves_per_impression); }
    void impressions(int n, Millis delay = 1500) {
        for (int i = 0; i < n; i++) {
            health.seen(now, delay);
        }
    }
    // So many seconds go by, each judged.
    void pass(Seconds seconds) {
        for (Seconds i = 0; i < seconds; i++) {
            now++;
            health.judge(now, states);
        }
    }
};

TEST(LedgerHealth, SignsNeedEnoughAndTellWhatIsWrong) {
    Delivery d;
    EXPECT_EQ(d.ratio().state, HealthState::unknown);
    d.health.served(d.now, 1100);
    d.impressions(600);
    d.impressions(400, 50'000);
    d.pass(1);
    EXPECT_NEAR(d.ratio().value, 1.1, 1e-9);
    EXPECT_EQ(d.ratio().state, HealthState::ok);
    EXPECT_EQ(d.at(Sign::pixel_delay).value, 2);
    d.now = kNoon + 3600;
    EXPECT_EQ(d.ratio().state, HealthState::ok);
    d.now = kNoon + 7200;
    EXPECT_EQ(d.ratio().state, HealthState::unknown) << "long ago";
    d.now = kNoon + 2;
    d.health.served(d.now, 400);
    d.pass(61);
    EXPECT_EQ(d.ratio().state, HealthState::alert);
}

TEST(LedgerHealth, ALimitThatIsExceededAlarmsAtOnce) {
    Delivery d;
    EXPECT_EQ(d.at(Sign::limits).state, HealthState::ok);
    d.health.passed = 1;
    EXPECT_EQ(d.at(Sign::limits).state, HealthState::alert);
    d.pass(1);
    d.health.passed = 0;
    EXPECT_EQ(d.at(Sign::limits).state, HealthState::ok);
}

TEST(LedgerHealth, ServesWithoutAnyImpressionAlarm) {
    Delivery d;
    d.health.served(d.now, 300);
    d.pass(1);
    EXPECT_EQ(d.ratio().value, 300);
    d.pass(60);
    EXPECT_EQ(d.ratio().state, HealthState::alert);
}

// The first pixels come seconds after the first serves.
TEST(LedgerHealth, AStartIsNoAlarm) {
    Delivery d;
    for (int second = 0; second < 300; second++) {
        d.health.served(d.now, 1500);
        d.impressions(second < 20 ? 0 : 1400);
        d.pass(1);
        ASSERT_LE(d.ratio().state, HealthState::ok) << second;
        if (second == 20) {
            d.impressions(20 * 1400);
        }
    }
}

TEST(LedgerHealth, AValueAroundAThresholdDoesNotFlap) {
    Delivery d;
    d.health.served(d.now, 12'050);
    d.impressions(10'000);
    d.pass(61);
    ASSERT_EQ(d.ratio().state, HealthState::alert) << d.ratio().value;
    // Between 1.18 and 1.2 it goes on, for however long.
    d.impressions(100);
    d.pass(600);
    EXPECT_LT(d.ratio().value, 1.2);
    EXPECT_EQ(d.ratio().state, HealthState::alert);
    // Below that it ends, a minute later.
    d.impressions(200);
    d.pass(59);
    EXPECT_LT(d.ratio().value, 1.18);
    EXPECT_EQ(d.ratio().state, HealthState::alert);
    d.pass(2);
    EXPECT_EQ(d.ratio().state, HealthState::warning);
    // A moment over the threshold does not bring it back.
    for (int i = 0; i < 10; i++) {
        d.health.served(d.now, 500);
        d.pass(30);
        EXPECT_GT(d.ratio().value, 1.2);
        d.impressions(416);
        d.pass(30);
        EXPECT_LT(d.ratio().value, 1.2);
        EXPECT_EQ(d.ratio().state, HealthState::warning);
    }
}

TEST(LedgerHealth, AClockThatGoesBackStartsTheMinuteAgain) {
    Delivery d;
    d.now += 600;  // within the hour
    d.health.served(d.now, 300);
    d.pass(30);
    d.now -= 40;
    d.pass(1);
    d.pass(58);
    EXPECT_EQ(d.ratio().state, HealthState::ok);
    d.pass(3);
    EXPECT_EQ(d.ratio().state, HealthState::alert);
}

TEST(LedgerTraffic, WhatIsCountedIsAddedOnce) {
    SharedTraffic totals{};
    Traffic mine;
    mine.request(3);
    mine.unfilled(Unfilled::pacing);
    mine.refused(Reason::cap, 64);
    mine.spent(250);
    mine.decided(2'500);
    mine.decided(2'501);
    mine.decided(1'000'000'000);
    mine.add_to(totals);
    mine.add_to(totals);
    const auto at = [&](size_t word) { return totals[word].load(); };
    EXPECT_EQ(at(traffic::kRequests), 1U);
    EXPECT_EQ(at(traffic::kPlacements), 3U);
    EXPECT_EQ(at(traffic::kUnfilled + static_cast<size_t>(Unfilled::pacing)), 1U);
    EXPECT_EQ(at(traffic::kRefusals + refusal_index(Reason::cap)), 64U);
    EXPECT_EQ(at(traffic::kSpend), 250U);
    EXPECT_EQ(at(traffic::kDecisions), 1U) << "a bound belongs to its bucket";
    EXPECT_EQ(at(traffic::kDecisions + 1), 1U);
    EXPECT_EQ(at(traffic::kDecisions + kDecisionBounds.size()), 1U);
    EXPECT_EQ(at(traffic::kDecisionTime), 1'000'005'001U);
    int sampled = 0;
    for (int i = 0; i < 640; i++) {
        sampled += mine.samples();
    }
    EXPECT_EQ(sampled, 10);
}

}  // namespace
