#include "core/pacing/active_day.hpp"

#include <gtest/gtest.h>

#include "core/base/rng.hpp"
#include "core/catalog/calendar.hpp"
#include "decide_catalog.hpp"

namespace {

using namespace ads;
using namespace ads::pacing;
using namespace decide_test;

constexpr Seconds kMidnight = 1'794'787'200;  // 2026-11-16T00:00:00Z, a Monday

std::vector<Interval> opened(std::vector<std::pair<Seconds, Seconds>> list) {
    std::vector<Interval> intervals;
    for (const auto& [open, close] : list) {
        intervals.push_back({kMidnight + open, kMidnight + close});
    }
    return intervals;
}

TEST(PacingDay, CountsOnlyActiveTime) {
    struct Row {
        std::vector<std::pair<Seconds, Seconds>> open;  // seconds from midnight
        double total;
        std::vector<std::pair<double, double>> elapsed;  // at, so much
    };
    const Row rows[] = {
        {{{-kDay, 8 * kDay}}, 86'400, {{0, 0}, {0.25, 0.25}, {3600, 3600}, {86'400, 86'400}}},
        // 09:00 to 17:00
        {{{-15 * kHour, -7 * kHour}, {9 * kHour, 17 * kHour}, {33 * kHour, 41 * kHour}},
         28'800,
         {{0, 0}, {9 * kHour, 0}, {10 * kHour, 3600}, {17 * kHour, 28'800}, {20 * kHour, 28'800}}},
        // two parts, the second over midnight
        {{{6 * kHour, 8 * kHour}, {22 * kHour, 26 * kHour}},
         4 * 3600.0,
         {{7 * kHour, 3600},
          {12 * kHour, 7200},
          {23 * kHour, 10'800},
          {24 * kHour, 14'400},
          {25 * kHour, 14'400}}},
        // a flight that starts at 18:00, one that ends at noon
        {{{18 * kHour, 8 * kDay}}, 6 * 3600.0, {{18 * kHour, 0}, {21 * kHour, 10'800}}},
        {{{-kDay, 12 * kHour}}, 12 * 3600.0, {{6 * kHour, 21'600}, {18 * kHour, 43'200}}},
        {{}, 0, {{0, 0}, {40'000, 0}}},
        {{{-kDay, 0}, {kDay, 2 * kDay}}, 0, {{40'000, 0}}},  // closed all day
    };
    for (const Row& row : rows) {
        const auto open = opened(row.open);
        const ActiveDay day(open, kMidnight, kMidnight + kDay);
        EXPECT_DOUBLE_EQ(day.total(), row.total);
        for (const auto& [at, elapsed] : row.elapsed) {
            EXPECT_DOUBLE_EQ(day.elapsed(static_cast<double>(kMidnight) + at), elapsed) << at;
        }
    }
}

TEST(PacingDay, MomentsAreTheOtherWayRound) {
    const auto open =
        opened({{6 * kHour, 8 * kHour}, {12 * kHour, 13 * kHour}, {20 * kHour, 30 * kHour}});
    const ActiveDay day(open, kMidnight, kMidnight + kDay);
    EXPECT_DOUBLE_EQ(day.total(), 7 * 3600);
    for (double active = 1; active < day.total(); active += 37.5) {
        EXPECT_NEAR(day.elapsed(day.moment(active)), active, 1e-5);
    }
    EXPECT_DOUBLE_EQ(day.moment(0), kMidnight + 6 * kHour);
    EXPECT_DOUBLE_EQ(day.moment(-5), kMidnight + 6 * kHour);
    EXPECT_DOUBLE_EQ(day.moment(day.total() + 5), kMidnight + kDay);
    EXPECT_DOUBLE_EQ(ActiveDay({}, kMidnight, kMidnight + kDay).moment(5), kMidnight);
}

TEST(PacingDay, RandomOpeningsSecondBySecond) {
    Rng rng(11);
    for (int round = 0; round < 50; round++) {
        std::vector<Interval> open;
        for (Seconds at = -3000; at < 6000;) {
            at += 1 + static_cast<Seconds>(rng.below(900));
            const Seconds close = at + 1 + static_cast<Seconds>(rng.below(900));
            open.push_back({at, close});
            at = close;
        }
        const Seconds begin = static_cast<Seconds>(rng.below(1000)) - 500;
        const Seconds end = begin + 1 + static_cast<Seconds>(rng.below(4000));
        const ActiveDay day(open, begin, end);
        Seconds active = 0;
        for (Seconds at = begin; at < end; at++) {
            ASSERT_DOUBLE_EQ(day.elapsed(static_cast<double>(at)), static_cast<double>(active));
            for (const Interval& interval : open) {
                active += interval.open <= at && at < interval.close ? 1 : 0;
            }
        }
        ASSERT_DOUBLE_EQ(day.total(), static_cast<double>(active));
    }
}

// Correction: the campaign's time zone, and days of 23, 24 and 25 hours. From
// the compiled image, as a worker has it.
TEST(PacingDay, DaysOf23And25Hours) {
    struct Row {
        const char* zone;
        Seconds compiled;  // in the first hour of the local day
        double whole;      // hours
        double night;      // of a schedule from 00:00 to 06:00
    };
    const Row rows[] = {
        {"America/New_York", 1'772'946'000, 23, 5},  // 2026-03-08, clocks go forward at 02:00
        {"America/New_York", 1'793'505'600, 25, 7},  // 2026-11-01, and back
        {"America/New_York", 1'793'595'600, 24, 6},  // the day after
        {"Europe/Berlin", 1'774'738'800, 23, 5},     // 2026-03-29
        {"Europe/Berlin", 1'792'879'200, 25, 7},     // 2026-10-25
        {"UTC", 1'792'886'400, 24, 6},
        {"Australia/Lord_Howe", 1'775'307'600, 24.5, 6.5},  // 2026-04-05, by half an hour
    };
    for (const Row& row : rows) {
        const Decider d(
            document({campaign(1, {group(2), group(3, R"("targeting": {"schedule": [{"days": ["sun",
                         "mon", "tue", "wed", "thu", "fri", "sat"], "from": "00:00", "to": "06:00"}]})")},
                               R"("timezone": ")" + std::string(row.zone) + "\"")}),
            row.compiled);
        const Image& image = d.image();
        const auto& zone = image.get(image.head().zones)[0];
        const auto starts = image.get(zone.starts);
        const auto next = std::upper_bound(starts.begin(), starts.end(), row.compiled);
        ASSERT_EQ(*(next - 1), row.compiled) << row.zone;
        const auto day_of = [&](Id id) {
            return ActiveDay(image.get(image.groups()[image.find_group(id)].open), *(next - 1),
                             *next);
        };
        EXPECT_DOUBLE_EQ(day_of(2).total(), row.whole * 3600) << row.zone << row.compiled;
        EXPECT_DOUBLE_EQ(day_of(3).total(), row.night * 3600) << row.zone << row.compiled;
        EXPECT_DOUBLE_EQ(day_of(3).elapsed(static_cast<double>(row.compiled) + 4 * 3600), 4 * 3600);
    }
}

}  // namespace
