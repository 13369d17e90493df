// The requests of an event loop cycle: first each is processed, then one write of their events,
// then the answers.
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

    // Processes the request at the end of the cycle, after those before it: done in one go the
    // code stays in the cache, between system calls it does not. The handler returns what this
    // returns.
    ngx_int_t defer(ngx_http_request_t* r, Work work) noexcept;

    // Holds the request until its events are written; what is to be done then is the answer, if it
    // is nothing else. The work returns what this returns.
    ngx_int_t hold(ngx_http_request_t* r, RequestCtx* ctx, Work then = nullptr) noexcept;

private:
    static void on_end_of_cycle(ngx_event_t* event);
    void put(ngx_http_request_t* r, RequestCtx* ctx) noexcept;
    void run() noexcept;

    Worker& worker_;
    ngx_queue_t queue_;  // first those whose work is to be done, then those that are held
    bool running_ = false;
    ngx_event_t event_{};
    ngx_connection_t connection_{};  // required for events
};

}  // namespace ads::ngx
