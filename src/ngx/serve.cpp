// …/serve: which ad for these placements, now.
#include <time.h>

#include "core/decide.hpp"
#include "core/query.hpp"
#include "core/render.hpp"
#include "ngx/handlers.hpp"
#include "ngx/worker.hpp"

namespace ads::ngx {

namespace {

int64_t monotonic_ns() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Counts a serve the moment it is decided: two workers never take the same one.
class Counters {
public:
    explicit Counters(Worker& worker) noexcept : worker_(worker) {}

    bool take(uint32_t group, const Request& request) noexcept {
        const Image& image = worker_.image();
        const uint32_t slot = image.slot_of(group);
        if (request.invalid || slot == kNone) {
            return true;
        }
        const Day day = image.day_of(image.campaign_of(image.groups()[group]), request.now / 1000);
        worker_.state().slot(slot).at(Counter::serves).count(day, 1);
        return true;
    }

private:
    Worker& worker_;
};

std::string_view user_agent(ngx_http_request_t* r) noexcept {
    return r->headers_in.user_agent == nullptr ? std::string_view()
                                               : view(r->headers_in.user_agent->value);
}

InputError find_placements(const Image& image, const ServeQuery& query,
                           std::span<uint32_t> placements) noexcept {
    for (size_t i = 0; i < query.placement_count; i++) {
        placements[i] = image.find_placement(query.placements[i]);
        if (placements[i] == kNone) {
            return {"unknown_placement", "there is no placement with that id"};
        }
    }
    return {};
}

Token token_of(const Image& image, const Pick& pick, uint64_t serve, Millis now, uint16_t agent,
               uint32_t node) noexcept {
    const auto& group = image.groups()[pick.group];
    Token token;
    token.issued = now;
    token.serve = serve;
    token.campaign = image.campaign_of(group).id;
    token.ad_group = group.id;
    token.creative = image.creatives()[pick.creative].id;
    token.experiment = pick.experiment;
    token.placement = image.placements()[pick.placement].hash;
    token.agent = agent;
    token.node = node;
    return token;
}

Event serve_event(const Image& image, const Pick& pick, const Token& token) noexcept {
    return {.type = EventType::serve,
            .time = token.issued,
            .issued = token.issued,
            .serve = token.serve,
            .campaign = token.campaign,
            .ad_group = token.ad_group,
            .creative = token.creative,
            .experiment = token.experiment,
            .node = token.node,
            .placement = image.text(image.placements()[pick.placement].slug)};
}

// Turns the picks into ads with tokens, and their serves into events.
Ad* make_ads(ngx_http_request_t* r, RequestCtx* ctx, std::span<const Pick> picks,
             Millis now) noexcept {
    const Image& image = worker->image();
    auto* ads = static_cast<Ad*>(ngx_palloc(r->pool, sizeof(Ad) * picks.size()));
    auto* served = static_cast<Served*>(ngx_palloc(r->pool, sizeof(Served) * picks.size()));
    if (ads == nullptr || served == nullptr) {
        return nullptr;
    }
    const Key& key = worker->ring().signer();
    const uint16_t agent = key.agent(user_agent(r));
    worker->make_room();
    for (size_t i = 0; i < picks.size(); i++) {
        ads[i].pick = picks[i];
        ads[i].serve = worker->rng().next();
        const Token token = token_of(image, picks[i], ads[i].serve, now, agent, worker->node());
        mint_tokens(ads[i], image, token, key);
        worker->record(serve_event(image, picks[i], token), {.type = EventType::serve});
        served[i] = {token.campaign, token.ad_group, token.creative};
    }
    ctx->served = served;
    ctx->served_count = picks.size();
    return ads;
}

std::string_view content_type(Format format) noexcept {
    switch (format) {
        case Format::html:
            return "text/html; charset=utf-8";
        case Format::js:
            return "application/javascript; charset=utf-8";
        case Format::json:
            break;
    }
    return "application/json";
}

void render(Out& out, const ServeQuery& query, std::span<const Ad> ads,
            std::string_view base) noexcept {
    const Image& image = worker->image();
    switch (query.format) {
        case Format::html:
            render_html(out, image, ads[0], base);
            break;
        case Format::js:
            out.put(query.callback);
            out.put('(');
            render_json(out, image, ads, base);
            out.put(");");
            break;
        case Format::json:
            render_json(out, image, ads, base);
            break;
    }
}

ngx_int_t answer(ngx_http_request_t* r, RequestCtx* ctx, const ServeQuery& query,
                 std::span<const Ad> ads) noexcept {
    no_store(r);
    if (ads.empty() && query.format == Format::html) {
        return send(r, {.status = NGX_HTTP_NO_CONTENT});
    }
    const LocConf* conf = loc_conf(r);
    const std::string_view base = view(conf->base.len > 0 ? conf->base : conf->location_base);
    const size_t room = rendered_size(worker->image(), ads, base) + query.callback.size() + 8;
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, room));
    if (memory == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    Out out(memory, room);
    render(out, query, ads, base);
    if (out.overflow()) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    ctx->answer = {NGX_HTTP_OK, content_type(query.format), out.text()};
    return ads.empty() ? send(r, ctx->answer) : worker->hold(r, ctx);
}

}  // namespace

ngx_int_t serve_handler(ngx_http_request_t* r) {
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0) {
        return not_allowed(r, "GET, HEAD");
    }
    if (ngx_http_discard_request_body(r) != NGX_OK) {
        return NGX_HTTP_BAD_REQUEST;
    }
    RequestCtx* ctx = context(r);
    if (ctx == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (worker == nullptr || !worker->refresh()) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }
    const int64_t began = monotonic_ns();
    Query params;
    ServeQuery query;
    if (const auto error = query_of(r, params)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    if (const auto error = read_serve(params, query)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    std::array<uint32_t, kMaxPage> placements;
    if (const auto error = find_placements(worker->image(), query, placements)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    if (r->method == NGX_HTTP_HEAD) {
        no_store(r);
        return send(r, {NGX_HTTP_OK, content_type(query.format), {}});
    }
    const Request request{.now = worker->now()};
    Counters counters(*worker);
    Page page;
    for (size_t i = 0; i < query.placement_count; i++) {
        decide(worker->view(), request, placements[i], page, worker->rng(), counters);
    }
    const auto picks = page.picks();
    const Ad* ads = make_ads(r, ctx, picks, request.now);
    if (ads == nullptr && !picks.empty()) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    ctx->decision = picks.empty() ? "no_ad" : "served";
    ctx->nanoseconds = monotonic_ns() - began;
    return answer(r, ctx, query, {ads, picks.size()});
}

}  // namespace ads::ngx
