// ads_status health: whether a load balancer should send requests to this node. It
// looks at what the node needs to answer, not at what may be lost or late: that is
// for alerts.
#include "core/base/bytes.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

struct Verdict {
    std::string_view reason;  // empty: it can serve
    std::string_view message;
};

Verdict judge(Worker* worker) noexcept {
    if (worker == nullptr) {
        return {"no_place", "the worker has no slot in the zone or the state: see the error log"};
    }
    if (worker->process.is_exiting() && worker->process.is_newest()) {
        return {"shutting_down", "nginx is shutting down"};
    }
    if (!worker->refresh() || worker->catalog.image().placements().empty()) {
        return {"no_catalog", "no catalog with a placement has been read yet"};
    }
    return {};
}

}  // namespace

ngx_int_t health_handler(ngx_http_request_t* r) {
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0) {
        return not_allowed(r, "GET, HEAD");
    }
    if (const ngx_int_t rc = ngx_http_discard_request_body(r); rc != NGX_OK) {
        return rc;
    }
    constexpr size_t kRoom = 256;
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, kRoom));
    if (memory == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    Out out(memory, kRoom);
    const Verdict verdict = judge(Worker::current());
    if (verdict.reason.empty()) {
        out.put("{\"status\":\"ok\"}\n");
    } else {
        out.put("{\"status\":\"unavailable\",\"reason\":\"");
        out.put(verdict.reason);
        out.put("\",\"message\":\"");
        out.json(verdict.message);
        out.put("\"}\n");
    }
    no_store(r);
    return send(r, {verdict.reason.empty() ? static_cast<ngx_uint_t>(NGX_HTTP_OK)
                                           : static_cast<ngx_uint_t>(NGX_HTTP_SERVICE_UNAVAILABLE),
                    "application/json", out.text()});
}

}  // namespace ads::ngx
