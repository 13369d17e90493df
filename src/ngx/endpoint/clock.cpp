// The test clock: moves the time that decisions, tokens and counters see. It
// exists only in builds for tests.
//
//   ?set=MILLISECONDS     the clock shows this now, and runs on
//   ?hold=MILLISECONDS    sets the clock to this time and stops it
//   ?advance=SECONDS      it jumps, forward or back
//   ?reset                it shows the real time again
//   ?tick                 and this worker and the keeper do now what is due
//   ?cycle                returns the longest cycle of this worker's event loop since
//                         it was last asked for, in microseconds of CPU; at first 0
//   ?await                the cycle goes on, after the requests before this one, when another
//                         worker has published a catalog
#if ADS_TEST_CLOCK

#include <time.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "keeper/keeper.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

decltype(ngx_event_actions.process_events) wait_for_events = nullptr;
int64_t cycle_began = 0;
int64_t longest_cycle = 0;

int64_t cpu_micros() noexcept {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

// A cycle is what happens between two waits for events.
ngx_int_t end_cycle_and_wait(ngx_cycle_t* cycle, ngx_msec_t timer, ngx_uint_t flags) {
    const int64_t now = cpu_micros();
    longest_cycle = std::max(longest_cycle, now - cycle_began);
    cycle_began = now;
    return wait_for_events(cycle, timer, flags);
}

int64_t take_longest_cycle() noexcept {
    if (wait_for_events == nullptr) {
        cycle_began = cpu_micros();
        wait_for_events = std::exchange(ngx_event_actions.process_events, end_cycle_and_wait);
    }
    return std::exchange(longest_cycle, 0);
}

ngx_int_t await_catalog(Worker& worker, ngx_http_request_t* r, RequestCtx*) noexcept {
    constexpr int kMostMillis = 20'000;
    const Zone& zone = worker.process.zone();
    const uint64_t generation = zone.generation();
    for (int i = 0; i < kMostMillis && zone.generation() == generation; i++) {
        ngx_msleep(1);
    }
    return send(r, {NGX_HTTP_OK, "text/plain", "\n"});
}

// Only here a worker waits for the keeper.
void wait_for_keeper(KeeperWords& words) noexcept {
    const uint32_t number = ring(words);
    for (int i = 0; i < 10'000 && static_cast<int32_t>(words.answered.load() - number) < 0; i++) {
        const timespec pause{0, 1'000'000};
        nanosleep(&pause, nullptr);
    }
}

}  // namespace

ngx_int_t clock_handler(ngx_http_request_t* r) {
    if (ngx_http_discard_request_body(r) != NGX_OK || Worker::current() == nullptr) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }
    Worker& worker = *Worker::current();
    Query query;
    if (const auto error = query_of(r, query)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    auto& [offset, held] = worker.process.zone().head().clock;
    bool ticks = false;
    bool asks_for_cycle = false;
    for (const auto& [name, value] : query.params) {
        Millis number = 0;
        std::from_chars(value.data(), value.data() + value.size(), number);
        ticks = ticks || name == "tick";
        asks_for_cycle = asks_for_cycle || name == "cycle";
        if (name == "await") {
            return worker.requests.defer(r, await_catalog);
        }
        if (name == "reset") {
            held.store(0);
            offset.store(0);
        } else if (name == "hold") {
            held.store(number);
        } else if (name == "advance") {
            offset.fetch_add(number * 1000);
        } else if (name == "set") {
            held.store(0);
            offset.fetch_add(number - worker.process.now());
        }
    }
    if (ticks) {
        worker.tick();
        wait_for_keeper(worker.process.state().head().keeper);
    }
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, 32));
    if (memory == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    Out out(memory, 32);
    out.number(asks_for_cycle ? take_longest_cycle() : worker.process.now());
    out.put('\n');
    return send(r, {NGX_HTTP_OK, "text/plain", out.text()});
}

}  // namespace ads::ngx

#endif
