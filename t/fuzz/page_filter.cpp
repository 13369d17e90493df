// The filter of pages that come in parts, on buffers of all kinds and sizes: what goes out is the
// page with its slots filled, in order and once; no buffer is given back while a part of it is
// still to be sent. Each buffer is memory of its own, freed when the filter says that it is read.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "core/html/page_map.hpp"
#include "ngx/page/body.hpp"
#include "ngx/worker/worker.hpp"

using namespace ads;
using namespace ads::ngx;

// ---- what the filter needs of nginx and of the worker ----

namespace {

void check(bool holds) {
    if (!holds) {
        std::abort();
    }
}

constexpr size_t kMostSlots = 64;
constexpr std::string_view kFilled = "[AD]";

std::list<std::unique_ptr<char[]>> pool;  // each allocation in memory of its own
FuzzedDataProvider* choices = nullptr;
RequestHandler held = nullptr;
size_t deferred = 0;                                      // slots that wait for the fleet
alignas(Worker) std::byte worker_memory[sizeof(Worker)];  // never looked into
RequestCtx request_ctx;

void* allocate(size_t size) {
    return pool.emplace_back(new char[size]).get();
}

}  // namespace

extern "C" {

ngx_module_t ngx_http_ads_module;
ngx_module_t ngx_http_ads_inject_filter_module;
ngx_queue_t ngx_posted_events;

void* ngx_palloc(ngx_pool_t*, size_t size) {
    return allocate(size);
}

void* ngx_pnalloc(ngx_pool_t*, size_t size) {
    return allocate(size);
}

void ngx_log_error_core(ngx_uint_t, ngx_log_t*, ngx_err_t, const char*, ...) {}

ngx_chain_t* ngx_alloc_chain_link(ngx_pool_t* memory) {
    if (ngx_chain_t* link = memory->chain) {
        memory->chain = link->next;
        return link;
    }
    return static_cast<ngx_chain_t*>(allocate(sizeof(ngx_chain_t)));
}

ngx_int_t ngx_chain_add_copy(ngx_pool_t* memory, ngx_chain_t** to, ngx_chain_t* in) {
    while (*to != nullptr) {
        to = &(*to)->next;
    }
    for (; in != nullptr; in = in->next) {
        *to = ngx_alloc_chain_link(memory);
        (*to)->buf = in->buf;
        (*to)->next = nullptr;
        to = &(*to)->next;
    }
    return NGX_OK;
}
}

namespace ads::ngx {

Worker* Worker::current() noexcept {
    return reinterpret_cast<Worker*>(worker_memory);
}

RequestCtx* context(ngx_http_request_t*) noexcept {
    return &request_ctx;
}

ngx_int_t RequestQueue::hold(ngx_http_request_t*, RequestCtx*, RequestHandler then) noexcept {
    check(held == nullptr);
    held = then;
    return NGX_DONE;
}

bool declare_slots(PageCtx&, std::string_view) noexcept {
    return true;
}

void count_page(PageResult) noexcept {}

PageHold fill_slots(PageCtx& page) noexcept {
    deferred = std::exchange(page.slot_count, 0);
    return choices->ConsumeBool() ? PageHold::fleet : fill_waiting(page);
}

PageHold fill_waiting(PageCtx& page) noexcept {
    if (choices->ConsumeIntegralInRange(0, 3) == 3) {
        return PageHold::fleet;  // for the slots with other key-values
    }
    for (size_t i = 0; i < deferred; i++) {
        PageSlot& slot = page.slots[i];
        check(slot.text ==
              std::string_view(reinterpret_cast<char*>(slot.buffer->pos),
                               static_cast<size_t>(slot.buffer->last - slot.buffer->pos)));
        const ngx_str_t text = copy(page.r->pool, kFilled);
        replace_text(*slot.buffer, view(text));
    }
    page.decided += std::exchange(deferred, 0);
    return choices->ConsumeBool() ? PageHold::write : PageHold::none;
}

}  // namespace ads::ngx

