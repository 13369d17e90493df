#include "core/pacing/strategies.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/rng.hpp"
#include "core/pacing/coin.hpp"

namespace {

using namespace ads;
using namespace ads::pacing;

TEST(PacingCoin, AProbabilityAsAThreshold) {
    EXPECT_EQ(threshold_of(0), kNever);
    EXPECT_EQ(threshold_of(-1), kNever);
    EXPECT_EQ(threshold_of(std::nan("")), kNever);
    EXPECT_EQ(threshold_of(1), kAlways);
    EXPECT_EQ(threshold_of(7), kAlways);
    EXPECT_EQ(threshold_of(0.5), uint64_t{1} << 63);
    EXPECT_EQ(threshold_of(0x1.0p-64), 1u);
    EXPECT_EQ(threshold_of(1e-300), 1u) << "only nothing is never";
    EXPECT_LT(threshold_of(std::nextafter(1.0, 0.0)), kAlways);
    EXPECT_FALSE(passes(0, kNever));
    EXPECT_TRUE(passes(0, 1));
    EXPECT_FALSE(passes(1, 1));
    EXPECT_TRUE(passes(~uint64_t{0}, kAlways)) << "certain is certain";
}

TEST(PacingCoin, TheSmallerCounts) {
    const Threshold half = threshold_of(0.5);
    EXPECT_EQ(combined(half, kAlways), half) << "no budget";
    EXPECT_EQ(combined(kAlways, half), half) << "no cap";
    EXPECT_EQ(combined(kAlways, kAlways), kAlways);
    EXPECT_EQ(combined(half, kNever), kNever);
    EXPECT_EQ(combined(threshold_of(0.2), half), threshold_of(0.2));
}

TEST(PacingCoin, FallsAsOftenAsItShould) {
    Rng rng(5);
    for (const double p : {0.001, 0.1, 0.5, 0.9}) {
        const Threshold threshold = threshold_of(p);
        const int tosses = 400'000;
        int passed = 0;
        for (int i = 0; i < tosses; i++) {
            passed += passes(rng.next(), threshold) ? 1 : 0;
        }
        EXPECT_NEAR(passed, tosses * p, 5 * std::sqrt(tosses * p * (1 - p))) << p;
    }
}

TEST(PacingStatus, Thresholds) {
    const std::pair<double, PaceStatus> rows[] = {
        {0, PaceStatus::under_pace},       {0.5, PaceStatus::under_pace},
        {0.8, PaceStatus::under_pace},     {0.800001, PaceStatus::on_pace},
        {1, PaceStatus::on_pace},          {1.2, PaceStatus::on_pace},
        {1.200001, PaceStatus::over_pace}, {2, PaceStatus::over_pace},
        {INFINITY, PaceStatus::over_pace},
    };
    for (const auto& [ratio, status] : rows) {
        EXPECT_EQ(pace_status(ratio), status) << ratio;
    }
    EXPECT_EQ(name_of(PaceStatus::under_pace), "under_pace");
    EXPECT_EQ(name_of(PaceStatus::on_pace), "on_pace");
    EXPECT_EQ(name_of(PaceStatus::over_pace), "over_pace");
}

TEST(PacingStatus, Utilization) {
    EXPECT_DOUBLE_EQ(utilization(1400, 1000, 1), 1.4);
    EXPECT_DOUBLE_EQ(utilization(700, 1000, 1), 0.7);
    EXPECT_DOUBLE_EQ(utilization(0, 0, 0), 0);
    EXPECT_TRUE(std::isinf(utilization(1, 0, 0)));
    // At midnight the ideal is 0: the first impression is no haste.
    EXPECT_DOUBLE_EQ(utilization(250'000, 0, 250'000), 1);
    EXPECT_DOUBLE_EQ(utilization(250'000, 10, 250'000), 1);
    EXPECT_DOUBLE_EQ(utilization(500'000, 10, 250'000), 2);
}

// The source's table: $50 a day, $10 due by now.
TEST(PacingProbabilistic, TheSourcesRatios) {
    struct Row {
        double spend;
        double probability;
        PaceStatus status;
    };
    const double ideal = 1000;
    const double stop = 5000 * 1.2;
    const Row rows[] = {
        {0, 1, PaceStatus::under_pace},
        {700, 1, PaceStatus::under_pace},
        {800, 1, PaceStatus::under_pace},
        {801, 1, PaceStatus::on_pace},
        {1000, 1, PaceStatus::on_pace},
        {1200, 1, PaceStatus::on_pace},
        {1201, 1000.0 / 1201, PaceStatus::over_pace},
        {1400, 1 / 1.4, PaceStatus::over_pace},
        {2000, 0.5, PaceStatus::over_pace},
        {3000, 1.0 / 3, PaceStatus::over_pace},
        {5999, 1000.0 / 5999, PaceStatus::over_pace},
        {6000, 0, PaceStatus::over_pace},
        {9000, 0, PaceStatus::over_pace},
    };
    for (const Row& row : rows) {
        const double ratio = utilization(row.spend, ideal, 1);
        EXPECT_DOUBLE_EQ(probabilistic(row.spend, ratio, stop), row.probability) << row.spend;
        EXPECT_EQ(pace_status(ratio), row.status) << row.spend;
    }
}

TEST(PacingAsap, ServesBelowTheCap) {
    EXPECT_EQ(asap(0, 7), 1);
    EXPECT_EQ(asap(6, 7), 1);
    EXPECT_EQ(asap(7, 7), 0);
    EXPECT_EQ(asap(8, 7), 0);
    EXPECT_EQ(asap(0, 0), 0);
}

TEST(PacingEven, TheCapGrowsWithTheDay) {
    EXPECT_DOUBLE_EQ(even_limit(1000, 0, 86'400), 0);
    EXPECT_DOUBLE_EQ(even_limit(1000, 43'200, 86'400), 500);
    EXPECT_DOUBLE_EQ(even_limit(1000, 86'400, 86'400), 1000);
    EXPECT_DOUBLE_EQ(even_limit(1000, 90'000, 86'400), 1000);
    EXPECT_DOUBLE_EQ(even_limit(1000, 0, 0), 0) << "never open today";
}

// Correction: whole hours release an hour's budget at once; here every second
// releases its own part.
TEST(PacingEven, TimeIsContinuous) {
    double last = 0;
    for (int second = 1; second <= 7200; second++) {
        const double now = even_limit(86'400, second, 86'400);
        EXPECT_NEAR(now - last, 1, 1e-9) << second;
        last = now;
    }
}

TEST(PacingPid, Gains) {
    EXPECT_EQ(Pid::kp, 0.6);
    EXPECT_EQ(Pid::ki, 0.2);
    EXPECT_EQ(Pid::kd, 0.2);
    struct Row {
        double used;
        double target;
        double first;  // P alone: there is no slope yet, and no time
    };
    const Row rows[] = {
        {0, 100, 0.6},    {50, 100, 0.3}, {100, 100, 0}, {150, 100, 0},  // below zero
        {0, 0, 0.6},  // a target below one counts as one
        {0.5, 0.25, 0.3},
    };
    for (const Row& row : rows) {
        Pid pid;
        EXPECT_DOUBLE_EQ(pid.step(row.used, row.target, 1), row.first) << row.used;
    }
    // e 0.5, then 0.4 a second later: 0.6 · 0.4 + 0.2 · 0.4/60 + 0.2 · 60 · -0.1 < 0
    Pid pid;
    EXPECT_DOUBLE_EQ(pid.step(50, 100, 1), 0.3);
    EXPECT_DOUBLE_EQ(pid.step(60, 100, 1), 0);
    EXPECT_DOUBLE_EQ(pid.integral, 0.4 / 60);
    // e 0.4 again: no slope.
    EXPECT_DOUBLE_EQ(pid.step(60, 100, 1), 0.24 + 0.2 * (0.8 / 60));
    // e 0.402: the slope of 0.002 a second counts 0.024.
    EXPECT_DOUBLE_EQ(pid.step(59.8, 100, 1), 0.6 * 0.402 + 0.2 * (1.202 / 60) + 0.2 * 60 * 0.002);
}

TEST(PacingPid, TheIntegralStaysBetweenZeroAndFive) {
    Pid pid;
    for (int i = 0; i < 10'000; i++) {
        pid.step(0, 100, 1);
        ASSERT_LE(pid.integral, 5);
    }
    EXPECT_DOUBLE_EQ(pid.integral, 5);
    EXPECT_DOUBLE_EQ(pid.step(0, 100, 1), 1);
    for (int i = 0; i < 10'000; i++) {
        EXPECT_GE(pid.step(500, 100, 1), 0);
        ASSERT_GE(pid.integral, 0);
    }
    EXPECT_DOUBLE_EQ(pid.integral, 0);
}

// Correction: per unit of time, not per request. The same minute in steps of a
// second, or of a quarter of one, comes to the same.
TEST(PacingPid, HowOftenItIsAskedDoesNotMatter) {
    const auto minute = [](int steps) {
        Pid pid;
        double p = pid.step(40, 100, 1);
        for (int i = 1; i <= steps; i++) {
            const double done = static_cast<double>(i) / steps;
            p = pid.step(40 + 5 * done, 100 + 20 * done, 60.0 / steps);
        }
        return std::pair(p, pid.integral);
    };
    const auto [p, integral] = minute(60);
    for (const int steps : {240, 6000}) {
        EXPECT_NEAR(minute(steps).first, p, 0.01);
        EXPECT_NEAR(minute(steps).second, integral, 0.01);
    }
    // And many requests in no time change nothing.
    Pid pid;
    pid.step(50, 100, 1);
    const double before = pid.integral;
    for (int i = 0; i < 1000; i++) {
        EXPECT_DOUBLE_EQ(pid.step(50, 100, 0), 0.6 * 0.5 + 0.2 * before);
    }
    EXPECT_DOUBLE_EQ(pid.integral, before);
}

}  // namespace
