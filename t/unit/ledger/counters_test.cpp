#include "ledger/counters.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace {

using namespace ads;

constexpr int kThreads = 8;

template <class Work>
void in_threads(Work work) {
    std::barrier start(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; t++) {
        threads.emplace_back([&, t] {
            start.arrive_and_wait();
            work(t);
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
}

TEST(LedgerCounters, TakesUpToTheLimit) {
    DayCounter counter{};
    EXPECT_EQ(counter.read(5), 0u);
    EXPECT_TRUE(counter.take(5, 3, 10));
    EXPECT_TRUE(counter.take(5, 7, 10));
    EXPECT_FALSE(counter.take(5, 1, 10));
    EXPECT_TRUE(counter.take(5, 0, 10));
    EXPECT_EQ(counter.read(5), 10u);
    EXPECT_TRUE(counter.take(5, 1, 11)) << "the limit is the caller's";
    EXPECT_FALSE(counter.take(5, 1, 5)) << "and may have sunk";
    EXPECT_EQ(counter.read(5), 11u);
}

TEST(LedgerCounters, MoreThanTheLimitAtOnce) {
    DayCounter counter{};
    EXPECT_FALSE(counter.take(5, 11, 10));
    EXPECT_FALSE(counter.take(5, ~uint64_t{0}, 10));
    EXPECT_FALSE(counter.take(5, 1, 0));
    EXPECT_EQ(counter.read(5), 0u);
    EXPECT_TRUE(counter.count(5, DayCount::kMaxUsed));
    EXPECT_FALSE(counter.count(5, 1)) << "full, not wrapped";
    EXPECT_EQ(counter.read(5), DayCount::kMaxUsed);
    EXPECT_EQ(counter.read(4), 0u);
    EXPECT_EQ(counter.read(6), 0u);
}

TEST(LedgerCounters, DaysAreApart) {
    DayCounter counter{};
    EXPECT_TRUE(counter.count(100, 5));
    EXPECT_TRUE(counter.count(101, 7));
    EXPECT_TRUE(counter.count(100, 1)) << "yesterday is still there";
    EXPECT_EQ(counter.read(100), 6u);
    EXPECT_EQ(counter.read(101), 7u);
    EXPECT_EQ(counter.read(99), 0u);
    EXPECT_EQ(counter.read(102), 0u);
}

TEST(LedgerCounters, ANewDayStartsAtZero) {
    DayCounter counter{};
    EXPECT_TRUE(counter.take(100, 10, 10));
    EXPECT_TRUE(counter.take(102, 10, 10));
    EXPECT_FALSE(counter.take(102, 1, 10));
    EXPECT_EQ(counter.read(102), 10u);
    EXPECT_EQ(counter.read(100), 0u);
}

TEST(LedgerCounters, NeverBackToAnEarlierDay) {
    DayCounter counter{};
    EXPECT_TRUE(counter.count(102, 4));
    EXPECT_FALSE(counter.count(100, 1));
    EXPECT_FALSE(counter.take(98, 1, 1000));
    EXPECT_EQ(counter.read(102), 4u);
    EXPECT_EQ(counter.read(100), 0u);
}

// The clock was days ahead for a while. What it overwrote is gone; from now on
// today must count again.
TEST(LedgerCounters, ADayAheadOfTodayIsStale) {
    DayCounter counter{};
    EXPECT_TRUE(counter.count(102, 4, 102));
    EXPECT_TRUE(counter.take(100, 1, 5, 100));
    EXPECT_EQ(counter.read(100), 1u);
    EXPECT_EQ(counter.read(102), 0u);
    EXPECT_TRUE(counter.count(101, 1, 101));
    EXPECT_FALSE(counter.count(99, 1, 100)) << "tomorrow may be a neighbour's skew";
}

TEST(LedgerCounters, GivingBackUndoesATake) {
    DayCounter counter{};
    EXPECT_TRUE(counter.take(100, 3, 3));
    counter.give_back(100, 1);
    EXPECT_EQ(counter.read(100), 2u);
    EXPECT_TRUE(counter.take(100, 1, 3));
    counter.give_back(102, 1);
    EXPECT_EQ(counter.read(100), 3u) << "another day";
    counter.give_back(100, 10);
    EXPECT_EQ(counter.read(100), 0u) << "never below zero";
}

// A refused take on a new day must not have wiped the old one.
TEST(LedgerCounters, ARefusalChangesNothing) {
    DayCounter counter{};
    EXPECT_TRUE(counter.count(100, 4));
    EXPECT_FALSE(counter.take(102, 5, 4));
    EXPECT_EQ(counter.read(100), 4u);
}

TEST(LedgerCounters, AgainstAModel) {
    std::mt19937_64 random(8);
    DayCounter counter{};
    std::map<Day, uint64_t> model;
    Day last[2] = {0, 0};
    Day day = 10;
    for (int i = 0; i < 200'000; i++) {
        day = static_cast<Day>(day + (random() % 500 == 0));
        const auto asked = static_cast<Day>(day - random() % 4);
        const uint64_t n = random() % 5;
        const uint64_t limit = random() % 400;
        const bool fits = asked >= last[asked & 1] && model[asked] + n <= limit;
        ASSERT_EQ(counter.take(asked, n, limit), fits);
        if (fits) {
            model[asked] += n;
            last[asked & 1] = asked;
        }
        ASSERT_EQ(counter.read(asked), last[asked & 1] == asked ? model[asked] : 0);
    }
}

TEST(LedgerCounters, ThreadsTakeExactlyTheLimit) {
    constexpr uint64_t kLimit = 100'000;
    DayCounter counter{};
    std::atomic<uint64_t> taken{0};
    in_threads([&](int) {
        uint64_t mine = 0;
        while (counter.take(7, 1, kLimit)) {
            mine++;
        }
        taken += mine;
    });
    EXPECT_EQ(taken, kLimit);
    EXPECT_EQ(counter.read(7), kLimit);
}

TEST(LedgerCounters, ThreadsTakeUnequalPieces) {
    constexpr uint64_t kLimit = 100'000;
    DayCounter counter{};
    std::atomic<uint64_t> taken{0};
    in_threads([&](int t) {
        const auto piece = static_cast<uint64_t>(t) + 3;
        uint64_t mine = 0;
        while (counter.take(7, piece, kLimit)) {
            mine += piece;
        }
        taken += mine;
    });
    EXPECT_EQ(taken, counter.read(7));
    EXPECT_LE(taken, kLimit);
    EXPECT_GT(taken, kLimit - 3);
}

// Midnight comes to each thread at another moment. Each day's limit is given
// out once, and to the unit.
TEST(LedgerCounters, TheDayRollsOverOnce) {
    constexpr int kDays = 200;
    constexpr uint64_t kLimit = 500;
    DayCounter counter{};
    std::array<std::atomic<uint64_t>, kDays + 1> taken{};
    in_threads([&](int) {
        for (int day = 1; day <= kDays; day++) {
            while (counter.take(static_cast<Day>(day), 1, kLimit)) {
                taken[static_cast<size_t>(day)]++;
            }
        }
    });
    for (int day = 1; day <= kDays; day++) {
        EXPECT_EQ(taken[static_cast<size_t>(day)], kLimit) << day;
    }
    EXPECT_EQ(counter.read(kDays), kLimit);
    EXPECT_EQ(counter.read(kDays - 1), kLimit);
}

TEST(LedgerCounters, ThreadsCountYesterdayAndToday) {
    constexpr int kTimes = 20'000;
    DayCounter counter{};
    in_threads([&](int t) {
        for (int i = 0; i < kTimes; i++) {
            EXPECT_TRUE(counter.count(static_cast<Day>(30 + (i + t) % 2), 1));
        }
    });
    EXPECT_EQ(counter.read(30), uint64_t{kThreads} * kTimes / 2);
    EXPECT_EQ(counter.read(31), uint64_t{kThreads} * kTimes / 2);
}

TEST(LedgerCounters, EachTypeHasItsOwn) {
    GroupSlot slot{};
    for (size_t type = 0; type < kCount<EventType>; type++) {
        const Counter c = counter_of(static_cast<EventType>(type));
        EXPECT_TRUE(slot.at(c).count(9, type + 1));
    }
    EXPECT_TRUE(slot.at(Counter::spend).count(9, 77));
    EXPECT_EQ(slot.at(Counter::serves).read(9), 1u);
    EXPECT_EQ(slot.at(Counter::impressions).read(9), 2u);
    EXPECT_EQ(slot.at(Counter::viewables).read(9), 3u);
    EXPECT_EQ(slot.at(Counter::clicks).read(9), 4u);
    EXPECT_EQ(slot.at(Counter::conversions).read(9), 5u);
    EXPECT_EQ(slot.at(Counter::spend).read(9), 77u);
}

// A wrong clock makes nothing unlimited: on a day that has no number nothing is taken.
TEST(LedgerCounters, TheLastDay) {
    for (const int day : {4095, 4096, 4097, 16'383}) {
        DayCounter counter{};
        EXPECT_TRUE(counter.take(static_cast<Day>(day), 5, 5)) << day;
        EXPECT_FALSE(counter.take(static_cast<Day>(day), 1, 5)) << day;
        EXPECT_EQ(counter.read(static_cast<Day>(day)), 5u) << day;
    }
    for (const int day : {0, 16'384, 16'385, 65'535}) {
        DayCounter counter{};
        EXPECT_FALSE(counter.take(static_cast<Day>(day), 1, 5)) << day;
        std::atomic<uint64_t> word{};
        count_day(word, static_cast<Day>(day), 1);
        EXPECT_EQ(word, 0u) << day;
    }
}

}  // namespace
