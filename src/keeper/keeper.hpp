// The keeper: everything on a node that is not part of a request. It watches and publishes the
// catalog, ticks the pacing, ships and syncs the spool, and recovers what dead workers left. Its
// threads may block. It may die at any instruction: what it does is done again by the next one.
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

    // Ends the threads. One that is blocked in a library is left behind.
    void stop() noexcept;

    // The process exits: another keeper may take over at once.
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

// Requests a round of the active keeper of a state. Returns the number to wait for.
uint32_t ring(KeeperWords& words) noexcept;

}  // namespace ads
