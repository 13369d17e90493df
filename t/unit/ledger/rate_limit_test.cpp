#include "ledger/visitor/rate_limit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "core/base/hash.hpp"
#include "ledger_memory.hpp"

namespace {

using namespace ads;

constexpr uint64_t kNow = uint64_t{1} << 42;
constexpr int kWorkers = 8;

bool long_mode() {
    return std::getenv("ADS_TEST_LONG") != nullptr;
}

uint64_t part_of(const RateRule& rule) {
    return rule.window / kRateParts + 1;
}

// A table of so many buckets.
class Table {
public:
    explicit Table(RateRule rule, size_t buckets = 1)
        : size_(kRateFirst + buckets * (RateTable::least(rule) - kRateFirst)),
          memory_(size_),
          rule_(rule) {
        clear();
    }
    void clear() {
        std::memset(static_cast<void*>(memory_.data()), 0, memory_.size());
        RateTable::format({memory_.data(), size_}, rule_, {1, 2});
        table = RateTable::attach(memory_.data());
    }
    RateVerdict take(uint64_t key, uint64_t now) {
        const RateVerdict looked = table.look(mix13(key), now);
        const RateVerdict taken = table.take(mix13(key), now);
        EXPECT_EQ(looked.passes, taken.passes);
        EXPECT_EQ(looked.remaining, taken.remaining + (taken.passes ? 1 : 0));
        EXPECT_EQ(looked.wait, taken.wait);
        return taken;
    }
    uint32_t drain(uint64_t key, uint64_t now) {
        uint32_t n = 0;
        while (n < 2 * rule_.rate + 10 && take(key, now).passes) {
            n++;
        }
        return n;
    }
    RateBucket& bucket() { return *reinterpret_cast<RateBucket*>(memory_.data() + kRateFirst); }

private:
    size_t size_;
    ledger_test::Memory memory_;
    RateRule rule_;

public:
    RateTable table;
};

// All times, looked at one by one. A rate that is not exact sees each time as the
// last of its part.
class Model {
public:
    explicit Model(RateRule rule) : rule_(rule) {}

    RateVerdict take(uint64_t now) {
        while (!times_.empty() && leaves(times_.front()) <= now) {
            times_.pop_front();
        }
        if (times_.size() >= rule_.rate) {
            return {false, 0, static_cast<uint32_t>(leaves(times_.front()) - now)};
        }
        times_.push_back(now);
        return {true, rule_.rate - static_cast<uint32_t>(times_.size()), 0};
    }

private:
    uint64_t leaves(uint64_t time) const {
        if (rule_.exact()) {
            return time + rule_.window;
        }
        const uint64_t part = time * 64 / rule_.window;
        const uint64_t leaves = ((part + 65) * rule_.window + 63) / 64;
        EXPECT_EQ(leaves * 64 / rule_.window, part + 65);
        EXPECT_EQ((leaves - 1) * 64 / rule_.window, part + 64);
        return leaves;
    }

