// What a page is asked with: nothing that would be answered with less than the whole page, or with
// one that cannot be read.
#include <algorithm>
#include <array>
#include <span>

#include "ngx/page/body.hpp"

namespace ads::ngx {

namespace {

ngx_http_output_header_filter_pt next_header_filter;

std::string_view name_of(const ngx_table_elt_t& header) noexcept {
    return {reinterpret_cast<const char*>(header.lowcase_key), header.key.len};
}

// Calls f for each header of the request until it returns true.
template <class F>
bool any_header(ngx_http_request_t* r, F f) noexcept {
    for (const auto* part = &r->headers_in.headers.part; part != nullptr; part = part->next) {
        for (auto& h : std::span(static_cast<ngx_table_elt_t*>(part->elts), part->nelts)) {
            if (h.lowcase_key != nullptr && f(h)) {
                return true;
            }
        }
    }
    return false;
}

// Request headers that ask for less than the whole page, or for an encoded one.
bool is_dropped(std::string_view name) noexcept {
    static constexpr auto kDropped = std::to_array<std::string_view>(
        {"accept-encoding", "if-modified-since", "if-unmodified-since", "if-match", "if-none-match",
         "if-range", "range"});
    return std::find(kDropped.begin(), kDropped.end(), name) != kDropped.end();
}

// By Sec-Fetch-Dest: requests for anything but a page keep their conditions and ranges.
bool is_for_page(ngx_http_request_t* r) noexcept {
    static constexpr auto kPages = std::to_array<std::string_view>(
        {"", "document", "iframe", "frame", "empty", "fencedframe", "object", "embed"});
    const std::string_view wanted = find_header(r, "sec-fetch-dest");
    return std::find(kPages.begin(), kPages.end(), wanted) != kPages.end();
}

// The list of what goes upstream, without some. The elements of the old list stay where they are:
// the parsed fields point to them.
ngx_int_t drop_headers(ngx_http_request_t* r) noexcept {
    ngx_list_t kept;
    if (!any_header(r, [](auto& h) { return is_dropped(name_of(h)); })) {
        return NGX_OK;
    }
    if (ngx_list_init(&kept, r->pool, 20, sizeof(ngx_table_elt_t)) != NGX_OK) {
        return NGX_ERROR;
    }
    const bool failed = any_header(r, [&](ngx_table_elt_t& h) {
        if (is_dropped(name_of(h))) {
            return false;
        }
        auto* copy = static_cast<ngx_table_elt_t*>(ngx_list_push(&kept));
        if (copy == nullptr) {
            return true;
        }
        *copy = h;
        return false;
    });
    if (failed) {
        return NGX_ERROR;
    }
    const bool one_part = kept.last == &kept.part;
    r->headers_in.headers = kept;
    if (one_part) {
        r->headers_in.headers.last = &r->headers_in.headers.part;
    }
    return NGX_OK;
}

// Once its location is known, before anything is asked.
ngx_int_t before_content(ngx_http_request_t* r) {
    if (inject_conf(r) == nullptr || (r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0 ||
        !is_for_page(r)) {
        return NGX_DECLINED;
    }
#if (NGX_HTTP_GZIP)
    // Until the filter has the page it is as if the client took no gzip: what is compressed already
    // cannot be read.
    r->gzip_tested = 1;
    r->gzip_ok = 0;
#endif
    // Static files are not asked for.
    if (r->content_handler != nullptr && drop_headers(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    return NGX_DECLINED;
}

// Before the filters that answer 304, 206 and 412: other answers of the location may be those.
ngx_int_t before_conditions(ngx_http_request_t* r) {
    if (inject_conf(r) != nullptr && is_page(r)) {
        auto& in = r->headers_in;
        in.if_modified_since = nullptr;
        in.if_unmodified_since = nullptr;
        in.if_match = nullptr;
        in.if_none_match = nullptr;
        in.if_range = nullptr;
        in.range = nullptr;
    }
    return next_header_filter(r);
}

}  // namespace

std::string_view find_header(ngx_http_request_t* r, std::string_view lowercase) noexcept {
    std::string_view value;
    any_header(r, [&](auto& h) {
        if (name_of(h) != lowercase) {
            return false;
        }
        value = view(h.value);
        return true;
    });
    return value;
}

ngx_int_t add_page_requests(ngx_conf_t* cf) {
    auto* main =
        static_cast<MainConf*>(ngx_http_conf_get_module_main_conf(cf, ngx_http_ads_module));
    if (!main->injects) {
        return NGX_OK;
    }
    auto* core = static_cast<ngx_http_core_main_conf_t*>(
        ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module));
    auto* handler = static_cast<ngx_http_handler_pt*>(
        ngx_array_push(&core->phases[NGX_HTTP_PREACCESS_PHASE].handlers));
    if (handler == nullptr) {
        return NGX_ERROR;
    }
    *handler = before_content;
    next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = before_conditions;
    return add_known_pages(cf);
}

}  // namespace ads::ngx
