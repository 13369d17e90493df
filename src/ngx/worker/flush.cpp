// The write of a turn's events, and what follows from it.
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

constexpr int64_t kSlowWrite = 100'000'000;  // ns
constexpr Millis kSummaryEvery = 60'000;
constexpr Millis kHour = 3'600'000;

}  // namespace

// A serve stays taken, or a full disk would lift every cap. Anything else was not billed, and
// comes again: the walls first, then the claim.
void Worker::drop(const Completion& c) noexcept {
    if (c.type == EventType::serve) {
        state_.head().spool.dropped_serves.fetch_add(1, std::memory_order_relaxed);
    } else if (const uint32_t group = image().find_group(c.ad_group); group != kNone) {
        const Event event{.type = c.type,
                          .time = c.time,
                          .issued = c.time - c.delay,
                          .ad_group = c.ad_group,
                          .price = c.spend};
        billing().undo(event, group, c.settled);
    }
    if (c.entry != kNone) {
        state_.dedupe().release(c.entry, place_);
    }
}

void Worker::complete(const Completion& c) noexcept {
    if (c.counts) {
        c.count(state_, now() / 1000);
        traffic_.spent(c.spend);
    }
    if (c.entry != kNone) {
        state_.dedupe().settle(c.entry, place_);
    }
}

// Once for all that is alike: others add to the same numbers.
void Worker::count_written(std::span<const Completion> written) noexcept {
    std::array<uint32_t, kCount<EventType>> net{};
    for (const Completion& c : written) {
        if (c.invalid == Invalid::none) {
            net[static_cast<size_t>(c.type)]++;
        } else {
            state_.add_events(c.invalid, c.type, 1);
            state_.add(Total::invalid);
        }
    }
    for (size_t i = 0; i < net.size(); i++) {
        if (net[i] > 0) {
            state_.add_events(Invalid::none, static_cast<EventType>(i), net[i]);
        }
    }
}

void Worker::flush() noexcept {
    if (completions_.empty()) {
        return;
    }
    const Flushed flushed = spool_.flush(now());
    if (flushed.took_ns >= kSlowWrite) [[unlikely]] {
        watch_writes(flushed.took_ns);
    }
    for (size_t i = 0; i < completions_.size(); i++) {
        i < flushed.written ? complete(completions_[i]) : drop(completions_[i]);
    }
    count_written(std::span(completions_).first(flushed.written));
    completions_.clear();
    state_.dedupe().clear_pending(place_);
    state_.add(Total::written, flushed.written);
    if (flushed.dropped > 0) {
        state_.add(Total::dropped, flushed.dropped);
        log_drops(flushed);
    }
}

// Once a minute and at the end of an hour, where the events go to a database. What cannot be
// written is told the next time.
void Worker::summarize(bool all) noexcept {
    const Millis at = now();
    hour_end_ = (at / kHour + 1) * kHour;
    if (conf_.postgres.len == 0 || generation_ == 0) {
        return;
    }
    const Millis since = outcomes_since_ == 0 ? at : outcomes_since_;
    outcomes_since_ = at;
    if (!all && since / kHour == at / kHour && at >= since && at - since < kSummaryEvery) {
        outcomes_since_ = since;
        return;
    }
    outcomes_.gather(image());
    while (!outcomes_.empty()) {
        flush();
        size_t told = 0;
        const std::string text = outcomes_.text(told);
        spool_.append({.type = kSummary,
                       .time = since,
                       .issued = at,
                       .serve = rng_.next(),
                       .node = node(),
                       .metadata = text});
        const Flushed flushed = spool_.flush(at);
        if (flushed.written == 0) {
            return;
        }
        outcomes_.forget(told);
    }
}

void Worker::log_drops(const Flushed& flushed) noexcept {
    const Seconds second = ngx_time();
    if (second != last_drop_log_) {
        last_drop_log_ = second;
        ngx_str_t folder = str(setup_.spool_folder);
        ngx_log_error(NGX_LOG_ERR, log_, flushed.error,
                      "ads: spool \"%V\" cannot be written, %uL events dropped so far", &folder,
                      state_.total(Total::dropped));
    }
}

// All requests of this worker waited for it. Logged when it begins and when it is over.
void Worker::watch_writes(int64_t took_ns) noexcept {
    const auto ms = static_cast<uint64_t>(took_ns / 1'000'000);
    SpoolCounts& counts = state_.head().spool;
    counts.slow_writes.fetch_add(1, std::memory_order_relaxed);
    counts.slow_write_ms.fetch_add(ms, std::memory_order_relaxed);
    uint64_t longest = counts.longest_write_ms.load(std::memory_order_relaxed);
    while (longest < ms &&
           !counts.longest_write_ms.compare_exchange_weak(longest, ms, std::memory_order_relaxed)) {
    }
    last_slow_write_ = static_cast<Millis>(ngx_current_msec) + static_cast<Millis>(ms);
    if (!writes_slow_) {
        writes_slow_ = true;
        ngx_str_t folder = str(setup_.spool_folder);
        ngx_log_error(NGX_LOG_WARN, log_, 0,
                      "ads: a write to the spool \"%V\" took %uL ms, and all requests of this "
                      "worker waited for it: put the spool on a faster disk",
                      &folder, ms);
    }
}

}  // namespace ads::ngx
