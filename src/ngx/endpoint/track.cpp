// …/impression, …/viewable, …/click, …/conversion: what a token proves is
// written once, then answered.
#include "core/base/query.hpp"
#include "core/decide/render.hpp"
#include "core/token/token.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/request/cors.hpp"
#include "ngx/request/invalid.hpp"
#include "ngx/request/tracked.hpp"
#include "ngx/request/visitor.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

constexpr ngx_msec_t kRetry = 5;
constexpr uint32_t kMaxTries = 400;

// The smallest transparent picture: one pixel, 43 bytes.
constexpr unsigned char kPixel[] = {
    'G',  'I',  'F',  '8',  '9',  'a',                           // signature
    0x01, 0x00, 0x01, 0x00, 0x80, 0x00, 0x00,                    // 1 × 1, two colours
    0xff, 0xff, 0xff, 0x00, 0x00, 0x00,                          // the colours
    0x21, 0xf9, 0x04, 0x01, 0x00, 0x00, 0x00, 0x00,              // colour 0 is transparent
    0x2c, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00,  // the picture
    0x02, 0x02, 0x44, 0x01, 0x00, 0x3b,
};
static_assert(sizeof kPixel == 43);

InputError event_type(ngx_http_request_t* r, const Query& query, EventType& type) noexcept {
    const ngx_int_t configured = loc_conf(r)->track;
    if (configured != kAnyType) {
        type = static_cast<EventType>(configured);
        return {};
    }
    const auto asked = named<EventType>(query.get("type"));
    if (!asked || *asked == EventType::serve) {
        return {"bad_type", "type must be impression, viewable, click or conversion"};
    }
    type = *asked;
    return {};
}

// Where a click goes: the creative's own URL, never one from the query. The
// conversion token in it is minted from the click's, with the key that signed
// that: a replayed click gives the same one.
bool set_location(Worker& worker, ngx_http_request_t* r, const Tracked& tracked) noexcept {
    const Image& image = worker.catalog.image();
    const auto& creative = image.creatives()[tracked.creative];
    std::string_view url = image.text(creative.click_url);
    char click_id[kTokenChars];
    if (creative.has_macros) {
        tracked.mint_other(EventType::conversion, image, worker.process.ring(), click_id);
    }
    // The shortest macro has ten characters.
    const size_t room = url.size() * (1 + kLongestMacro / 10) + 1;
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, room));
    auto* location = static_cast<ngx_table_elt_t*>(ngx_list_push(&r->headers_out.headers));
    if (memory == nullptr || location == nullptr) {
        return false;
    }
    Out out(memory, room);
    if (creative.has_macros) {
        const Token& token = tracked.token;
        const uint32_t placement = image.find_placement(token.placement);
        render_click_url(
            out, url,
            {.click_id = {click_id, kTokenChars},
             .campaign = token.campaign,
             .ad_group = token.ad_group,
             .creative = token.creative,
             .placement = placement == kNone ? std::string_view()
                                             : image.text(image.placements()[placement].slug),
             .timestamp = worker.process.now() / 1000,
             .cachebuster = worker.process.rng().next()});
    } else {
        out.put(url);
    }
    location->hash = 1;
    location->key = str("Location");
    location->value = str(out.text());
#if nginx_version >= 1023000
    location->next = nullptr;
#endif
    r->headers_out.location = location;
    // The advertiser learns which site, not which page.
    return push_header(r, "Referrer-Policy", str("strict-origin"));
}

Answer answer_of(Worker& worker, ngx_http_request_t* r, const Tracked& tracked) noexcept {
    if (r->method == NGX_HTTP_POST) {
        return {.status = NGX_HTTP_NO_CONTENT};
    }
    if (tracked.type == EventType::click) {
        return set_location(worker, r, tracked) ? Answer{.status = NGX_HTTP_MOVED_TEMPORARILY}
                                                : Answer{.status = NGX_HTTP_INTERNAL_SERVER_ERROR};
    }
    return {NGX_HTTP_OK, "image/gif", {reinterpret_cast<const char*>(kPixel), sizeof kPixel}};
}

Event event_of(Worker& worker, ngx_http_request_t* r, const Tracked& tracked, Millis now) noexcept {
    const Image& image = worker.catalog.image();
    const Token& token = tracked.token;
    const uint32_t placement = image.find_placement(token.placement);
    const Visitor visitor = visitor_of(worker, r, false);
    Event event{.type = tracked.type,
                .device = visitor.device,
                .consent = visitor.consent,
                .time = now,
                .issued = token.issued,
                .serve = token.serve,
                .campaign = token.campaign,
                .ad_group = token.ad_group,
                .creative = token.creative,
                .experiment = token.experiment,
                .price = token.price,
                .node = token.node,
                .country = visitor.country(),
                .session = visitor.session.empty() ? kAnonymous : visitor.session,
                .user = visitor.user};
    if (placement != kNone) {
        event.placement = image.text(image.placements()[placement].slug);
    }
    event.invalid = tracked.group(image) == kNone
                        ? Invalid::mismatch
                        : judge_event(worker, r, tracked.type, token, visitor, now);
    if (event.invalid != Invalid::none) {
        event.price = 0;
    } else if (event.type == EventType::click && may_lack_impression(worker, r, token, now)) {
        event.metadata = kUnseen;
    }
    return event;
}

