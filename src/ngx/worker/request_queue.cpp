#include "ngx/worker/request_queue.hpp"

#include <utility>

#include "ngx/worker/worker.hpp"

namespace ads::ngx {

RequestQueue::RequestQueue(Worker& worker) noexcept : worker_(worker) {
    ngx_queue_init(&queue_);
}

RequestQueue::~RequestQueue() {
    if (event_.posted) {
        ngx_delete_posted_event(&event_);
    }
}

void RequestQueue::start(ngx_log_t* log) noexcept {
    connection_.fd = static_cast<ngx_socket_t>(-1);
    connection_.log = log;
    connection_.data = this;
    event_.data = &connection_;
    event_.log = log;
    event_.handler = on_end_of_cycle;
}

ngx_int_t RequestQueue::defer(ngx_http_request_t* r, RequestHandler handler) noexcept {
    RequestCtx* ctx = context(r);
    if (ctx == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    ctx->handler = handler;
    put(r, ctx);
    return NGX_DONE;
}

ngx_int_t RequestQueue::hold(ngx_http_request_t* r, RequestCtx* ctx,
                             RequestHandler after_write) noexcept {
    ctx->handler = nullptr;
    ctx->after_write = after_write;
    put(r, ctx);
    return NGX_DONE;
}

void RequestQueue::put(ngx_http_request_t* r, RequestCtx* ctx) noexcept {
    r->main->count++;
    enqueue(ctx);
}

void RequestQueue::enqueue(RequestCtx* ctx) noexcept {
    ngx_queue_insert_tail(&queue_, &ctx->queue);
    ctx->queued = true;
    if (!running_ && !event_.posted) {
        ngx_post_event(&event_, &ngx_posted_events);
    }
}

void RequestQueue::on_end_of_cycle(ngx_event_t* event) {
    static_cast<RequestQueue*>(static_cast<ngx_connection_t*>(event->data)->data)->run();
}

// Fetches the next request's memory while this one is processed: other requests and system calls
// have displaced it. The head of the queue is not a request, but fetching it does no harm.
static void prefetch_next(const ngx_queue_t* queue) noexcept {
    const auto* ctx = ngx_queue_data(ngx_queue_next(queue), RequestCtx, queue);
    __builtin_prefetch(ctx);
    __builtin_prefetch(&ctx->answer);
}

// A held request goes to the tail, behind the requests still to be processed. When it reaches the
// head, its events and those of all requests behind it are written. Sending a response may destroy
// other requests (streams of one connection). Each leaves the queue in the cleanup of its pool, so
// only the head is used here.
void RequestQueue::run() noexcept {
    running_ = true;
    while (!ngx_queue_empty(&queue_)) {
        ngx_queue_t* head = ngx_queue_head(&queue_);
        auto* ctx = ngx_queue_data(head, RequestCtx, queue);
        prefetch_next(head);
        ngx_queue_remove(head);
        ctx->queued = false;
        ngx_http_request_t* r = ctx->request;
        ngx_connection_t* c = r->connection;
        if (const RequestHandler handler = ctx->handler) {
            const ngx_int_t rc = handler(worker_, r, ctx);
            if (rc == NGX_DONE && ctx->queued) {
                r->main->count--;  // held requests have their own count
                continue;
            }
            ngx_http_finalize_request(r, rc);
        } else {
            worker_.recorder.flush();
            ngx_http_finalize_request(r, ctx->after_write == nullptr
                                             ? send(r, ctx->answer)
                                             : ctx->after_write(worker_, r, ctx));
        }
        ngx_http_run_posted_requests(c);
    }
    worker_.recorder.flush();  // of requests that were closed, or failed
    worker_.ring_for_rights();
    running_ = false;
}

}  // namespace ads::ngx
