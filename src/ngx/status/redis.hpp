// The part of ads_status about Redis.
#pragma once

#include "core/base/bytes.hpp"
#include "ledger/redis_counts.hpp"

namespace ads::ngx {

void put_redis_metrics(Out& out, const SharedRedisCounts& counts) noexcept;

}  // namespace ads::ngx
