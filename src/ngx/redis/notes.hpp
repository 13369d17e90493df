// The serves of the last seconds that this worker noted in Redis. After a failover the new master
// may not have them, nor a server that has lost its data: they are written again, each once for
// every new connection. Writing one that is there changes nothing.
#pragma once

#include <deque>

#include "io/redis/session_caps.hpp"
#include "ngx/nginx.hpp"

namespace ads::ngx {

class WorkerRedis;

class RedisNotes {
public:
    explicit RedisNotes(WorkerRedis& client) noexcept : client_(client) {}

    // `connection`: the one that it was noted on.
    void add(NotedServe serve, uint32_t connection) noexcept;

    // Writes again what was noted on other connections than those in use now.
    void rewrite() noexcept;

private:
    class Call;

    struct Entry {
        NotedServe serve;
        ngx_msec_t added;
        uint32_t connection;
    };

    void remove_old() noexcept;
    void go_on() noexcept;

    WorkerRedis& client_;
    std::deque<Entry> entries_;
    uint64_t first_ = 0;  // number of the first entry
    uint64_t next_ = 0;   // number of the next entry to be looked at; see rewrite()
    uint32_t sent_ = 0;   // that are not answered yet
};

}  // namespace ads::ngx
