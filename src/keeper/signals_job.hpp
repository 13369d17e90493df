// Tells Redis what this node has counted of the limits that it paces, and reads what all nodes
// have: once a second, after the tick, which does not wait for it.
#pragma once

#include <random>

#include "io/redis/signals.hpp"
#include "keeper/job.hpp"
#include "ledger/redis_counts.hpp"

namespace ads {

class SignalsJob : public Job {
public:
    explicit SignalsJob(std::shared_ptr<KeeperShared> shared);

private:
    void run_until_stopped() override;
    bool call(std::span<const Signals::Line> lines);
    void fail(const std::string& why);

    SignalsMail& mail_;
    RedisSignals redis_;
    RedisCounts counts_;
    std::minstd_rand jitter_;
    uint32_t failures_ = 0;  // in a row
    std::string told_error_;
};

}  // namespace ads
