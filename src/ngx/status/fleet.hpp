// What a node of a fleet holds of the shared limits, for ads_status.
#pragma once

#include "core/base/bytes.hpp"
#include "ngx/conf/conf.hpp"

namespace ads::ngx {

class Worker;

// null where there is no ads_fleet.
void put_fleet(Worker& worker, Out& out, const MainConf& conf) noexcept;
void put_fleet_metrics(Worker& worker, Out& out) noexcept;

// `,"rights":{…}` of a wall; nothing without a fleet.
void put_rights_of(Worker& worker, Out& out, uint32_t slot, Day day, bool money) noexcept;

}  // namespace ads::ngx
