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
constexpr long kShortTurn = 25'000;
constexpr long kLongTurn = 400'000;
constexpr long kPause = 20'000;
constexpr long kPauseForOthers = 9 * kShortTurn;

constexpr long kLook = 1'000'000;           // between two looks at what others do
constexpr double kBusy = 0.2;               // of a core
constexpr long kCheck = 5'000'000'000;      // between two looks at its own progress
constexpr double kStarving = 0.015;         // of a core
constexpr long kPatience = 20'000'000'000;  // then the work shall end
constexpr long kImpatientTurn = 50'000;
constexpr int kHurry = 5;                    // nice: a third of the weight of others
constexpr rlim_t kHurryLimit = 20 - kHurry;  // the kernel counts the other way round there

// How often this thread lost the CPU to others.
long interruptions() noexcept {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

long nanoseconds(clockid_t clock = CLOCK_MONOTONIC) noexcept {
    timespec now{};
    clock_gettime(clock, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Of this thread. The scheduler lets a thread that wakes up go before one that runs if it asks for
// a shorter turn than that (0: the usual). Kernels before 6.12 ignore it.
bool set_scheduling(uint32_t policy, int nice, uint64_t turn) noexcept {
    SchedAttr attr;
    attr.policy = policy;
    attr.nice = nice;
    attr.runtime = turn;
    return syscall(SYS_sched_setattr, 0, &attr, 0) == 0;
}

constexpr uint64_t kLongestTurn = 100'000'000;  // that the scheduler knows, nanoseconds

bool hurry() noexcept {
    return set_scheduling(SCHED_OTHER, kHurry, 0);
}

// The class of idle threads has neither a niceness nor a turn of its own: it keeps what was set
// before.
bool only_when_idle() noexcept {
    return set_scheduling(SCHED_OTHER, kHurry, kLongestTurn) && set_scheduling(SCHED_IDLE, 0, 0);
}

// Whether a thread that gives way could come back: one tries.
bool may_hurry() noexcept {
    bool may = false;
    pthread_t thread;
    const auto run = [](void* data) -> void* {
        *static_cast<bool*>(data) = only_when_idle() && hurry();
        return nullptr;
    };
    if (start_thread(thread, run, &may)) {
        pthread_join(thread, nullptr);
    }
    return may;
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

void allow_to_hurry() noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_NICE, &limit) == 0 && limit.rlim_cur < kHurryLimit) {
        limit.rlim_cur = kHurryLimit;
        limit.rlim_max = std::max(limit.rlim_max, kHurryLimit);
        setrlimit(RLIMIT_NICE, &limit);
    }
}

void give_way() noexcept {
    if (!may_hurry() || !only_when_idle()) {
        set_scheduling(SCHED_OTHER, 19, kLongestTurn);
    }
}

Pauses::Pauses() noexcept
    : turn_(kShortTurn), looked_(times()), checked_(looked_), began_(looked_.clock) {
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

Pauses::Times Pauses::times() noexcept {
    return {nanoseconds(), nanoseconds(CLOCK_PROCESS_CPUTIME_ID),
            nanoseconds(CLOCK_THREAD_CPUTIME_ID)};
}

bool Pauses::others_are_busy() noexcept {
    if (nanoseconds() - looked_.clock > kLook) {
        const Times now = times();
        const long others = (now.process - looked_.process) - (now.thread - looked_.thread);
        busy_ =
            static_cast<double>(others) > kBusy * static_cast<double>(now.clock - looked_.clock);
        looked_ = now;
    }
    return busy_;
}

bool Pauses::patient() noexcept {
    const long now = nanoseconds();
    if (patient_ && now - checked_.clock > kCheck) {
        const Times times_now = times();
        const double share = static_cast<double>(times_now.thread - checked_.thread) /
                             static_cast<double>(times_now.clock - checked_.clock);
        checked_ = times_now;
        if (share < kStarving || now - began_ > kPatience) {
            patient_ = false;
            if (sched_getscheduler(0) == SCHED_IDLE) {
                hurry();
            }
        }
    }
    return patient_;
}

// In the handler of the signal.
void Pauses::pause() noexcept {
    const int error = errno;
    const long began = nanoseconds();
    const long length = patient() && others_are_busy() ? kPauseForOthers : kPause;
    const timespec moment{0, length};
    pselect(0, nullptr, nullptr, nullptr, &moment, nullptr);
    // Others took the core from it, or kept it longer than it slept.
    const long interrupted = interruptions();
    const bool wanted = interrupted != interrupted_ || nanoseconds() - began > length + 7 * kPause;
    interrupted_ = interrupted;
    turn_ = !wanted ? std::min(2 * turn_, kLongTurn) : patient_ ? kShortTurn : kImpatientTurn;
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
