// The requests of an event loop cycle. First each is processed, then their events are written by
// one system call, then the responses are sent.
#pragma once

#include "ngx/request/answer.hpp"

namespace ads::ngx {

class Worker;

class RequestQueue {
public:
    explicit RequestQueue(Worker& worker) noexcept;
    ~RequestQueue();
    RequestQueue(const RequestQueue&) = delete;

    void start(ngx_log_t* log) noexcept;

    // Runs `handler` at the end of the cycle. Requests that are processed one after another,
    // without system calls between them, find the code in the processor's cache. The HTTP handler
    // returns what this returns.
    ngx_int_t defer(ngx_http_request_t* r, RequestHandler handler) noexcept;

    // Holds the request until its events are written, then runs `after_write` or sends the answer.
    // The request handler returns what this returns.
    ngx_int_t hold(ngx_http_request_t* r, RequestCtx* ctx,
                   RequestHandler after_write = nullptr) noexcept;

    // The request waits for something else than the end of the cycle: resume() has its handler
    // run again, which returns what this returns.
    static ngx_int_t wait(ngx_http_request_t* r) noexcept {
        r->main->count++;
        return NGX_DONE;
    }
    void resume(RequestCtx* ctx) noexcept { enqueue(ctx); }

private:
    static void on_end_of_cycle(ngx_event_t* event);
    void enqueue(RequestCtx* ctx) noexcept;
    void put(ngx_http_request_t* r, RequestCtx* ctx) noexcept;
    void run() noexcept;

    Worker& worker_;
    ngx_queue_t queue_;  // first the requests to be processed, then the held ones
    bool running_ = false;
    ngx_event_t event_{};
    ngx_connection_t connection_{};  // required for events
};

}  // namespace ads::ngx
