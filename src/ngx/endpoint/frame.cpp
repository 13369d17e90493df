// …/frame: one creative in a document of its own, by the token of its impression. It counts
// nothing: that is for when the ad is seen.
#include "core/base/query.hpp"
#include "core/decide/render.hpp"
#include "core/token/token.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/request/answer.hpp"
#include "ngx/request/cors.hpp"
#include "ngx/request/tracked.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

constexpr std::string_view kType = "text/html; charset=utf-8";

// Without scripts, forms and an origin, also where it is opened outside of a frame.
constexpr std::string_view kPolicy =
    "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src https: "
    "'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'self'";

// Of a tag: what third parties' scripts do, but without an origin and the visitor's cookies of it.
constexpr std::string_view kTagPolicy =
    "sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox; default-src 'none'; "
    "script-src https: 'unsafe-inline'; style-src https: 'unsafe-inline'; img-src https: data: "
    "'self'; font-src https: data:; media-src https:; connect-src https:; frame-src https:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

// The headers of every answer; false without memory.
bool set_headers(ngx_http_request_t* r, std::string_view policy = kPolicy) noexcept {
    const CorsConf* cors = loc_conf(r)->cors;
    const std::string_view others = cors == nullptr ? std::string_view() : view(cors->ancestors);
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, policy.size() + others.size()));
    if (memory == nullptr) {
        return false;
    }
    Out out(memory, policy.size() + others.size());
    out.put(policy);
    out.put(others);
    return push_header(r, "Content-Security-Policy", str(out.text())) &&
           push_header(r, "Referrer-Policy", str("no-referrer")) && set_embedding(r, true) &&
           no_store(r);
}

// An empty document, so that the page shows nothing. Its title gives the reason.
ngx_int_t send_empty(ngx_http_request_t* r, ngx_uint_t status, const InputError& error) noexcept {
    constexpr std::string_view kHead =
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>";
    constexpr std::string_view kTail = "</title></head><body></body></html>";
    const std::string_view title = error.message;
    const size_t room = kHead.size() + 6 * title.size() + kTail.size();  // escapes have six
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, room));
    if (memory == nullptr || !set_headers(r)) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    Out out(memory, room);
    out.put(kHead);
    out.html(title);
    out.put(kTail);
    if (RequestCtx* ctx = context(r)) {
        ctx->decision = error.code;
    }
    return send(r, {status, kType, out.text()});
}

// Whether the creative, its ad group or its campaign is a draft, paused, archived or stopped. The
// end of a flight does not count: an ad that was served before it may be shown after it.
bool is_stopped(const View& view, const CreativeRecord& creative) noexcept {
    const Image& image = view.image();
    const GroupRecord& group = image.groups()[creative.group];
    const auto stopped = [](Status status) {
        return status == Status::draft || status == Status::paused || status == Status::archived;
    };
    return stopped(creative.status) || stopped(group.status) ||
           stopped(image.campaign_of(group).status) || view.is_stopped(creative.group);
}

// Whether the request is for the host that shows tags.
bool is_tag_host(ngx_http_request_t* r) noexcept {
    const std::string_view origin = view(main_conf(r)->frame_origin);
    if (origin.empty() || r->headers_in.host == nullptr) {
        return false;
    }
    const ngx_str_t host = str(origin.substr(origin.find("://") + 3));
    const ngx_str_t& asked = r->headers_in.host->value;
    return asked.len == host.len && ngx_strncasecmp(asked.data, host.data, host.len) == 0;
}

// The URL that counts a click on this serve. A tag may hand it on to others: it has a host.
std::string_view click_url(Worker& worker, ngx_http_request_t* r, const Tracked& tracked,
                           bool with_host) noexcept {
    const LocConf* conf = loc_conf(r);
    std::string_view base = view(conf->base.len > 0 ? conf->base : conf->location_base);
    if (with_host && base.starts_with('/')) {
        base = view(conf->tag_base);
    }
    char token[kTokenChars];
    tracked.mint_other(EventType::click, worker.catalog.image(), worker.process.ring(), token);
    const size_t room = base.size() + 8 + kTokenChars;
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, room));
    if (memory == nullptr) {
        return {};
    }
    Out out(memory, room);
    out.put(base);
    out.put("click?t=");
    out.put({token, kTokenChars});
    return out.text();
}

ngx_int_t send_creative(Worker& worker, ngx_http_request_t* r, RequestCtx* ctx,
                        const Tracked& tracked) noexcept {
    const Image& image = worker.catalog.image();
    const CreativeRecord& creative = image.creatives()[tracked.creative];
    const bool is_tag = creative.type == CreativeType::tag;
    if (is_tag && !is_tag_host(r)) {
        return send_empty(r, NGX_HTTP_NOT_FOUND, {"wrong_host", "this host does not show tags"});
    }
    const std::string_view click = click_url(worker, r, tracked, is_tag);
    const size_t room = frame_size(image, creative, click);
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, room));
    if (memory == nullptr || click.empty() || !set_headers(r, is_tag ? kTagPolicy : kPolicy)) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    ctx->decision = "frame";
    Out out(memory, room);
    render_frame(out, image, creative, click);
    return out.overflow() ? NGX_HTTP_INTERNAL_SERVER_ERROR
                          : send(r, {NGX_HTTP_OK, kType, out.text()});
}

ngx_int_t frame(Worker& worker, ngx_http_request_t* r, RequestCtx* ctx) noexcept {
    if (!worker.refresh()) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }
    Query query;
    if (const auto error = query_of(r, query)) {
        return send_empty(r, NGX_HTTP_BAD_REQUEST, error);
    }
    Tracked tracked;
    const TokenError error = verify(query.get("t"), worker.process.ring(), tracked.type,
                                    worker.process.now(), worker.process.lives(), tracked.token);
    if (error != TokenError::none) {
        return send_empty(r, error == TokenError::expired ? kGone : NGX_HTTP_BAD_REQUEST,
                          describe_error(error));
    }
    const Image& image = worker.catalog.image();
    tracked.creative = image.find_creative(tracked.token.creative);
    if (tracked.creative == kNone || tracked.group(image) == kNone ||
        is_stopped(worker.catalog.view(), image.creatives()[tracked.creative])) {
        return send_empty(r, kGone, kCreativeGone);
    }
    if (auto* served = pnew<Served>(r->pool)) {
        *served = {tracked.token.campaign, tracked.token.ad_group, tracked.token.creative};
        ctx->served = served;
        ctx->served_count = 1;
    }
    return send_creative(worker, r, ctx, tracked);
}

}  // namespace

ngx_int_t frame_handler(ngx_http_request_t* r) {
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0) {
        push_header(r, "Allow", str("GET, HEAD"));
        return send_empty(r, NGX_HTTP_NOT_ALLOWED, {"method", "only GET and HEAD are allowed"});
    }
    if (const ngx_int_t rc = ngx_http_discard_request_body(r); rc != NGX_OK) {
        return rc;
    }
    return defer(r, frame);
}

}  // namespace ads::ngx
