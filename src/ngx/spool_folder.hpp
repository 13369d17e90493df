// Whether the folder of ads_spool can be written to.
#pragma once

#include "ngx/conf.hpp"

namespace ads::ngx {

// Logs why not. Called when all of the configuration has been read, also by nginx -t.
bool check_spool_folder(const MainConf& main, ngx_log_t* log);

}  // namespace ads::ngx
