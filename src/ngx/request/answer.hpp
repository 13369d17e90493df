// Responses, and the request's context, which keeps the response until the events are written.
#pragma once

#include <string_view>

#include "core/base/query.hpp"
#include "core/base/types.hpp"
#include "ngx/nginx.hpp"

namespace ads::ngx {

inline constexpr ngx_uint_t kGone = 410;  // nginx does not define it

struct Answer {
    ngx_uint_t status = NGX_HTTP_OK;
    std::string_view type;  // empty: no body
    std::string_view body;  // lives as long as the request
};

// The ad served to a placement, for the variables.
struct Served {
    Id campaign = 0;
    Id ad_group = 0;
    Id creative = 0;
};

class Worker;
struct RequestCtx;
struct FleetDecision;

// Processes a request. The result is for ngx_http_finalize_request().
using RequestHandler = ngx_int_t (*)(Worker& worker, ngx_http_request_t* r,
                                     RequestCtx* ctx) noexcept;

struct RequestCtx {
    ngx_http_request_t* request = nullptr;
    ngx_queue_t queue{};  // in RequestQueue
    bool queued = false;
    RequestHandler handler = nullptr;
    RequestHandler after_write = nullptr;  // nullptr: `answer` is sent
    Answer answer;
    char* buffer = nullptr;        // of the worker, see memory_for()
    ngx_event_t* timer = nullptr;  // of a pixel that waits for another worker
    uint32_t tries = 0;
    FleetDecision* fleet = nullptr;  // waits for Redis, or for its work
    bool limited = false;            // over a silent limit: the event does not count
    // for the variables
    const Served* served = nullptr;
    size_t served_count = 0;
    std::string_view decision;
    std::string_view invalid;
    int64_t nanoseconds = 0;
};

// The request's context, made on first use; nullptr without memory.
RequestCtx* context(ngx_http_request_t* r) noexcept;

// Sends the answer now. The result is for ngx_http_finalize_request().
ngx_int_t send(ngx_http_request_t* r, const Answer& answer) noexcept;

// 400 and the like: {"error":{"code":…,"message":…}}
ngx_int_t send_error(ngx_http_request_t* r, ngx_uint_t status, const InputError& error) noexcept;

// 405, naming what is allowed.
ngx_int_t not_allowed(ngx_http_request_t* r, std::string_view methods) noexcept;

inline bool no_store(ngx_http_request_t* r) noexcept {
    return push_header(r, "Cache-Control", str("no-store"));
}

// A publicly cacheable response, identified by `hash`.
bool set_cacheable(ngx_http_request_t* r, std::string_view control, uint64_t hash) noexcept;

// Memory for the response, valid during the request.
char* memory_for(ngx_http_request_t* r, RequestCtx* ctx, size_t size) noexcept;

// Frees the memory that memory_for() keeps, when the worker ends.
void free_buffers() noexcept;

// Reads the query into `query`, whose views last as long as the request.
InputError query_of(ngx_http_request_t* r, Query& query) noexcept;

}  // namespace ads::ngx
