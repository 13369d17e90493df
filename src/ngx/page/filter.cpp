// The filters that see a page as it is sent, after SSI and gunzip and before gzip. The header says
// that the page is the visitor's alone; the body is cut at its slots, and held until the events of
// its ads are written.
#include <algorithm>
#include <array>
#include <span>

#include "core/html/attributes.hpp"
#include "ngx/page/body.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

ngx_http_output_header_filter_pt next_header_filter;
ngx_http_output_body_filter_pt next_body_filter;

// ---- the header ----

// Those in which a byte below 0x80 is the ASCII character, wherever markup is concerned.
bool reads_as_ascii(std::string_view charset) noexcept {
    static constexpr auto kGood = std::to_array<std::string_view>(
        {"utf-8",     "utf8",      "us-ascii",    "ascii",  "iso-8859-",
         "iso8859-",  "latin1",    "windows-125", "cp125",  "windows-874",
         "koi8-",     "macintosh", "x-mac-",      "ibm866", "cp866",
         "gb2312",    "gbk",       "gb18030",     "big5",   "shift_jis",
         "shift-jis", "sjis",      "windows-31j", "euc-",   "tis-620"});
    return charset.empty() || std::any_of(kGood.begin(), kGood.end(), [&](std::string_view good) {
               return charset.size() >= good.size() &&
                      html::same_name(charset.substr(0, good.size()), good);
           });
}

// A prefetched page may be shown later, or never.
bool is_prefetch(ngx_http_request_t* r) noexcept {
    return find_header(r, "sec-purpose").starts_with("prefetch") ||
           find_header(r, "purpose") == "prefetch";
}

// What the page is as it is sent, for a cache or for the browser.
bool describes_original(std::string_view name) noexcept {
    static constexpr auto kNames = std::to_array<std::string_view>(
        {"content-md5", "digest", "content-digest", "repr-digest", "etag", "last-modified"});
    return std::any_of(kNames.begin(), kNames.end(),
                       [&](auto known) { return html::same_name(name, known); });
}

bool allows_caching(std::string_view name) noexcept {
    const auto ends_with = [&](std::string_view end) {
        return name.size() >= end.size() &&
               html::same_name(name.substr(name.size() - end.size()), end);
    };
    return ends_with("cache-control") || ends_with("surrogate-control") ||
           html::same_name(name, "expires") || html::same_name(name, "pragma");
}

void drop_answer_headers(ngx_http_request_t* r, bool keeps_cache) noexcept {
    for (auto* part = &r->headers_out.headers.part; part != nullptr; part = part->next) {
        for (auto& h : std::span(static_cast<ngx_table_elt_t*>(part->elts), part->nelts)) {
            const std::string_view name = view(h.key);
            if (describes_original(name) || (!keeps_cache && allows_caching(name))) {
                h.hash = 0;
            }
        }
    }
    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);
    ngx_http_clear_last_modified(r);
    ngx_http_clear_etag(r);
    if (!keeps_cache) {
        r->headers_out.expires = nullptr;
    }
}

// Why the slots stay as they are; decided: they do not.
PageResult why_untouched(ngx_http_request_t* r) noexcept {
    if (r->headers_out.content_encoding != nullptr &&
        r->headers_out.content_encoding->value.len > 0) {
        return PageResult::encoded;
    }
    if (!reads_as_ascii(view(r->headers_out.charset))) {
        return PageResult::charset;
    }
    Worker* worker = Worker::current();
    return worker == nullptr || !worker->refresh() ? PageResult::unavailable : PageResult::decided;
}

// A visitor without a session gets one now: what is found out later comes too late for a cookie.
bool set_visitor(ngx_http_request_t* r, PageCtx& page) noexcept {
    if (loc_conf(r)->cookie == nullptr) {
        return true;
    }
    auto* visitor = pnew<Visitor>(r->pool);
    if (visitor == nullptr) {
        return false;
    }
    // What a cache may keep sets no cookie.
    *visitor = visitor_of(*Worker::current(), r, !page.conf->keeps_cache);
    page.visitor = visitor;
    return !visitor->fresh_session || set_session(r, *visitor);
}

