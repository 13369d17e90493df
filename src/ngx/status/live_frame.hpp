// The JSON that ads_live sends.
#pragma once

#include <span>

#include "core/base/bytes.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

// A frame: the node's totals and rates, and a sample of the events since the previous frame.
void put_live_frame(Worker& worker, Out& out) noexcept;

// Today's counts of the given campaigns, sent as a separate message.
void put_live_campaigns(Worker& worker, Out& out, std::span<const Id> campaigns) noexcept;

}  // namespace ads::ngx
