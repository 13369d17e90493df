// The servers of `ads_redis`, as nginx connects to them.
#pragma once

#include "io/redis/cluster.hpp"
#include "io/redis/conf.hpp"
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

// A server of a cluster, which the configuration does not name.
struct ServerAddress {
    ngx_addr_t address{};
    ngx_sockaddr_t room{};
    std::string name;

    ServerAddress() noexcept = default;
    ServerAddress(const ServerAddress&) = delete;

    void set(const RedisAddress& to) noexcept;
};

// The address of a server that is not a unix socket.
RedisAddress redis_address(const ngx_addr_t& server) noexcept;

}  // namespace ads::ngx
