// The keeper in nginx: a process beside the workers.
#pragma once

#include "ngx/conf/conf.hpp"

namespace ads::ngx {

// Registers the process that calls start_keeper() with the master.
bool add_keeper_process(ngx_cycle_t* cycle, MainConf& conf) noexcept;

void start_keeper(MainConf& conf, ngx_log_t* log);
void stop_keeper() noexcept;

}  // namespace ads::ngx
