// A server of Redis, or the masters of a cluster: where a key is, their redirects tell. For threads
// that may block.
#pragma once

#include <map>

#include "io/redis/client.hpp"
#include "io/redis/cluster.hpp"

namespace ads {

// A command, with the key by which a cluster knows where it belongs.
struct RedisRequest {
    std::string key;
    std::string bytes;

    RedisRequest(std::string of, std::span<const std::string_view> arguments) : key(std::move(of)) {
        append_command(bytes, arguments);
    }
};

class RedisServers {
public:
    using See = RedisClient::See;

    RedisServers(RedisConf conf, const Alarm& alarm, SSL_CTX* tls = nullptr);

    // Calls `see` for the reply to each request, in any order. False: see error(); some may have
    // been answered.
    bool call(std::span<const RedisRequest> requests, Millis timeout, const See& see);

    void close() noexcept { clients_.clear(); }
    const std::string& error() const noexcept { return error_; }

private:
    struct Waiting {
        size_t request;
        std::string server;  // empty: any of the configuration
        bool ask = false;
    };

    bool ask(const std::string& server, std::span<const RedisRequest> requests,
             std::span<const Waiting> waiting, Millis deadline, const See& see,
             std::vector<Waiting>& again);
    RedisClient& client(const std::string& server);
    std::string server_of(const std::string& key) const;

    const RedisConf conf_;
    const Alarm& alarm_;
    SSL_CTX* const tls_;
    std::map<std::string, std::unique_ptr<RedisClient>> clients_;  // by address
    std::unique_ptr<RedisSlots> slots_;  // of a cluster, once there was a redirect
    std::string error_;
};

}  // namespace ads
