// The counts of limits in Redis, by which the nodes of a fleet pace them together (docs/redis.md).
#pragma once

#include "io/redis/servers.hpp"
#include "ledger/fleet/signals.hpp"

namespace ads {

class RedisSignals {
public:
    RedisSignals(RedisConf conf, uint32_t node, const Alarm& alarm, SSL_CTX* tls)
        : prefix_(conf.prefix),
          node_(std::to_string(node)),
          servers_(std::move(conf), alarm, tls) {}

    // Tells what this node has counted; for each limit that was answered, the total. False: see
    // error().
    bool exchange(std::span<const Signals::Line> lines, Millis timeout,
                  std::vector<Signals::Total>& totals);

    void close() noexcept { servers_.close(); }
    const std::string& error() const noexcept { return error_; }

    // Replies of the last exchange that were errors.
    uint64_t errors() const noexcept { return errors_; }

private:
    bool ask(std::span<const Signals::Line> lines, bool whole, Millis timeout,
             std::vector<Signals::Total>& totals, std::vector<Signals::Line>& unknown);
    RedisRequest request(const Signals::Line& line, bool whole) const;

    const std::string prefix_;
    const std::string node_;
    RedisServers servers_;
    uint64_t errors_ = 0;
    std::string error_;
};

}  // namespace ads
