#include "io/thread.hpp"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
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

constexpr int kNice = 5;                      // a third of the weight of others
constexpr rlim_t kNiceLimit = 20 - kNice;     // the kernel counts the other way round there
constexpr uint64_t kShortSlice = 100'000;     // nanoseconds, the shortest the scheduler knows
constexpr uint64_t kLongSlice = 100'000'000;  // and the longest

// Of a thread, 0: this one. The scheduler lets a thread that wakes up go before one that runs if it
// asks for a shorter slice than that (0: the usual). Kernels before 6.12 ignore it.
bool set_scheduling(pid_t thread, uint32_t policy, int nice, uint64_t slice) noexcept {
    SchedAttr attr;
    attr.policy = policy;
    attr.nice = nice;
    attr.runtime = slice;
    return syscall(SYS_sched_setattr, thread, &attr, 0) == 0;
}

// The class of idle threads has neither a niceness nor a slice of its own: it keeps what was set
// before.
bool only_when_idle() noexcept {
    return set_scheduling(0, SCHED_OTHER, kNice, kLongSlice) && set_scheduling(0, SCHED_IDLE, 0, 0);
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

void allow_to_return() noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_NICE, &limit) == 0 && limit.rlim_cur < kNiceLimit) {
        limit.rlim_cur = kNiceLimit;
        limit.rlim_max = std::max(limit.rlim_max, kNiceLimit);
        setrlimit(RLIMIT_NICE, &limit);
    }
}

bool may_return() noexcept {
    bool may = false;
    pthread_t thread;
    const auto run = [](void* data) -> void* {
        // The kernel asks the same of who leaves the idle class at that niceness, but one
        // that cannot would stay there.
        *static_cast<bool*>(data) = set_scheduling(0, SCHED_OTHER, 19, 0) && stand_in_line(0);
        return nullptr;
    };
    if (start_thread(thread, run, &may)) {
        pthread_join(thread, nullptr);
    }
    return may;
}

void give_way(bool returns) noexcept {
    if ((!returns || !only_when_idle()) && !set_scheduling(0, SCHED_OTHER, 19, kLongSlice)) {
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
    }
}

bool stand_in_line(pid_t thread) noexcept {
    return set_scheduling(thread, SCHED_OTHER, kNice, kShortSlice);
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
