#include "ledger/dedupe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

using namespace ads;

constexpr uint32_t kNow = 1'794'787'200;
constexpr uint32_t kLater = kNow + 3600;

// As in the control word of an entry.
enum State : uint64_t { kFree, kBusy, kTentative, kPending, kDone };

class Table {
public:
    explicit Table(size_t entries)
        : entries_(new DedupeEntry[entries]{}),
          workers_(new WorkerSlot[kMaxWorkers]{}),
          size_(entries),
          dedupe({entries_.get(), entries}, {workers_.get(), kMaxWorkers}, stats_) {}

    Claim claim(uint64_t key, uint32_t owner = 0, uint32_t now = kNow, uint32_t expires = kLater) {
        return dedupe.claim(key, now, expires, owner, entry);
    }

    // Claims and completes, as a worker does.
    Claim count(uint64_t key, uint32_t owner = 0, uint32_t now = kNow, uint32_t expires = kLater) {
        const Claim result = claim(key, owner, now, expires);
        if (result == Claim::fresh) {
            dedupe.complete(entry, owner);
        }
        dedupe.clear_pending(owner);
        return result;
    }

    // What a process that died may have left.
    void craft(uint32_t at, State state, uint32_t owner, uint64_t key) {
        entries_[at].key.store(key);
        entries_[at].control.store(uint64_t{state} << 61 | uint64_t{owner} << 51 |
                                   uint64_t{5} << 32 | kLater);
        WorkerSlot& worker = workers_[owner];
        const uint32_t count = worker.pending_count.load();
        worker.pending[count].store(at);
        worker.pending_count.store(count + 1);
    }

    State state(uint32_t at) const { return static_cast<State>(entries_[at].control.load() >> 61); }
    uint32_t pending(uint32_t owner) const { return workers_[owner].pending_count.load(); }
    uint64_t evicted() const { return stats_.evicted.load(); }
    size_t used() const {
        size_t n = 0;
        for (size_t i = 0; i < size_; i++) {
            n += state(static_cast<uint32_t>(i)) != kFree;
        }
        return n;
    }
    WorkerSlot& worker(uint32_t owner) { return workers_[owner]; }

private:
    std::unique_ptr<DedupeEntry[]> entries_;
    std::unique_ptr<WorkerSlot[]> workers_;
    DedupeStats stats_{};
    size_t size_;

public:
    Dedupe dedupe;
    uint32_t entry = 0;
};

TEST(LedgerDedupe, OnceAndNeverAgain) {
    Table table(64);
    EXPECT_EQ(table.claim(42), Claim::fresh);
    EXPECT_EQ(table.claim(42), Claim::duplicate) << "of this very turn";
    EXPECT_EQ(table.claim(42, 1), Claim::busy) << "another worker is at it";
    table.dedupe.complete(table.entry, 0);
    table.dedupe.clear_pending(0);
    EXPECT_EQ(table.claim(42), Claim::duplicate);
    EXPECT_EQ(table.claim(42, 1), Claim::duplicate);
    EXPECT_EQ(table.pending(0), 0u);
    EXPECT_EQ(table.pending(1), 0u);
    EXPECT_EQ(table.used(), 1u);
}

TEST(LedgerDedupe, FindChangesNothing) {
    Table table(64);
    EXPECT_EQ(table.dedupe.find(42, kNow), Known::no);
    EXPECT_EQ(table.claim(42), Claim::fresh);
    EXPECT_EQ(table.dedupe.find(42, kNow), Known::yes) << "pending is claimed";
    table.dedupe.complete(table.entry, 0);
    table.dedupe.clear_pending(0);
    EXPECT_EQ(table.dedupe.find(42, kNow), Known::yes);
    EXPECT_EQ(table.dedupe.find(42 + 64, kNow), Known::no) << "another key of the bucket";
    EXPECT_EQ(table.dedupe.find(42, kLater - 1), Known::yes);
    EXPECT_EQ(table.dedupe.find(42, kLater), Known::no) << "its life is over";
    EXPECT_EQ(table.used(), 1u);
    EXPECT_EQ(table.claim(43), Claim::fresh);
    table.dedupe.release(table.entry, 0);
    table.dedupe.clear_pending(0);
    EXPECT_EQ(table.dedupe.find(43, kNow), Known::no) << "released";
}

