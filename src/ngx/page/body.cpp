#include "ngx/page/body.hpp"

#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

const ngx_buf_tag_t kTag = &ngx_http_ads_inject_filter_module;

// In the connection's field, as gzip's: below postpone a request's own is not looked at.
constexpr unsigned kBuffered = 0x40;

ngx_chain_t* link_to(PageCtx& page, ngx_buf_t* buffer) noexcept {
    ngx_chain_t* link = ngx_alloc_chain_link(page.r->pool);
    if (link != nullptr) {
        link->buf = buffer;
        link->next = nullptr;
    }
    return link;
}

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

// The events are written, or there are none.
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

void wait(PageCtx& page) noexcept {
    page.waiting = true;
    page.r->connection->buffered |= kBuffered;
}

// The slots at hand are as they will be sent.
void end_fill(PageCtx& page) noexcept {
    if (page.ends) {
        count_page(page.result);
    }
    if (page.state == PageState::known && page.header != nullptr) {
        off_t length = 0;
        for (const ngx_chain_t* link = page.out; link != nullptr; link = link->next) {
            length += ngx_buf_size(link->buf);
        }
        page.r->headers_out.content_length_n = length;
    }
}

// Has the page wait; false if it need not.
bool wait_for(PageCtx& page, PageHold hold) noexcept;

// The fleet has answered.
ngx_int_t fill_again(Worker& worker, ngx_http_request_t* r, RequestCtx* ctx) noexcept {
    PageCtx& page = *page_of(r);
    return wait_for(page, fill_waiting(page)) ? NGX_DONE : go_on(worker, r, ctx);
}

bool wait_for(PageCtx& page, PageHold hold) noexcept {
    if (hold == PageHold::fleet) {
        context(page.r)->handler = fill_again;
        wait(page);
        return true;
    }
    end_fill(page);
    if (hold == PageHold::write) {
        Worker::current()->requests.hold(page.r, context(page.r), go_on);
        wait(page);
        return true;
    }
    return false;
}

}  // namespace

void put(PageCtx& page, ngx_chain_t* link) noexcept {
    link->next = nullptr;
    *page.out_end = link;
    page.out_end = &link->next;
}

bool put_links(PageCtx& page, ngx_chain_t* chain) noexcept {
    for (; chain != nullptr; chain = chain->next) {
        ngx_chain_t* link = link_to(page, chain->buf);
        if (link == nullptr) {
            return false;
        }
        put(page, link);
    }
    return true;
}

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

static ngx_buf_t* put_memory(PageCtx& page, std::string_view text) noexcept {
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

bool add_slot(PageCtx& page, ngx_buf_t* buffer, std::string_view text, size_t content,
              size_t content_end) noexcept {
    if (page.decided + page.slot_count == kMaxSlots) {
        return true;
    }
    if (page.slots == nullptr) {
        page.slots = static_cast<PageSlot*>(ngx_palloc(page.r->pool, kMaxSlots * sizeof(PageSlot)));
        if (page.slots == nullptr) {
            return false;
        }
    }
    page.slots[page.slot_count++] = {buffer, text, content, content_end};
    return true;
}

void replace_text(ngx_buf_t& b, std::string_view text) noexcept {
    b.pos = str(text).data;
    b.last = b.pos + text.size();
    b.memory = 1;
    b.temporary = 0;
    b.mmap = 0;
    b.in_file = 0;
}

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

void free_written(PageCtx& page) noexcept {
    while (page.busy != nullptr && ngx_buf_size(page.busy->buf) == 0) {
        ngx_chain_t* link = page.busy;
        if (ngx_buf_t* shadow = link->buf->shadow) {
            shadow->pos = shadow->last;
            shadow->file_pos = shadow->file_last;
        }
        page.busy = link->next;
        // One that never had bytes may still be behind buffers of others that are not written.
        if (link->buf->sync) {
            ngx_free_chain(page.r->pool, link);
        } else {
            link->next = page.free;
            page.free = link;
        }
    }
    if (page.busy == nullptr) {
        page.busy_end = &page.busy;
    }
}

ngx_int_t send_header(PageCtx& page) noexcept {
    const auto header = page.header;
    page.header = nullptr;
    const ngx_int_t rc = header == nullptr ? NGX_OK : header(page.r);
    return rc == NGX_AGAIN && !page.r->header_only ? NGX_OK : rc;
}

ngx_int_t send_out(PageCtx& page) noexcept {
    if (const ngx_int_t rc = send_header(page); rc != NGX_OK) {
        return rc;
    }
    // Nothing at all is an error to the filters below.
    if (page.out == nullptr) {
        free_written(page);
        return NGX_OK;
    }
    const ngx_int_t rc = page.next(page.r, page.out);
    note_sent(page);
    free_written(page);
    return rc;
}

ngx_int_t fill_and_send(PageCtx& page, bool ends) noexcept {
    page.ends = ends;
    return wait_for(page, fill_slots(page)) ? NGX_AGAIN : send_out(page);
}

}  // namespace ads::ngx
