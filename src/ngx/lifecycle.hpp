// Activation of a configuration, and the start and end of a worker.
#pragma once

#include "ngx/nginx.hpp"

namespace ads::ngx {

ngx_int_t init_module(ngx_cycle_t* cycle);
ngx_int_t init_process(ngx_cycle_t* cycle);
void exit_process(ngx_cycle_t* cycle);
void exit_master(ngx_cycle_t* cycle);

}  // namespace ads::ngx
