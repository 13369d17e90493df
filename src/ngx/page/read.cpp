// Pages that come in parts are cut as they come.
#include "ngx/page/body.hpp"

namespace ads::ngx {

namespace {

// The slot as it is, until its ad is found.
ngx_buf_t* put_slot(PageCtx& page, const ngx_buf_t& from, const html::Piece& piece) noexcept {
    const auto* text = reinterpret_cast<const u_char*>(piece.text.data());
    const bool in_buffer = text >= from.pos && text < from.last;
    ngx_buf_t* b = in_buffer ? put_slice(page, from, piece.text) : put_copy(page, piece.text);
    return b != nullptr && add_slot(page, b, {reinterpret_cast<char*>(b->pos), piece.text.size()},
                                    piece.content, piece.content_end)
               ? b
               : nullptr;
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
    page.cutter->feed(text, b.last_buf || page.blind);
    for (;;) {
        const html::Piece piece = page.cutter->next();
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

}  // namespace

ngx_int_t take_in(PageCtx& page, ngx_chain_t* in) noexcept {
    if (in != nullptr && ngx_chain_add_copy(page.r->pool, &page.in, in) != NGX_OK) {
        return NGX_ERROR;
    }
    if (page.waiting) {
        return NGX_AGAIN;
    }
    if (page.in == nullptr) {
        const ngx_int_t rc = page.next(page.r, nullptr);
        free_written(page);
        return rc;
    }
    return read_in(page);
}

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
            return fill_and_send(page, true);
        }
    }
    return page.slot_count > 0 ? fill_and_send(page, false) : send_out(page);
}

}  // namespace ads::ngx
