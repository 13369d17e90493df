#include "io/turns.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "io/thread.hpp"

namespace ads {

namespace {

// Nanoseconds. A turn begins with cold caches, and leaves cold ones: the first ten or so of its
// microseconds do no work, so that shorter turns would only be more.
constexpr int64_t kTurn = 30'000;
constexpr int64_t kLongestTurn = 400'000;
constexpr int64_t kPauses = 24;            // a pause is as long as so many turns
constexpr int64_t kPatience = 10'000'000;  // beside a loop that is behind
constexpr int64_t kTurnAlone = 200'000;
constexpr int64_t kLook = 2'000'000;  // between two looks at what others do
constexpr int64_t kNoOffer = 4'000'000;
constexpr double kBusy = 0.2;  // of a core

int64_t nanoseconds(clockid_t clock = CLOCK_MONOTONIC) noexcept {
    timespec now{};
    clock_gettime(clock, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// What all threads of the process but this one were on the CPU.
int64_t time_of_others() noexcept {
    return nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

long futex(std::atomic<uint32_t>& word, int what, uint32_t value,
           const timespec* timeout) noexcept {
    return syscall(SYS_futex, &word, what, value, timeout, nullptr, 0);
}

}  // namespace

void Turns::give(bool behind) noexcept {
    const int64_t now = nanoseconds();
    if (now < until_.load(std::memory_order_relaxed)) {
        return;
    }
    const int64_t waited = now - since_.load(std::memory_order_relaxed);
    if (behind && waited < kPatience) {
        return;
    }
    turn_.store(behind ? std::clamp(waited / kPauses, kTurn, kLongestTurn) : kTurn,
                std::memory_order_relaxed);
    waiting_.store(false, std::memory_order_relaxed);
    given_.fetch_add(1, std::memory_order_release);
    futex(given_, FUTEX_WAKE_PRIVATE, 1, nullptr);
}

int64_t Turns::wait(int64_t now, int64_t pause) noexcept {
    const uint32_t given = given_.load(std::memory_order_acquire);
    since_.store(now, std::memory_order_relaxed);
    until_.store(now + pause, std::memory_order_relaxed);
    waiting_.store(true, std::memory_order_release);
    const timespec most{0, pause + kNoOffer};
    futex(given_, FUTEX_WAIT_PRIVATE, given, &most);
    waiting_.store(false, std::memory_order_relaxed);
    return given_.load(std::memory_order_acquire) != given ? turn_.load(std::memory_order_relaxed)
                                                           : kLongestTurn;
}

SharedCore::SharedCore(Turns* turns, const std::atomic<bool>& stopping) noexcept
    : turns_(turns), stopping_(stopping) {
    if (turns_ != nullptr) {
        may_return_ = may_return();
        give_way(may_return_);
        looked_ = nanoseconds();
        others_ = time_of_others();
    }
}

bool SharedCore::go_on() noexcept {
    if (turns_ != nullptr) {
        int64_t now = nanoseconds();
        if (now >= turn_ends_) {
            take_turns(others_are_busy(now));
            int64_t turn = kTurnAlone;
            if (takes_turns_) {
                turn = turns_->wait(now, kPauses * std::min(now - turn_began_, kTurnAlone));
                now = nanoseconds();
            }
            turn_began_ = now;
            turn_ends_ = now + turn;
        }
    }
    return !stopping_.load(std::memory_order_relaxed);
}

bool SharedCore::go_alone() noexcept {
    take_turns(false);
    turn_ends_ = 0;
    return !stopping_.load(std::memory_order_relaxed);
}

bool SharedCore::others_are_busy(int64_t now) noexcept {
    if (now - looked_ > kLook) {
        const int64_t others = time_of_others();
        busy_ = static_cast<double>(others - others_) > kBusy * static_cast<double>(now - looked_);
        looked_ = now;
        others_ = others;
    }
    return busy_;
}

void SharedCore::take_turns(bool take) noexcept {
    if (takes_turns_ == take || turns_ == nullptr) {
        return;
    }
    takes_turns_ = take;
    if (may_return_) {
        if (take) {
            stand_in_line();
        } else {
            give_way(true);
        }
    }
}

}  // namespace ads
