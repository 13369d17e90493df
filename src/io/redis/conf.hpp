// How a server of Redis is reached.
#pragma once

#include <string>
#include <vector>

#include "core/base/types.hpp"

namespace ads {

// What a decision does while the fleet's caps cannot be asked for.
enum class RedisError : uint8_t {
    local,  // the caps of this node
    no_ad,  // no ad that has a cap
};

struct RedisConf {
    std::vector<std::string> addresses;  // as they were written
    bool cluster = false;                // they are servers of a cluster
    std::string user;                    // empty: the default user
    std::string password;                // empty: none is sent
    std::string prefix;                  // of all keys
    Millis timeout = 5;
    RedisError on_error = RedisError::local;

    bool tls = false;
    std::string ca;    // empty: those of the system
    std::string cert;  // of the client; empty: none
    std::string key;
    std::string server_name;
};

}  // namespace ads
