#include "core/pacing/ahead.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ads;
using namespace ads::pacing;

constexpr Seconds kMonday = 1'794'787'200;  // 2026-11-16T00:00:00Z
constexpr Seconds kHour = 3600;
constexpr Seconds kDay = 86'400;

// A week with so many requests an hour on workdays and at weekends.
WeekSums week_of(float workday, float weekend) {
    Week week;
    week.weeks.fill(2);
    for (size_t hour = 0; hour < kWeekHours; hour++) {
        const size_t day = hour / 24;  // 0: Thursday
        week.hours[hour] = day == 2 || day == 3 ? weekend : workday;
    }
    return WeekSums(week);
}

// Whole days, counted from Monday.
std::vector<Interval> days(std::initializer_list<int> list) {
    std::vector<Interval> open;
    for (const int day : list) {
        open.push_back({kMonday + day * kDay, kMonday + (day + 1) * kDay});
    }
    return open;
}

double part(const Ahead& ahead, std::span<const WeekSums* const> weeks = {}, int day = 0) {
    return todays_part(ahead, weeks, kMonday + day * kDay, kMonday + (day + 1) * kDay);
}

TEST(PacingAhead, ByActiveTimeAlone) {
    const auto workdays = days({0, 1, 2, 3, 4, 7});
    const Ahead ahead{.open = workdays, .end = kMonday + 8 * kDay};
    EXPECT_DOUBLE_EQ(part(ahead), 1.0 / 6);
    EXPECT_DOUBLE_EQ(part(ahead, {}, 4), 1.0 / 2);
    EXPECT_DOUBLE_EQ(part(ahead, {}, 5), 0) << "closed";
    EXPECT_DOUBLE_EQ(part(ahead, {}, 7), 1) << "the last day";
    EXPECT_DOUBLE_EQ(part(ahead, {}, 8), 0) << "over";
    EXPECT_DOUBLE_EQ(part({}), 0);
}

TEST(PacingAhead, WhatIsNotOpenSoonCountsByItsSeconds) {
    const auto soon = days({0, 1, 2, 3, 4, 7});
    std::vector<uint32_t> later(kWeekHours);
    later[30] = 3 * 3600;
    later[31] = 21 * 3600;
    Ahead ahead{.open = soon, .later = later, .end = kMonday + 40 * kDay};
    EXPECT_DOUBLE_EQ(part(ahead), 1.0 / 7);
    EXPECT_DOUBLE_EQ(part(ahead, {}, 7), 1.0 / 2);
    // Two weeks are known: hours 30 and 31 are on a Friday.
    const WeekSums week = week_of(100, 40);
    const WeekSums* weeks[] = {&week};
    EXPECT_NEAR(part(ahead, weeks), 1.0 / 7, 1e-12);
    later.assign(kWeekHours, 0);
    later[2 * 24] = 24 * 3600;  // Saturday
    EXPECT_NEAR(part(ahead, weeks, 7), 1 / 1.4, 1e-12);
}

TEST(PacingAhead, ByTheTrafficOfEachDay) {
    const auto all = days({0, 1, 2, 3, 4, 5, 6, 7});
    const Ahead ahead{.open = all, .end = kMonday + 8 * kDay};
    const WeekSums week = week_of(100, 40);
    const WeekSums cold;
    const WeekSums* warm[] = {&week};
    const WeekSums* mixed[] = {&week, &cold};
    const WeekSums* twice[] = {&week, &week};
    EXPECT_NEAR(part(ahead, warm), 1 / 6.8, 1e-12);
    EXPECT_NEAR(part(ahead, twice), 1 / 6.8, 1e-12);
    EXPECT_NEAR(part(ahead, warm, 5), 0.4 / 1.8, 1e-12) << "Saturday, then Sunday and Monday";
    EXPECT_NEAR(part(ahead, mixed), 1 / 8.0, 1e-12) << "one of two is not known yet";
}

TEST(PacingAhead, TodayCountsFromNow) {
    const std::vector<Interval> open = {{kMonday + 8 * kHour, kMonday + 20 * kHour},
                                        {kMonday + kDay, kMonday + kDay + 12 * kHour}};
    const Ahead ahead{.open = open, .end = kMonday + 2 * kDay};
    const auto from = [&](Seconds moment) {
        return todays_part(ahead, {}, moment, kMonday + kDay);
    };
    EXPECT_DOUBLE_EQ(from(kMonday), 0.5);
    EXPECT_DOUBLE_EQ(from(kMonday + 14 * kHour), 6.0 / 18);
    EXPECT_DOUBLE_EQ(from(kMonday + 20 * kHour), 0);
    const Ahead late{.open = open, .start = kMonday + 14 * kHour, .end = kMonday + 2 * kDay};
    EXPECT_DOUBLE_EQ(todays_part(late, {}, kMonday, kMonday + kDay), 6.0 / 18)
        << "a flight's start";
}

TEST(PacingAhead, ThirtyDaysWithoutAnEnd) {
    const std::vector<Interval> always = {{kMonday, kMonday + 8 * kDay}};
    EXPECT_DOUBLE_EQ(part({.open = always}), 1.0 / 30);
    EXPECT_DOUBLE_EQ(part({.open = always}, {}, 1), 1.0 / 30) << "an image of yesterday";
    const auto mondays = days({0, 7});
    EXPECT_DOUBLE_EQ(part({.open = mondays}), 1.0 / 5) << "five Mondays";
    const WeekSums week = week_of(100, 40);
    const WeekSums* weeks[] = {&week};
    EXPECT_NEAR(part({.open = always}, weeks), 1 / (4 * 5.8 + 2), 1e-12);
}

}  // namespace
