// Pages that are files: where their slots are is known, or found out at once. They are cut before
// any other filter sees them, so that their parts stay parts of the file.
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "ngx/page/body.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

// Larger pages are read as they are sent: no request waits for them.
constexpr off_t kMostRead = 1 << 20;

// A file that was changed so lately may be changed again without its times telling.
constexpr int64_t kSettled = 2'000'000'000;

ngx_http_output_body_filter_pt next_body_filter;

// The places of filters between this one and that below postpone, which may change a page: where
// one has something to do with a request, the file is not the page.
ngx_array_t* changing;

int64_t nanoseconds(const timespec& time) noexcept {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

bool is_changed(const ngx_http_request_t* r) noexcept {
    for (const auto index :
         std::span(static_cast<const ngx_uint_t*>(changing->elts), changing->nelts)) {
        if (r->ctx[index] != nullptr) {
            return true;
        }
    }
    return r->filter_need_temporary;
}

// Whether all of the page is in this buffer of a file that may be read at once.
bool is_whole_file(ngx_http_request_t* r, const ngx_chain_t* in) noexcept {
    if (in == nullptr || in->next != nullptr || !in->buf->in_file || !in->buf->last_buf ||
        ngx_buf_in_memory(in->buf) || in->buf->file->directio) {
        return false;
    }
    const auto* core = static_cast<ngx_http_core_loc_conf_t*>(
        ngx_http_get_module_loc_conf(r, ngx_http_core_module));
    return core->aio == NGX_HTTP_AIO_OFF && in->buf->file_last - in->buf->file_pos <= kMostRead;
}

bool read_whole(const ngx_buf_t& b, std::string& text) noexcept {
    text.resize(static_cast<size_t>(b.file_last - b.file_pos));
    size_t done = 0;
    while (done < text.size()) {
        const ssize_t n = pread(b.file->fd, text.data() + done, text.size() - done,
                                b.file_pos + static_cast<off_t>(done));
        if (n <= 0) {
            return false;
        }
        done += static_cast<size_t>(n);
    }
    return true;
}

// nullptr if the page is not to be cut by a map.
const html::PageMap* map_of(PageCtx& page, const ngx_buf_t& b) noexcept {
    Worker* worker = Worker::current();
    struct stat info;
    if (worker == nullptr || fstat(b.file->fd, &info) != 0 || info.st_size < b.file_last) {
        return nullptr;
    }
    const html::FileId id{static_cast<uint64_t>(info.st_dev),
                          static_cast<uint64_t>(info.st_ino),
                          static_cast<uint64_t>(b.file_last),
                          nanoseconds(info.st_mtim),
                          nanoseconds(info.st_ctim),
                          static_cast<uint64_t>(b.file_pos),
                          page.conf};
    if (const html::PageMap* known = worker->pages.find(id)) {
        return known;
    }
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    std::string text;
    if (nanoseconds(now) - id.changed < kSettled || !read_whole(b, text)) {
        return nullptr;
    }
    return worker->pages.keep(id, html::map_page(text, view(page.conf->element), kMaxSlots));
}

// The parts of the file and the slots between them; false without memory.
bool cut(PageCtx& page, const html::PageMap& map, ngx_buf_t& b) noexcept {
    const auto put_file = [&](uint64_t begin, uint64_t end) {
        ngx_buf_t* part = put_buffer(page);
        if (part != nullptr) {
            part->in_file = 1;
            part->file = b.file;
            part->file_pos = b.file_pos + static_cast<off_t>(begin);
            part->file_last = b.file_pos + static_cast<off_t>(end);
        }
        return part;
    };
    uint64_t at = 0;
    ngx_buf_t* last = nullptr;
    for (const auto& slot : map.slots) {
        if (at < slot.begin && put_file(at, slot.begin) == nullptr) {
            return false;
        }
        at = slot.begin + slot.size;
        last = put_file(slot.begin, at);
        if (last == nullptr || !add_slot(page, last, {map.texts.data() + slot.text, slot.size},
                                         slot.content, slot.content_end)) {
            return false;
        }
    }
    const auto size = static_cast<uint64_t>(b.file_last - b.file_pos);
    if (at < size) {
        last = put_file(at, size);
    }
    return last != nullptr && end_buffer(page, b, last);
}

ngx_int_t begin_known(PageCtx& page, const html::PageMap& map, ngx_chain_t* in) noexcept {
    page.state = PageState::known;
    page.next = next_body_filter;
    page.result = map.doubt ? PageResult::doubt : PageResult::no_slot;
    if (map.slots.empty()) {
        count_page(page.result);
        if (page.header != nullptr) {
            page.r->headers_out.content_length_n = page.length;
        }
        const ngx_int_t rc = send_header(page);
        return rc == NGX_OK ? next_body_filter(page.r, in) : rc;
    }
    if (!cut(page, map, *in->buf) || !declare_slots(page, map.lists)) {
        return NGX_ERROR;
    }
    return fill_and_send(page, true);
}

// It is cut as it comes.
ngx_int_t begin_parts(PageCtx& page, ngx_chain_t* in) noexcept {
    ngx_http_request_t* r = page.r;
    page.state = PageState::read;
    void* memory = ngx_palloc(r->pool, sizeof(html::Cutter));
    if (memory == nullptr) {
        return NGX_ERROR;
    }
    const auto allocate = [](void* pool, size_t size) -> void* {
        return ngx_pnalloc(static_cast<ngx_pool_t*>(pool), size);
    };
    static_assert(std::is_trivially_destructible_v<html::Cutter>);
    page.cutter = ::new (memory) html::Cutter(view(page.conf->element), allocate, r->pool);
    r->main_filter_need_in_memory = 1;
    const ngx_int_t rc = send_header(page);
    return rc == NGX_OK ? next_body_filter(r, in) : rc;
}

// The first part of a page: whether it is known.
ngx_int_t begin_page(PageCtx& page, ngx_chain_t* in) noexcept {
    const html::PageMap* map =
        is_whole_file(page.r, in) && !is_changed(page.r) ? map_of(page, *in->buf) : nullptr;
    return map == nullptr ? begin_parts(page, in) : begin_known(page, *map, in);
}

ngx_int_t body_filter(ngx_http_request_t* r, ngx_chain_t* in) {
    PageCtx* page = r == r->main ? page_of(r) : nullptr;
    if (page == nullptr || page->state == PageState::read || r->header_only) {
        return next_body_filter(r, in);
    }
    if (page->state == PageState::fresh) {
        return begin_page(*page, in);
    }
    if (page->waiting) {
        return in == nullptr || put_links(*page, in) ? NGX_AGAIN : NGX_ERROR;
    }
    const ngx_int_t rc = next_body_filter(r, in);
    free_written(*page);
    return rc;
}

}  // namespace

ngx_int_t add_known_pages(ngx_conf_t* cf) {
    changing = ngx_array_create(cf->pool, 16, sizeof(ngx_uint_t));
    if (changing == nullptr) {
        return NGX_ERROR;
    }
    // These note something for pages that they leave as they are.
    constexpr std::string_view kHarmless[] = {"ngx_http_userid_filter_module",
                                              "ngx_http_copy_filter_module"};
    bool above = false;
    for (ngx_uint_t i = 0; i < cf->cycle->modules_n; i++) {
        const ngx_module_t* module = cf->cycle->modules[i];
        const bool harmless = std::find(std::begin(kHarmless), std::end(kHarmless), module->name) !=
                              std::end(kHarmless);
        if (above && module->type == NGX_HTTP_MODULE && module != &ngx_http_ads_module &&
            !harmless) {
            auto* index = static_cast<ngx_uint_t*>(ngx_array_push(changing));
            if (index == nullptr) {
                return NGX_ERROR;
            }
            *index = module->ctx_index;
        }
        above = above || module == &ngx_http_ads_inject_filter_module;
    }
    next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = body_filter;
    return NGX_OK;
}

}  // namespace ads::ngx
