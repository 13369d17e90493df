#include "ngx/request/cors.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "ngx/request/answer.hpp"

namespace ads::ngx {

namespace {

constexpr size_t kLongestOrigin = 512;
constexpr std::string_view kHost = "abcdefghijklmnopqrstuvwxyz0123456789.-";

bool is_host(std::string_view text) noexcept {
    return !text.empty() && text.find_first_not_of(kHost) == std::string_view::npos;
}

// An allowed origin; with a wildcard everything between the two.
struct Origin {
    ngx_str_t head;  // the whole origin, or "https://"
    ngx_str_t tail;  // ".example.com:8443"; empty: no wildcard

    bool matches(std::string_view origin) const noexcept {
        const std::string_view begin = view(head);
        const std::string_view end = view(tail);
        if (end.empty()) {
            return origin == begin;
        }
        return origin.size() > begin.size() + end.size() && origin.starts_with(begin) &&
               origin.ends_with(end) &&
               is_host(origin.substr(begin.size(), origin.size() - begin.size() - end.size()));
    }
};

// "https://example.com", "http://*.example.com:8080"; nothing else is one.
bool parse_origin(std::string_view text, Origin& origin) noexcept {
    const size_t scheme = text.starts_with("https://") ? 8 : text.starts_with("http://") ? 7 : 0;
    std::string_view host = text.substr(scheme);
    const bool wildcard = host.starts_with("*.");
    host.remove_prefix(wildcard ? 2 : 0);
    const size_t colon = std::min(host.find(':'), host.size());
    const std::string_view port = host.substr(std::min(colon + 1, host.size()));
    const bool good_port =
        colon == host.size() || (!port.empty() && port.size() <= 5 &&
                                 port.find_first_not_of("0123456789") == std::string_view::npos);
    host = host.substr(0, colon);
    if (scheme == 0 || !is_host(host) || host.front() == '.' || host.back() == '.' || !good_port ||
        (wildcard && host.find('.') == std::string_view::npos)) {
        return false;
    }
    origin.head = str(wildcard ? text.substr(0, scheme) : text);
    origin.tail = str(wildcard ? text.substr(scheme + 1) : std::string_view());
    return true;
}

std::span<const Origin> origins_of(const CorsConf& conf) noexcept {
    return {static_cast<const Origin*>(conf.origins->elts), conf.origins->nelts};
}

// The one header of this name; empty if there is none, or more than one.
std::string_view only_header(ngx_http_request_t* r, std::string_view lowercase) noexcept {
    std::string_view found;
    for (const auto* part = &r->headers_in.headers.part; part != nullptr; part = part->next) {
        for (const auto& h :
             std::span(static_cast<const ngx_table_elt_t*>(part->elts), part->nelts)) {
            if (h.key.len != lowercase.size() ||
                ngx_memcmp(h.lowcase_key, lowercase.data(), lowercase.size()) != 0) {
                continue;
            }
            if (!found.empty()) {
                return {};
            }
            found = view(h.value);
        }
    }
    return found;
}

bool allows(const CorsConf& conf, std::string_view origin) noexcept {
    const auto origins = origins_of(conf);
    return !origin.empty() && origin.size() <= kLongestOrigin &&
           std::any_of(origins.begin(), origins.end(),
                       [&](const Origin& o) { return o.matches(origin); });
}

}  // namespace

char* set_cors(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    ngx_str_t* args = arguments(cf);
    if (loc->cors != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    loc->cors = pnew<CorsConf>(cf->pool);
    if (loc->cors == nullptr ||
        (loc->cors->origins = ngx_array_create(cf->pool, 4, sizeof(Origin))) == nullptr) {
        return conf_error();
    }
    if (view(args[1]) == "off" && cf->args->nelts == 2) {
        return conf_ok();
    }
    std::string timing;
    std::string ancestors;
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        auto* origin = static_cast<Origin*>(ngx_array_push(loc->cors->origins));
        if (origin == nullptr) {
            return conf_error();
        }
        if (!parse_origin(view(args[i]), *origin)) {
            return invalid_value(cf, cmd, args[i],
                                 "must be an origin such as https://example.com or "
                                 "https://*.example.com, in lower case, without a path, or off "
                                 "alone");
        }
        ancestors += " " + std::string(view(args[i]));
        if (origin->tail.len == 0) {
            timing += (timing.empty() ? "" : ", ") + std::string(view(args[i]));
        }
    }
    loc->cors->timing = copy(cf->pool, timing);
    loc->cors->ancestors = copy(cf->pool, ancestors);
    return loc->cors->timing.data == nullptr || loc->cors->ancestors.data == nullptr ? conf_error()
                                                                                     : conf_ok();
}

ngx_int_t apply_cors(ngx_http_request_t* r, std::string_view methods) noexcept {
    const CorsConf* conf = loc_conf(r)->cors;
    if (conf == nullptr || conf->origins->nelts == 0) {
        return NGX_DECLINED;
    }
    const std::string_view origin = only_header(r, "origin");
    const bool allowed = allows(*conf, origin);
    push_header(r, "Vary", str("Origin"));
    if (allowed) {
        push_header(r, "Access-Control-Allow-Origin", str(origin));
        push_header(r, "Access-Control-Allow-Credentials", str("true"));
        push_header(r, "Timing-Allow-Origin", str(origin));
    } else if (conf->timing.len > 0) {
        // Pictures come without an origin: those that can be listed are.
        push_header(r, "Timing-Allow-Origin", conf->timing);
    }
    if (r->method != NGX_HTTP_OPTIONS || !allowed ||
        only_header(r, "access-control-request-method").empty()) {
        return NGX_DECLINED;
    }
    if (const ngx_int_t rc = ngx_http_discard_request_body(r); rc != NGX_OK) {
        return rc;
    }
    push_header(r, "Access-Control-Allow-Methods", str(methods));
    push_header(r, "Access-Control-Allow-Headers", str("content-type"));
    push_header(r, "Access-Control-Max-Age", str("86400"));
    return send(r, {.status = NGX_HTTP_NO_CONTENT});
}

}  // namespace ads::ngx
