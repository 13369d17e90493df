// …/slots.css: how much room the placements need on a page.
#include "core/base/hash.hpp"
#include "core/decide/render.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/request/answer.hpp"
#include "ngx/request/cors.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

ngx_int_t slots_css(Worker& worker, ngx_http_request_t* r, RequestCtx*) noexcept {
    if (!worker.refresh()) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }
    const Image& image = worker.catalog.image();
    const std::string_view element = view(loc_conf(r)->element);
    const size_t room = slots_css_size(image, element);
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, room));
    if (memory == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    Out out(memory, room);
    render_slots_css(out, image, element);
    // The hash of the text is the same on all nodes, and after a restart.
    if (out.overflow() || !set_embedding(r, true) ||
        !set_cacheable(r, "public, max-age=60", fnv1a64(out.text()))) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    return send(r, {NGX_HTTP_OK, "text/css", out.text()});
}

}  // namespace

ngx_int_t slots_css_handler(ngx_http_request_t* r) {
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0) {
        return not_allowed(r, "GET, HEAD");
    }
    if (const ngx_int_t rc = ngx_http_discard_request_body(r); rc != NGX_OK) {
        return rc;
    }
    return defer(r, slots_css);
}

}  // namespace ads::ngx
