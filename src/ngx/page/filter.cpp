// The filters that see a page as it is sent, after SSI and gunzip and before gzip. The header says
// that the page is the visitor's alone; the body is cut at its slots, and held until the events of
// its ads are written.
#include <algorithm>
#include <array>
#include <span>

#include "core/html/attributes.hpp"
#include "ngx/page/page.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

// In the connection's field, as gzip's: below postpone a request's own is not looked at.
constexpr unsigned kBuffered = 0x40;

ngx_http_output_header_filter_pt next_header_filter;
ngx_http_output_body_filter_pt next_body_filter;

PageCtx* page_of(ngx_http_request_t* r) noexcept {
    return static_cast<PageCtx*>(ngx_http_get_module_ctx(r, ngx_http_ads_inject_filter_module));
}

const ngx_buf_tag_t kTag = &ngx_http_ads_inject_filter_module;

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

bool make_page(ngx_http_request_t* r, const InjectConf* conf) noexcept {
    void* memory = ngx_palloc(r->pool, sizeof(PageCtx));
    if (memory == nullptr) {
        return false;
    }
    static_assert(std::is_trivially_destructible_v<PageCtx>);
    auto* page = ::new (memory) PageCtx(r, conf);
    ngx_http_set_ctx(r, page, ngx_http_ads_inject_filter_module);
    r->main_filter_need_in_memory = 1;
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
    return make_page(r, conf) ? next_header_filter(r) : NGX_ERROR;
}

// ---- the body ----

ngx_chain_t* link_to(PageCtx& page, ngx_buf_t* buffer) noexcept {
    ngx_chain_t* link = ngx_alloc_chain_link(page.r->pool);
    if (link != nullptr) {
        link->buf = buffer;
        link->next = nullptr;
    }
    return link;
}

void put(PageCtx& page, ngx_chain_t* link) noexcept {
    link->next = nullptr;
    *page.out_end = link;
    page.out_end = &link->next;
}

// A buffer of ours at the end of what goes out; nullptr without memory.
ngx_buf_t* put_buffer(PageCtx& page) noexcept {
    ngx_chain_t* link = page.free;
    if (link != nullptr) {
        page.free = link->next;
    } else {
        auto* buffer = static_cast<ngx_buf_t*>(ngx_palloc(page.r->pool, sizeof(ngx_buf_t)));
        link = buffer == nullptr ? nullptr : link_to(page, buffer);
        if (link == nullptr) {
            return nullptr;
        }
    }
    ngx_memzero(link->buf, sizeof(ngx_buf_t));
    link->buf->tag = kTag;
    put(page, link);
    return link->buf;
}

// A part of a buffer.
ngx_buf_t* put_slice(PageCtx& page, const ngx_buf_t& from, std::string_view text) noexcept {
    ngx_buf_t* b = put_buffer(page);
    if (b == nullptr) {
        return nullptr;
    }
    *b = from;
    b->tag = kTag;
    b->pos = str(text).data;
    b->last = b->pos + text.size();
    b->shadow = nullptr;
    b->last_buf = 0;
    b->last_in_chain = 0;
    b->flush = 0;
    b->sync = 0;
    b->recycled = 0;
    if (b->in_file) {
        b->file_pos += b->pos - from.pos;
        b->file_last = b->file_pos + (b->last - b->pos);
    }
    return b;
}

ngx_buf_t* put_memory(PageCtx& page, std::string_view text) noexcept {
    ngx_buf_t* b = put_buffer(page);
    if (b != nullptr) {
        b->memory = 1;
        b->pos = str(text).data;
        b->last = b->pos + text.size();
    }
    return b;
}

ngx_buf_t* put_copy(PageCtx& page, std::string_view text) noexcept {
    const ngx_str_t stays = copy(page.r->pool, text);
    return stays.data == nullptr ? nullptr : put_memory(page, view(stays));
}

// Its text is there at first, and replaced when the ad is found.
ngx_buf_t* put_slot(PageCtx& page, const ngx_buf_t& from, const html::Piece& piece) noexcept {
    const auto* text = reinterpret_cast<const u_char*>(piece.text.data());
    const bool in_buffer = text >= from.pos && text < from.last;
    ngx_buf_t* b = in_buffer ? put_slice(page, from, piece.text) : put_copy(page, piece.text);
    if (b == nullptr || page.decided + page.slot_count == kMaxSlots) {
        return b;
    }
    if (page.slots == nullptr) {
        page.slots = static_cast<PageSlot*>(ngx_palloc(page.r->pool, kMaxSlots * sizeof(PageSlot)));
        if (page.slots == nullptr) {
            return nullptr;
        }
    }
    page.slots[page.slot_count++] = {.buffer = b,
                                     .text = {reinterpret_cast<char*>(b->pos), piece.text.size()},
                                     .content = piece.content,
                                     .content_end = piece.content_end};
    return b;
}

// What is said of a buffer beside its bytes goes with the last part of it.
bool end_buffer(PageCtx& page, ngx_buf_t& from, ngx_buf_t* last) noexcept {
    if (last == nullptr) {
        if (!from.flush && !from.last_buf && !from.last_in_chain && !from.sync) {
            from.pos = from.last;
            from.file_pos = from.file_last;
            return true;
        }
        last = put_buffer(page);
        if (last == nullptr) {
            return false;
        }
        last->sync = 1;
    }
    last->flush = from.flush;
    last->last_buf = from.last_buf;
    last->last_in_chain = from.last_in_chain;
    last->recycled = from.recycled;
    last->shadow = &from;
    return true;
}

