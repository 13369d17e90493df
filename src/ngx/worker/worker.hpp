// The parts of a worker process. Each has one job, and knows only the parts before it.
#pragma once

#include "core/decide/stop_list.hpp"
#include "core/html/page_map.hpp"
#include "core/visitor/user_agent.hpp"
#include "ledger/ledger.hpp"
#include "ngx/redis/caps.hpp"
#include "ngx/worker/catalog_view.hpp"
#include "ngx/worker/live_streams.hpp"
#include "ngx/worker/process.hpp"
#include "ngx/worker/recorder.hpp"
#include "ngx/worker/request_counts.hpp"
#include "ngx/worker/request_queue.hpp"
#include "ngx/worker/stops.hpp"

namespace ads::ngx {

class WorkerRedis;

class Worker {
public:
    explicit Worker(MainConf& conf) noexcept;
    ~Worker();
    Worker(const Worker&) = delete;

    // This process's worker, or nullptr. Handlers call it once and pass it on.
    static Worker* current() noexcept;

    // False if there is no pin for this worker, which then serves nothing.
    bool start(ngx_log_t* log);

    // Updates the view of the catalog; false before the first one is published. References to an
    // earlier one become invalid.
    bool refresh() noexcept;

    // Called five times a second.
    void tick() noexcept;

    // Wakes the keeper if rights have run out since the last call; at most once a millisecond.
    void ring_for_rights() noexcept;

    // The ledger for decisions, as of refresh().
    Ledger::Source ledger_source() noexcept {
        return {catalog.image(), catalog.slots(), process.state(),       process.frequency(),
                process.rng(),   counts.serves(), process.reservation(), &counts.traffic()};
    }

    Process process;
    CatalogView catalog{process};
    Stops stops;
    RequestCounts counts{process};
    Recorder recorder{process, catalog, counts.traffic()};
    RequestQueue requests{*this};
    LiveStreams live{*this};
    FleetCaps fleet{*this};
    std::unique_ptr<WorkerRedis> redis;  // nullptr: none is configured

    // Keyed hashes of recent user agents.
    DeviceCache devices;
    AgentHashes agents;  // by the signer

    html::PageMaps pages;  // of files

private:
    static void on_tick(ngx_event_t* event);

    void follow_catalog() noexcept;
    void follow_lists() noexcept;

    ngx_event_t tick_event_{};
    ngx_connection_t connection_{};  // required for events
    Millis last_list_check_ = 0;     // monotonic
    uint32_t last_bell_ = 0;         // as it was rung
    ngx_msec_t last_ring_ = 0;
};

// Runs `handler` at the end of the event loop cycle, see RequestQueue; 503 without a worker.
inline ngx_int_t defer(ngx_http_request_t* r, RequestHandler handler) noexcept {
    Worker* worker = Worker::current();
    return worker == nullptr ? NGX_HTTP_SERVICE_UNAVAILABLE : worker->requests.defer(r, handler);
}

}  // namespace ads::ngx
