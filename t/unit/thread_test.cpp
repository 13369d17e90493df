// Threads beside the event loop: that they give way, and take turns.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "io/thread.hpp"
#include "io/turns.hpp"

namespace {

using namespace ads;

// What a thread that gives way is, for one who may and for one who may not come back.
struct Manners {
    int policy = -1;
    int nice = 0;
};

Manners manners_of_giving_way() {
    Manners found;
    do_apart([&] {
        give_way(may_return());
        found.policy = sched_getscheduler(0);
        found.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
    });
    return found;
}

TEST(Thread, GivingWayIsForThatWorkAlone) {
    const Manners found = manners_of_giving_way();
    EXPECT_TRUE(found.policy == SCHED_IDLE || found.nice == 19)
        << found.policy << ", nice " << found.nice;
    EXPECT_NE(sched_getscheduler(0), SCHED_IDLE);
    EXPECT_LT(getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())), 19);
}

// In the class of idle threads one without privileges would stay for ever.
TEST(Thread, WhoCannotComeBackIsOnlyNice) {
    if (getuid() != 0) {
        GTEST_SKIP() << "only root can become somebody else";
    }
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const rlimit none{0, 0};
        if (setrlimit(RLIMIT_NICE, &none) != 0 || setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(2);
        }
        const Manners found = manners_of_giving_way();
        _exit(found.policy == SCHED_OTHER && found.nice == 19 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Beside an event loop that takes one turn after the other, until it ends.
class Loop {
public:
    Loop(Turns& turns, bool behind)
        : thread_([this, &turns, behind] {
              while (!ended_.load()) {
                  turns.offer(behind);
                  sched_yield();
              }
          }) {}
    ~Loop() { end(); }
    void end() {
        ended_.store(true);
        if (thread_.joinable()) {
            thread_.join();
        }
    }

private:
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

// How often this thread has waited for something.
long waits() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

// Also one that is always behind.
TEST(Turns, BesideABusyLoopTheThreadWaitsForEachTurn) {
    for (const bool behind : {false, true}) {
        Turns turns;
        Loop loop(turns, behind);
        do_apart([&] {
            const std::atomic<bool> stopping{false};
            SharedCore core(&turns, stopping);
            const long before = waits();
            while (waits() < before + 100) {  // ends only if it waits, and is given turns
                ASSERT_TRUE(core.go_on());
            }
        });
    }
}

int64_t on_cpu() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// What the thread usually has of the CPU between two waits: the median of some turns.
int64_t usual_turn(bool behind) {
    std::vector<int64_t> taken;
    Turns turns;
    Loop loop(turns, behind);
    do_apart([&] {
        const std::atomic<bool> stopping{false};
        SharedCore core(&turns, stopping);
        long seen = waits();
        int64_t began = on_cpu();
        while (taken.size() < 31) {
            core.go_on();
            if (const long now = waits(); now != seen) {
                seen = now;
                const int64_t time = on_cpu();
                taken.push_back(time - began);
                began = time;
            }
        }
    });
    std::nth_element(taken.begin(), taken.begin() + 15, taken.end());
    return taken[15];
}

// A loop that is behind has no time to give, but the work must come to an end.
TEST(Turns, BesideALoopThatIsBehindTheyAreFewAndLong) {
    EXPECT_GT(usual_turn(true), 3 * usual_turn(false));
}

// It does not wait for a turn that nobody will offer.
TEST(Turns, WithoutALoopItGoesOn) {
    Turns turns;
    std::atomic<bool> stopping{false};
    do_apart([&] {
        SharedCore core(&turns, stopping);
        {
            Loop loop(turns, false);
            const long before = waits();
            while (waits() < before + 10) {
                ASSERT_TRUE(core.go_on());
            }
        }
        // Wherever the loop has left it.
        for (int i = 0; i < 1'000'000; i++) {
            ASSERT_TRUE(core.go_on());
        }
        stopping.store(true);
        EXPECT_FALSE(core.go_on());
        EXPECT_FALSE(core.go_alone());
    });
}

TEST(Turns, InItsTurnItStandsInLineAndAloneItGivesWay) {
    Turns turns;
    Loop loop(turns, false);
    do_apart([&] {
        if (!may_return()) {
            GTEST_SKIP() << "threads may not leave the class of idle ones here";
        }
        const std::atomic<bool> stopping{false};
        SharedCore core(&turns, stopping);
        EXPECT_EQ(sched_getscheduler(0), SCHED_IDLE);
        while (sched_getscheduler(0) == SCHED_IDLE) {  // until it has seen that the loop is busy
            ASSERT_TRUE(core.go_on());
        }
        ASSERT_TRUE(core.go_alone());
        EXPECT_EQ(sched_getscheduler(0), SCHED_IDLE);
    });
}

TEST(Turns, WithoutTurnsTheThreadIsLeftAsItWas) {
    do_apart([] {
        const std::atomic<bool> stopping{false};
        SharedCore core(nullptr, stopping);
        EXPECT_TRUE(core.go_on());
        EXPECT_TRUE(core.go_alone());
        EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
        EXPECT_LT(getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())), 19);
    });
}

}  // namespace