// Where entries were thrown out, nobody knows what was there.
TEST(LedgerDedupe, FindIsUnsureInAFullBucket) {
    Table table(64);
    for (uint64_t i = 0; i < 9; i++) {
        EXPECT_EQ(table.count(64 * i, 0, kNow, kLater + static_cast<uint32_t>(i)), Claim::fresh);
    }
    EXPECT_EQ(table.evicted(), 1u);
    EXPECT_EQ(table.dedupe.find(0, kNow), Known::unsure);
    EXPECT_EQ(table.dedupe.find(64, kNow), Known::yes);
    EXPECT_EQ(table.dedupe.find(8, kNow), Known::no) << "in another bucket";
    EXPECT_EQ(table.dedupe.find(0, kLater + 1), Known::no) << "it would have expired";
}

TEST(LedgerDedupe, KeysOfOneBucketAreApart) {
    Table table(64);
    for (uint64_t i = 0; i < 8; i++) {
        EXPECT_EQ(table.count(64 * i), Claim::fresh);
    }
    for (uint64_t i = 0; i < 8; i++) {
        EXPECT_EQ(table.count(64 * i), Claim::duplicate);
    }
    EXPECT_EQ(table.count(8), Claim::fresh);
    EXPECT_EQ(table.evicted(), 0u);
}

TEST(LedgerDedupe, KeysAtTheEdges) {
    Table table(64);
    for (const uint64_t key : {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 63}) {
        EXPECT_EQ(table.count(key), Claim::fresh);
        EXPECT_EQ(table.count(key), Claim::duplicate);
    }
    Table smallest(kBucketEntries);
    EXPECT_EQ(smallest.count(~uint64_t{0}), Claim::fresh);
    EXPECT_EQ(smallest.count(~uint64_t{0}), Claim::duplicate);
}

TEST(LedgerDedupe, AReleasedOneIsFreshAgain) {
    Table table(64);
    ASSERT_EQ(table.claim(42), Claim::fresh);
    table.dedupe.release(table.entry, 0);
    EXPECT_EQ(table.used(), 0u);
    EXPECT_EQ(table.claim(42, 3), Claim::fresh);
    table.dedupe.complete(table.entry, 3);
    EXPECT_EQ(table.count(42), Claim::duplicate);
}

TEST(LedgerDedupe, OnlyTheOwnerSettlesAndReleases) {
    Table table(64);
    ASSERT_EQ(table.claim(42, 1), Claim::fresh);
    const uint32_t entry = table.entry;
    table.dedupe.release(entry, 2);
    table.dedupe.complete(entry, 2);
    EXPECT_EQ(table.state(entry), kPending);
    table.dedupe.complete(entry, 1);
    EXPECT_EQ(table.state(entry), kDone);
    table.dedupe.release(entry, 1);
    EXPECT_EQ(table.state(entry), kDone) << "what is done stays done";
}

TEST(LedgerDedupe, ExpiredOnesAreForgotten) {
    Table table(64);
    ASSERT_EQ(table.count(42, 0, kNow, kNow + 10), Claim::fresh);
    EXPECT_EQ(table.count(42, 0, kNow + 9), Claim::duplicate);
    EXPECT_EQ(table.count(42, 0, kNow + 10), Claim::fresh);
    EXPECT_EQ(table.count(42, 0, kNow + 10), Claim::duplicate);
    EXPECT_EQ(table.evicted(), 0u);
}

