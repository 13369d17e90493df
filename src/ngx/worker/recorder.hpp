// The events of this worker: claimed in the state, written to the spool once per event loop cycle,
// and counted after they are written.
#pragma once

#include <span>
#include <vector>

#include "core/event/event.hpp"
#include "core/token/token.hpp"
#include "io/spool.hpp"
#include "ledger/completion.hpp"
#include "ledger/traffic.hpp"
#include "ngx/worker/catalog_view.hpp"

namespace ads::ngx {

class Recorder {
public:
    Recorder(Process& process, CatalogView& catalog, Traffic& traffic) noexcept
        : process_(process), catalog_(catalog), traffic_(traffic) {}
    ~Recorder();
    Recorder(const Recorder&) = delete;

    void start();

    // Claims the token's event, so that it is recorded once; the dedupe entry is stored in its
    // completion.
    Claim claim(const Token& token, uint32_t& entry) noexcept;

    // Call before the first record of a request; claim() does. A cycle with very many events is
    // written in parts, but never between a claim and its record.
    void make_room() noexcept;

    // Adds the event to the next write.
    void record(const Event& event, const Completion& completion) noexcept;

    // Writes all events of the cycle by one system call, then counts them.
    void flush() noexcept;

    // Writes an event without a counter, after the others; false if that fails.
    bool write_alone(const Event& event) noexcept;

    // Called at a tick: tells the keeper which segments are complete, and closes a segment if the
    // keeper requests it.
    void tick() noexcept;

private:
    void tell_live(const Event& event) noexcept;
    void complete(const Completion& completion) noexcept;
    void drop(const Completion& completion) noexcept;
    void count_written(std::span<const Completion> written) noexcept;
    void log_drops(const Flushed& flushed) noexcept;
    void watch_writes(int64_t took_ns) noexcept;

    Process& process_;
    CatalogView& catalog_;
    Traffic& traffic_;
    Spool spool_;
    std::vector<Completion> completions_;  // of the buffered records
    Seconds last_drop_log_ = 0;
    Millis last_slow_write_ = 0;  // monotonic
    bool writes_slow_ = false;    // as logged
    uint32_t live_left_ = 0;      // events still sampled for ads_live in this tick
};

}  // namespace ads::ngx
