// What Redis has of sessions: the frequency caps of a fleet (docs/redis.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/siphash.hpp"
#include "io/redis/servers.hpp"

namespace ads::admin {

class RedisSessions {
public:
    struct Seen {
        std::string level;  // "ad_group", "campaign", "creative"
        uint64_t id = 0;
        uint64_t serves = 0;  // that are remembered
        uint64_t newest = 0;  // Unix seconds
    };

    // `keys`: each that nodes may have made the names of sessions with.
    RedisSessions(RedisConf conf, std::vector<SipKey> keys);

    // Calls `see` for each capped object that a session was shown. Throws Failure.
    void each(const std::vector<std::string>& sessions,
              const std::function<void(const Seen&)>& see);

    // The number of keys that were deleted. Throws Failure.
    uint64_t erase(const std::vector<std::string>& sessions);

private:
    void call(std::string_view command, const std::vector<std::string>& sessions,
              const std::function<void(const RespReader&)>& see);

    const std::string prefix_;
    const std::vector<SipKey> keys_;
    const Alarm alarm_;
    RedisServers servers_;
};

}  // namespace ads::admin
