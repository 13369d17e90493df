// Where this server is, as its visitors see it.
#pragma once

#include <string>

#include "ngx/nginx.hpp"

namespace ads::ngx {

// Scheme and host of the request as this server sees them: what a client says of a proxy before
// us counts only where ads_origin says so. False if there is none that may stand in a URL.
bool find_origin(ngx_http_request_t* r, std::string& origin);

}  // namespace ads::ngx
