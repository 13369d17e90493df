// Which keeper is active, and what becomes of keepers that die.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "ledger/active_keeper.hpp"
#include "ledger/keeper_life.hpp"
#include "ledger_memory.hpp"

namespace {

using namespace ads;
using ledger_test::alive;
using ledger_test::dead;
using ledger_test::process;

class LedgerKeeper : public testing::Test {
protected:
    LedgerKeeper() { ledger_test::revive_all(); }

    KeeperWords words_{};
};

TEST_F(LedgerKeeper, OneIsActiveAndTheSilentLoseIt) {
    ActiveKeeper one(words_, process(1), 1);
    ActiveKeeper two(words_, process(2), 1);
    EXPECT_FALSE(words_.taken(1000, alive));
    EXPECT_FALSE(one.holds());
    EXPECT_TRUE(one.hold(1000, alive));
    EXPECT_TRUE(one.holds());
    EXPECT_FALSE(two.hold(1500, alive));
    EXPECT_TRUE(one.hold(2000, alive));
    EXPECT_FALSE(two.hold(4999, alive));
    const uint32_t term = words_.term();
    EXPECT_TRUE(two.hold(5000, alive)) << "silent for three seconds";
    EXPECT_EQ(words_.term(), term + 1);
    EXPECT_EQ(words_.pid(), 2u);
    EXPECT_FALSE(one.holds()) << "it was stopped, and is woken";
    EXPECT_FALSE(one.hold(5100, alive));
    one.give_up();
    EXPECT_TRUE(two.holds()) << "only the active one gives up";
    two.give_up();
    EXPECT_TRUE(one.hold(5200, alive)) << "at once";
}

TEST_F(LedgerKeeper, ANewerConfigurationTakesOverAtOnce) {
    ActiveKeeper old(words_, process(1), 1);
    ActiveKeeper fresh(words_, process(2), 2);
    ASSERT_TRUE(old.hold(1000, alive));
    EXPECT_TRUE(fresh.hold(1001, alive));
    EXPECT_FALSE(old.holds());
    EXPECT_FALSE(old.hold(1002, alive));
    // A binary upgrade is rolled back.
    dead[2] = true;
    EXPECT_TRUE(old.hold(1003, alive));
}

TEST_F(LedgerKeeper, TheDeadAndAnotherBootHoldNothing) {
    ActiveKeeper one(words_, process(1), 1);
    ActiveKeeper two(words_, process(2), 1);
    ASSERT_TRUE(one.hold(1'000'000, alive));
    EXPECT_FALSE(two.hold(1'000'001, alive));
    EXPECT_TRUE(two.hold(500, alive)) << "the clock began anew";
    dead[2] = true;
    EXPECT_TRUE(one.hold(501, alive));
}

TEST_F(LedgerKeeper, ThreadsContendForIt) {
    for (uint32_t round = 1; round <= 300; round++) {
        std::atomic<int> active{0};
        std::vector<std::thread> threads;
        for (uint32_t pid = 1; pid <= 8; pid++) {
            threads.emplace_back([&, pid] {
                ActiveKeeper keeper(words_, process(pid), round);
                keeper.hold(10 * round, alive);
                std::this_thread::yield();
                active += keeper.holds();
            });
        }
        for (auto& thread : threads) {
            thread.join();
        }
        ASSERT_GE(active, 1);
        ASSERT_TRUE(words_.taken(10 * round, alive));
    }
}

TEST(LedgerKeeperLife, ThreeDeathsInTenSecondsAreFollowedByAWait) {
    ledger_test::revive_all();
    KeeperLife life{};
    uint64_t now = 1'000'000;
    const auto dies = [&](uint32_t pid) {
        const uint32_t wait = life.begin(process(pid), now, alive);
        dead[pid] = true;
        now += 1000;
        return wait;
    };
    std::vector<uint32_t> waits;
    for (uint32_t pid = 1; pid <= 12; pid++) {
        waits.push_back(dies(pid));
    }
    EXPECT_EQ(waits, (std::vector<uint32_t>{0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60}));
    now += 60'000;
    EXPECT_EQ(dies(13), 0u) << "it has lived for a while";
    EXPECT_EQ(life.begin(process(14), now, alive), 0u);
    life.end(process(14));
    EXPECT_EQ(life.begin(process(15), now, alive), 0u) << "the one before ended in order";
    EXPECT_EQ(life.begin(process(16), now, alive), 0u) << "a reload: the old one lives yet";
}

TEST(LedgerKeeperLife, ADocumentThatKilledTwoIsRefused) {
    ledger_test::revive_all();
    KeeperLife life{};
    const auto killed_by = [&](uint32_t pid, uint64_t hash) {
        life.begin(process(pid), 100'000 * pid, alive);
        life.compiling.store(hash);
        dead[pid] = true;
    };
    killed_by(1, 7);
    killed_by(2, 7);
    EXPECT_FALSE(life.refuses(7)) << "once is chance";
    killed_by(3, 8);
    EXPECT_TRUE(life.refuses(7));
    EXPECT_FALSE(life.refuses(8));
    killed_by(4, 0);
    EXPECT_FALSE(life.refuses(8));
    EXPECT_FALSE(life.refuses(0));
}

}  // namespace
