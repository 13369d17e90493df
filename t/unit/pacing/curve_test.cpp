#include "core/pacing/curve.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/pacing/rate.hpp"

namespace {

using namespace ads::pacing;

constexpr double kMidnight = 1'794'787'200;  // 2026-11-16T00:00:00Z

// A placement whose requests come as `rate` says, ticked each second.
struct Placement {
    Curve curve;
    double requests = 0;
    double now = kMidnight;
    int closed = 0;

    template <class Rate>
    void run(double seconds, Rate rate) {
        for (const double end = now + seconds; now < end; now++) {
            closed += curve.tick(now, static_cast<uint64_t>(requests)) ? 1 : 0;
            requests += rate(std::fmod(now, kDaySeconds));
        }
    }
};

double diurnal(double second) {
    return 10 * std::exp(std::cos(2 * M_PI * (second / kDaySeconds - 20.0 / 24)));
}

TEST(PacingCurve, ABinIsClosedEveryFiveMinutes) {
    Placement p;
    p.run(300, [](double) { return 2.0; });
    EXPECT_EQ(p.closed, 0);
    p.run(1, [](double) { return 2.0; });
    EXPECT_EQ(p.closed, 1);
    EXPECT_EQ(p.curve.known_bins(), 1u);
    EXPECT_NEAR(p.curve.bins[0], 600, 2.1);
    p.run(600, [](double) { return 4.0; });
    EXPECT_EQ(p.closed, 3);
    EXPECT_NEAR(p.curve.bins[1], 1200, 4.1);
    EXPECT_NEAR(p.curve.bins[2], 1200, 4.1);
    EXPECT_FALSE(p.curve.warm());
}

TEST(PacingCurve, TheNewestDayCountsThreeTenths) {
    Placement p;
    const auto all_day = [&](double rate) { p.run(kDaySeconds, [=](double) { return rate; }); };
    all_day(1);
    EXPECT_NEAR(p.curve.bins[100], 300, 1) << "the first day is all there is";
    all_day(2);
    EXPECT_NEAR(p.curve.bins[100], 0.7 * 300 + 0.3 * 600, 1);
    all_day(0);
    EXPECT_NEAR(p.curve.bins[100], 0.7 * 390, 1);
    EXPECT_TRUE(p.curve.warm());
}

// A burst of one day is no traffic to be expected on the next.
TEST(PacingCurve, ABurstCountsTwiceAtMost) {
    Placement p;
    p.run(kDaySeconds, [](double) { return 1.0; });
    p.run(kDaySeconds, [](double second) { return second < 600 ? 8.0 : 1.0; });
    EXPECT_NEAR(p.curve.bins[0], 0.7 * 300 + 0.3 * 600, 2);
    EXPECT_NEAR(p.curve.bins[100], 300, 1);
    // What had no traffic at all is not held down for long.
    Placement q;
    q.run(kDaySeconds, [](double second) { return second < 3600 ? 0.0 : 1.0; });
    EXPECT_NEAR(q.curve.bins[5], 0, 1);
    q.run(kDaySeconds, [](double) { return 1.0; });
    EXPECT_NEAR(q.curve.bins[5], 90, 1);
}

TEST(PacingCurve, SmoothedOverThreeBinsWithAFloor) {
    Curve curve;
    curve.known.fill(~uint64_t{0});
    curve.known[4] = 0xffff'ffff;
    curve.bins[10] = 288;  // the mean is 1, the floor 0.002
    const CurveSums sums(curve);
    ASSERT_TRUE(sums.warm());
    const auto bin = [&](int i) {
        return sums.mass(kMidnight + i * kBinSeconds, kMidnight + (i + 1) * kBinSeconds);
    };
    for (const int i : {9, 10, 11}) {
        EXPECT_NEAR(bin(i), 96, 1e-4) << i;
    }
    for (const int i : {0, 8, 12, 287}) {
        EXPECT_NEAR(bin(i), 0.002, 1e-5) << i;
    }
    // Midnight has neighbours, too.
    Curve late;
    late.known = curve.known;
    late.bins[287] = 288;
    const CurveSums across(late);
    EXPECT_NEAR(across.mass(kMidnight, kMidnight + kBinSeconds), 96, 1e-4);
    EXPECT_NEAR(across.mass(kMidnight - 2 * kBinSeconds, kMidnight + kBinSeconds), 288, 1e-4);
}

TEST(PacingCurve, TheMassOfAnyTime) {
    Placement p;
    p.run(2 * kDaySeconds, diurnal);
    const CurveSums sums(p.curve);
    ASSERT_TRUE(sums.warm());
    double whole = 0;
    for (int s = 0; s < kDaySeconds; s++) {
        whole += diurnal(s);
    }
    for (const double from : {kMidnight, kMidnight + 12'345.5, kMidnight + 17 * kDaySeconds - 7}) {
        EXPECT_NEAR(sums.mass(from, from + kDaySeconds), whole, whole * 1e-3);
        EXPECT_NEAR(sums.mass(from, from + 10 * kDaySeconds), 10 * whole, 10 * whole * 1e-3);
        for (const double hours : {1, 5, 13}) {
            double expected = 0;
            for (int s = 0; s < hours * 3600; s++) {
                expected += diurnal(std::fmod(from + s, kDaySeconds));
            }
            EXPECT_NEAR(sums.mass(from, from + hours * 3600), expected, whole * 1e-3);
            EXPECT_NEAR(sums.mass(from, from + hours * 1800) +
                            sums.mass(from + hours * 1800, from + hours * 3600),
                        sums.mass(from, from + hours * 3600), 1e-3);
        }
    }
}

// nginx was down, not the traffic: nothing is learned from that.
TEST(PacingCurve, WhatWasNotWatchedIsNotLearned) {
    Placement p;
    p.run(kDaySeconds, [](double) { return 1.0; });
    p.run(1000, [](double) { return 1.0; });
    p.now += 1800;  // from 00:16:40 to 00:46:40
    p.run(kDaySeconds - 2800, [](double) { return 1.0; });
    for (size_t bin = 0; bin < kBins - 1; bin++) {
        EXPECT_NEAR(p.curve.bins[bin], 300, 2) << bin;
    }
    // A restart of some seconds does not matter.
    p.run(100, [](double) { return 1.0; });
    p.now += 20;
    p.requests += 20;
    p.run(300, [](double) { return 1.0; });
    EXPECT_NEAR(p.curve.bins[0], 300, 2);
    // Neither does a clock that goes back, or a counter that starts again.
    p.now -= 3600;
    p.run(2000, [](double) { return 1.0; });
    p.requests = 0;
    p.run(2000, [](double) { return 1.0; });
    for (size_t bin = 0; bin < kBins - 1; bin++) {
        EXPECT_NEAR(p.curve.bins[bin], 300, 5) << bin;
    }
}

TEST(PacingCurve, WarmFromNineteenTwentiethsOfADay) {
    Placement p;
    p.run(273 * kBinSeconds + 1, [](double) { return 1.0; });
    EXPECT_FALSE(p.curve.warm());
    EXPECT_FALSE(CurveSums(p.curve).warm());
    p.run(kBinSeconds, [](double) { return 1.0; });
    const CurveSums sums(p.curve);
    EXPECT_TRUE(sums.warm());
    EXPECT_NEAR(sums.mass(kMidnight + 283 * kBinSeconds, kMidnight + 284 * kBinSeconds), 300, 1)
        << "a bin that is not known is like the others";
}

TEST(PacingCurve, WithoutRequestsThereIsNone) {
    Placement p;
    p.run(kDaySeconds + 10, [](double) { return 0.0; });
    EXPECT_EQ(p.curve.known_bins(), kBins);
    EXPECT_FALSE(CurveSums(p.curve).warm());
    EXPECT_FALSE(CurveSums().warm());
}

TEST(PacingRate, HalfLives) {
    Rate rate;
    EXPECT_EQ(rate.value(), 0);
    rate.add(100, 2);
    EXPECT_DOUBLE_EQ(rate.value(), 50) << "the first is all that is known";
    rate.add(0, 3);
    EXPECT_DOUBLE_EQ(rate.fast, 25);
    EXPECT_NEAR(rate.slow, 50 * std::exp2(-0.05), 1e-9);
    EXPECT_DOUBLE_EQ(rate.value(), rate.slow);
    rate.add(0, 57);
    EXPECT_NEAR(rate.slow, 25, 1e-9);
    EXPECT_NEAR(rate.fast, 25 * std::exp2(-19), 1e-9);
    rate.add(1000, 1);
    EXPECT_GT(rate.value(), 200) << "a burst is seen at once";
    EXPECT_DOUBLE_EQ(rate.value(), rate.fast);
    const double before = rate.value();
    rate.add(1000, 0);
    rate.add(1000, -5);
    EXPECT_DOUBLE_EQ(rate.value(), before) << "no time, no rate";
}

TEST(PacingRate, ASilenceAndItsEnd) {
    Rate busy;
    busy.add(50, 1);
    Rate rate = busy;
    rate.tick(0, 100, 1);
    EXPECT_DOUBLE_EQ(rate.value(), 50) << "nothing says nothing";
    rate.tick(1, 100, 1);
    EXPECT_LT(rate.fast, 0.02) << "one in a hundred seconds";
    EXPECT_NEAR(rate.slow, 0.01 + 49.99 * std::exp2(-100.0 / 60), 1e-9);
    rate = busy;
    rate.tick(30, 2700, 1);
    EXPECT_DOUBLE_EQ(rate.fast, 30) << "thirty in a second: they are back";
    EXPECT_NEAR(rate.slow, 50, 0.5);
    rate = busy;
    rate.tick(30, 3, 1);
    EXPECT_DOUBLE_EQ(rate.fast, 30) << "three seconds are no silence: 50 and 10, half each";
}

TEST(PacingRate, StepsDoNotMatter) {
    Rate second;
    Rate quarter;
    for (int i = 0; i < 100; i++) {
        second.add(20, 1);
    }
    for (int i = 0; i < 400; i++) {
        quarter.add(5, 0.25);
    }
    EXPECT_NEAR(second.value(), 20, 1e-9);
    EXPECT_NEAR(quarter.value(), 20, 1e-9);
    for (int i = 0; i < 5; i++) {
        second.add(0, 1);
    }
    quarter.add(0, 5);
    EXPECT_NEAR(second.fast, quarter.fast, 1e-9);
    EXPECT_NEAR(second.slow, quarter.slow, 1e-9);
}

}  // namespace
