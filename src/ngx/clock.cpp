// The test clock: moves the time that decisions, tokens and counters see. It
// exists only in builds for tests.
//
//   ?set=MILLISECONDS     the clock shows this now, and runs on
//   ?hold=MILLISECONDS    it shows this, and stands still until it is set
//   ?advance=SECONDS      it jumps, forward or back
//   ?reset                it shows the real time again
//   ?tick                 and this worker does now what is due
#if ADS_TEST_CLOCK

#include <charconv>

#include "ngx/handlers.hpp"
#include "ngx/worker.hpp"

namespace ads::ngx {

ngx_int_t clock_handler(ngx_http_request_t* r) {
    if (ngx_http_discard_request_body(r) != NGX_OK || worker == nullptr) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }
    Query query;
    if (const auto error = query_of(r, query)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    auto& [offset, held] = worker->zone().head().clock;
    bool ticks = false;
    for (const auto& [name, value] : query.params) {
        Millis number = 0;
        std::from_chars(value.data(), value.data() + value.size(), number);
        ticks = ticks || name == "tick";
        if (name == "reset") {
            held.store(0);
            offset.store(0);
        } else if (name == "hold") {
            held.store(number);
        } else if (name == "advance") {
            offset.fetch_add(number * 1000);
        } else if (name == "set") {
            held.store(0);
            offset.fetch_add(number - worker->now());
        }
    }
    if (ticks) {
        worker->tick();
    }
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, 32));
    if (memory == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    Out out(memory, 32);
    out.number(worker->now());
    out.put('\n');
    return send(r, {NGX_HTTP_OK, "text/plain", out.text()});
}

}  // namespace ads::ngx

#endif
