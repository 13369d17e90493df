#include "ngx/request/origin.hpp"

#include "core/base/origin.hpp"
#include "ngx/request/visitor.hpp"

namespace ads::ngx {

bool find_origin(ngx_http_request_t* r, std::string& origin) {
    origin = value_of(r, loc_conf(r)->origin);
    if (origin.empty() && r->headers_in.host != nullptr) {
#if NGX_HTTP_SSL
        const bool secure = r->connection->ssl != nullptr;
#else
        const bool secure = false;
#endif
        origin = secure ? "https://" : "http://";
        origin += view(r->headers_in.host->value);
    }
    return valid_origin(origin);
}

}  // namespace ads::ngx
