// The spool in ads_status.
#pragma once

#include "core/base/bytes.hpp"

namespace ads::ngx {

class Worker;

// {"segments":…,"bytes":…,"damaged_records":…,"damaged_bytes":…,"slow_writes":…,…}
void put_spool(Worker& worker, Out& out) noexcept;

}  // namespace ads::ngx
