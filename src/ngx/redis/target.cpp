#include "ngx/redis/target.hpp"

#include <arpa/inet.h>

namespace ads::ngx {

void ServerAddress::set(const RedisAddress& to) noexcept {
    const in_port_t port = htons(to.port);
    if (inet_pton(AF_INET, to.ip.c_str(), &room.sockaddr_in.sin_addr) == 1) {
        room.sockaddr_in.sin_family = AF_INET;
        room.sockaddr_in.sin_port = port;
        address.socklen = sizeof(sockaddr_in);
#if (NGX_HAVE_INET6)
    } else if (inet_pton(AF_INET6, to.ip.c_str(), &room.sockaddr_in6.sin6_addr) == 1) {
        room.sockaddr_in6.sin6_family = AF_INET6;
        room.sockaddr_in6.sin6_port = port;
        address.socklen = sizeof(sockaddr_in6);
#endif
    }
    address.sockaddr = &room.sockaddr;
    name = to.ip + ":" + std::to_string(to.port);
    address.name = str(name);
}

RedisAddress redis_address(const ngx_addr_t& server) noexcept {
    u_char text[NGX_SOCKADDR_STRLEN];
    const size_t size = ngx_sock_ntop(server.sockaddr, server.socklen, text, sizeof text, 0);
    const std::string_view ip(reinterpret_cast<char*>(text), size);
    // IPv6 is in brackets.
    const bool brackets = ip.starts_with('[') && ip.ends_with(']');
    return {std::string(brackets ? ip.substr(1, size - 2) : ip),
            ngx_inet_get_port(server.sockaddr)};
}

}  // namespace ads::ngx
