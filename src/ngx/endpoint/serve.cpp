// …/serve: which ad for these placements, now.
#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/origin.hpp"
#include "core/base/query.hpp"
#include "core/decide/decide.hpp"
#include "core/decide/explain.hpp"
#include "core/decide/render.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/request/cors.hpp"
#include "ngx/request/visitor.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

constexpr uint32_t kSampled = 32;  // candidates looked at in one pass

int64_t monotonic_ns() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

using Placements = FixedVector<uint32_t, kMaxPage>;

InputError find_placements(const Image& image, const ServeQuery& query,
                           Placements& placements) noexcept {
    for (const auto slug : query.placements) {
        const uint32_t placement = image.find_placement(slug);
        if (placement == kNone) {
            return {"unknown_placement", "there is no placement with that id"};
        }
        placements.push_back(placement);
    }
    return {};
}

// One request as the handler sees it.
struct Serve {
    // Not an aggregate: that would clear all of it.
    Serve(Worker& w, ngx_http_request_t* request, RequestCtx* context) noexcept
        : worker(w), r(request), ctx(context) {}

    Worker& worker;
    ngx_http_request_t* r;
    RequestCtx* ctx;
    Query params;
    ServeQuery query;
    std::string_view base;  // of the tracking URLs
    Visitor visitor;
    Keys keys;
    Request request;
    Page page;
    std::vector<Refusal>* trace = nullptr;  // for debug=1
};

constexpr InputError kBadOrigin{
    "bad_origin",
    "absolute=1 needs a Host header with a host name and perhaps a port, or a valid ads_origin"};

// Scheme and host of the request as this server sees them: what a client says of a proxy before
// us counts only where ads_origin says so. False if there is none that may stand in a URL.
bool find_origin(ngx_http_request_t* r, std::string& origin) {
    origin = value_of(r, loc_conf(r)->origin);
    if (origin.empty() && r->headers_in.host != nullptr) {
#if NGX_HTTP_SSL
        const bool secure = r->connection->ssl != nullptr;
#else
        const bool secure = false;
#endif
        origin = secure ? "https://" : "http://";
        origin += view(r->headers_in.host->value);
    }
    return valid_origin(origin);
}

InputError find_base(Serve& s) {
    const LocConf* conf = loc_conf(s.r);
    s.base = view(conf->base.len > 0 ? conf->base : conf->location_base);
    if (!s.query.absolute || !s.base.starts_with('/')) {
        return {};
    }
    std::string base;
    if (!find_origin(s.r, base)) {
        return kBadOrigin;
    }
    base += s.base;
    s.base = view(copy(s.r->pool, base));
    return s.base.data() == nullptr ? InputError{"no_memory", "out of memory"} : InputError();
}

Token token_of(const Image& image, const Pick& pick, uint64_t serve, const Serve& s) noexcept {
    const auto& group = image.groups()[pick.group];
    Token token;
    token.issued = s.request.now;
    token.serve = serve;
    token.flags = static_cast<uint8_t>((s.visitor.consent ? kTokenConsent : 0) |
                                       (s.request.invalid ? kTokenInvalid : 0) |
                                       (pick.by_session ? kTokenExperiment : 0));
    token.campaign = image.campaign_of(group).id;
    token.ad_group = group.id;
    token.creative = image.creatives()[pick.creative].id;
    token.experiment = pick.experiment;
    token.reserve = std::min(pick.reserved, kTokenMaxMoney);
    token.placement = image.placements()[pick.placement].hash;
    token.agent = s.visitor.agent;
    token.node = s.worker.process.node();
    return token;
}

Event serve_event(const Image& image, const Pick& pick, const Token& token,
                  const Visitor& visitor) noexcept {
    return {.type = EventType::serve,
            .invalid = visitor.invalid,
            .device = visitor.device,
            .consent = visitor.consent,
            .time = token.issued,
            .issued = token.issued,
            .serve = token.serve,
            .campaign = token.campaign,
            .ad_group = token.ad_group,
            .creative = token.creative,
            .experiment = token.experiment,
            .node = token.node,
            .placement = image.text(image.placements()[pick.placement].slug),
            .country = visitor.country(),
            .session = visitor.session.empty() ? kAnonymous : visitor.session,
            .user = visitor.user};
}

using Ads = FixedVector<Ad, kMaxPage>;

