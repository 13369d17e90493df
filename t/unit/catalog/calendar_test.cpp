#include "core/catalog/calendar.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>

namespace {

using ads::Day;
using ads::Seconds;
using ads::catalog::Calendar;
using ads::catalog::DayTable;
using ads::catalog::Intervals;
using ads::catalog::Schedule;

constexpr Seconds kHour = 3600;
constexpr Seconds kDay = 86400;
constexpr std::nullopt_t kOpen = std::nullopt;

Seconds utc(int year, int month, int day, int hour = 0, int minute = 0) {
    tm parts{};
    parts.tm_year = year - 1900;
    parts.tm_mon = month - 1;
    parts.tm_mday = day;
    parts.tm_hour = hour;
    parts.tm_min = minute;
    return timegm(&parts);
}

// The C library's opinion, which owes nothing to the one under test.
tm local(const std::string& zone, Seconds t) {
    setenv("TZ", zone.c_str(), 1);
    tzset();
    const time_t time = t;
    tm parts{};
    localtime_r(&time, &parts);
    return parts;
}

// 2026-01-01 is 1.
int64_t day_number(const tm& parts) {
    return (utc(parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday) - utc(2026, 1, 1)) / kDay +
           1;
}

bool contains(const Schedule& item, const tm& parts) {
    const int minute = parts.tm_hour * 60 + parts.tm_min;
    const bool today = item.days >> parts.tm_wday & 1;
    const bool yesterday = item.days >> ((parts.tm_wday + 6) % 7) & 1;
    if (item.to > item.from) {
        return today && minute >= item.from && minute < item.to;
    }
    return (today && minute >= item.from) || (yesterday && minute < item.to);
}

bool open_at(const std::string& zone, const std::vector<Schedule>& schedule,
             std::optional<Seconds> start, std::optional<Seconds> end, Seconds t) {
    if ((start && t < *start) || (end && t >= *end)) {
        return false;
    }
    const tm parts = local(zone, t);
    bool in = schedule.empty();
    for (const Schedule& item : schedule) {
        in = in || contains(item, parts);
    }
    return in;
}

bool covered(const Intervals& intervals, Seconds t) {
    for (const auto& [begin, end] : intervals) {
        if (t >= begin && t < end) {
            return true;
        }
    }
    return false;
}

uint8_t days(std::initializer_list<ads::Weekday> list) {
    uint8_t mask = 0;
    for (const ads::Weekday day : list) {
        mask |= static_cast<uint8_t>(1u << static_cast<unsigned>(day));
    }
    return mask;
}

TEST(Timezone, Names) {
    for (const char* name : {"UTC", "Etc/UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata",
                             "Etc/GMT+5", "America/Argentina/Buenos_Aires"}) {
        EXPECT_TRUE(ads::catalog::timezone_exists(name)) << name;
    }
    for (const char* name : {"", "Mars/Olympus", "europe/berlin", "America/New_York ", "localtime",
                             "../localtime", "/etc/localtime", "zone.tab", "America", "+02:00"}) {
        EXPECT_FALSE(ads::catalog::timezone_exists(name)) << name;
    }
}

TEST(Timezone, AnUnknownOneThrows) {
    EXPECT_THROW(Calendar("Mars/Olympus", 0, 1), std::runtime_error);
}

TEST(LocalDays, UtcStartsAtDayOne) {
    const Seconds from = utc(2026, 1, 1);
    const DayTable table = ads::catalog::local_days("UTC", from, from + 2 * kDay);
    EXPECT_EQ(table.first, 1);
    EXPECT_EQ(table.starts,
              (std::vector<Seconds>{from, from + kDay, from + 2 * kDay, from + 3 * kDay}));
}

TEST(LocalDays, FromTheMiddleOfADayToItsEnd) {
    const Seconds noon = utc(2026, 11, 16, 12);
    const DayTable table = ads::catalog::local_days("UTC", noon, noon);
    EXPECT_EQ(table.first, 320);
    EXPECT_EQ(table.starts, (std::vector<Seconds>{utc(2026, 11, 16), utc(2026, 11, 17)}));
}

struct LongDay {
    const char* zone;
    int month, day;
    Seconds begins;
    Seconds hours;
};

TEST(LocalDays, ChangesOfTheClock) {
    const LongDay table[] = {
        {"America/New_York", 3, 8, utc(2026, 3, 8, 5), 23},
        {"America/New_York", 11, 1, utc(2026, 11, 1, 4), 25},
        {"America/New_York", 11, 2, utc(2026, 11, 2, 5), 24},
        {"Europe/Berlin", 3, 29, utc(2026, 3, 28, 23), 23},
        {"Europe/Berlin", 10, 25, utc(2026, 10, 24, 22), 25},
        {"Europe/Berlin", 10, 26, utc(2026, 10, 25, 23), 24},
        {"Asia/Kolkata", 6, 1, utc(2026, 5, 31, 18, 30), 24},
        // Midnight does not exist: the day begins at 01:00.
        {"Africa/Cairo", 4, 24, utc(2026, 4, 23, 22), 23},
        {"Asia/Beirut", 3, 29, utc(2026, 3, 28, 22), 23},
        // The hour before midnight comes twice.
        {"Africa/Cairo", 10, 29, utc(2026, 10, 28, 21), 25},
        {"Asia/Beirut", 10, 24, utc(2026, 10, 23, 21), 25},
    };
    for (const LongDay& row : table) {
        SCOPED_TRACE(std::string(row.zone) + " " + std::to_string(row.month));
        const Seconds noon = row.begins + 12 * kHour;
        const DayTable days = ads::catalog::local_days(row.zone, noon, noon);
        ASSERT_EQ(days.starts.size(), 2u);
        EXPECT_EQ(days.first, (utc(2026, row.month, row.day) - utc(2026, 1, 1)) / kDay + 1);
        EXPECT_EQ(days.starts[0], row.begins);
        EXPECT_EQ(days.starts[1] - days.starts[0], row.hours * kHour);
    }
}

TEST(LocalDays, NothingBeforeDayOne) {
    const DayTable across =
        ads::catalog::local_days("Europe/Berlin", utc(2025, 12, 20), utc(2026, 1, 2, 12));
    EXPECT_EQ(across.first, 1);
    EXPECT_EQ(across.starts, (std::vector<Seconds>{utc(2025, 12, 31, 23), utc(2026, 1, 1, 23),
                                                   utc(2026, 1, 2, 23)}));
    // In July, when the offset is another one.
    const DayTable before =
        ads::catalog::local_days("Europe/Berlin", utc(2018, 7, 1), utc(2018, 7, 9));
    EXPECT_EQ(before.first, 1);
    EXPECT_EQ(before.starts, std::vector<Seconds>{utc(2025, 12, 31, 23)});
}

// Each start is the first instant of its date, all the year round.
TEST(LocalDays, AgreesWithTheSystem) {
    for (const char* zone : {"UTC", "America/New_York", "Europe/Berlin", "Africa/Cairo",
                             "Asia/Beirut", "America/St_Johns", "Australia/Lord_Howe",
                             "Pacific/Kiritimati", "Pacific/Niue", "America/Santiago"}) {
        SCOPED_TRACE(zone);
        const DayTable table =
            ads::catalog::local_days(zone, utc(2026, 1, 10, 7), utc(2028, 1, 10, 7));
        ASSERT_EQ(table.first, day_number(local(zone, utc(2026, 1, 10, 7))));
        EXPECT_LE(table.starts.front(), utc(2026, 1, 10, 7));
        EXPECT_GT(table.starts.back(), utc(2028, 1, 10, 7));
        for (size_t i = 0; i < table.starts.size(); i++) {
            const auto day = static_cast<int64_t>(table.first + i);
            EXPECT_EQ(day_number(local(zone, table.starts[i])), day);
            EXPECT_EQ(day_number(local(zone, table.starts[i] - 1)), day - 1);
        }
    }
}

TEST(OpenIntervals, WithoutScheduleItIsTheFlight) {
    const Calendar calendar("Europe/Berlin", 1000, 2000);
    EXPECT_EQ(calendar.open_intervals({}, kOpen, kOpen), (Intervals{{1000, 2000}}));
    EXPECT_EQ(calendar.open_intervals({}, 1200, 1500), (Intervals{{1200, 1500}}));
    EXPECT_EQ(calendar.open_intervals({}, 500, 2500), (Intervals{{1000, 2000}}));
    EXPECT_TRUE(calendar.open_intervals({}, 2000, kOpen).empty());
    EXPECT_TRUE(calendar.open_intervals({}, kOpen, 1000).empty());
    EXPECT_TRUE(calendar.open_intervals({{}}, 1500, 1500).empty());
}

TEST(OpenIntervals, OfficeHours) {
    // Monday 16 to Sunday 22 November 2026, New York: UTC-5.
    using enum ads::Weekday;
    const Schedule office{days({mon, tue, wed, thu, fri}), 9 * 60, 17 * 60};
    const Seconds monday = utc(2026, 11, 16, 5);
    const Intervals open = ads::catalog::open_intervals("America/New_York", {office}, kOpen, kOpen,
                                                        monday, monday + 7 * kDay);
    ASSERT_EQ(open.size(), 5u);
    for (size_t i = 0; i < open.size(); i++) {
        const Seconds midnight = monday + static_cast<Seconds>(i) * kDay;
        EXPECT_EQ(open[i], std::make_pair(midnight + 9 * kHour, midnight + 17 * kHour));
    }
}

TEST(OpenIntervals, WrapsIntoTheNextDay) {
    using enum ads::Weekday;
    const Schedule night{days({fri}), 22 * 60, 2 * 60};
    const Seconds friday = utc(2026, 11, 20);
    EXPECT_EQ(ads::catalog::open_intervals("UTC", {night}, kOpen, kOpen, friday, friday + 7 * kDay),
              (Intervals{{friday + 22 * kHour, friday + 26 * kHour}}));
    // Asked on Saturday, Friday's rest is still there.
    EXPECT_EQ(ads::catalog::open_intervals("UTC", {night}, kOpen, kOpen, friday + kDay,
                                           friday + 2 * kDay),
              (Intervals{{friday + 24 * kHour, friday + 26 * kHour}}));
    // from = to: 24 hours.
    const Schedule whole{days({fri}), 6 * 60, 6 * 60};
    EXPECT_EQ(ads::catalog::open_intervals("UTC", {whole}, kOpen, kOpen, friday, friday + 7 * kDay),
              (Intervals{{friday + 6 * kHour, friday + 30 * kHour}}));
}

TEST(OpenIntervals, OverlappingAndTouchingItemsAreOne) {
    const Seconds midnight = utc(2026, 11, 20);
    EXPECT_EQ(
        ads::catalog::open_intervals("UTC", {{0x7f, 600, 720}, {0x7f, 540, 660}, {0x7f, 720, 780}},
                                     kOpen, kOpen, midnight, midnight + kDay),
        (Intervals{{midnight + 9 * kHour, midnight + 13 * kHour}}));
    // Every day from 00:00 to 24:00 has no seam at midnight, nor at a change of the clock.
    const Seconds autumn = utc(2026, 10, 20);
    EXPECT_EQ(ads::catalog::open_intervals("Europe/Berlin", {{}}, kOpen, kOpen, autumn,
                                           autumn + 30 * kDay),
              (Intervals{{autumn, autumn + 30 * kDay}}));
}

TEST(OpenIntervals, ChangesOfTheClock) {
    const Schedule early{0x7f, 60, 180};  // 01:00 to 03:00
    const auto lengths = [&](const char* zone, Seconds from) {
        std::vector<Seconds> hours;
        for (const auto& [begin, end] :
             ads::catalog::open_intervals(zone, {early}, kOpen, kOpen, from, from + kDay)) {
            hours.push_back((end - begin) / kHour);
        }
        return hours;
    };
    EXPECT_EQ(lengths("America/New_York", utc(2026, 3, 8, 5)), std::vector<Seconds>{1});
    EXPECT_EQ(lengths("America/New_York", utc(2026, 11, 1, 4)), std::vector<Seconds>{3});
    EXPECT_EQ(lengths("America/New_York", utc(2026, 11, 2, 5)), std::vector<Seconds>{2});
    EXPECT_EQ(lengths("Europe/Berlin", utc(2026, 3, 28, 23)), std::vector<Seconds>{1});
    EXPECT_EQ(lengths("Europe/Berlin", utc(2026, 10, 24, 22)), std::vector<Seconds>{3});
}

TEST(OpenIntervals, TwiceIfTheClockGoesBackBehindIt) {
    // 01:00 to 01:30 comes twice on 1 November 2026 in New York.
    EXPECT_EQ(ads::catalog::open_intervals("America/New_York", {{0x7f, 60, 90}}, kOpen, kOpen,
                                           utc(2026, 11, 1, 4), utc(2026, 11, 2, 5)),
              (Intervals{{utc(2026, 11, 1, 5), utc(2026, 11, 1, 5, 30)},
                         {utc(2026, 11, 1, 6), utc(2026, 11, 1, 6, 30)}}));
}

TEST(OpenIntervals, ASkippedMidnight) {
    // São Paulo, 4 November 2018: after 23:59 comes 01:00. Half an hour is left of it.
    const Schedule first{0x7f, 0, 90};
    EXPECT_EQ(ads::catalog::open_intervals("America/Sao_Paulo", {first}, kOpen, kOpen,
                                           utc(2018, 11, 3, 12), utc(2018, 11, 4, 12)),
              (Intervals{{utc(2018, 11, 4, 3), utc(2018, 11, 4, 3, 30)}}));
    // Wholly inside the gap: never.
    EXPECT_TRUE(ads::catalog::open_intervals("America/Sao_Paulo", {{0x7f, 10, 50}}, kOpen, kOpen,
                                             utc(2018, 11, 3, 12), utc(2018, 11, 4, 12))
                    .empty());
}

// Random schedules around every kind of change, compared with the definition at
// every minute: all boundaries but those of the flight fall on minutes.
TEST(OpenIntervals, AgreesWithTheDefinition) {
    struct Change {
        const char* zone;
        Seconds near;
    };
    const Change changes[] = {
        {"UTC", utc(2026, 1, 1)},
        {"America/New_York", utc(2026, 3, 8, 7)},
        {"America/New_York", utc(2026, 11, 1, 6)},
        {"Europe/Berlin", utc(2026, 3, 29, 1)},
        {"Europe/Berlin", utc(2026, 10, 25, 1)},
        {"America/Sao_Paulo", utc(2018, 11, 4, 3)},
        {"America/Sao_Paulo", utc(2018, 2, 18, 2)},
        {"Africa/Cairo", utc(2026, 4, 23, 22)},
        {"Australia/Lord_Howe", utc(2026, 4, 4, 15)},
        {"Pacific/Apia", utc(2011, 12, 30, 10)},  // a day that never was
        {"Asia/Kathmandu", utc(2026, 6, 1)},
    };
    std::mt19937 random(20261116);
    const auto below = [&random](unsigned n) { return static_cast<Seconds>(random() % n); };
    for (const Change& change : changes) {
        for (int round = 0; round < 12; round++) {
            SCOPED_TRACE(std::string(change.zone) + " round " + std::to_string(round));
            std::vector<Schedule> schedule(static_cast<size_t>(below(4)));
            for (Schedule& item : schedule) {
                item.days = static_cast<uint8_t>(1 + below(127));
                item.from = static_cast<uint16_t>(below(1440));
                item.to = round % 3 == 0 ? item.from : static_cast<uint16_t>(1 + below(1440));
                item.to = std::max<uint16_t>(item.to, 1);
            }
            const Seconds from = change.near - 2 * kDay + below(1440) * 60;
            const Seconds to = from + 3 * kDay;
            std::optional<Seconds> start, end;
            if (below(2)) {
                start = from + below(kDay);
            }
            if (below(2)) {
                end = to - below(kDay);
            }
            const Intervals open =
                ads::catalog::open_intervals(change.zone, schedule, start, end, from, to);
            for (size_t i = 0; i < open.size(); i++) {
                EXPECT_LT(open[i].first, open[i].second);
                EXPECT_GE(open[i].first, from);
                EXPECT_LE(open[i].second, to);
                EXPECT_TRUE(i == 0 || open[i - 1].second < open[i].first);
            }
            for (Seconds t = from; t < to; t += 60) {
                ASSERT_EQ(covered(open, t), open_at(change.zone, schedule, start, end, t)) << t;
            }
            for (const Seconds edge : {start.value_or(from), end.value_or(to)}) {
                for (Seconds t = std::max(from, edge - 1); t < std::min(to, edge + 2); t++) {
                    ASSERT_EQ(covered(open, t), open_at(change.zone, schedule, start, end, t)) << t;
                }
            }
        }
    }
}

// Weeks are multiplied, not walked: against every interval of the whole time.
TEST(OpenSeconds, EqualTheIntervalsOfAllFlights) {
    std::mt19937 random(17);
    const auto below = [&](Seconds n) {
        return static_cast<Seconds>(random() % static_cast<uint64_t>(n));
    };
    const Seconds from = utc(2027, 2, 3, 7);
    for (const char* zone : {"UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"}) {
        for (int round = 0; round < 20; round++) {
            SCOPED_TRACE(std::string(zone) + " round " + std::to_string(round));
            const Seconds begin = from + 8 * kDay;
            const Seconds end = begin + 1 + below(round % 2 == 0 ? 20 * kDay : 380 * kDay);
            std::vector<ads::catalog::Flight> flights(static_cast<size_t>(1 + below(4)));
            Intervals all;
            const Calendar whole(zone, from, end);
            for (auto& flight : flights) {
                flight.schedule.resize(static_cast<size_t>(below(3)));
                for (Schedule& item : flight.schedule) {
                    item.days = static_cast<uint8_t>(1 + below(127));
                    item.from = static_cast<uint16_t>(below(1440));
                    item.to = static_cast<uint16_t>(1 + below(1440));
                }
                flight.start = below(2) ? from + below(60 * kDay) : 0;
                flight.end = below(2) ? begin + below(60 * kDay) : 0;
                const auto open = whole.open_intervals(
                    flight.schedule, flight.start,
                    flight.end == 0 ? kOpen : std::optional<Seconds>(flight.end));
                all.insert(all.end(), open.begin(), open.end());
            }
            ads::catalog::WeekSeconds expected{};
            for (const auto& [open, close] : ads::catalog::joined(all)) {
                for (Seconds t = std::max(open, begin); t < close;) {
                    const Seconds next = std::min(close, t - t % 60 + 60);
                    const Seconds moved = t + whole.offset(t) - whole.offset(from);
                    expected[static_cast<size_t>(moved / kHour % 168)] +=
                        static_cast<uint32_t>(next - t);
                    t = next;
                }
            }
            EXPECT_EQ(Calendar(zone, from, begin).open_seconds(flights, begin, end), expected);
        }
    }
    const Calendar utc_days("UTC", from, from + kDay);
    EXPECT_EQ(utc_days.open_seconds({{}}, from, from), ads::catalog::WeekSeconds{});
    EXPECT_EQ(utc_days.open_seconds({}, from, from + kDay), ads::catalog::WeekSeconds{});
}

}  // namespace
