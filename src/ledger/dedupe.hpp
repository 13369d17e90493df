// The events that were counted: a fixed table, eight entries to a bucket, without pointers and
// locks. A process may die at any instruction and leaves nothing that another cannot read.
//
// An entry is a key and a control word {state, owner, version, expiry}.
// Only the control word is ever exchanged; the key is written while the
// entry is `busy`, that is, ours alone. Two workers may put the same key
// into two entries of a bucket at the same moment, so a claim is
// tentative first: the one in the lower entry takes back the other's,
// unless that is pending already. The path is busy → tentative → pending
// → done.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "core/base/hash.hpp"
#include "core/base/types.hpp"
#include "ledger/process_id.hpp"

namespace ads {

struct DedupeEntry {
    std::atomic<uint64_t> control;
    std::atomic<uint64_t> key;
};

inline constexpr uint32_t kBucketEntries = 8;
inline constexpr uint32_t kMaxWorkers = 256;
inline constexpr uint32_t kMaxPending = 510;

// A worker's place in the table of owners: the claims it has opened and not yet completed. If it
// dies, the keeper completes or releases them.
struct alignas(64) WorkerSlot {
    std::atomic<ProcessId> process;
    std::atomic<uint32_t> pending_count;
    std::atomic<uint32_t> pending[kMaxPending];
    std::atomic<ProcessId> unused;  // of an earlier version
    // Between the worker and the shipper of its segments, by their sequence:
    std::atomic<uint32_t> counted_below;  // lower ones are closed, and their events counted
    std::atomic<uint32_t> close;          // the one to close is this less one; 0: none
};

enum class Claim : uint8_t {
    fresh,      // this caller writes and counts it
    duplicate,  // counted before, or claimed by this worker in this cycle
    busy,       // claimed by another worker: try again in a moment
};

// The state of a key in the table.
enum class Known : uint8_t {
    yes,
    no,
    unsure,  // its bucket is full: it may have been evicted
};

struct DedupeStats {
    std::atomic<uint64_t> evicted;  // entries evicted before their tokens expired
};

inline uint64_t dedupe_key(uint64_t serve, EventType type) noexcept {
    return mix13(serve + 0x9e3779b97f4a7c15 * (static_cast<uint64_t>(type) + 1));
}

class Dedupe {
public:
    Dedupe() noexcept = default;
    // The number of entries is a power of two, at least a bucket.
    Dedupe(std::span<DedupeEntry> entries, std::span<WorkerSlot> workers,
           DedupeStats& stats) noexcept
        : entries_(entries), workers_(workers), stats_(&stats) {}

    // Claims `key` for the worker in slot `owner` until `expires` (Unix
    // seconds). With Claim::fresh, `entry` is the argument of complete() and release().
    // The caller may have at most kMaxPending claims open.
    Claim claim(uint64_t key, uint32_t now, uint32_t expires, uint32_t owner,
                uint32_t& entry) noexcept;

    // Whether the key is claimed by any worker at `now`. Changes nothing.
    Known find(uint64_t key, uint32_t now) const noexcept;

    // The event is written and counted.
    void complete(uint32_t entry, uint32_t owner) noexcept;

    // The event was not written: the next one with this key is fresh.
    void release(uint32_t entry, uint32_t owner) noexcept;

    // All claims of the worker are completed or released.
    void clear_pending(uint32_t owner) noexcept {
        workers_[owner].pending_count.store(0, std::memory_order_release);
    }

    // For a dead worker: completes each pending claim if written(key) (the event is in the
    // spool), else releases it. Calls completed(key) for those that this call completed: several
    // processes may do it at once, even one that was stopped meanwhile.
    template <class Written, class Completed>
    void resolve(uint32_t owner, ProcessId dead, Written written, Completed completed) noexcept {
        const uint32_t count = workers_[owner].pending_count.load(std::memory_order_acquire);
        for (uint32_t i = 0; i < count && i < kMaxPending; i++) {
            const uint32_t entry = workers_[owner].pending[i].load(std::memory_order_relaxed);
            if (entry >= entries_.size()) {
                continue;
            }
            uint64_t control = entries_[entry].control.load(std::memory_order_acquire);
            const uint64_t key = entries_[entry].key.load(std::memory_order_acquire);
            // Read after the entry: so the entry is the dead worker's, not its successor's.
            if (workers_[owner].process.load() != dead) {
                return;
            }
            const bool found = is_pending(control, owner) && written(key);
            if (end_claim(entry, control, owner, found) && found) {
                completed(key);
            }
        }
    }

    std::span<WorkerSlot> workers() const noexcept { return workers_; }

private:
    Claim try_claim(uint64_t key, uint32_t now, uint32_t expires, uint32_t owner, uint32_t& entry,
                    bool& again) noexcept;
    Claim confirm(uint64_t key, uint32_t now, uint32_t owner, uint32_t first, uint32_t entry,
                  uint64_t control) noexcept;
    static bool is_pending(uint64_t control, uint32_t owner) noexcept;
    // Makes the entry done, or frees it; false if it is not the owner's or has changed meanwhile.
    bool end_claim(uint32_t entry, uint64_t control, uint32_t owner, bool done) noexcept;

    std::span<DedupeEntry> entries_;
    std::span<WorkerSlot> workers_;
    DedupeStats* stats_ = nullptr;
};

}  // namespace ads
