// Assembles and sends the body of a page, wherever it is cut.
#pragma once

#include "ngx/page/page.hpp"

namespace ads::ngx {

inline PageCtx* page_of(ngx_http_request_t* r) noexcept {
    return static_cast<PageCtx*>(ngx_http_get_module_ctx(r, ngx_http_ads_inject_filter_module));
}

// What is put goes to the end of what is to be sent; nullptr without memory.
void put(PageCtx& page, ngx_chain_t* link) noexcept;
bool put_links(PageCtx& page, ngx_chain_t* chain) noexcept;  // copies of them
ngx_buf_t* put_buffer(PageCtx& page) noexcept;               // an empty one of ours
ngx_buf_t* put_slice(PageCtx& page, const ngx_buf_t& from, std::string_view text) noexcept;
ngx_buf_t* put_copy(PageCtx& page, std::string_view text) noexcept;

// Notes that the buffer, which has the slot as it is, is to be filled, unless the page has had too
// many; false without memory. The text is needed until fill_slots().
bool add_slot(PageCtx& page, ngx_buf_t* buffer, std::string_view text, size_t content,
              size_t content_end) noexcept;

// What the buffer of a slot becomes; the text is needed until it is sent.
void replace_text(ngx_buf_t& b, std::string_view text) noexcept;

// What is said of a buffer beside its bytes goes with the last part of it, which may be none.
bool end_buffer(PageCtx& page, ngx_buf_t& from, ngx_buf_t* last) noexcept;

// The header, if it has not been sent; NGX_OK if the body may follow.
ngx_int_t send_header(PageCtx& page) noexcept;

ngx_int_t send_out(PageCtx& page) noexcept;

// Fills the slots at hand and sends what has been read, when that may be. `ends`: nothing of the
// page follows.
ngx_int_t fill_and_send(PageCtx& page, bool ends) noexcept;

// Those of our buffers that are written can be used again.
void free_written(PageCtx& page) noexcept;

// The next buffers of a page that comes in parts, or none: the client can take more.
ngx_int_t take_in(PageCtx& page, ngx_chain_t* in) noexcept;

// Reads what has come, and sends it, or holds it until its slots may be sent.
ngx_int_t read_in(PageCtx& page) noexcept;

ngx_int_t add_known_pages(ngx_conf_t* cf);

}  // namespace ads::ngx
