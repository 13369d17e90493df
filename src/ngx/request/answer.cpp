#include "ngx/request/answer.hpp"

#include <cstdlib>

#include "core/base/bytes.hpp"
#include "ngx/redis/caps.hpp"

namespace ads::ngx {

namespace {

// Buffers for answers that go from request to request: cheaper than a second
// block of each request's pool.
class BufferList {
public:
    static constexpr size_t kBytes = 2048;

    static char* borrow() noexcept {
        if (count_ > 0) {
            return free_[--count_];
        }
        return static_cast<char*>(std::malloc(kBytes));
    }

    static void give_back(char* buffer) noexcept {
        if (count_ < kMost) {
            free_[count_++] = buffer;
        } else {
            std::free(buffer);
        }
    }

    static void clear() noexcept {
        while (count_ > 0) {
            std::free(free_[--count_]);
        }
    }

private:
    static constexpr size_t kMost = 256;
    static inline char* free_[kMost];
    static inline size_t count_ = 0;
};

void forget(void* data) {
    auto* ctx = static_cast<RequestCtx*>(data);
    if (ctx->queued) {
        ngx_queue_remove(&ctx->queue);
        ctx->queued = false;
    }
    if (ctx->timer != nullptr && ctx->timer->timer_set) {
        ngx_del_timer(ctx->timer);
    }
    if (ctx->fleet != nullptr) {
        abandon(ctx->fleet);
        ctx->fleet = nullptr;
    }
    if (ctx->buffer != nullptr) {
        BufferList::give_back(ctx->buffer);
    }
    ctx->request = nullptr;
}

}  // namespace

RequestCtx* context(ngx_http_request_t* r) noexcept {
    auto* ctx = static_cast<RequestCtx*>(ngx_http_get_module_ctx(r, ngx_http_ads_module));
    if (ctx != nullptr) {
        return ctx;
    }
    auto* cleanup = ngx_pool_cleanup_add(r->pool, 0);
    ctx = cleanup == nullptr ? nullptr : pnew<RequestCtx>(r->pool);
    if (ctx == nullptr) {
        return nullptr;
    }
    cleanup->handler = forget;
    cleanup->data = ctx;
    ctx->request = r;
    ngx_http_set_ctx(r, ctx, ngx_http_ads_module);
    return ctx;
}

ngx_int_t send(ngx_http_request_t* r, const Answer& answer) noexcept {
    r->headers_out.status = answer.status;
    // HEAD of something that is made only for GET has no length to tell.
    const bool unknown = r->method == NGX_HTTP_HEAD && answer.body.empty() && !answer.type.empty();
    r->headers_out.content_length_n = unknown ? -1 : static_cast<off_t>(answer.body.size());
    if (!answer.type.empty()) {
        r->headers_out.content_type = str(answer.type);
        r->headers_out.content_type_len = answer.type.size();
        push_header(r, "X-Content-Type-Options", str("nosniff"));
    }
    if (answer.body.empty()) {
        r->header_only = 1;
    }
    const ngx_int_t rc = ngx_http_send_header(r);
    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }
    auto* buffer = static_cast<ngx_buf_t*>(ngx_calloc_buf(r->pool));
    if (buffer == nullptr) {
        return NGX_ERROR;
    }
    const ngx_str_t body = str(answer.body);
    buffer->pos = body.data;
    buffer->last = body.data + body.len;
    buffer->memory = 1;
    buffer->last_buf = r == r->main;
    buffer->last_in_chain = 1;
    ngx_chain_t chain{buffer, nullptr};
    return ngx_http_output_filter(r, &chain);
}

ngx_int_t send_error(ngx_http_request_t* r, ngx_uint_t status, const InputError& error) noexcept {
    constexpr size_t kRoom = 512;
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, kRoom));
    if (memory == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    Out out(memory, kRoom);
    out.put("{\"error\":{\"code\":\"");
    out.json(error.code);
    out.put("\",\"message\":\"");
    out.json(error.message);
    out.put("\"}}");
    if (RequestCtx* ctx = context(r)) {
        ctx->decision = error.code;
    }
    no_store(r);
    return send(r, {status, "application/json", out.text()});
}

ngx_int_t not_allowed(ngx_http_request_t* r, std::string_view methods) noexcept {
    push_header(r, "Allow", str(methods));
    return NGX_HTTP_NOT_ALLOWED;
}

bool set_cacheable(ngx_http_request_t* r, std::string_view control, uint64_t hash) noexcept {
    constexpr size_t kRoom = 18;  // 16 digits in quotes
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, kRoom));
    auto* etag = static_cast<ngx_table_elt_t*>(ngx_list_push(&r->headers_out.headers));
    if (memory == nullptr || etag == nullptr) {
        return false;
    }
    Out out(memory, kRoom);
    out.put('"');
    out.hex64(hash);
    out.put('"');
    etag->hash = 1;
    etag->key = str("ETag");
    etag->value = str(out.text());
#if nginx_version >= 1023000
    etag->next = nullptr;
#endif
    r->headers_out.etag = etag;
    return push_header(r, "Cache-Control", str(control));
}

InputError query_of(ngx_http_request_t* r, Query& query) noexcept {
    const std::string_view args = view(r->args);
    InputError error;
    if (read_plain_query(args, query, error)) {
        return error;
    }
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, args.size()));
    if (memory == nullptr) {
        return {"no_memory", "out of memory"};
    }
    return read_query(args, {memory, args.size()}, query);
}

void free_buffers() noexcept {
    BufferList::clear();
}

char* memory_for(ngx_http_request_t* r, RequestCtx* ctx, size_t size) noexcept {
    if (size > BufferList::kBytes || ctx->buffer != nullptr) {
        return static_cast<char*>(ngx_pnalloc(r->pool, size));
    }
    return ctx->buffer = BufferList::borrow();
}

}  // namespace ads::ngx
