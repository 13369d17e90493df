#include "io/turns.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "io/thread.hpp"

namespace ads {

namespace {

// Nanoseconds. A turn begins with cold caches and leaves cold ones, and a third of it is the
// requests' that come meanwhile: shorter ones do no work, longer ones are felt by more requests.
constexpr int64_t kTurn = 60'000;
constexpr int64_t kPause = 4 * kTurn;
constexpr int64_t kNoOffer = 4'000'000;  // a pause ends without one after so much more
constexpr int64_t kTurnAlone = 200'000;
// A loop that is behind for a moment shall not be held up even more: a thread that has not come to
// work is helped only after this, but then for long. Who works alone asks for nothing meanwhile.
constexpr int64_t kPatience = 40'000'000;
constexpr int64_t kPatienceAlone = 200'000'000;
constexpr int64_t kLongTurn = 1'200'000;
constexpr int64_t kLook = 2'000'000;  // between two looks at what others do
constexpr double kBusy = 0.2;         // of a core

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

void Turns::give(pid_t thread) noexcept {
    const int64_t now = nanoseconds();
    if (pauses_.load(std::memory_order_acquire)) {
        if (now < since_.load(std::memory_order_relaxed) + kPause) {
            return;
        }
        since_.store(now, std::memory_order_relaxed);
        pauses_.store(false, std::memory_order_relaxed);
        wake();
    } else if (thread > 0 && now > since_.load(std::memory_order_relaxed) + kPatience) {
        since_.store(now, std::memory_order_relaxed);
        stand_in_line(thread);
    }
}

void Turns::hurry() noexcept {
    if (const pid_t thread = thread_.load(std::memory_order_acquire); thread > 0) {
        stand_in_line(thread);
    }
    wake();
}

void Turns::wake() noexcept {
    given_.fetch_add(1, std::memory_order_release);
    futex(given_, FUTEX_WAKE_PRIVATE, 1, nullptr);
}

bool Turns::pause(int64_t now) noexcept {
    const uint32_t given = given_.load(std::memory_order_acquire);
    since_.store(now, std::memory_order_relaxed);
    pauses_.store(true, std::memory_order_release);
    const timespec most{0, kPause + kNoOffer};
    futex(given_, FUTEX_WAIT_PRIVATE, given, &most);
    pauses_.store(false, std::memory_order_relaxed);
    return given_.load(std::memory_order_acquire) != given;
}

SharedCore::SharedCore(Turns* turns, const std::atomic<bool>& stopping) noexcept
    : turns_(turns), stopping_(stopping) {
    if (turns_ != nullptr) {
        const bool returns = may_return();
        thread_ = returns ? gettid() : -1;
        looked_ = nanoseconds();
        others_ = time_of_others();
        turns_->since_.store(looked_, std::memory_order_relaxed);
        turns_->thread_.store(thread_, std::memory_order_release);
        give_way(returns);
    }
}

SharedCore::~SharedCore() {
    if (turns_ != nullptr) {
        turns_->thread_.store(0, std::memory_order_relaxed);
        hurry();  // somebody may wait for its end
    }
}

bool SharedCore::go_on() noexcept {
    if (stopped()) {
        return false;
    }
    if (turns_ != nullptr) {
        const int64_t now = nanoseconds();
        if (now >= turn_ends_) {
            next_turn(now);
        }
    }
    return true;
}

bool SharedCore::go_alone() noexcept {
    if (stopped()) {
        return false;
    }
    if (turns_ != nullptr) {
        if (helped()) {
            give_way(true);
        }
        turns_->since_.store(nanoseconds() + kPatienceAlone - kPatience, std::memory_order_relaxed);
        long_turn_ = false;
        turn_ends_ = 0;
    }
    return true;
}

void SharedCore::next_turn(int64_t now) noexcept {
    if (helped()) {
        if (!long_turn_) {
            long_turn_ = true;  // it begins only now
            turns_->since_.store(now, std::memory_order_relaxed);
            turn_ends_ = now + kLongTurn;
            return;
        }
        give_way(true);
    }
    long_turn_ = false;
    int64_t turn = kTurnAlone;
    if (others_are_busy(now)) {
        const int64_t paused = now;
        const bool given = turns_->pause(now);
        now = nanoseconds();
        turn = given ? kTurn : kTurnAlone;
        if (!given && now > paused + kPause + kNoOffer + kPatience) {
            hurry();  // the core is full of something else
        }
    }
    turns_->since_.store(now, std::memory_order_relaxed);
    turn_ends_ = now + turn;
}

bool SharedCore::stopped() noexcept {
    if (!stopping_.load(std::memory_order_relaxed)) {
        return false;
    }
    hurry();
    return true;
}

bool SharedCore::helped() const noexcept {
    return thread_ > 0 && sched_getscheduler(0) != SCHED_IDLE;
}

void SharedCore::hurry() noexcept {
    if (thread_ > 0) {
        stand_in_line(0);
    }
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

}  // namespace ads
