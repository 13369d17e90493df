#include "core/pacing/week.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace {

using namespace ads::pacing;

constexpr double kMonday = 1'794'787'200;  // 2026-11-16T00:00:00Z

// Saturday and Sunday, UTC, at 40 %; nights at a fifth of the days.
double usual(double moment) {
    const double days = std::floor(moment / kDaySeconds);
    const double weekday = std::fmod(days + 3, 7);  // 0: Monday
    const double hour = std::fmod(moment, kDaySeconds) / kHourSeconds;
    return (weekday >= 5 ? 40 : 100) * (hour < 6 ? 0.2 : 1);
}

struct Placement {
    Curve curve;
    Week week;
    double requests = 0;
    double now = kMonday;
    int learned = 0;

    // Ticks each minute up to a moment.
    template <class Rate>
    void run(double until, Rate rate) {
        for (; now < until; now += 60) {
            if (const auto bin = curve.tick(now, static_cast<uint64_t>(requests))) {
                learned += week.add(*bin) ? 1 : 0;
            }
            requests += 60 * rate(now);
        }
    }
    void run(double until) { run(until, usual); }
};

TEST(PacingWeek, TheFirstHourIsThursdayMidnight) {
    EXPECT_EQ(week_hour(0), 0u);
    EXPECT_EQ(week_hour(3599.9), 0u);
    EXPECT_EQ(week_hour(kMonday), 4u * 24);
    EXPECT_EQ(week_hour(kMonday + 3 * kDaySeconds - 1), 167u);
    EXPECT_EQ(week_hour(kMonday + 3 * kDaySeconds), 0u);
    EXPECT_EQ(week_hour(-1), 167u);
}

TEST(PacingWeek, AnHourIsLearnedWhenItsLastBinIsClosed) {
    Placement p;
    p.run(kMonday + kHourSeconds);
    EXPECT_EQ(p.learned, 0);
    p.run(kMonday + kHourSeconds + 60);
    EXPECT_EQ(p.learned, 1);
    EXPECT_EQ(p.week.weeks[4 * 24], 1);
    EXPECT_NEAR(p.week.hours[4 * 24], 20 * 3600, 1);
    EXPECT_EQ(p.week.weeks[4 * 24 + 1], 0);
}

TEST(PacingWeek, WarmAfterTwoWeeks) {
    Placement p;
    p.run(kMonday + kWeekSeconds + 60);
    EXPECT_EQ(p.learned, 168);
    EXPECT_FALSE(p.week.warm()) << "one week";
    p.run(kMonday + 2 * kWeekSeconds - 9 * kHourSeconds + 60);
    EXPECT_FALSE(p.week.warm());
    EXPECT_FALSE(WeekSums(p.week).warm());
    p.run(kMonday + 2 * kWeekSeconds - 8 * kHourSeconds + 60);
    EXPECT_TRUE(p.week.warm()) << "160 of 168 hours";
    EXPECT_TRUE(WeekSums(p.week).warm());
}

TEST(PacingWeek, DaysComparedByTheirTraffic) {
    Placement p;
    p.run(kMonday + 2 * kWeekSeconds + 60);
    const WeekSums sums(p.week);
    const double day = kDaySeconds;
    const double friday = sums.mass(kMonday + 4 * day, kMonday + 5 * day);
    const double saturday = sums.mass(kMonday + 5 * day, kMonday + 6 * day);
    EXPECT_NEAR(saturday / friday, 0.4, 1e-6);
    // Of any week, and of parts of hours.
    const double far = kMonday + 100 * kWeekSeconds;
    EXPECT_NEAR(sums.mass(far + 4 * day, far + 5 * day), friday, 1e-3);
    EXPECT_NEAR(sums.mass(far, far + 2 * kWeekSeconds), 2 * (5 * friday + 2 * saturday), 1e-1);
    EXPECT_NEAR(sums.mass(kMonday + 5.5 * kHourSeconds, kMonday + 6.5 * kHourSeconds),
                1800 * (20 + 100), 1e-2);
    // A day of Auckland: Friday there begins on Thursday at 11:00 UTC and ends in its daylight.
    const double from = kMonday + 3 * day + 11 * kHourSeconds;
    double expected = 0;
    for (double t = from; t < from + day; t += 60) {
        expected += 60 * usual(t);
    }
    EXPECT_NEAR(sums.mass(from, from + day), expected, 1);
}