// Reads the buffer of the link; false without memory.
bool read_buffer(PageCtx& page, ngx_chain_t* link) noexcept {
    ngx_buf_t& b = *link->buf;
    const bool in_memory = ngx_buf_in_memory(&b);
    if (!in_memory && ngx_buf_size(&b) > 0) {
        page.blind = true;
        page.result = page.decided > 0 ? PageResult::decided : PageResult::unreadable;
    }
    const std::string_view text = in_memory ? std::string_view(reinterpret_cast<char*>(b.pos),
                                                               static_cast<size_t>(b.last - b.pos))
                                            : std::string_view();
    ngx_buf_t* last = nullptr;
    page.cutter.feed(text, b.last_buf || page.blind);
    for (;;) {
        const html::Piece piece = page.cutter.next();
        using Kind = html::Piece::Kind;
        switch (piece.kind) {
            case Kind::none:
                if (text.empty()) {
                    put(page, link);
                    return true;
                }
                ngx_free_chain(page.r->pool, link);
                return end_buffer(page, b, last);
            case Kind::input:
                if (piece.text.size() == text.size()) {
                    put(page, link);
                    return true;
                }
                last = put_slice(page, b, piece.text);
                break;
            case Kind::kept:
                last = put_copy(page, piece.text);
                break;
            case Kind::slot:
                last = put_slot(page, b, piece);
                break;
            case Kind::list:
                if (!declare_slots(page, piece.text)) {
                    return false;
                }
                continue;
            case Kind::doubt:
                page.result = page.decided > 0 ? PageResult::decided : PageResult::doubt;
                continue;
            case Kind::no_memory:
                return false;
        }
        if (last == nullptr) {
            return false;
        }
    }
}

// ---- sending ----

// Those of ours are kept until they are written: the buffers that they are parts of can be used
// again then.
void note_sent(PageCtx& page) noexcept {
    for (ngx_chain_t* link = page.out; link != nullptr;) {
        ngx_chain_t* next = link->next;
        if (link->buf->tag == kTag) {
            link->next = nullptr;
            *page.busy_end = link;
            page.busy_end = &link->next;
        } else {
            ngx_free_chain(page.r->pool, link);
        }
        link = next;
    }
    page.out = nullptr;
    page.out_end = &page.out;
}

void free_written(PageCtx& page) noexcept {
    while (page.busy != nullptr && ngx_buf_size(page.busy->buf) == 0) {
        ngx_chain_t* link = page.busy;
        if (ngx_buf_t* shadow = link->buf->shadow) {
            shadow->pos = shadow->last;
            shadow->file_pos = shadow->file_last;
        }
        page.busy = link->next;
        link->next = page.free;
        page.free = link;
    }
    if (page.busy == nullptr) {
        page.busy_end = &page.busy;
    }
}

ngx_int_t send_out(PageCtx& page) noexcept {
    const ngx_int_t rc = next_body_filter(page.r, page.out);
    note_sent(page);
    free_written(page);
    return rc;
}

ngx_int_t go_on(Worker&, ngx_http_request_t* r, RequestCtx*) noexcept;

ngx_int_t wait_for_write(PageCtx& page) noexcept {
    Worker* worker = Worker::current();
    RequestCtx* ctx = context(page.r);
    if (worker == nullptr || ctx == nullptr) {
        return NGX_ERROR;
    }
    worker->requests.hold(page.r, ctx, go_on);
    page.waiting = true;
    page.r->connection->buffered |= kBuffered;
    return NGX_AGAIN;
}

// Reads what has come, and sends it, or holds it until its events are written.
ngx_int_t read_in(PageCtx& page) noexcept {
    while (ngx_chain_t* link = page.in) {
        const bool last = link->buf->last_buf;
        page.in = link->next;
        if (!read_buffer(page, link)) {
            return NGX_ERROR;
        }
        if (last && page.slot_count == 0) {
            count_page(page.result);
        } else if (last) {
            const bool holds = fill_slots(page);
            count_page(page.result);
            return holds ? wait_for_write(page) : send_out(page);
        }
    }
    if (page.slot_count > 0 && fill_slots(page)) {
        return wait_for_write(page);
    }
    return send_out(page);
}

// The events are written.
ngx_int_t go_on(Worker&, ngx_http_request_t* r, RequestCtx*) noexcept {
    ngx_connection_t* c = r->connection;
    PageCtx& page = *page_of(r);
    page.waiting = false;
    c->buffered &= ~kBuffered;
    ngx_int_t rc = send_out(page);
    if (rc != NGX_ERROR && page.in != nullptr) {
        rc = read_in(page);
    }
    if (rc == NGX_ERROR) {
        c->error = 1;
    }
    // Whoever makes the page goes on as if the client could take more.
    if (!c->write->posted) {
        ngx_post_event(c->write, &ngx_posted_events);
    }
    return NGX_DONE;
}

ngx_int_t body_filter(ngx_http_request_t* r, ngx_chain_t* in) {
    PageCtx* page = page_of(r);
    if (page == nullptr || r->header_only) {
        return next_body_filter(r, in);
    }
    if (in != nullptr && ngx_chain_add_copy(r->pool, &page->in, in) != NGX_OK) {
        return NGX_ERROR;
    }
    if (page->waiting) {
        return NGX_AGAIN;
    }
    if (page->in == nullptr) {
        const ngx_int_t rc = next_body_filter(r, nullptr);
        free_written(*page);
        return rc;
    }
    return read_in(*page);
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
