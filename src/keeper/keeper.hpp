// The keeper: all work of a node that answers no request. It watches and publishes the catalog,
// ticks the pacing, ships and syncs the spool, and recovers what dead workers left. Its threads may
// block. It may die at any instruction: what it does is done again by the next one.
#pragma once

#include "keeper/job.hpp"

namespace ads {

class Keeper {
public:
    explicit Keeper(KeeperConf conf);
    ~Keeper() { stop(); }
    Keeper(const Keeper&) = delete;

    // False if no thread can be started; errno tells why.
    bool start();

    // Ends the threads. One that hangs in a library is left behind.
    void stop() noexcept;

    // The process ends at once: another keeper need not wait until this one has been silent.
    void leave() noexcept;

    std::vector<KeeperLog::Line> log() { return shared_->log.take(); }

private:
    struct Running {
        std::shared_ptr<Job> job;
        Thread thread;
    };

    std::shared_ptr<KeeperShared> shared_;
    std::vector<std::unique_ptr<Running>> jobs_;
};

// Asks the active keeper of a state for a round at once. The number to wait for.
uint32_t ring(KeeperWords& words) noexcept;

}  // namespace ads
