// What the status tells of the spool.
#pragma once

#include "core/base/bytes.hpp"

namespace ads::ngx {

// {"segments":…,"bytes":…,"damaged_records":…,"damaged_bytes":…,"slow_writes":…,…}
void put_spool(Out& out) noexcept;

}  // namespace ads::ngx