namespace {

// ---- the filters below, as the write filter is: what the client does not take now, waits ----

struct Client {
    std::string text;
    std::vector<ngx_buf_t*> waiting;
    size_t flushes = 0;
    size_t lasts = 0;
} client;

// Takes so many bytes.
void take(size_t bytes) {
    size_t done = 0;
    for (ngx_buf_t* b : client.waiting) {
        const auto size = static_cast<size_t>(ngx_buf_size(b));
        const size_t n = std::min(size, bytes);
        check(n == 0 || ngx_buf_in_memory(b));
        client.text.append(reinterpret_cast<char*>(b->pos), n);
        b->pos += n;
        b->file_pos += b->in_file ? static_cast<off_t>(n) : 0;
        bytes -= n;
        if (n < size) {
            break;
        }
        done++;
    }
    client.waiting.erase(client.waiting.begin(), client.waiting.begin() + static_cast<long>(done));
}

ngx_int_t write_filter(ngx_http_request_t*, ngx_chain_t* in) {
    for (; in != nullptr; in = in->next) {
        ngx_buf_t* b = in->buf;
        // nginx takes this for an error.
        check(ngx_buf_size(b) > 0 || ngx_buf_special(b));
        check(client.lasts == 0);
        check(!b->in_file || b->file_last - b->file_pos == b->last - b->pos);
        client.flushes += b->flush;
        client.lasts += b->last_buf;
        client.waiting.push_back(b);
    }
    take(choices->ConsumeBool() ? SIZE_MAX : choices->ConsumeIntegralInRange<size_t>(0, 300));
    return client.waiting.empty() ? NGX_OK : NGX_AGAIN;
}

// ---- a page in buffers ----

struct Part {
    std::unique_ptr<u_char[]> memory;
    ngx_buf_t buffer{};
};

void end_read_parts(std::list<Part>& parts) {
    for (Part& part : parts) {
        if (part.memory != nullptr && ngx_buf_size(&part.buffer) == 0) {
            part.memory.reset();
        }
    }
}

std::string filled(std::string_view page) {
    const html::PageMap map = html::map_page(page, "page-spot", kMostSlots);
    std::string text;
    size_t at = 0;
    for (const auto& slot : map.slots) {
        text.append(page.substr(at, slot.begin - at)).append(kFilled);
        at = slot.begin + slot.size;
    }
    return text.append(page.substr(at));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    FuzzedDataProvider source(data, size);
    const std::string page = source.ConsumeRandomLengthString(20'000);
    choices = &source;
    client = {};
    held = nullptr;
    request_ctx.handler = nullptr;

    ngx_pool_t memory{};
    ngx_event_t write{};
    write.posted = 1;
    ngx_connection_t c{};
    c.write = &write;
    ngx_http_request_t r{};
    r.main = &r;
    r.pool = &memory;
    r.connection = &c;
    ngx_http_ads_inject_filter_module.ctx_index = 0;
    InjectConf conf{};
    PageCtx ctx(&r, &conf);
    void* contexts[] = {&ctx};
    r.ctx = contexts;
    const auto allocate_for = [](void*, size_t bytes) { return allocate(bytes); };
    html::Cutter cutter("page-spot", allocate_for, nullptr);
    ctx.cutter = &cutter;
    ctx.next = write_filter;
    ctx.state = PageState::read;

    std::list<Part> parts;
    size_t flushes = 0;
    const auto go_on = [&] {
        check(ctx.waiting == (held != nullptr || request_ctx.handler != nullptr));
        if (ctx.waiting) {
            RequestHandler& next = held != nullptr ? held : request_ctx.handler;
            std::exchange(next, nullptr)(*Worker::current(), &r, &request_ctx);
        }
    };
    for (size_t at = 0, last = 0; last == 0;) {
        std::vector<ngx_chain_t> links(source.ConsumeIntegralInRange<size_t>(1, 4));
        size_t n = 0;
        while (n < links.size() && last == 0) {
            const size_t bytes =
                std::min(page.size() - at, source.remaining_bytes() == 0
                                               ? page.size()
                                               : source.ConsumeIntegralInRange<size_t>(0, 400));
            Part& part = parts.emplace_back();
            ngx_buf_t& b = part.buffer;
            part.memory.reset(new u_char[bytes]);
            std::copy_n(page.data() + at, bytes, part.memory.get());
            b.start = b.pos = part.memory.get();
            b.end = b.last = b.pos + bytes;
            const auto flags = source.ConsumeIntegral<uint8_t>();
            b.temporary = bytes > 0 && (flags & 3) == 0;
            b.mmap = bytes > 0 && (flags & 3) == 1;
            b.memory = bytes > 0 && (flags & 3) > 1;
            if ((flags & 4) != 0 && bytes > 0) {
                b.in_file = 1;
                b.file_pos = static_cast<off_t>(at);
                b.file_last = static_cast<off_t>(at + bytes);
            }
            b.flush = flags >> 3 & 1;
            b.recycled = flags >> 4 & 1;
            b.last_in_chain = flags >> 5 & 1;
            at += bytes;
            b.last_buf = at == page.size() && ((flags & 64) != 0 || bytes == 0);
            b.sync = bytes == 0 && !b.last_buf && !b.flush;
            flushes += b.flush;
            last = b.last_buf;
            links[n] = {&b, nullptr};
            if (n > 0) {
                links[n - 1].next = &links[n];
            }
            n++;
        }
        check(take_in(ctx, links.data()) != NGX_ERROR);
        end_read_parts(parts);
        if (source.ConsumeBool()) {
            go_on();
            end_read_parts(parts);
        }
        if (source.ConsumeBool()) {
            take_in(ctx, nullptr);
            end_read_parts(parts);
        }
    }
    // The client takes the rest.
    while (ctx.waiting || !client.waiting.empty() || ctx.in != nullptr) {
        go_on();
        take(SIZE_MAX);
        check(take_in(ctx, nullptr) != NGX_ERROR);
        end_read_parts(parts);
    }
    check(client.text == filled(page));
    check(client.lasts == 1 && client.flushes == flushes);
    check(!ctx.waiting && c.buffered == 0 && ctx.busy == nullptr);
    for (const Part& part : parts) {
        check(part.memory == nullptr);
    }
    pool.clear();
    return 0;
}
