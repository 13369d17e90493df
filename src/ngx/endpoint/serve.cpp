// …/serve: which ad for these placements, now.
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/query.hpp"
#include "core/decide/explain.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/request/ad_request.hpp"
#include "ngx/request/cors.hpp"
#include "ngx/request/origin.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

using Placements = FixedVector<uint32_t, kMaxPage>;

constexpr size_t kMostShown = 64;  // characters of an unknown id

// Returns the first placement that is not in the catalog, or an empty view.
std::string_view find_placements(const Image& image, const ServeQuery& query,
                                 Placements& placements) noexcept {
    for (const auto slug : query.placements) {
        const uint32_t placement = image.find_placement(slug);
        if (placement == kNone) {
            return slug;
        }
        placements.push_back(placement);
    }
    return {};
}

// One request as the handler sees it.
struct Serve : AdRequest {
    using AdRequest::AdRequest;

    Query params;
    AdUrls urls{{}};
};

constexpr InputError kBadOrigin{"bad_origin",
                                "absolute=1 requires a valid Host header or a valid ads_origin"};

InputError find_base(Serve& s) {
    const LocConf* conf = loc_conf(s.r);
    s.urls = {view(conf->base.len > 0 ? conf->base : conf->location_base), view(conf->tag_base)};
    if (!s.query.absolute || !s.urls.base.starts_with('/')) {
        return {};
    }
    std::string base;
    if (!find_origin(s.r, base)) {
        return kBadOrigin;
    }
    base += s.urls.base;
    s.urls.base = view(copy(s.r->pool, base));
    return s.urls.base.data() == nullptr ? InputError{"no_memory", "out of memory"} : InputError();
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

// The maximum number of explained candidates per page, which bounds the time in the event loop.
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
            (s.r == s.r->main ? render_document : render_html)(out, image, ads[0], s.urls);
            break;
        case Format::js:
            out.put(s.query.callback);
            out.put('(');
            render_json(out, image, ads, s.urls, more);
            out.put(");");
            break;
        case Format::json:
            render_json(out, image, ads, s.urls, more);
            break;
    }
}

ngx_int_t answer(Serve& s) noexcept {
    ngx_http_request_t* r = s.r;
    const std::span<const Ad> ads = s.ads;
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
        (s.query.format == Format::html ? html_size(s.worker.catalog.image(), ads[0], s.urls)
                                        : json_size(s.worker.catalog.image(), ads, s.urls)) +
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

ngx_int_t serve(Serve& s, std::span<const uint32_t> placements) noexcept {
    std::vector<Refusal> trace;
    if (s.query.debug && !s.ctx->limited) {
        const std::string_view allowed = value_of(s.r, loc_conf(s.r)->explain);
        s.trace = allowed.empty() || allowed == "0" || allowed == "off" ? nullptr : &trace;
    }
    if (s.ctx->limited) {
        refuse_ads(s, placements);
    } else {
        s.may_wait = true;
        switch (decide_ads(s, placements)) {
            case Decided::done:
                break;
            case Decided::waits:
                return NGX_DONE;
            case Decided::failed:
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }
    return answer(s);
}

// Visitors see HTML, in a frame or as part of a page: there the error is a comment.
ngx_int_t refuse(Serve& s, const InputError& error) noexcept {
    if (s.query.format != Format::html) {
        return send_error(s.r, NGX_HTTP_BAD_REQUEST, error);
    }
    s.ctx->decision = error.code;
    const std::string_view message = error.message;
    char* memory = memory_for(s.r, s.ctx, message.size() * 6 + 16);
    if (memory == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    Out out(memory, message.size() * 6 + 16);
    out.put("<!-- ");
    out.html(message);  // without ">" nothing ends the comment
    out.put(" -->");
    no_store(s.r);
    return send(s.r, {NGX_HTTP_BAD_REQUEST, content_type(Format::html), out.text()});
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
        return refuse(s, error);
    }
    Placements placements;
    const std::string_view unknown = find_placements(s.worker.catalog.image(), s.query, placements);
    if (!unknown.empty()) {
        const std::string_view shown = unknown.substr(0, std::min(unknown.find('\0'), kMostShown));
        const std::string message = "there is no placement \"" + std::string(shown) + "\"";
        return refuse(s, {"unknown_placement", message.c_str()});
    }
    if (const auto error = find_base(s)) {
        return refuse(s, error);
    }
    if (r->method == NGX_HTTP_HEAD) {
        no_store(r);
        set_embedding(r, s.query.format != Format::json);
        return send(r, {NGX_HTTP_OK, content_type(s.query.format), {}});
    }
    return serve(s, placements);
}

}  // namespace

ngx_int_t serve_handler(ngx_http_request_t* r) {
    if (const ngx_int_t rc = apply_cors(r, "GET, HEAD"); rc != NGX_DECLINED) {
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