// Whether the body comes in the same cycle, perhaps as a file: its length is known then, and goes
// with the header.
bool comes_at_once(const ngx_http_request_t* r) noexcept {
    return r->content_handler == nullptr || r->cached;
}

bool make_page(ngx_http_request_t* r, const InjectConf* conf, off_t length) noexcept {
    void* memory = ngx_palloc(r->pool, sizeof(PageCtx));
    if (memory == nullptr) {
        return false;
    }
    static_assert(std::is_trivially_destructible_v<PageCtx>);
    auto* page = ::new (memory) PageCtx(r, conf);
    ngx_http_set_ctx(r, page, ngx_http_ads_inject_filter_module);
    page->next = next_body_filter;
    page->length = length;
    page->header = comes_at_once(r) ? next_header_filter : nullptr;
    return set_visitor(r, *page);
}

ngx_int_t header_filter(ngx_http_request_t* r) {
    const InjectConf* conf = inject_conf(r);
#if (NGX_HTTP_GZIP)
    if (!r->gzip_ok) {
        r->gzip_tested = 0;  // what the client takes, see before_content()
    }
#endif
    if (conf == nullptr || r != r->main) {
        return next_header_filter(r);
    }
    // What is left of a range here goes out as one.
    if (!is_page(r) || r->headers_in.range != nullptr || r->header_only) {
        return next_header_filter(r);
    }
    const bool head = r->method == NGX_HTTP_HEAD;
    PageResult result = why_untouched(r);
    if (result != PageResult::decided) {
        if (!head) {
            count_page(result);
        }
        return next_header_filter(r);
    }
    const off_t length = r->headers_out.content_length_n;
    drop_answer_headers(r, conf->keeps_cache);
    if (!conf->keeps_cache && !push_header(r, "Cache-Control", str("private, no-store"))) {
        return NGX_ERROR;
    }
    if (head) {
        return next_header_filter(r);
    }
    if (is_prefetch(r)) {
        count_page(PageResult::prefetch);
        return next_header_filter(r);
    }
    if (!make_page(r, conf, length)) {
        return NGX_ERROR;
    }
    return comes_at_once(r) ? NGX_OK : next_header_filter(r);
}

// ---- the body ----

ngx_int_t body_filter(ngx_http_request_t* r, ngx_chain_t* in) {
    PageCtx* page = page_of(r);
    if (page == nullptr || page->state == PageState::known || r->header_only) {
        return next_body_filter(r, in);
    }
    return take_in(*page, in);
}

// Whether a filter's name says that pages cannot be read behind it.
bool compresses(std::string_view name) noexcept {
    for (const std::string_view part : {"gzip_filter", "brotli_filter", "zstd_filter"}) {
        if (name.find(part) != name.npos) {
            return true;
        }
    }
    return false;
}

// Filters run from the end of the list to its beginning.
bool check_order(ngx_conf_t* cf) noexcept {
    bool ours = false;
    for (ngx_uint_t i = 0; i < cf->cycle->modules_n; i++) {
        const ngx_module_t* module = cf->cycle->modules[i];
        if (ours && compresses(module->name)) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "ads: ads_inject cannot read pages that \"%s\" has compressed: load that "
                          "module first, its load_module above that of ngx_http_ads_module.so",
                          module->name);
            return false;
        }
        ours = ours || module == &ngx_http_ads_inject_filter_module;
    }
    return true;
}

}  // namespace

void count_page(PageResult result) noexcept {
    if (Worker* worker = Worker::current()) {
        worker->counts.traffic().page(result);
    }
}

ngx_int_t add_page_filters(ngx_conf_t* cf) {
    auto* main =
        static_cast<MainConf*>(ngx_http_conf_get_module_main_conf(cf, ngx_http_ads_module));
    if (!main->injects) {
        return NGX_OK;
    }
    if (!check_order(cf)) {
        return NGX_ERROR;
    }
    next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = header_filter;
    next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = body_filter;
    return NGX_OK;
}

}  // namespace ads::ngx
