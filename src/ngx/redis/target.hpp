// The servers of `ads_redis`, as nginx connects to them.
#pragma once

#include "io/redis_conf.hpp"
#include "ngx/nginx.hpp"

namespace ads::ngx {

struct RedisTarget {
    RedisConf conf;
    ngx_array_t* addresses = nullptr;  // of ngx_addr_t
#if (NGX_SSL)
    ngx_ssl_t* ssl = nullptr;  // nullptr: without TLS
#endif

    size_t count() const noexcept {
        return addresses->nelts;
    }
    ngx_addr_t& address(size_t i) const noexcept {
        return static_cast<ngx_addr_t*>(addresses->elts)[i];
    }
};

}  // namespace ads::ngx
