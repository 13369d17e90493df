// How long work shares a core with the event loop beside which it is done.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "core/catalog/pace.hpp"

namespace ads {

// Between an event loop and one thread that works beside it on the same core. The thread gives way
// (see give_way): it works while the loop sleeps, and a request that comes does not wait for it.
// But each such request finds cold caches, and so does the thread afterwards: it works in turns,
// with pauses in between. It is the loop that ends a pause, when it is about to sleep: on a
// virtual machine a timer costs as much as a turn.
class Turns {
public:
    // The event loop, at the end of each of its own turns.
    void offer() noexcept {
        if (const pid_t thread = thread_.load(std::memory_order_relaxed); thread != 0) {
            give(thread);
        }
    }

    // The thread was told to stop, and shall come to see it.
    void hurry() noexcept;

private:
    friend class SharedCore;

    void give(pid_t thread) noexcept;
    void wake() noexcept;
    // The thread. False if no turn was given for long.
    bool pause(int64_t now) noexcept;

    std::atomic<pid_t> thread_{0};    // as SharedCore's; 0: nobody wants turns
    std::atomic<uint32_t> given_{0};  // turns
    std::atomic<bool> pauses_{false};
    std::atomic<int64_t> since_{0};  // when its pause, or its wait for the core, began: nanoseconds
};

// The thread's part. While the process is busy a pause is four times as long as a turn. A loop that
// never sleeps helps it out of the idle class for a moment every forty milliseconds: the work must
// come to an end. In a process that is not busy it just gives way to all others.
class SharedCore final : public catalog::Pace {
public:
    // Of this thread. Without turns it just works.
    SharedCore(Turns* turns, const std::atomic<bool>& stopping) noexcept;
    ~SharedCore();

    bool go_on() noexcept override;
    bool go_alone() noexcept override;

private:
    void next_turn(int64_t now) noexcept;
    bool stopped() noexcept;
    bool helped() const noexcept;
    void hurry() noexcept;
    bool others_are_busy(int64_t now) noexcept;

    Turns* const turns_;
    const std::atomic<bool>& stopping_;
    pid_t thread_ = 0;  // the kernel's number of this one; -1: it cannot be helped
    bool long_turn_ = false;
    int64_t turn_ends_ = 0;  // nanoseconds
    // When the rest of the process was last looked at, and its time on the CPU then.
    int64_t looked_ = 0;
    int64_t others_ = 0;
    bool busy_ = false;
};

}  // namespace ads
