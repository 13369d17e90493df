// Redis Cluster: each key belongs to one of 16,384 hash slots, and each slot to one master. What
// servers say of it is checked and bounded here; connections are elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/redis/resp.hpp"

namespace ads {

inline constexpr uint16_t kRedisSlots = 16'384;

// The slot of a key. Where it has text in braces, only that text counts.
uint16_t redis_slot(std::string_view key) noexcept;

struct RedisAddress {
    std::string
        ip;  // an IPv4 or IPv6 address; in a redirect empty: that of the server that sent it
    uint16_t port = 0;

    bool operator==(const RedisAddress&) const = default;
};

// Another server is to be asked: "MOVED SLOT HOST:PORT" from now on, "ASK SLOT HOST:PORT" once,
// after ASKING.
struct RedisRedirect {
    bool ask = false;
    uint16_t slot = 0;
    RedisAddress to;
};

// From the text of an error; nullopt if it is another error, is malformed, or names a host that is
// not an IP address: workers do not resolve names.
std::optional<RedisRedirect> parse_redirect(std::string_view error);

// Which master has which slot.
class RedisSlots {
public:
    static constexpr size_t kMostServers = 64;
    static constexpr uint8_t kNone = 255;
    static_assert(kMostServers < kNone);

    RedisSlots() noexcept { server_.fill(kNone); }

    // Takes over the reply to CLUSTER SLOTS. A server that was known keeps its number. False, and
    // nothing changes, if it is not such a reply or says that nobody has a slot. `from`: who sent
    // it; a server without an address is there. Slots of masters that are not among the first 64,
    // or have no IP address, have no server.
    bool read(const RespReader& reply, const RedisAddress& from);

    // The server of a slot, a number below size(), or kNone.
    uint8_t server(uint16_t slot) const noexcept { return server_[slot]; }

    // The number of a server, which may be a new one; kNone if there is no room for it.
    uint8_t add(const RedisAddress& server);

    // One slot has another server from now on; kNone, and nothing changes, if there is no room
    // for it.
    uint8_t move(uint16_t slot, const RedisAddress& to);

    // Of servers without an address the numbers are free.
    const RedisAddress& address(uint8_t server) const noexcept { return addresses_[server]; }
    size_t size() const noexcept { return addresses_.size(); }

private:
    std::array<uint8_t, kRedisSlots> server_;
    std::vector<RedisAddress> addresses_;
};

}  // namespace ads
