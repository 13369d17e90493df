// Ads for a request, from an endpoint or a page that is being sent.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/base/query.hpp"
#include "core/decide/explain.hpp"
#include "core/decide/render.hpp"
#include "ngx/request/answer.hpp"
#include "ngx/request/visitor.hpp"

namespace ads::ngx {

class Worker;

using Ads = FixedVector<Ad, kMaxPage>;

struct AdRequest {
    // Not an aggregate, whose initialization would clear all of it.
    AdRequest(Worker& w, ngx_http_request_t* request, RequestCtx* context) noexcept
        : worker(w), r(request), ctx(context) {}

    Worker& worker;
    ngx_http_request_t* r;
    RequestCtx* ctx;
    ServeQuery query;
    const Visitor* known = nullptr;  // the visitor, if already known
    Visitor visitor;
    Keys keys;
    Request request;
    Page page;
    Ads ads;
    std::vector<Refusal>* trace = nullptr;  // for debug=1
    bool may_wait = false;                  // for the caps of the fleet
};

enum class Decided : uint8_t {
    done,
    waits,   // the request's work is done again when the fleet's caps are known
    failed,  // without memory
};

// Decides, and records the serves. Requests are held until the events are written.
Decided decide_ads(AdRequest& a, std::span<const uint32_t> placements) noexcept;

// Over a silent limit: no ad, and nothing is decided, taken or written.
void refuse_ads(AdRequest& a, std::span<const uint32_t> placements) noexcept;

}  // namespace ads::ngx
