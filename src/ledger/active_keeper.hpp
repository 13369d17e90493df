// Selects the active keeper of a state. There may be several keepers: during a reload, during a
// binary upgrade, or stopped and continued. One of them is active.
#pragma once

#include <atomic>

#include "ledger/process_id.hpp"

namespace ads {

// In the state. All zero: no keeper yet.
struct KeeperWords {
    std::atomic<uint64_t> active;          // {term : 32, pid : 32}; pid 0: nobody
    std::atomic<uint64_t> beat;            // of the active one, monotonic milliseconds
    std::atomic<uint32_t> configuration;   // the number of its configuration
    std::atomic<uint32_t> configurations;  // the number of those that have taken effect
    std::atomic<uint32_t> bell;            // a futex: asks for a round at once
    std::atomic<uint32_t> answered;        // the bell at the start of the last round

    uint32_t pid() const noexcept { return static_cast<uint32_t>(active.load()); }
    uint32_t term() const noexcept { return static_cast<uint32_t>(active.load() >> 32); }

    // Milliseconds since the last heartbeat of the active one.
    uint64_t silent(uint64_t now) const noexcept {
        const uint64_t last = beat.load();
        return last <= now ? now - last : now;  // of an earlier boot
    }

    // Whether a keeper is active. One that has been silent for 3 s is not.
    bool taken(uint64_t now, Alive alive) const noexcept {
        constexpr uint64_t kSilent = 3000;
        return pid() != 0 && beat.load() <= now && silent(now) < kSilent && alive(pid());
    }
};

// A keeper as a candidate.
class ActiveKeeper {
public:
    ActiveKeeper(KeeperWords& words, ProcessId me, uint32_t configuration) noexcept
        : words_(words), me_(pid_of(me)), configuration_(configuration) {}

    // Becomes or stays the active keeper. Takes over from one that is silent or has an older
    // configuration.
    bool hold(uint64_t now, Alive alive) noexcept {
        uint64_t word = words_.active.load();
        if (word != 0 && word == mine_.load(std::memory_order_relaxed)) {
            words_.beat.store(now);
            return true;
        }
        if (words_.taken(now, alive) && words_.configuration.load() >= configuration_) {
            return false;
        }
        const uint64_t next = ((word >> 32) + 1) << 32 | me_;
        if (!words_.active.compare_exchange_strong(word, next)) {
            return false;
        }
        words_.configuration.store(configuration_);
        words_.beat.store(now);
        mine_.store(next);
        return true;
    }

    // Whether it is still the active one.
    bool holds() const noexcept {
        const uint64_t mine = mine_.load();
        return mine != 0 && words_.active.load() == mine;
    }

    void give_up() noexcept {
        if (uint64_t word = mine_.exchange(0); word != 0) {
            words_.active.compare_exchange_strong(word, word >> 32 << 32);
        }
    }

private:
    KeeperWords& words_;
    const uint32_t me_;
    const uint32_t configuration_;
    std::atomic<uint64_t> mine_{0};  // the word that this one has written
};

}  // namespace ads
