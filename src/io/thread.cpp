#include "io/thread.hpp"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ads {

namespace {

// The kernel's sched_attr, first version: its header and libc's exclude each other.
struct SchedAttr {
    uint32_t size = sizeof(SchedAttr);
    uint32_t policy = SCHED_OTHER;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime = 0;  // nanoseconds
    uint64_t deadline = 0;
    uint64_t period = 0;
};
static_assert(sizeof(SchedAttr) == 48);

// Nanoseconds. Much shorter pauses, and the kernel would not switch.
constexpr long kShortTurn = 50'000;
constexpr long kLongTurn = 400'000;
constexpr long kPause = 20'000;

// How often this thread lost the CPU to others.
long interruptions() noexcept {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

long nanoseconds() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// A signal nobody uses, which makes the thread that gets it pause. 0: there is none.
int pause_signal() noexcept {
    struct sigaction pause {};
    pause.sa_sigaction = [](int, siginfo_t* info, void*) noexcept {
        if (info->si_code == SI_TIMER) {  // not somebody's kill
            static_cast<Pauses*>(info->si_value.sival_ptr)->pause();
        }
    };
    pause.sa_flags = SA_RESTART | SA_SIGINFO;
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++) {
        struct sigaction before {};
        if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) {
            return sigaction(signal, &pause, nullptr) == 0 ? signal : 0;
        }
    }
    return 0;
}

}  // namespace

Millis monotonic() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<Millis>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

Alarm::Alarm() noexcept : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void Alarm::stop() noexcept {
    stopped_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(fd_.get(), &one, sizeof one);
}

bool Alarm::wait(int fd, bool write, Millis timeout) const noexcept {
    const Millis deadline = monotonic() + timeout;
    for (;;) {
        const Millis left = deadline - monotonic();
        if (stopped() || left <= 0) {
            return false;
        }
        pollfd ready[2] = {
            {fd_.get(), POLLIN, 0},
            {fd, static_cast<short>(write ? POLLIN | POLLOUT : POLLIN), 0},
        };
        const int n = poll(ready, fd < 0 ? 1 : 2, static_cast<int>(std::min<Millis>(left, 60'000)));
        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0 && ready[1].revents != 0) {
            return true;
        }
    }
}

void give_way() noexcept {
    // The scheduler lets a thread that wakes up go before one that runs if it asks
    // for a shorter turn than that; a turn of 100 ms is the longest there is. Kernels
    // before 6.12 ignore it.
    SchedAttr attr;
    attr.nice = 19;
    attr.runtime = 100'000'000;
    syscall(SYS_sched_setattr, 0, &attr, 0);
}

Pauses::Pauses() noexcept : turn_(kShortTurn) {
    static const int signal = pause_signal();
    if (signal == 0) {
        return;
    }
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event.sigev_value.sival_ptr = this;
    event._sigev_un._tid = gettid();
    on_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    if (on_) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, signal);
        pthread_sigmask(SIG_UNBLOCK, &set, &before_);
        prctl(PR_SET_TIMERSLACK, 1UL);  // or a pause would be longer by 50 us
        begin_turn();
    }
}

void Pauses::begin_turn() noexcept {
    const itimerspec end{{0, 0}, {0, turn_}};
    timer_settime(timer_, 0, &end, nullptr);
}

// In the handler of the signal.
void Pauses::pause() noexcept {
    const int error = errno;
    const long began = nanoseconds();
    const timespec moment{0, kPause};
    pselect(0, nullptr, nullptr, nullptr, &moment, nullptr);
    // Others took the core from it, or kept it longer than it slept.
    const long interrupted = interruptions();
    const bool wanted = interrupted != interrupted_ || nanoseconds() - began > 8 * kPause;
    interrupted_ = interrupted;
    turn_ = wanted ? kShortTurn : std::min(2 * turn_, kLongTurn);
    begin_turn();
    errno = error;
}

Pauses::~Pauses() {
    if (on_) {
        timer_delete(timer_);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        prctl(PR_SET_TIMERSLACK, 0UL);  // as it was
    }
}

bool start_thread(pthread_t& thread, void* (*entry)(void*), void* data) noexcept {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits
    const int error = pthread_create(&thread, nullptr, entry, data);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return error == 0;
}

void Thread::join() noexcept {
    if (running_) {
        pthread_join(thread_, nullptr);
        running_ = false;
    }
}

void Thread::short_pause() noexcept {
    const timespec pause{0, 5'000'000};
    nanosleep(&pause, nullptr);
}

void Thread::leave() noexcept {
    if (running_) {
        pthread_detach(thread_);
        running_ = false;
    }
}

}  // namespace ads
