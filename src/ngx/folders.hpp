// The folders of ads_state and ads_spool: root creates them, the worker user owns them.
#pragma once

#include "io/file.hpp"
#include "ngx/conf/conf.hpp"

namespace ads::ngx {

// The user that the workers run as; kSameUser if it is the master's.
uid_t worker_uid(const ngx_cycle_t* cycle) noexcept;

// Checks both folders and, unless the configuration is only tested, creates them. Called when
// all of the configuration has been read: `user` may come after `http`.
bool prepare_folders(MainConf& main, ngx_log_t* log);

}  // namespace ads::ngx
