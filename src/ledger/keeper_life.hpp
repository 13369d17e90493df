// How the keepers of a zone ended. After repeated deaths the next one waits before it works, and a
// document that killed two keepers is not compiled again.
#pragma once

#include <array>
#include <atomic>

#include "ledger/process_id.hpp"

namespace ads {

// In the zone. All zero: no keeper yet.
struct KeeperLife {
    std::atomic<ProcessId> running;               // the newest one, until it ends properly
    std::array<std::atomic<uint64_t>, 3> deaths;  // the last ones, monotonic milliseconds
    std::atomic<uint32_t> died;                   // their number
    std::atomic<uint32_t> wait;                   // seconds that the last one had to wait
    std::atomic<uint64_t> compiling;              // hash of the document; 0: none
    std::atomic<uint64_t> suspect;  // hash of the document that was compiled at a death
    std::atomic<uint32_t> killed;   // the number of consecutive deaths

    // Called when a keeper starts. Returns how many seconds it has to wait.
    uint32_t begin(ProcessId me, uint64_t now, Alive alive) noexcept {
        const ProcessId before = running.exchange(me);
        if (before == 0 || before == me || alive(before)) {
            return 0;
        }
        if (const uint64_t hash = compiling.exchange(0); hash != 0) {
            killed.store(suspect.exchange(hash) == hash ? killed.load() + 1 : 1);
        }
        const uint32_t n = died.fetch_add(1);
        deaths[n % deaths.size()].store(now);
        const bool often =
            n + 1 >= deaths.size() && now - deaths[(n + 1) % deaths.size()].load() < kOften;
        const uint32_t last = wait.load();
        wait.store(!often ? 0 : last == 0 ? 1 : last < kLongest / 2 ? 2 * last : kLongest);
        return wait.load();
    }

    void end(ProcessId me) noexcept { running.compare_exchange_strong(me, 0); }

    bool refuses(uint64_t hash) const noexcept {
        return suspect.load() == hash && killed.load() >= 2;
    }

private:
    static constexpr uint64_t kOften = 10'000;  // milliseconds for three deaths
    static constexpr uint32_t kLongest = 60;    // seconds
};

}  // namespace ads