TEST(LedgerDedupe, AFullBucketGivesUpTheSoonestToExpire) {
    Table table(kBucketEntries);
    for (uint64_t i = 0; i < 8; i++) {
        ASSERT_EQ(table.count(100 + i, 0, kNow, kLater + static_cast<uint32_t>((i + 3) % 8)),
                  Claim::fresh);
    }
    EXPECT_EQ(table.evicted(), 0u);
    EXPECT_EQ(table.count(200, 0, kNow, kLater + 100), Claim::fresh);
    EXPECT_EQ(table.evicted(), 1u);
    for (uint64_t i = 0; i < 8; i++) {
        if (i != 5) {  // (5 + 3) % 8 == 0: it went
            EXPECT_EQ(table.count(100 + i), Claim::duplicate) << i;
        }
    }
    EXPECT_EQ(table.count(200), Claim::duplicate);
    EXPECT_EQ(table.count(105, 0, kNow, kLater + 100), Claim::fresh) << "and was forgotten";
    EXPECT_EQ(table.evicted(), 2u);
}

TEST(LedgerDedupe, ExpiredOnesGoFirstAndAreNotCounted) {
    Table table(kBucketEntries);
    for (uint64_t i = 0; i < 8; i++) {
        ASSERT_EQ(table.count(100 + i, 0, kNow, i == 4 ? kNow + 5 : kLater), Claim::fresh);
    }
    EXPECT_EQ(table.count(200, 0, kNow + 6), Claim::fresh);
    EXPECT_EQ(table.evicted(), 0u);
    for (uint64_t i = 0; i < 8; i++) {
        if (i != 4) {
            EXPECT_EQ(table.count(100 + i, 0, kNow + 6), Claim::duplicate);
        }
    }
}

TEST(LedgerDedupe, PendingOnesAreNeverEvicted) {
    Table table(kBucketEntries);
    for (uint64_t i = 0; i < 8; i++) {
        ASSERT_EQ(table.claim(100 + i, 1), Claim::fresh);
    }
    EXPECT_EQ(table.claim(200, 2), Claim::busy);
    EXPECT_EQ(table.claim(200, 1), Claim::busy);
    EXPECT_EQ(table.pending(1), 8u);
    EXPECT_EQ(table.pending(2), 0u);
    table.dedupe.complete(3, 1);
    EXPECT_EQ(table.claim(200, 2), Claim::fresh);
    EXPECT_EQ(table.entry, 3u);
    EXPECT_EQ(table.evicted(), 1u);
}

TEST(LedgerDedupe, AnExpiredPendingIsStillPending) {
    Table table(kBucketEntries);
    ASSERT_EQ(table.claim(42, 1, kNow, kNow + 5), Claim::fresh);
    EXPECT_EQ(table.claim(42, 2, kNow + 100), Claim::busy);
}

TEST(LedgerDedupe, TheDeadAreSettledInTheirPlace) {
    Table table(64);
    std::vector<uint64_t> keys;
    for (uint64_t key = 1; key <= 20; key++) {
        ASSERT_EQ(table.claim(key * 1000, 5), Claim::fresh);
        keys.push_back(key * 1000);
    }
    std::multiset<uint64_t> asked;
    table.dedupe.resolve(
        5, 0,
        [&](uint64_t key) {
            asked.insert(key);
            return key % 3000 == 0;
        },
        [](uint64_t) {});
    EXPECT_EQ(asked, std::multiset<uint64_t>(keys.begin(), keys.end())) << "each once";
    for (const uint64_t key : keys) {
        EXPECT_EQ(table.count(key, 6), key % 3000 == 0 ? Claim::duplicate : Claim::fresh);
    }
    table.dedupe.resolve(
        5, 0,
        [](uint64_t) {
            ADD_FAILURE() << "asked again";
            return true;
        },
        [](uint64_t) {});
}

