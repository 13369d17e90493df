// Pages of other origins: who may read answers, and who may embed them.
#pragma once

#include "ngx/conf/conf.hpp"

namespace ads::ngx {

char* set_cors(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);

// Adds what `ads_cors` says of the request's origin, before anything else is
// answered. NGX_DECLINED unless that was the question: then it is answered.
ngx_int_t apply_cors(ngx_http_request_t* r, std::string_view methods) noexcept;

// Cross-Origin-Resource-Policy: whether other origins may embed the answer.
inline bool set_embedding(ngx_http_request_t* r, bool allowed) noexcept {
    return push_header(r, "Cross-Origin-Resource-Policy",
                       str(allowed ? "cross-origin" : "same-origin"));
}

}  // namespace ads::ngx
