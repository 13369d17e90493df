#include "io/turns.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "io/thread.hpp"

namespace ads {

namespace {

// Nanoseconds. A turn begins with cold caches and leaves cold ones, and a third of it is the
// requests' that come meanwhile: shorter ones do no work, longer ones are felt by more requests.
constexpr int64_t kTurn = 60'000;
constexpr int64_t kPause = 4 * kTurn;
constexpr int64_t kPatience = 10'000'000;  // then it is helped
constexpr int64_t kLongTurn = 400'000;     // of one that was
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

void Turns::give() noexcept {
    const int64_t now = nanoseconds();
    if (pauses_.load(std::memory_order_acquire)) {
        if (now < since_.load(std::memory_order_relaxed) + kPause) {
            return;
        }
        since_.store(now, std::memory_order_relaxed);
        pauses_.store(false, std::memory_order_relaxed);
        given_.fetch_add(1, std::memory_order_release);
        futex(given_, FUTEX_WAKE_PRIVATE, 1, nullptr);
    } else if (now > since_.load(std::memory_order_relaxed) + kPatience &&
               !helped_.load(std::memory_order_relaxed)) {
        help(thread_.load(std::memory_order_relaxed));
    }
}

void Turns::help(pid_t thread) noexcept {
    helped_.store(thread >= 0 && stand_in_line(thread), std::memory_order_relaxed);
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
        turns_->helped_.store(false, std::memory_order_relaxed);
        turns_->since_.store(looked_, std::memory_order_relaxed);
        turns_->thread_.store(thread_, std::memory_order_release);
        give_way(returns);
    }
}

SharedCore::~SharedCore() {
    if (turns_ != nullptr) {
        turns_->thread_.store(0, std::memory_order_relaxed);
    }
}

bool SharedCore::go_on() noexcept {
    if (turns_ != nullptr) {
        const int64_t now = nanoseconds();
        if (now >= turn_ends_) {
            next_turn(now);
        }
    }
    return !stopping_.load(std::memory_order_relaxed);
}

bool SharedCore::go_alone() noexcept {
    if (turns_ != nullptr) {
        turns_->thread_.store(0, std::memory_order_relaxed);
        give_way_again();
        turn_ends_ = 0;
    }
    return !stopping_.load(std::memory_order_relaxed);
}

void SharedCore::next_turn(int64_t now) noexcept {
    if (turns_->helped_.load(std::memory_order_relaxed) && !long_turn_) {
        long_turn_ = true;  // it begins only now
        turn_ends_ = now + kLongTurn;
        return;
    }
    give_way_again();
    turns_->since_.store(now, std::memory_order_relaxed);
    turns_->thread_.store(thread_, std::memory_order_release);
    int64_t turn = kTurnAlone;
    if (others_are_busy(now)) {
        if (!turns_->pause(now)) {
            turns_->help(thread_);
        }
        now = nanoseconds();
        turns_->since_.store(now, std::memory_order_relaxed);
        turn = kTurn;
    }
    turn_ends_ = now + turn;
}

void SharedCore::give_way_again() noexcept {
    long_turn_ = false;
    if (turns_->helped_.load(std::memory_order_relaxed)) {
        give_way(true);
        turns_->helped_.store(false, std::memory_order_relaxed);
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