// Turns the picks into ads with tokens, and their serves into events; false
// without memory.
bool make_ads(Serve& s, Ads& ads) noexcept {
    const Image& image = s.worker.catalog.image();
    const Key& key = s.worker.process.ring().signer();
    auto* served = static_cast<Served*>(
        ngx_palloc(s.r->pool, sizeof(Served) * std::max<size_t>(1, s.page.filled())));
    if (served == nullptr) {
        return false;
    }
    s.worker.recorder.make_room();
    for (const auto& pick : s.page.picks()) {
        if (!pick.filled()) {
            continue;
        }
        Ad& ad = ads.emplace_back();
        ad.pick = pick;
        ad.serve = s.worker.process.rng().next();
        const Token token = token_of(image, pick, ad.serve, s);
        mint_tokens(ad, image, token, key);
        s.worker.recorder.record(serve_event(image, pick, token, s.visitor),
                                 {.type = EventType::serve, .invalid = s.visitor.invalid});
        served[ads.size() - 1] = {token.campaign, token.ad_group, token.creative};
    }
    s.ctx->served = served;
    s.ctx->served_count = ads.size();
    return true;
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

// At most so many candidates of a page are explained: others wait for the event loop.
constexpr size_t kMostExplained = 2000;

// "debug":[{"placement":…,"candidates":[{"ad_group":…,"reason":…}],"left_out":…}]
std::string explained(const Serve& s) {
    const Image& image = s.worker.catalog.image();
    const size_t most = kMostExplained / std::max<size_t>(1, s.page.picks().size());
    std::string text = ",\"debug\":[";
    for (const auto& pick : s.page.picks()) {
        const auto& placement = image.placements()[pick.placement];
        text += text.ends_with('[') ? "{\"placement\":\"" : ",{\"placement\":\"";
        text += image.text(placement.slug);
        text += "\",\"candidates\":[";
        const auto all = explain(s.worker.catalog.view(), s.request, pick, *s.trace, most);
        for (const auto& one : all) {
            text += text.ends_with('[') ? "{\"ad_group\":" : ",{\"ad_group\":";
            text += std::to_string(image.groups()[one.group].id);
            text += ",\"reason\":\"";
            text += one.reason == Reason::none ? std::string_view("served") : name_of(one.reason);
            text += "\"}";
        }
        text += ']';
        if (const size_t left_out = candidates_of(image, placement) - all.size(); left_out > 0) {
            text += ",\"left_out\":" + std::to_string(left_out);
        }
        text += '}';
    }
    return text + "]";
}

void render(Out& out, const Serve& s, std::span<const Ad> ads, std::string_view more) noexcept {
    const Image& image = s.worker.catalog.image();
    switch (s.query.format) {
        case Format::html:
            // A subrequest's answer becomes a part of another page.
            (s.r == s.r->main ? render_document : render_html)(out, image, ads[0], s.base);
            break;
        case Format::js:
            out.put(s.query.callback);
            out.put('(');
            render_json(out, image, ads, s.base, more);
            out.put(");");
            break;
        case Format::json:
            render_json(out, image, ads, s.base, more);
            break;
    }
}

ngx_int_t answer(Serve& s, std::span<const Ad> ads) noexcept {
    ngx_http_request_t* r = s.r;
    no_store(r);
    set_embedding(r, s.query.format != Format::json);
    if (s.visitor.fresh_session) {
        set_session(r, s.visitor);
    }
    if (ads.empty() && s.query.format == Format::html) {
        return send(r, {.status = NGX_HTTP_NO_CONTENT});
    }
    const std::string debug = s.trace == nullptr ? std::string() : explained(s);
    const size_t room =
        (s.query.format == Format::html ? html_size(s.worker.catalog.image(), ads[0], s.base)
                                        : json_size(s.worker.catalog.image(), ads, s.base)) +
        s.query.callback.size() + debug.size() + 8;
    char* memory = memory_for(r, s.ctx, room);
    if (memory == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    Out out(memory, room);
    render(out, s, ads, debug);
    if (out.overflow()) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    s.ctx->answer = {NGX_HTTP_OK, content_type(s.query.format), out.text()};
    return ads.empty() ? send(r, s.ctx->answer) : s.worker.requests.hold(r, s.ctx);
}

// Targeting reasons cost a pass over the candidates, so they are counted on
// one request in 64, on a part of the candidates, and scaled.
void sample_refusals(Serve& s, std::span<const uint32_t> placements) noexcept {
    const Image& image = s.worker.catalog.image();
    for (const uint32_t placement : placements) {
        FixedVector<Explained, kSampled> found;
        const double each =
            sample_reasons(s.worker.catalog.view(), s.request, image.placements()[placement],
                           static_cast<uint32_t>(s.worker.process.rng().next()), kSampled,
                           [&](uint32_t group, Reason reason) {
                               found.push_back({group, reason});
                           });
        for (const auto& [group, reason] : found) {
            const uint32_t slot = s.worker.catalog.slot_of(group);
            if (slot != kNone) {
                const auto& campaign = image.campaign_of(image.groups()[group]);
                s.worker.process.state().refuse(slot, reason,
                                                image.day_of(campaign, s.request.now / 1000),
                                                static_cast<uint64_t>(each * 64 + 0.5));
            }
            s.worker.counts.traffic().refused(reason, static_cast<uint64_t>(each * 64 + 0.5));
        }
    }
}

void gather(Serve& s) noexcept {
    s.visitor = visitor_of(s.worker, s.r, true);
    gather_keys(s.r, s.query, s.visitor.personalize, s.keys);
    s.request = {.now = s.worker.process.now(),
                 .device = s.visitor.device,
                 .geo = s.visitor.geo,
                 .language = s.visitor.language,
                 .url = page_url(s.r, s.query),
                 .keys = s.keys,
                 .session = s.visitor.session,
                 .invalid = s.visitor.invalid != Invalid::none};
    s.ctx->invalid = name_of(s.visitor.invalid);
}

ngx_int_t serve(Serve& s, std::span<const uint32_t> placements) noexcept {
    Traffic& traffic = s.worker.counts.traffic();
    const bool sampled = traffic.samples();
    const bool timed = sampled || main_conf(s.r)->timed;
    const int64_t began = timed ? monotonic_ns() : 0;
    gather(s);
    std::vector<Refusal> trace;
    if (s.query.debug) {
        const std::string_view allowed = value_of(s.r, loc_conf(s.r)->explain);
        s.trace = allowed.empty() || allowed == "0" || allowed == "off" ? nullptr : &trace;
    }
    const ngx_int_t cap = loc_conf(s.r)->anonymous_cap;
    Ledger ledger(s.worker.ledger_source(), s.request,
                  cap == kNoCap ? kNoAnonymousCap : static_cast<uint64_t>(cap), s.trace);
    for (const Id id : s.query.shown) {
        s.page.add_shown(s.worker.catalog.image(), id);
    }
    decide(s.worker.catalog.view(), s.request, placements, s.page, s.worker.process.rng(), ledger);
    traffic.request(placements.size());
    for (const auto& pick : s.page.picks()) {
        if (pick.filled()) {
            s.worker.counts.outcomes().filled(pick.placement);
        } else {
            const Unfilled why = ledger.unfilled(pick.placement);
            traffic.unfilled(why);
            s.worker.counts.outcomes().unfilled(pick.placement, why);
        }
    }
    // Pacing goes by the requests of people.
    if (!s.request.invalid) {
        for (const uint32_t placement : placements) {
            s.worker.counts.request(placement);
        }
        if (s.worker.counts.samples_reasons()) {
            sample_refusals(s, placements);
        }
    }
    Ads ads;
    if (!make_ads(s, ads)) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    s.ctx->decision = ads.empty() ? "no_ad" : "served";
    s.ctx->nanoseconds = timed ? monotonic_ns() - began : 0;
    if (sampled) {
        traffic.decided(s.ctx->nanoseconds);
    }
    return answer(s, ads);
}

// Over a silent limit: as if there were no ad. Nothing is decided, taken or written.
ngx_int_t answer_nothing(Serve& s, std::span<const uint32_t> placements) noexcept {
    s.worker.counts.traffic().request(placements.size());
    s.worker.counts.traffic().unfilled(Unfilled::rate_limit, placements.size());
    for (const uint32_t placement : placements) {
        s.worker.counts.outcomes().unfilled(placement, Unfilled::rate_limit);
    }
    s.ctx->decision = "no_ad";
    s.ctx->invalid = name_of(Invalid::rate_limit);
    return answer(s, {});
}

ngx_int_t decide_and_answer(Worker& worker, ngx_http_request_t* r, RequestCtx* ctx) noexcept {
    if (!worker.refresh()) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }
    Serve s(worker, r, ctx);
    if (const auto error = query_of(r, s.params)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    if (const auto error = read_serve(s.params, s.query)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    Placements placements;
    if (const auto error = find_placements(s.worker.catalog.image(), s.query, placements)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    if (const auto error = find_base(s)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    if (r->method == NGX_HTTP_HEAD) {
        no_store(r);
        set_embedding(r, s.query.format != Format::json);
        return send(r, {NGX_HTTP_OK, content_type(s.query.format), {}});
    }
    return ctx->limited ? answer_nothing(s, placements) : serve(s, placements);
}

}  // namespace

ngx_int_t serve_handler(ngx_http_request_t* r) {
    if (const ngx_int_t rc = share(r, "GET, HEAD"); rc != NGX_DECLINED) {
        return rc;
    }
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0) {
        return not_allowed(r, "GET, HEAD");
    }
    if (const ngx_int_t rc = ngx_http_discard_request_body(r); rc != NGX_OK) {
        return rc;
    }
    return defer(r, decide_and_answer);
}

}  // namespace ads::ngx