TEST(LedgerDedupe, TheDeadAreNotAskedOfWhatTheySettled) {
    Table table(64);
    ASSERT_EQ(table.claim(1, 5), Claim::fresh);
    table.dedupe.complete(table.entry, 5);
    ASSERT_EQ(table.claim(2, 5), Claim::fresh);
    table.dedupe.release(table.entry, 5);
    ASSERT_EQ(table.claim(3, 5), Claim::fresh);
    // It dies before clear_pending: all three are noted.
    std::vector<uint64_t> asked;
    table.dedupe.resolve(
        5, 0,
        [&](uint64_t key) {
            asked.push_back(key);
            return true;
        },
        [](uint64_t) {});
    EXPECT_EQ(asked, std::vector<uint64_t>{3});
    EXPECT_EQ(table.count(1, 6), Claim::duplicate);
    EXPECT_EQ(table.count(2, 6), Claim::fresh);
    EXPECT_EQ(table.count(3, 6), Claim::duplicate);
}

TEST(LedgerDedupe, WhatTheDeadHadBarelyBegunIsFreed) {
    Table table(64);
    table.craft(8, kBusy, 5, 0);
    table.craft(9, kTentative, 5, 8);
    table.craft(10, kPending, 5, 9);
    table.craft(11, kDone, 5, 10);
    EXPECT_EQ(table.count(8, 6), Claim::busy);
    std::vector<uint64_t> asked;
    table.dedupe.resolve(
        5, 0,
        [&](uint64_t key) {
            asked.push_back(key);
            return false;
        },
        [](uint64_t) {});
    EXPECT_EQ(asked, std::vector<uint64_t>{9});
    EXPECT_EQ(table.state(8), kFree);
    EXPECT_EQ(table.state(9), kFree);
    EXPECT_EQ(table.state(10), kFree);
    EXPECT_EQ(table.state(11), kDone);
    EXPECT_EQ(table.count(8, 6), Claim::fresh);
}

