// The origin of this server, as visitors see it.
#pragma once

#include <string>

#include "ngx/nginx.hpp"

namespace ads::ngx {

// Scheme and host of the request; headers about a proxy in front are used only if ads_origin says
// so. False if the host is invalid in a URL.
bool find_origin(ngx_http_request_t* r, std::string& origin);

}  // namespace ads::ngx
