// How long work shares a core with the event loop beside which it is done.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/catalog/pace.hpp"

namespace ads {

// Between an event loop and one thread that works beside it. Timers are not used: on a virtual
// machine each costs more than a turn. Nor is the thread left to run whenever the loop
// sleeps: each time it were interrupted by the next request, which would find cold caches. The
// loop gives it a turn when it is about to sleep, and no request takes that away.
class Turns {
public:
    // The event loop, at the end of each of its own turns. `behind`: the turn had much to
    // do, and the next one will have, too.
    void offer(bool behind) noexcept {
        if (waiting_.load(std::memory_order_relaxed)) {
            give(behind);
        }
    }

private:
    friend class SharedCore;

    void give(bool behind) noexcept;
    // The thread: a pause of at least so many nanoseconds. Returns how long the turn after it is.
    int64_t wait(int64_t now, int64_t pause) noexcept;

    std::atomic<uint32_t> given_{0};  // turns
    std::atomic<bool> waiting_{false};
    std::atomic<int64_t> since_{0};  // nanoseconds
    std::atomic<int64_t> until_{0};  // it must wait
    std::atomic<int64_t> turn_{0};   // so long is the one that was given
};

// The thread's part. While the process is busy it takes a twenty-fifth of the time, in turns of
// some 30 us. While the loop is behind with its work, or offers none, there are none for some
// milliseconds, but then longer ones: the work must come to an end. In a process that is not busy,
// and where nobody asks for long, it gives way to all others (see give_way).
class SharedCore final : public catalog::Pace {
public:
    // Of this thread. Without turns it just works.
    SharedCore(Turns* turns, const std::atomic<bool>& stopping) noexcept;

    bool go_on() noexcept override;
    bool go_alone() noexcept override;

private:
    void take_turns(bool take) noexcept;
    bool others_are_busy(int64_t now) noexcept;

    Turns* const turns_;
    const std::atomic<bool>& stopping_;
    bool may_return_ = false;
    bool takes_turns_ = false;  // else it gives way
    int64_t turn_began_ = 0;    // nanoseconds
    int64_t turn_ends_ = 0;
    // When the rest of the process was last looked at, and its time on the CPU then.
    int64_t looked_ = 0;
    int64_t others_ = 0;
    bool busy_ = false;
};

}  // namespace ads
