#include "io/turns.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "io/thread.hpp"

namespace ads {

namespace {

// Nanoseconds.
constexpr int64_t kTimesATurn = 10;          // a pause is as long as so many turns
constexpr int64_t kLongestWait = 2'000'000;  // beside a loop that is behind
constexpr int64_t kTurn = 15'000;
constexpr int64_t kLongTurn = 100'000;
constexpr int64_t kLongestTurn = 200'000;  // that counts: a machine may stall
constexpr int64_t kTurnAlone = 200'000;
constexpr int64_t kLook = 2'000'000;  // between two looks at what the loop does
constexpr int64_t kNobody = 20'000'000;
constexpr double kBusyLoop = 5e-6;  // turns in a nanosecond

int64_t nanoseconds() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

long futex(std::atomic<uint32_t>& word, int what, uint32_t value,
           const timespec* timeout) noexcept {
    return syscall(SYS_futex, &word, what, value, timeout, nullptr, 0);
}

}  // namespace

void Turns::give(bool behind) noexcept {
    const int64_t now = nanoseconds();
    const bool long_wait = now - since_.load(std::memory_order_relaxed) > kLongestWait;
    if (now < until_.load(std::memory_order_relaxed) || (behind && !long_wait)) {
        return;
    }
    waiting_.store(false, std::memory_order_relaxed);
    long_turn_.store(behind, std::memory_order_relaxed);
    given_.fetch_add(1, std::memory_order_release);
    futex(given_, FUTEX_WAKE_PRIVATE, 1, nullptr);
}

void Turns::wait(int64_t now, int64_t turn) noexcept {
    const uint32_t given = given_.load(std::memory_order_acquire);
    since_.store(now, std::memory_order_relaxed);
    until_.store(now + kTimesATurn * turn, std::memory_order_relaxed);
    waiting_.store(true, std::memory_order_release);
    const timespec most{0, kNobody};
    futex(given_, FUTEX_WAIT_PRIVATE, given, &most);
    waiting_.store(false, std::memory_order_relaxed);
}

SharedCore::SharedCore(Turns* turns, const std::atomic<bool>& stopping) noexcept
    : turns_(turns), stopping_(stopping) {
    if (turns_ != nullptr) {
        may_return_ = may_return();
        give_way(may_return_);
        looked_ = nanoseconds();
        looked_loops_ = turns_->loops_.load(std::memory_order_relaxed);
    }
}

bool SharedCore::go_on() noexcept {
    if (turns_ != nullptr) {
        int64_t now = nanoseconds();
        if (now >= turn_ends_) {
            take_turns(loop_is_busy(now));
            int64_t turn = kTurnAlone;
            if (takes_turns_) {
                turns_->wait(now, std::min(now - turn_began_, kLongestTurn));
                now = nanoseconds();
                turn = turns_->long_turn_.load(std::memory_order_relaxed) ? kLongTurn : kTurn;
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

bool SharedCore::loop_is_busy(int64_t now) noexcept {
    if (now - looked_ > kLook) {
        const uint32_t loops = turns_->loops_.load(std::memory_order_relaxed);
        busy_ = static_cast<double>(loops - looked_loops_) >
                kBusyLoop * static_cast<double>(now - looked_);
        looked_ = now;
        looked_loops_ = loops;
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
