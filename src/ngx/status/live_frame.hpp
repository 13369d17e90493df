// What ads_live sends, as server-sent events.
#pragma once

#include <span>

#include "core/base/bytes.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

// The node's totals and rates, and the events noted since the frame before: the data of a frame.
void put_live_frame(Worker& worker, Out& out) noexcept;

// Today's counts of the campaigns: a message of its own, for those who asked for them.
void put_live_campaigns(Worker& worker, Out& out, std::span<const Id> campaigns) noexcept;

}  // namespace ads::ngx