// It noted the entry and died before, or just after, losing it to another.
TEST(LedgerDedupe, TheDeadDoNotTakeFromTheLiving) {
    Table table(64);
    ASSERT_EQ(table.claim(8, 6), Claim::fresh);
    const uint32_t entry = table.entry;
    table.worker(5).pending[0].store(entry);
    table.worker(5).pending[1].store(9);            // a free one
    table.worker(5).pending[2].store(0xffff'ffff);  // nonsense
    table.worker(5).pending_count.store(3);
    table.dedupe.resolve(
        5, 0,
        [](uint64_t) {
            ADD_FAILURE();
            return false;
        },
        [](uint64_t) {});
    EXPECT_EQ(table.state(entry), kPending);
    EXPECT_EQ(table.claim(8, 6), Claim::duplicate);
}

// Two keepers recover the same worker: one was stopped over it, and goes on.
TEST(LedgerDedupe, EachClaimOfTheDeadIsSettledOnce) {
    Table table(64);
    for (uint64_t key = 1; key <= 20; key++) {
        ASSERT_EQ(table.claim(key * 1000, 5), Claim::fresh);
    }
    std::multiset<uint64_t> completed;
    const auto count = [&](uint64_t key) { completed.insert(key); };
    bool woken = false;
    table.dedupe.resolve(
        5, 0,
        [&](uint64_t key) {
            if (key == 7000 && !std::exchange(woken, true)) {
                table.dedupe.resolve(
                    5, 0, [](uint64_t) { return true; }, count);
            }
            return true;
        },
        count);
    EXPECT_TRUE(woken);
    EXPECT_EQ(completed.size(), 20u);
    EXPECT_EQ(std::set<uint64_t>(completed.begin(), completed.end()).size(), 20u);
}

// The same, but the place belongs to a living worker by then.
TEST(LedgerDedupe, WhoCameAfterTheDeadKeepsItsClaims) {
    Table table(64);
    table.worker(5).process.store(50);
    ASSERT_EQ(table.claim(8, 5), Claim::fresh);
    const uint32_t entry = table.entry;
    table.dedupe.resolve(
        5, 49, [](uint64_t) { return true; }, [](uint64_t) { ADD_FAILURE(); });
    EXPECT_EQ(table.state(entry), kPending);
}

TEST(LedgerDedupe, AWildCountOfTheDeadIsBounded) {
    Table table(64);
    ASSERT_EQ(table.claim(8, 5), Claim::fresh);
    table.worker(5).pending_count.store(0xffff'ffff);
    int asked = 0;
    table.dedupe.resolve(
        5, 0,
        [&](uint64_t) {
            asked++;
            return true;
        },
        [](uint64_t) {});
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(table.count(8, 6), Claim::duplicate);
}

TEST(LedgerDedupe, HoldsAsManyOpenClaimsAsPromised) {
    Table table(1 << 14);
    for (uint64_t i = 0; i < kMaxPending; i++) {
        ASSERT_EQ(table.claim(mix13(i), 5), Claim::fresh);
    }
    std::set<uint64_t> asked;
    table.dedupe.resolve(
        5, 0,
        [&](uint64_t key) {
            asked.insert(key);
            return true;
        },
        [](uint64_t) {});
    EXPECT_EQ(asked.size(), kMaxPending);
}

TEST(LedgerDedupe, KeysTellTypesAndServesApart) {
    std::set<uint64_t> keys;
    std::mt19937_64 random(9);
    for (int i = 0; i < 20'000; i++) {
        const uint64_t serve = i < 1000 ? static_cast<uint64_t>(i) : random();
        for (size_t type = 0; type < kCount<EventType>; type++) {
            keys.insert(dedupe_key(serve, static_cast<EventType>(type)));
        }
    }
    EXPECT_EQ(keys.size(), 100'000u);
}

TEST(LedgerDedupe, AgainstAModel) {
    Table table(1 << 12);
    struct Known {
        uint32_t expires;
        bool pending;
        uint32_t owner;
        uint32_t entry;
    };
    std::unordered_map<uint64_t, Known> model;
    std::mt19937_64 random(10);
    uint32_t now = kNow;
    std::array<int, 3> seen{};
    for (int i = 0; i < 300'000; i++) {
        now += random() % 20 == 0;
        const uint64_t key = mix13(random() % 700);
        const auto owner = static_cast<uint32_t>(random() % 4);
        const auto expires = now + 1 + static_cast<uint32_t>(random() % 300);
        auto known = model.find(key);
        if (known != model.end() && !known->second.pending && known->second.expires <= now) {
            model.erase(known);
            known = model.end();
        }
        const Claim expected = known == model.end()           ? Claim::fresh
                               : !known->second.pending       ? Claim::duplicate
                               : known->second.owner == owner ? Claim::duplicate
                                                              : Claim::busy;
        ASSERT_EQ(table.claim(key, owner, now, expires), expected) << "step " << i;
        seen[static_cast<size_t>(expected)]++;
        if (expected == Claim::fresh) {
            model[key] = {expires, true, owner, table.entry};
        }
        // Some pending one is completed or released.
        if (random() % 16 == 0 || table.pending(owner) > kMaxPending - 2) {
            for (auto it = model.begin(); it != model.end();) {
                if (it->second.pending && it->second.owner == owner) {
                    if (random() % 4 == 0) {
                        table.dedupe.release(it->second.entry, owner);
                        it = model.erase(it);
                        continue;
                    }
                    table.dedupe.complete(it->second.entry, owner);
                    it->second.pending = false;
                }
                ++it;
            }
            table.dedupe.clear_pending(owner);
        }
    }
    EXPECT_EQ(table.evicted(), 0u) << "the table is too small for the model";
    for (const int n : seen) {
        EXPECT_GT(n, 1000);
    }
}

// Asks until it is known. True if this was the one that may count.
bool counted(Dedupe& dedupe, uint64_t key, uint32_t owner) {
    for (;;) {
        uint32_t entry = 0;
        switch (dedupe.claim(key, kNow, kLater, owner, entry)) {
            case Claim::fresh:
                dedupe.complete(entry, owner);
                dedupe.clear_pending(owner);
                return true;
            case Claim::duplicate:
                return false;
            case Claim::busy:
                std::this_thread::yield();
        }
    }
}

TEST(LedgerDedupe, ThreadsCountEachKeyOnce) {
    constexpr uint32_t kThreads = 8;
    constexpr size_t kKeys = 4000;
    for (uint64_t round = 0; round < 10; round++) {
        Table table(1 << 16);
        std::vector<std::atomic<int>> fresh(kKeys);
        std::barrier start(kThreads);
        std::vector<std::thread> threads;
        for (uint32_t owner = 0; owner < kThreads; owner++) {
            threads.emplace_back([&, owner] {
                start.arrive_and_wait();
                for (size_t i = 0; i < kKeys; i++) {
                    if (counted(table.dedupe, mix13(round << 32 | i), owner)) {
                        fresh[i]++;
                    }
                }
            });
        }
        for (auto& thread : threads) {
            thread.join();
        }
        for (size_t i = 0; i < kKeys; i++) {
            ASSERT_EQ(fresh[i], 1) << "key " << i << " of round " << round;
        }
        ASSERT_EQ(table.evicted(), 0u);
        ASSERT_EQ(table.used(), kKeys) << "every loser has withdrawn";
    }
}

// The same with claims that are given back: for each key one success at last,
// whoever it is.
TEST(LedgerDedupe, ThreadsThatGiveBack) {
    constexpr uint32_t kThreads = 8;
    constexpr size_t kKeys = 4000;
    Table table(1 << 16);
    std::vector<std::atomic<int>> completed(kKeys);
    std::barrier start(kThreads);
    std::vector<std::thread> threads;
    for (uint32_t owner = 0; owner < kThreads; owner++) {
        threads.emplace_back([&, owner] {
            std::mt19937 random(owner);
            start.arrive_and_wait();
            for (size_t i = 0; i < kKeys; i++) {
                for (bool known = false; !known;) {
                    uint32_t entry = 0;
                    const Claim claim = table.dedupe.claim(mix13(i), kNow, kLater, owner, entry);
                    known = claim == Claim::duplicate;
                    if (claim == Claim::fresh && random() % 2 == 0) {
                        table.dedupe.release(entry, owner);
                    } else if (claim == Claim::fresh) {
                        table.dedupe.complete(entry, owner);
                        completed[i]++;
                    } else if (claim == Claim::busy) {
                        std::this_thread::yield();
                    }
                    table.dedupe.clear_pending(owner);
                }
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    for (size_t i = 0; i < kKeys; i++) {
        ASSERT_EQ(completed[i], 1) << "key " << i;
    }
    EXPECT_EQ(table.used(), kKeys);
}

// Two that meet at each key at very nearly the same moment, so that each step
// of one falls between any two of the other. Returns how often both counted,
// or neither.
uint64_t wrong_in_step(uint64_t rounds) {
    Table table(std::bit_ceil(rounds * kBucketEntries));
    std::array<std::atomic<uint64_t>, 2> at{};
    std::array<std::vector<bool>, 2> fresh = {std::vector<bool>(rounds), std::vector<bool>(rounds)};
    const auto run = [&](uint32_t me) {
        std::mt19937 random(me);
        for (uint64_t i = 0; i < rounds; i++) {
            at[me].store(i + 1);
            for (int spins = 0; at[1 - me].load() < i + 1; spins++) {
                if (spins > 200) {
                    std::this_thread::yield();
                }
            }
            for (uint32_t wait = random() % 32; wait > 0; wait--) {
                at[me].load();
            }
            fresh[me][i] = counted(table.dedupe, kBucketEntries * i, me);  // a bucket each
        }
    };
    std::thread other(run, 1);
    run(0);
    other.join();
    EXPECT_EQ(table.evicted(), 0u);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        wrong += fresh[0][i] == fresh[1][i];
    }
    return wrong;
}

TEST(LedgerDedupe, TwoInStep) {
#if defined(__SANITIZE_THREAD__)
    constexpr int kLaps = 1;
#else
    constexpr int kLaps = 5;
#endif
    for (int lap = 0; lap < kLaps; lap++) {
        ASSERT_EQ(wrong_in_step(100'000), 0u) << "lap " << lap;
    }
}

}  // namespace