// Claims, records and holds; NGX_AGAIN if another worker has the same token in
// hand at this moment.
ngx_int_t count(Worker& worker, ngx_http_request_t* r, RequestCtx* ctx,
                const Tracked& tracked) noexcept {
    uint32_t entry = kNone;
    switch (worker.recorder.claim(tracked.token, entry)) {
        case Claim::busy:
            return NGX_AGAIN;
        case Claim::duplicate:
            worker.process.state().add(Total::duplicate);
            ctx->decision = "duplicate";
            break;
        case Claim::fresh: {
            Event event = event_of(worker, r, tracked, worker.process.now());
            if (ctx->limited && event.invalid == Invalid::none) {
                event.invalid = Invalid::rate_limit;
                event.price = 0;
            }
            const Charged charged = worker.catalog.billing().bill(event, tracked.token.reserve);
            if (event.invalid != Invalid::none) {
                ctx->invalid = name_of(event.invalid);
            }
            Completion completion =
                Completion::of(worker.catalog.image(), worker.catalog.slots(), event, entry);
            completion.charged = charged;
            worker.recorder.record(event, completion);
            ctx->decision = "counted";
            break;
        }
    }
    ctx->answer = answer_of(worker, r, tracked);
    // A duplicate waits as well: the first copy may be in the same cycle.
    return worker.requests.hold(r, ctx);
}

ngx_int_t refuse(Worker& worker, ngx_http_request_t* r, TokenError error) noexcept {
    if (r->method != NGX_HTTP_HEAD) {
        worker.process.state().add(Total::rejected);
    }
    return send_error(r, NGX_HTTP_BAD_REQUEST, describe_error(error));
}

ngx_int_t track(Worker& worker, ngx_http_request_t* r, RequestCtx* ctx) noexcept;

void retry(ngx_event_t* event) {
    auto* r = static_cast<ngx_http_request_t*>(event->data);
    ngx_connection_t* c = r->connection;
    Worker* worker = Worker::current();
    ngx_http_finalize_request(
        r, worker == nullptr ? NGX_HTTP_SERVICE_UNAVAILABLE : track(*worker, r, context(r)));
    ngx_http_run_posted_requests(c);
}

ngx_int_t wait(ngx_http_request_t* r, RequestCtx* ctx) noexcept {
    if (ctx->timer == nullptr) {
        ctx->timer = pnew<ngx_event_t>(r->pool);
        if (ctx->timer == nullptr) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
        ctx->timer->handler = retry;
        ctx->timer->data = r;
        ctx->timer->log = r->connection->log;
    }
    ngx_add_timer(ctx->timer, kRetry);
    r->main->count++;
    return NGX_DONE;
}

ngx_int_t track(Worker& worker, ngx_http_request_t* r, RequestCtx* ctx) noexcept {
    if (!worker.refresh()) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }
    Query query;
    Tracked tracked;
    if (const auto error = query_of(r, query)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    if (const auto error = event_type(r, query, tracked.type)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    const TokenError error = verify(query.get("t"), worker.process.ring(), tracked.type,
                                    worker.process.now(), worker.process.lives(), tracked.token);
    if (error != TokenError::none && error != TokenError::expired) {
        return refuse(worker, r, error);
    }
    tracked.creative = worker.catalog.image().find_creative(tracked.token.creative);
    const bool counts = r->method != NGX_HTTP_HEAD;
    if (error == TokenError::expired) {
        if (counts) {
            worker.process.state().add(Total::expired);
        }
        if (tracked.type != EventType::click || tracked.creative == kNone) {
            return send_error(r, kGone, describe_error(error));
        }
        ctx->decision = "expired";
    }
    if (tracked.creative == kNone) {
        return send_error(r, kGone, kCreativeGone);
    }
    if (ctx->tries == 0) {
        no_store(r);
        set_embedding(r, true);
    }
    if (!counts || error == TokenError::expired) {
        return send(r, answer_of(worker, r, tracked));
    }
    const Served served{tracked.token.campaign, tracked.token.ad_group, tracked.token.creative};
    if (auto* copy = pnew<Served>(r->pool)) {
        *copy = served;
        ctx->served = copy;
        ctx->served_count = 1;
    }
    const ngx_int_t rc = count(worker, r, ctx, tracked);
    if (rc != NGX_AGAIN) {
        return rc;
    }
    if (++ctx->tries < kMaxTries) {
        return wait(r, ctx);
    }
    // The worker that has it is stopped or stuck; it counts when it goes on.
    worker.process.state().add(Total::duplicate);
    ctx->decision = "duplicate";
    return send(r, answer_of(worker, r, tracked));
}

}  // namespace

ngx_int_t track_handler(ngx_http_request_t* r) {
    if (const ngx_int_t rc = apply_cors(r, "GET, HEAD, POST"); rc != NGX_DECLINED) {
        return rc;
    }
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD | NGX_HTTP_POST)) == 0) {
        return not_allowed(r, "GET, HEAD, POST");
    }
    if (const ngx_int_t rc = ngx_http_discard_request_body(r); rc != NGX_OK) {
        return rc;
    }
    return defer(r, track);
}

}  // namespace ads::ngx