TEST(PacingWeek, SecondsOfEachHour) {
    Placement p;
    p.run(kMonday + 2 * kWeekSeconds + 60);
    const WeekSums sums(p.week);
    std::vector<uint32_t> seconds(kWeekHours);
    const auto list = [&] { return std::span<const uint32_t, kWeekHours>(seconds); };
    EXPECT_EQ(sums.mass(list()), 0);
    seconds[week_hour(kMonday + 9 * kHourSeconds)] = 3 * 1800;
    EXPECT_NEAR(sums.mass(list()), 3 * 1800 * 100, 1e-2);
    seconds.assign(kWeekHours, 3600);
    EXPECT_NEAR(sums.mass(list()), sums.mass(kMonday, kMonday + kWeekSeconds), 1e-2);
}

TEST(PacingWeek, WhatWasNotWatchedIsNotLearned) {
    Placement p;
    p.run(kMonday + 2 * kWeekSeconds);
    const Week before = p.week;
    const size_t first = week_hour(kMonday);
    // Nobody ticks from 01:10 to 03:07: the hours from 1 to 3 are not learned.
    p.run(kMonday + 2 * kWeekSeconds + 4200);
    p.now = kMonday + 2 * kWeekSeconds + 11'220;
    p.run(kMonday + 2 * kWeekSeconds + 5 * kHourSeconds + 60);
    EXPECT_EQ(p.week.weeks[first], 3);
    for (const size_t hour : {1u, 2u, 3u}) {
        EXPECT_EQ(p.week.weeks[first + hour], 2) << hour;
        EXPECT_EQ(p.week.hours[first + hour], before.hours[first + hour]) << hour;
    }
    EXPECT_EQ(p.week.weeks[first + 4], 3);
    // A restart that costs the last bin of an hour costs nothing else.
    p.run(kMonday + 2 * kWeekSeconds + 6 * kHourSeconds - 200);
    p.now = kMonday + 2 * kWeekSeconds + 6 * kHourSeconds;
    p.run(kMonday + 2 * kWeekSeconds + 7 * kHourSeconds + 60);
    EXPECT_EQ(p.week.weeks[first + 5], 3);
    EXPECT_NEAR(p.week.hours[first + 5], before.hours[first + 5], 1);
    EXPECT_EQ(p.week.weeks[first + 6], 3);
}

TEST(PacingWeek, ANewWeekCountsThreeTenthsAndTwiceTheUsualAtMost) {
    Placement p;
    const size_t noon = week_hour(kMonday + 12 * kHourSeconds);
    const auto flat = [](double rate) { return [=](double) { return rate; }; };
    p.run(kMonday + kWeekSeconds, flat(1));
    EXPECT_NEAR(p.week.hours[noon], 3600, 1);
    p.run(kMonday + 2 * kWeekSeconds, flat(2));
    EXPECT_NEAR(p.week.hours[noon], 1.5 * 3600, 1) << "the mean of two";
    p.run(kMonday + 3 * kWeekSeconds, flat(3));
    EXPECT_NEAR(p.week.hours[noon], 2 * 3600, 1) << "the mean of three";
    p.run(kMonday + 4 * kWeekSeconds, flat(1));
    EXPECT_NEAR(p.week.hours[noon], (0.7 * 2 + 0.3) * 3600, 1);
    Placement q;
    q.run(kMonday + 3 * kWeekSeconds, flat(1));
    q.run(kMonday + 4 * kWeekSeconds, [&](double t) { return week_hour(t) == noon ? 50.0 : 1.0; });
    EXPECT_NEAR(q.week.hours[noon], (0.7 + 0.3 * 2) * 3600, 2) << "a burst is not a habit";
}

TEST(PacingWeek, AFloorAndHoursNeverLearned) {
    Week week;
    week.weeks.fill(2);
    week.hours.fill(100);
    week.hours[30] = 0;
    week.weeks[40] = 0;
    for (size_t hour = 40 % 24; hour < kWeekHours; hour += 24) {
        week.hours[hour] = 300;
    }
    const WeekSums sums(week);
    ASSERT_TRUE(sums.warm());
    const auto hour = [&](int i) { return sums.mass(i * kHourSeconds, (i + 1) * kHourSeconds); };
    const double mean = (160.0 * 100 + 6 * 300) / 167;
    EXPECT_NEAR(hour(30), 0.02 * mean, 1e-6);
    EXPECT_NEAR(hour(40), 300, 1e-6) << "as the same hour of other days";
    EXPECT_NEAR(hour(41), 100, 1e-6);
    // Without requests nothing is known.
    Week none;
    none.weeks.fill(2);
    EXPECT_FALSE(WeekSums(none).warm());
    EXPECT_FALSE(WeekSums().warm());
    EXPECT_FALSE(WeekSums(Week()).warm());
}

}  // namespace
