#include "ngx/worker/recorder.hpp"

namespace ads::ngx {

namespace {

constexpr uint32_t kFlushAt = kMaxPending - 2;  // claims of one cycle
constexpr int64_t kSlowWrite = 100'000'000;     // ns
constexpr Millis kSlowWritesEnd = 60'000;       // after the last one
constexpr uint32_t kLiveSample = 4;             // events per tick

}  // namespace

void Recorder::start() {
    const MainConf& conf = process_.conf();
    spool_.configure(process_.spool_folder(), conf.segment, process_.id(), process_.node());
    if (conf.sync == SpoolSyncMode::always) {
        spool_.sync_always();
    }
    completions_.reserve(kMaxPending);
}

Recorder::~Recorder() {
    spool_.close();
}

Claim Recorder::claim(const Token& token, uint32_t& entry) noexcept {
    make_room();
    const Millis life_ends = token.issued + process_.lives().of(token.type) + 1000;
    return process_.state().dedupe().claim(
        dedupe_key(token.serve, token.type), static_cast<uint32_t>(process_.now() / 1000),
        static_cast<uint32_t>(life_ends / 1000) + 1, process_.place(), entry);
}

void Recorder::make_room() noexcept {
    if (completions_.size() >= kFlushAt || !spool_.has_room()) {
        flush();
    }
}

void Recorder::record(const Event& event, const Completion& completion) noexcept {
    if (spool_.append(event)) {
        completions_.push_back(completion);
        if (live_left_ > 0) [[unlikely]] {
            tell_live(event);
        }
    } else {
        drop(completion);
        process_.state().add(Total::dropped);
    }
}

void Recorder::tell_live(const Event& event) noexcept {
    live_left_--;
    process_.zone().head().live.note({.time = event.time,
                                      .type = event.type,
                                      .invalid = event.invalid,
                                      .campaign = event.campaign,
                                      .ad_group = event.ad_group,
                                      .creative = event.creative,
                                      .price = event.price});
}

// A serve stays taken, or a full disk would lift every cap. Anything else was not billed, and
// comes again: the walls first, then the claim.
void Recorder::drop(const Completion& c) noexcept {
    State& state = process_.state();
    if (c.type == EventType::serve) {
        state.head().spool.dropped_serves.fetch_add(1, std::memory_order_relaxed);
    } else if (const uint32_t group = catalog_.image().find_group(c.ad_group); group != kNone) {
        const Event event{.type = c.type,
                          .time = c.time,
                          .issued = c.time - c.delay,
                          .ad_group = c.ad_group,
                          .price = c.spend};
        catalog_.billing().undo(event, group, c.charged);
    }
    if (c.entry != kNone) {
        state.dedupe().release(c.entry, process_.place());
    }
}

void Recorder::complete(const Completion& c) noexcept {
    if (c.counts) {
        c.count(process_.state(), process_.now() / 1000);
        traffic_.spent(c.spend);
    }
    if (c.entry != kNone) {
        process_.state().dedupe().complete(c.entry, process_.place());
    }
}

// Once for all that is alike: others add to the same numbers.
void Recorder::count_written(std::span<const Completion> written) noexcept {
    State& state = process_.state();
    std::array<uint32_t, kCount<EventType>> net{};
    for (const Completion& c : written) {
        if (c.invalid == Invalid::none) {
            net[static_cast<size_t>(c.type)]++;
        } else {
            state.add_events(c.invalid, c.type, 1);
            state.add(Total::invalid);
        }
    }
    for (size_t i = 0; i < net.size(); i++) {
        if (net[i] > 0) {
            state.add_events(Invalid::none, static_cast<EventType>(i), net[i]);
        }
    }
}

void Recorder::flush() noexcept {
    if (completions_.empty()) {
        return;
    }
    const Flushed flushed = spool_.flush(process_.now());
    if (flushed.took_ns >= kSlowWrite) [[unlikely]] {
        watch_writes(flushed.took_ns);
    }
    for (size_t i = 0; i < completions_.size(); i++) {
        i < flushed.written ? complete(completions_[i]) : drop(completions_[i]);
    }
    count_written(std::span(completions_).first(flushed.written));
    completions_.clear();
    State& state = process_.state();
    state.dedupe().clear_pending(process_.place());
    state.add(Total::written, flushed.written);
    if (flushed.dropped > 0) {
        state.add(Total::dropped, flushed.dropped);
        log_drops(flushed);
    }
}

bool Recorder::write_alone(const Event& event) noexcept {
    flush();
    spool_.append(event);
    return spool_.flush(process_.now()).written > 0;
}

void Recorder::tick() noexcept {
    const Millis mono = static_cast<Millis>(ngx_current_msec);
    live_left_ = process_.zone().head().live.is_watched(mono) ? kLiveSample : 0;
    if (writes_slow_ && mono - last_slow_write_ >= kSlowWritesEnd) {
        writes_slow_ = false;
        ngx_log_error(NGX_LOG_NOTICE, process_.log(), 0, "ads: writes to the spool are fast again");
    }
    State& state = process_.state();
    const uint32_t place = process_.place();
    if (place == kNone || !completions_.empty()) {
        return;
    }
    if (state.is_asked_to_close(place, spool_.sequence())) {
        spool_.close();
    }
    state.set_counted_below(place, spool_.sequence());
}

void Recorder::log_drops(const Flushed& flushed) noexcept {
    const Seconds second = ngx_time();
    if (second != last_drop_log_) {
        last_drop_log_ = second;
        ngx_str_t folder = str(process_.spool_folder());
        ngx_log_error(NGX_LOG_ERR, process_.log(), flushed.error,
                      "ads: cannot write to spool \"%V\": %uL events dropped so far", &folder,
                      process_.state().total(Total::dropped));
    }
}

// All requests of this worker waited for it. Logged when it begins and when it is over.
void Recorder::watch_writes(int64_t took_ns) noexcept {
    const auto ms = static_cast<uint64_t>(took_ns / 1'000'000);
    SpoolCounts& counts = process_.state().head().spool;
    counts.slow_writes.fetch_add(1, std::memory_order_relaxed);
    counts.slow_write_ms.fetch_add(ms, std::memory_order_relaxed);
    uint64_t longest = counts.longest_write_ms.load(std::memory_order_relaxed);
    while (longest < ms &&
           !counts.longest_write_ms.compare_exchange_weak(longest, ms, std::memory_order_relaxed)) {
    }
    last_slow_write_ = static_cast<Millis>(ngx_current_msec) + static_cast<Millis>(ms);
    if (!writes_slow_) {
        writes_slow_ = true;
        ngx_str_t folder = str(process_.spool_folder());
        ngx_log_error(NGX_LOG_WARN, process_.log(), 0,
                      "ads: a write to the spool \"%V\" took %uL ms and blocked all requests of "
                      "this worker: move the spool to a faster disk",
                      &folder, ms);
    }
}

}  // namespace ads::ngx
