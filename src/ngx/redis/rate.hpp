// Rate limits of the fleet: a request waits for the verdict on it.
#pragma once

#include <optional>
#include <string>

#include "ledger/visitor/rate_limit.hpp"
#include "ngx/nginx.hpp"

namespace ads::ngx {

class Worker;
class RateCall;

// A request that waits, as long as it has a call.
struct RateWaiter {
    ngx_http_request_t* r = nullptr;  // since the question is on its way
    RateCall* call = nullptr;
    std::optional<RateVerdict> verdict;  // none: Redis has not given one
};

// Asks for the verdict on a key of a zone; false if Redis cannot be asked. When the waiter has no
// call any more, the write event of its connection is posted.
bool ask_rate(Worker& worker, RateWaiter& waiter, ngx_http_request_t* r, std::string_view zone,
              const RateRule& rule, std::string_view what) noexcept;

// The request is gone.
void forget(RateWaiter& waiter) noexcept;

}  // namespace ads::ngx
