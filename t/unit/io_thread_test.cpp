// Threads beside the event loop: that they give way, and take turns.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

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

// Beside an event loop that takes one turn after the other and never sleeps, until it ends.
class Loop {
public:
    explicit Loop(Turns& turns)
        : thread_([this, &turns] {
              while (!ended_.load()) {
                  turns.offer();
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

// Whoever this thread starts meanwhile has the same core as itself.
class OneCore {
public:
    OneCore() {
        sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }

private:
    cpu_set_t before_{};
};

// The loop is not a child of the thread that gives way: it would inherit that.
template <class Work>
void do_beside(Turns& turns, Work work) {
    stand_in_line(0);
    Loop loop(turns);
    give_way(true);
    work();
}

// Goes on until it is so; what does not come within a minute will not come.
template <class Condition>
bool goes_on_until(SharedCore& core, Condition reached) {
    const Millis end = monotonic() + 60'000;
    while (!reached()) {
        if (!core.go_on() || monotonic() > end) {
            return false;
        }
    }
    return true;
}

bool gives_way() {
    return sched_getscheduler(0) == SCHED_IDLE;
}

// How often this thread has waited for something.
long waits() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

TEST(Turns, BesideABusyLoopTheThreadWaits) {
    Turns turns;
    Loop loop(turns);
    do_apart([&] {
        const std::atomic<bool> stopping{false};
        SharedCore core(&turns, stopping);
        const long before = waits();
        EXPECT_TRUE(goes_on_until(core, [&] { return waits() >= before + 100; }));
    });
}

// One that gives way would have next to no time there.
TEST(Turns, ALoopThatNeverSleepsHelpsTheThreadForAMoment) {
    const OneCore one;
    Turns turns;
    Loop loop(turns);
    do_apart([&] {
        if (!may_return()) {
            GTEST_SKIP() << "threads may not leave the class of idle ones here";
        }
        const std::atomic<bool> stopping{false};
        SharedCore core(&turns, stopping);
        for (int times = 0; times < 3; times++) {
            ASSERT_TRUE(goes_on_until(core, [] { return !gives_way(); }));
            ASSERT_TRUE(goes_on_until(core, gives_way));
        }
    });
}

// Also while it asks for nothing: some of that work holds locks.
TEST(Turns, AloneItGivesWayUntilItIsHelped) {
    const OneCore one;
    Turns turns;
    do_apart([&] {
        if (!may_return()) {
            GTEST_SKIP() << "threads may not leave the class of idle ones here";
        }
        const std::atomic<bool> stopping{false};
        SharedCore core(&turns, stopping);
        ASSERT_TRUE(core.go_alone());
        EXPECT_TRUE(gives_way());
        do_beside(turns, [] {
            const Millis end = monotonic() + 60'000;
            while (gives_way() && monotonic() < end) {
            }
            EXPECT_FALSE(gives_way());
        });
        ASSERT_TRUE(core.go_alone());
        EXPECT_TRUE(gives_way());
    });
}

// It does not wait for a turn that nobody will offer.
TEST(Turns, WithoutALoopItGoesOn) {
    Turns turns;
    do_apart([&] {
        const std::atomic<bool> stopping{false};
        SharedCore core(&turns, stopping);
        do_beside(turns, [&] {
            const long before = waits();
            EXPECT_TRUE(goes_on_until(core, [&] { return waits() >= before + 10; }));
        });
        // Wherever the loop has left it.
        for (int i = 0; i < 1'000'000; i++) {
            ASSERT_TRUE(core.go_on());
        }
    });
}

// Who stops it waits for its end, and helps it no more.
TEST(Turns, ToldToStopItHurries) {
    Turns turns;
    do_apart([&] {
        if (!may_return()) {
            GTEST_SKIP() << "threads may not leave the class of idle ones here";
        }
        std::atomic<bool> stopping{false};
        SharedCore core(&turns, stopping);
        EXPECT_TRUE(gives_way());
        stopping.store(true);
        EXPECT_FALSE(core.go_on());
        EXPECT_FALSE(gives_way());
        EXPECT_FALSE(core.go_alone());
        EXPECT_FALSE(gives_way());
    });
}

TEST(Turns, WhoStopsItTakesItOutOfTheIdleClass) {
    Turns turns;
    std::atomic<bool> stopping{false};
    std::atomic<bool> gave_way{false};
    std::thread thread([&] {
        const bool returns = may_return();
        SharedCore core(&turns, stopping);
        gave_way.store(true);
        const Millis end = monotonic() + 60'000;
        while (returns && gives_way() && monotonic() < end) {
        }
        EXPECT_TRUE(!returns || !gives_way());
    });
    while (!gave_way.load()) {
        sched_yield();
    }
    turns.hurry();
    thread.join();
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
