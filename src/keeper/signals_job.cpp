#include "keeper/signals_job.hpp"

#include <time.h>

namespace ads {

namespace {

constexpr Millis kTimeout = 1000;  // of all that is told at once
constexpr Millis kLongestPause = 8000;
constexpr Millis kSlice = 200;

int64_t nanoseconds() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

SignalsJob::SignalsJob(std::shared_ptr<KeeperShared> shared)
    : Job(std::move(shared)),
      mail_(*shared_->signals),
      redis_(*shared_->conf.redis, shared_->conf.target.state.head().node, shared_->alarm,
             shared_->conf.redis_tls),
      jitter_(static_cast<uint32_t>(nanoseconds())) {}

void SignalsJob::run_until_stopped() {
    while (!shared_->alarm.stopped()) {
        const std::vector<Signals::Line> lines = mail_.wait(kSlice);
        if (lines.empty()) {
            continue;
        }
        const bool good = call(lines);
        counts_.add_to(shared_->conf.target.state.head().redis);
        if (!good) {
            const Millis longest = std::min(kLongestPause, kTimeout << std::min(failures_, 8u)) / 2;
            shared_->alarm.pause(longest / 2 + static_cast<Millis>(jitter_()) % longest);
        }
    }
}

bool SignalsJob::call(std::span<const Signals::Line> lines) {
    SignalsMail::Answer answer;
    const int64_t begun = nanoseconds();
    answer.good = redis_.exchange(lines, kTimeout, answer.totals);
    answer.read = monotonic();
    counts_.add(RedisEvent::errors, redis_.errors());
    if (!answer.good) {
        fail(redis_.error());
        mail_.answer(std::move(answer));
        return false;
    }
    counts_.replied(RedisCommand::signals, nanoseconds() - begun);
    shared_->conf.target.state.head().signals.read.store(static_cast<uint64_t>(wall_clock()),
                                                         std::memory_order_relaxed);
    mail_.answer(std::move(answer));
    failures_ = 0;
    if (!told_error_.empty()) {
        told_error_.clear();
        shared_->log.add(LogLevel::notice, "signals: redis answers again");
    }
    return true;
}

// Logged once until it changes.
void SignalsJob::fail(const std::string& why) {
    if (shared_->alarm.stopped()) {
        return;
    }
    failures_++;
    counts_.add(RedisEvent::failures);
    if (told_error_ != why) {
        told_error_ = why;
        shared_->log.add(LogLevel::error,
                         "signals: " + why + ": this node paces its own part of each limit");
    }
}

}  // namespace ads
