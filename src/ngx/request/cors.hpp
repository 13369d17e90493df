// Cross-origin requests: which origins may read responses, and which may embed them.
#pragma once

#include "ngx/conf/conf.hpp"

namespace ads::ngx {

char* set_cors(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);

// Adds the headers of `ads_cors` for the request's origin, before anything else. Answers a
// preflight request; otherwise returns NGX_DECLINED.
ngx_int_t apply_cors(ngx_http_request_t* r, std::string_view methods) noexcept;

// Cross-Origin-Resource-Policy: whether other origins may embed the response.
inline bool set_embedding(ngx_http_request_t* r, bool allowed) noexcept {
    return push_header(r, "Cross-Origin-Resource-Policy",
                       str(allowed ? "cross-origin" : "same-origin"));
}

}  // namespace ads::ngx
