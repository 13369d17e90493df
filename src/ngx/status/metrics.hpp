// ads_status for Prometheus.
#pragma once

#include "core/base/bytes.hpp"
#include "ngx/status/rows.hpp"

namespace ads::ngx {

// With `detail` the rows are ad groups, else campaigns.
void put_metrics(Worker& worker, Out& out, const Filter& filter, const MainConf& conf,
                 bool detail) noexcept;

}  // namespace ads::ngx
