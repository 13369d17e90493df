// ads_rate_limit: limits the rate of requests, in any location.
#pragma once

#include "core/base/bytes.hpp"
#include "ledger/visitor/rate_limit.hpp"
#include "ngx/conf/conf.hpp"

namespace ads::ngx {

// A zone, as its first use declares it.
struct LimitZone {
    ngx_str_t name;
    size_t size;
    RateRule rule;
    ngx_str_t key;      // as written; empty: the client's address
    Value* key_value;   // of it
    bool fleet;         // counts in Redis, for all nodes
    ngx_str_t allowed;  // the rate, for the header
    RateTable table;
    // Log messages of this process.
    time_t last_log;
    uint64_t unlogged;
};

// The treatment of a request over the limit.
enum class OverLimit : uint8_t {
    usual,   // click: silent, all others: 429
    refuse,  // 429
    silent,  // answered, but its event does not count
};

// One use of a zone.
struct LimitConf {
    LimitZone* zone;
    OverLimit over;
    bool dry_run;
};

char* set_rate_limit(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);

// Registers the handler in its phase, if there are limits.
ngx_int_t add_limits(ngx_conf_t* cf);

// For the status: "limits":[…], and the same for Prometheus; the required size.
void put_limits(Out& out, const MainConf& conf) noexcept;
void put_limit_metrics(Out& out, const MainConf& conf) noexcept;
size_t limits_room(const MainConf& conf) noexcept;

}  // namespace ads::ngx
