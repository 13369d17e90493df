#include "io/thread.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ads {

namespace {

Millis read_clock(clockid_t clock) noexcept {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<Millis>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

Millis monotonic() noexcept {
    return read_clock(CLOCK_MONOTONIC);
}

Millis wall_clock() noexcept {
    return read_clock(CLOCK_REALTIME);
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
