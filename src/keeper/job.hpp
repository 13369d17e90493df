// Shared by the threads of a keeper.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "io/say.hpp"
#include "io/shipper.hpp"
#include "io/thread.hpp"
#include "keeper/catalog_feed.hpp"
#include "ledger/active_keeper.hpp"
#include "ledger/billing.hpp"

namespace ads {

// `ads_fleet`
struct FleetConf {
    std::string name;
    std::string conninfo;
    std::string run_mark;  // path
    bool shares = false;   // on_error
    uint64_t anonymous_cap = kNoAnonymousCap;
};

struct KeeperConf {
    Target target;
    std::function<Millis()> now;  // the time of day
    std::string spool;
    std::string catalog;           // the file that is watched
    std::optional<FeedConf> feed;  // or the database
    std::optional<ShipperConf> ship;
    uint32_t connections = 1;  // that ship
    std::optional<FleetConf> fleet;
    bool syncs = false;  // the spool
    Seconds reservation = 0;
    int nice = 5;
    uint64_t epoch = 0;          // of the zone's configuration
    uint32_t configuration = 0;  // of the state's
};

// Lines for the log. The event loop writes them: it also reopens the file.
class KeeperLog {
public:
    struct Line {
        LogLevel level;
        std::string text;
    };

    void add(LogLevel level, std::string text) {
        const std::lock_guard lock(mutex_);
        if (lines_.size() < kMost) {
            lines_.push_back({level, std::move(text)});
        }
    }
    std::vector<Line> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(lines_, {});
    }

private:
    static constexpr size_t kMost = 1000;
    std::mutex mutex_;
    std::vector<Line> lines_;
};

struct KeeperShared {
    KeeperShared(KeeperConf given, ProcessId process)
        : conf(std::move(given)),
          me(process),
          words(conf.target.state.head().keeper),
          active(words, me, conf.configuration) {}

    // Whether this is the newest configuration of the zone: no other one publishes.
    bool may_publish() const noexcept {
        return conf.target.zone.head().epoch.load(std::memory_order_acquire) == conf.epoch;
    }

    const KeeperConf conf;
    const ProcessId me;
    KeeperWords& words;
    ActiveKeeper active;
    Alarm alarm;  // of all threads
    KeeperLog log;

    uint32_t wait = 0;  // seconds before any work

    std::mutex mutex;
    std::vector<std::string> shipping;  // by connection: why it ships nothing
};

// One thread of the keeper.
class Job {
public:
    explicit Job(std::shared_ptr<KeeperShared> shared) : shared_(std::move(shared)) {}
    virtual ~Job() = default;

    void run();
    // Whether it is blocked in a library that cannot be interrupted.
    virtual bool hangs() const noexcept { return false; }

    std::atomic<bool> finished{false};

protected:
    virtual void run_until_stopped() = 0;

    const std::shared_ptr<KeeperShared> shared_;
};

}  // namespace ads
