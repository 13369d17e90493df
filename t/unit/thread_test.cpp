// Threads beside the event loop: that they give way, and pause.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io/thread.hpp"

namespace {

using namespace ads;

// Works for so many milliseconds of the CPU; how often it paused of itself meanwhile.
long pauses_in(long milliseconds) {
    rusage before{};
    rusage after{};
    getrusage(RUSAGE_THREAD, &before);
    const auto worked = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return time.tv_sec * 1'000 + time.tv_nsec / 1'000'000;
    };
    const long end = worked() + milliseconds;
    while (worked() < end) {
    }
    getrusage(RUSAGE_THREAD, &after);
    return after.ru_nvcsw - before.ru_nvcsw;
}

// The kernel's tick, which ends a turn otherwise, is some milliseconds long.
TEST(Thread, PausesInTheMiddleOfWork) {
    {
        Pauses pauses;
        EXPECT_GE(pauses_in(50), 49);
    }
    EXPECT_LE(pauses_in(50), 5);
}

TEST(Thread, PausesLeaveTheThreadAsItWas) {
    do_giving_way([] {  // in a thread that gets no signals
        const int slack = prctl(PR_GET_TIMERSLACK);
        { Pauses pauses; }
        sigset_t blocked;
        pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
        for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++) {
            EXPECT_EQ(sigismember(&blocked, signal), 1) << signal;
        }
        EXPECT_EQ(prctl(PR_GET_TIMERSLACK), slack);
    });
}

// What a thread that gives way is, for one who may and for one who may not come back.
struct Manners {
    int policy = -1;
    int nice = 0;
};

Manners manners_of_giving_way() {
    Manners found;
    do_giving_way([&] {
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

TEST(Thread, PausesIgnoreSignalsOfOthers) {
    Pauses pauses;
    int sent = 0;
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++) {
        struct sigaction action {};
        ASSERT_EQ(sigaction(signal, nullptr, &action), 0);
        if (action.sa_handler != SIG_DFL) {
            sent += raise(signal) == 0 ? 1 : 0;
        }
    }
    EXPECT_EQ(sent, 1);
}

}  // namespace
