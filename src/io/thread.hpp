// Starting and waking threads that may block.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>

#include "core/base/types.hpp"
#include "io/file.hpp"

namespace ads {

// An alarm that a thread waits for together with its socket.
class Alarm {
public:
    Alarm() noexcept;

    // Ends every wait, now and later.
    void stop() noexcept;
    bool stopped() const noexcept { return stopped_.load(std::memory_order_acquire); }

    // Waits until `fd` (-1: none) is readable, or writable if `write` is set
    // as well. False after `timeout` ms, or once stopped.
    bool wait(int fd, bool write, Millis timeout) const noexcept;
    bool pause(Millis timeout) const noexcept { return wait(-1, false, timeout); }

private:
    Fd fd_;
    std::atomic<bool> stopped_{false};
};

// Milliseconds of the monotonic clock.
Millis monotonic() noexcept;

// Milliseconds since 1970.
Millis wall_clock() noexcept;

// Starts a thread that receives no signals.
bool start_thread(pthread_t& thread, void* (*entry)(void*), void* data) noexcept;

// A thread with an owner. `self` lives until both the thread and the owner
// have released it, so that a thread blocked in a library can be left
// behind.
class Thread {
public:
    Thread() noexcept = default;
    Thread(const Thread&) = delete;

    template <class T>
    bool start(std::shared_ptr<T> self) {
        auto* held = new std::shared_ptr<T>(std::move(self));
        running_ = start_thread(
            thread_,
            [](void* data) -> void* {
                const std::unique_ptr<std::shared_ptr<T>> mine(
                    static_cast<std::shared_ptr<T>*>(data));
                (*mine)->run();
                return nullptr;
            },
            held);
        if (!running_) {
            delete held;
        }
        return running_;
    }

    bool running() const noexcept { return running_; }

    // Waits for a thread that was told to stop. If it is blocked in a library that cannot be
    // interrupted (`hangs()`), it is left behind: false.
    template <class T>
    bool end(const T& self) noexcept {
        for (int waited = 0; running_ && !self.finished.load(std::memory_order_acquire); waited++) {
            if (waited >= 10 && self.hangs()) {
                leave();
                return false;
            }
            short_pause();
        }
        join();
        return true;
    }

private:
    void join() noexcept;
    void leave() noexcept;
    static void short_pause() noexcept;

    pthread_t thread_{};
    bool running_ = false;
};

}  // namespace ads