    RateRule rule_;
    std::deque<uint64_t> times_;
};

#define ASSERT_SAME(a, b)                    \
    ASSERT_EQ((a).passes, (b).passes);       \
    ASSERT_EQ((a).remaining, (b).remaining); \
    ASSERT_EQ((a).wait, (b).wait)

const RateRule kRules[] = {{1, 1000},      {2, 1000},          {3, 60'000},       {100, 60'000},
                           {255, 1000},    {256, 3'600'000},   {256, 86'400'000}, {257, 1000},
                           {1000, 60'000}, {5000, 86'400'000}, {20'000, 1000}};

// ---- one at a time ----

TEST(LedgerRateLimit, EveryRateIsExactAtOnce) {
    for (const auto& rule : kRules) {
        SCOPED_TRACE(rule.rate);
        Table t(rule);
        EXPECT_EQ(t.drain(1, kNow), rule.rate);
        EXPECT_EQ(t.drain(1, kNow + rule.window - 1), 0u);
        EXPECT_EQ(t.drain(2, kNow + 5), rule.rate) << "another key";
        EXPECT_EQ(t.drain(1, kNow + rule.window + part_of(rule)), rule.rate);
        const RateTotals totals = t.table.totals();
        EXPECT_EQ(totals.passed, uint64_t{3} * rule.rate);
        EXPECT_EQ(totals.refused, 4u);
        EXPECT_EQ(totals.entries, 2u);
        EXPECT_EQ(totals.evicted + totals.busy, 0u);
        EXPECT_EQ(totals.capacity, RateBucket::kEntries);
    }
}

TEST(LedgerRateLimit, RandomSequencesEqualAListOfAllTimes) {
    const int steps = long_mode() ? 2'000'000 : 20'000;
    for (const auto& rule : kRules) {
        SCOPED_TRACE(rule.rate);
        std::mt19937_64 random(rule.rate);
        Table t(rule, 2);
        std::vector<Model> models(8, Model(rule));
        uint64_t now = kNow;
        for (int i = 0; i < steps; i++) {
            // Bursts, a steady flow about the rate, pauses about a window.
            switch (random() % 64) {
                case 0:
                    now += random() % (2 * uint64_t{rule.window});
                    break;
                case 1:
                    now += rule.window - random() % 2;
                    break;
                default:
                    now += random() % 4 == 0 ? random() % (rule.window / rule.rate + 2) : 0;
            }
            const uint64_t key = random() % models.size();
            const RateVerdict mine = t.table.take(mix13(key), now);
            const RateVerdict its = models[key].take(now);
            ASSERT_SAME(mine, its) << i;
        }
        EXPECT_EQ(t.table.totals().evicted, 0u);
        EXPECT_EQ(t.table.totals().busy, 0u);
    }
}

// A bound that does not depend on how the table sees parts: in no window do more
// pass, and where a window and a part have room, one passes.
TEST(LedgerRateLimit, NeverMoreThanTheRateInAnyWindow) {
    const int steps = long_mode() ? 1'000'000 : 50'000;
    for (const auto& rule : {RateRule{7, 1000}, RateRule{300, 2000}, RateRule{300, 86'400'000}}) {
        std::mt19937_64 random(7);
        Table t(rule);
        std::deque<uint64_t> passed;
        uint64_t now = kNow;
        for (int i = 0; i < steps; i++) {
            now += random() % (rule.window / rule.rate);
            const auto within = [&](uint64_t length) {
                return static_cast<uint32_t>(
                    passed.end() - std::upper_bound(passed.begin(), passed.end(), now - length));
            };
            const bool passes = t.table.take(5, now).passes;
            ASSERT_TRUE(!passes || within(rule.window) < rule.rate);
            ASSERT_TRUE(passes || within(rule.window + part_of(rule)) >= rule.rate);
            if (passes) {
                passed.push_back(now);
            }
            if (passed.size() > 2 * rule.rate) {
                passed.pop_front();
            }
        }
    }
}

TEST(LedgerRateLimit, BurstsAtTheEdgesOfAWindow) {
    const RateRule rule{10, 1000};
    Table t(rule);
    // What a fixed window would let pass twice.
    for (int i = 0; i < 10; i++) {
        EXPECT_TRUE(t.take(1, kNow + 990 + i).passes);
    }
    EXPECT_FALSE(t.take(1, kNow + 1000).passes);
    EXPECT_EQ(t.take(1, kNow + 1000).wait, 990u);
    EXPECT_FALSE(t.take(1, kNow + 1989).passes);
    for (int i = 0; i < 10; i++) {
        EXPECT_TRUE(t.take(1, kNow + 1990 + i).passes) << i;
        EXPECT_FALSE(t.take(1, kNow + 1990 + i).passes) << i;
    }
}

TEST(LedgerRateLimit, RefusalsExtendNothing) {
    for (const auto& rule : {RateRule{3, 1000}, RateRule{300, 1000}}) {
        Table t(rule);
        EXPECT_EQ(t.drain(1, kNow), rule.rate);
        uint64_t opens = 0;
        for (uint64_t ms = 1; opens == 0; ms++) {
            const RateVerdict verdict = t.take(1, kNow + ms);
            if (verdict.passes) {
                opens = ms;
            } else {
                ASSERT_GT(verdict.wait, 0u);
                ASSERT_EQ(t.table.look(mix13(1), kNow + ms + verdict.wait).passes, true);
                ASSERT_EQ(t.table.look(mix13(1), kNow + ms + verdict.wait - 1).passes, false);
            }
        }
        EXPECT_GE(opens, rule.window);
        EXPECT_LE(opens, rule.window + (rule.exact() ? 0 : part_of(rule)));
    }
}

// ---- clocks ----

TEST(LedgerRateLimit, AClockThatIsBehind) {
    for (const auto& rule : {RateRule{2, 1000}, RateRule{300, 1000}}) {
        SCOPED_TRACE(rule.rate);
        Table t(rule);
        EXPECT_EQ(t.drain(1, kNow), rule.rate);
        // Another worker's, or one that was set back a little: nothing is forgotten.
        EXPECT_FALSE(t.take(1, kNow - 30).passes);
        EXPECT_FALSE(t.take(1, kNow - kRateBack + part_of(rule)).passes);
        const uint32_t wait = t.take(1, kNow - 30'000).wait;
        EXPECT_FALSE(t.take(1, kNow - 30'000 + wait - 1).passes);
        EXPECT_TRUE(t.take(1, kNow - 30'000 + wait).passes);
        // Set back by far: the key starts anew, instead of being blocked for so long.
        t.clear();
        EXPECT_EQ(t.drain(1, kNow), rule.rate);
        EXPECT_EQ(t.drain(1, kNow - 3'600'000), rule.rate);
        EXPECT_EQ(t.drain(1, kNow - 3'600'000 + rule.window + part_of(rule)), rule.rate);
        // Set right again: what was counted before the mistake is gone, not mixed in.
        EXPECT_EQ(t.drain(1, kNow), rule.rate);
        EXPECT_EQ(t.table.totals().entries, 1u);
        EXPECT_EQ(t.table.totals().evicted, 0u);
    }
}

TEST(LedgerRateLimit, TimesOf32BitsComeRound) {
    for (const auto& rule : kRules) {
        SCOPED_TRACE(rule.rate);
        const uint64_t rounds[] = {uint64_t{1} << 32, uint64_t{1} << 37, uint64_t{1} << 34,
                                   (uint64_t{1} << 34) * part_of(rule), uint64_t{1} << 44};
        for (const uint64_t round : rounds) {
            // Across the end of a round.
            const uint64_t end = (kNow / round + 1) * round;
            Table t(rule);
            std::mt19937_64 random(round);
            Model model(rule);
            uint64_t now = end - rule.window - rule.window / 2;
            while (now < end + rule.window) {
                const RateVerdict mine = t.table.take(9, now);
                const RateVerdict its = model.take(now);
                ASSERT_SAME(mine, its);
                now += random() % (rule.window / 100);
            }
        }
        // A round later, to the millisecond: an old time is not taken for a new one.
        Table t(rule);
        EXPECT_EQ(t.drain(1, kNow), rule.rate);
        EXPECT_EQ(t.drain(1, kNow + (uint64_t{1} << 32)), rule.rate);
        EXPECT_EQ(t.drain(1, kNow + (uint64_t{1} << 32) + (uint64_t{1} << 31)), rule.rate);
    }
}

// Requests that are each a little less than a window apart fill a ring whose
// oldest times are rounds ago.
TEST(LedgerRateLimit, ASlowTrickleNeverBlocks) {
    const RateRule rule{100, 86'400'000};
    Table t(rule);
    for (uint64_t i = 0; i < 2000; i++) {
        const RateVerdict verdict = t.take(1, kNow + i * 43'200'000);
        ASSERT_TRUE(verdict.passes) << i;
        ASSERT_EQ(verdict.remaining, i == 0 ? 99u : 98u);
    }
}

// ---- room ----

TEST(LedgerRateLimit, TheOldestGoesAndIsCounted) {
    for (const auto& rule : {RateRule{2, 60'000}, RateRule{300, 60'000}}) {
        SCOPED_TRACE(rule.rate);
        const uint64_t step = rule.exact() ? 1 : part_of(rule);  // a part is as old as its youngest
        Table t(rule);
        for (uint64_t key = 0; key < RateBucket::kEntries; key++) {
            EXPECT_EQ(t.drain(key, kNow + key * step), rule.rate);
        }
        EXPECT_EQ(t.table.totals().evicted, 0u);
        EXPECT_EQ(t.drain(100, kNow + 20 * step), rule.rate);
        EXPECT_EQ(t.table.totals().evicted, 1u);
        for (uint64_t key = 1; key < RateBucket::kEntries; key++) {
            EXPECT_FALSE(t.take(key, kNow + 20 * step).passes) << "all but the oldest are there";
        }
        EXPECT_EQ(t.drain(0, kNow + 21 * step), rule.rate) << "of the oldest nothing is known";
        EXPECT_EQ(t.table.totals().evicted, 2u);
        EXPECT_EQ(t.table.totals().entries, RateBucket::kEntries);
        // Those whose window is over go at nobody's loss.
        const uint64_t later = kNow + 3 * uint64_t{rule.window};
        for (uint64_t key = 200; key < 200 + RateBucket::kEntries; key++) {
            EXPECT_EQ(t.drain(key, later), rule.rate);
        }
        EXPECT_EQ(t.table.totals().evicted, 2u);
    }
}

TEST(LedgerRateLimit, ManyKeysStayWithinTheMemory) {
    const RateRule rule{5, 60'000};
    Table t(rule, 50);
    for (uint64_t key = 0; key < 100'000; key++) {
        t.table.take(mix13(key + 1), kNow + key / 100);
    }
    const RateTotals totals = t.table.totals();
    EXPECT_EQ(totals.passed, 100'000u);
    EXPECT_EQ(totals.capacity, 50u * RateBucket::kEntries);
    EXPECT_LE(totals.entries, totals.capacity);
    EXPECT_EQ(totals.evicted, 100'000u - totals.entries);
    EXPECT_EQ(totals.busy, 0u);
}

// A key that takes over an entry of parts finds nothing of its predecessors, even
// when the generation has come round.
TEST(LedgerRateLimit, NothingIsInherited) {
    const RateRule rule{300, 60'000};
    Table t(rule);
    for (uint64_t key = 0; key < 10'000; key++) {
        ASSERT_EQ(t.table.take(mix13(key + 1), kNow + key * 2).remaining, rule.rate - 1) << key;
        t.table.take(mix13(key + 1), kNow + key * 2 + part_of(rule));
    }
}

// ---- many at a time ----

template <class Work>
void in_threads(Work work) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kWorkers; t++) {
        threads.emplace_back([&, t] { work(t); });
    }
    for (auto& thread : threads) {
        thread.join();
    }
}

TEST(LedgerRateLimit, ThreadsTogetherTakeWhatIsThere) {
    const int rounds = long_mode() ? 5'000 : 500;
    for (const auto& rule : {RateRule{1, 1000}, RateRule{20, 1000}, RateRule{300, 1000}}) {
        Table t(rule);
        std::barrier sync(kWorkers);
        std::atomic<uint32_t> passed = 0;
        std::atomic<uint32_t> wrong = 0;
        const int some = rule.exact() ? rounds : rounds / 10;
        in_threads([&](int thread) {
            for (int round = 0; round < some; round++) {
                const uint64_t key = mix13(round / 3);
                const uint64_t now = kNow + uint64_t(round) * 2 * rule.window;
                sync.arrive_and_wait();
                for (uint32_t i = 0; i < rule.rate / 4 + 2; i++) {
                    passed += t.table.take(key, now, thread).passes ? 1 : 0;
                }
                sync.arrive_and_wait();
                if (thread == 0) {
                    const uint32_t asked = kWorkers * (rule.rate / 4 + 2);
                    wrong += passed == std::min(asked, rule.rate) ? 0 : 1;
                    passed = 0;
                }
            }
        });
        EXPECT_EQ(wrong, 0u) << rule.rate;
        EXPECT_EQ(t.table.totals().busy, 0u);
    }
}

// Each with a clock of its own, a few ms apart, on a ring that turns.
TEST(LedgerRateLimit, WindowsThatSlideUnderThreads) {
    const uint64_t length = long_mode() ? 200'000 : 10'000;  // ms
    for (const auto& rule : {RateRule{12, 1000}, RateRule{300, 1000}}) {
        Table t(rule);
        std::barrier sync(kWorkers);
        std::vector<std::atomic<uint32_t>> passed(length);
        in_threads([&](int thread) {
            std::mt19937_64 random(thread);
            for (uint64_t ms = 0; ms < length; ms += 10) {
                for (uint64_t i = random() % (rule.exact() ? 3 : 6); i > 0; i--) {
                    passed[ms] += t.table.take(77, kNow + ms, thread).passes ? 1 : 0;
                }
                sync.arrive_and_wait();
            }
        });
        uint32_t within = 0;
        uint32_t most = 0;
        for (uint64_t ms = 0; ms < length; ms++) {
            within += passed[ms];
            within -= ms >= rule.window ? passed[ms - rule.window].load() : 0;
            ASSERT_LE(within, rule.rate);
            most = std::max(most, within);
        }
        EXPECT_EQ(most, rule.rate);
    }
}

// More keys than there is room for: whatever happens, counts stay in bounds.
TEST(LedgerRateLimit, KeysThatPushEachOtherOut) {
    const int each = long_mode() ? 500'000 : 20'000;
    for (const auto& rule : {RateRule{4, 1000}, RateRule{300, 1000}}) {
        Table t(rule, 2);
        in_threads([&](int thread) {
            std::mt19937_64 random(thread);
            for (int i = 0; i < each; i++) {
                const RateVerdict verdict =
                    t.table.take(mix13(random() % 64), kNow + i / 100, thread);
                ASSERT_LE(verdict.remaining, rule.rate - 1);
            }
        });
        const RateTotals totals = t.table.totals();
        EXPECT_EQ(totals.passed + totals.refused + totals.busy, uint64_t(kWorkers) * each);
        EXPECT_LE(totals.entries, totals.capacity);
        EXPECT_GT(totals.evicted, 0u);
    }
}

// Fifteen processes died in one bucket, each with an entry half made.
TEST(LedgerRateLimit, WhatTheDeadLeftIsTakenOver) {
    for (const auto& rule : {RateRule{2, 1000}, RateRule{300, 1000}}) {
        Table t(rule);
        for (auto& control : t.bucket().controls) {
            control = uint64_t{2} << 62 | uint64_t{5} << 54 | kNow;  // busy, generation 5
        }
        EXPECT_TRUE(t.table.take(1, kNow + 1000).passes) << "rather uncounted than refused";
        EXPECT_EQ(t.table.totals().busy, 1u);
        for (uint64_t key = 0; key < RateBucket::kEntries; key++) {
            EXPECT_EQ(t.drain(key, kNow + 3000), rule.rate);
        }
        EXPECT_EQ(t.table.totals().busy, 1u);
        EXPECT_EQ(t.table.totals().evicted, 0u);
    }
}

// One died right after its commit, before the entry was ready: its request counts.
TEST(LedgerRateLimit, ACommitIsFinishedByTheNext) {
    Table t({2, 1000});
    const uint64_t key = mix13(1);
    t.bucket().controls[3] = uint64_t{2} << 62 | uint64_t{1} << 54 | kNow;
    t.bucket().keys[3] = key << 8 | 1;
    t.bucket().commit = uint64_t{1} << 12 | 1 << 4 | 3;
    EXPECT_TRUE(t.table.take(key, kNow).passes);
    EXPECT_EQ(t.drain(1, kNow), 0u);
    EXPECT_EQ(t.bucket().keys[0].load(), 0u) << "it is in the entry that was made for it";
}

}  // namespace
