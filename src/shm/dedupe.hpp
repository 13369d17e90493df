// Which events were counted: a fixed table, eight entries to a bucket, without
// pointers and without locks. A process may die at any instruction and leaves
// nothing that another cannot read.
//
// An entry is a key and a control word {state, owner, version, expiry}. Only
// the control word is ever exchanged; the key is written while the entry is
// `busy`, that is, ours alone. Two workers may put the same key into two
// entries of a bucket at the same moment, so a claim is tentative first: the
// one in the lower entry takes back the other's, unless that is pending
// already. The path is busy → tentative → pending → done.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "core/hash.hpp"
#include "core/types.hpp"
#include "shm/who.hpp"

namespace ads {

struct DedupeEntry {
    std::atomic<uint64_t> control;
    std::atomic<uint64_t> key;
};

inline constexpr uint32_t kBucketEntries = 8;
inline constexpr uint32_t kMaxWorkers = 256;
inline constexpr uint32_t kMaxPending = 510;

// A worker's place in the table of owners: what it has claimed and not yet
// settled. Whoever finds it dead settles that in its place.
struct alignas(64) WorkerSlot {
    std::atomic<Who> who;
    std::atomic<uint32_t> pending_count;
    std::atomic<uint32_t> pending[kMaxPending];
    std::atomic<Who> heir;  // who settles for a dead `who`; it may die, too
};

enum class Claim : uint8_t {
    fresh,      // ours to write and count
    duplicate,  // counted before, or claimed by us in this very turn
    busy,       // another worker is at it: ask again in a moment
};

// What the table knows of a key.
enum class Known : uint8_t {
    yes,
    no,
    unsure,  // its bucket is full: it may have been thrown out
};

struct DedupeStats {
    std::atomic<uint64_t> evicted;  // entries thrown out before their token's life was over
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
    // seconds). With Claim::fresh, `entry` is what settle() and release() want.
    // The caller settles before it has kMaxPending claims open.
    Claim claim(uint64_t key, uint32_t now, uint32_t expires, uint32_t owner,
                uint32_t& entry) noexcept;

    // Whether the key is claimed, by whomever, at `now`. Changes nothing.
    Known find(uint64_t key, uint32_t now) const noexcept;

    // The event is written and counted.
    void settle(uint32_t entry, uint32_t owner) noexcept;

    // The event was not written: the next one with this key is fresh.
    void release(uint32_t entry, uint32_t owner) noexcept;

    // All of the worker's claims are settled or released.
    void clear_pending(uint32_t owner) noexcept {
        workers_[owner].pending_count.store(0, std::memory_order_release);
    }

    // For a dead worker: calls found(key) for each claim it had made pending
    // and settles it on true (the event is in the spool), releases it on false.
    template <class Found>
    void resolve(uint32_t owner, Found found) noexcept {
        const uint32_t count = workers_[owner].pending_count.load(std::memory_order_acquire);
        for (uint32_t i = 0; i < count && i < kMaxPending; i++) {
            const uint32_t entry = workers_[owner].pending[i].load(std::memory_order_relaxed);
            if (entry >= entries_.size() || !reclaim(entry, owner)) {
                continue;
            }
            if (found(entries_[entry].key.load(std::memory_order_relaxed))) {
                settle(entry, owner);
            } else {
                release(entry, owner);
            }
        }
        clear_pending(owner);
    }

    std::span<WorkerSlot> workers() const noexcept { return workers_; }

private:
    Claim try_claim(uint64_t key, uint32_t now, uint32_t expires, uint32_t owner, uint32_t& entry,
                    bool& again) noexcept;
    Claim confirm(uint64_t key, uint32_t now, uint32_t owner, uint32_t first, uint32_t entry,
                  uint64_t control) noexcept;
    // True if the dead owner's entry is pending; frees what it had barely begun.
    bool reclaim(uint32_t entry, uint32_t owner) noexcept;

    std::span<DedupeEntry> entries_;
    std::span<WorkerSlot> workers_;
    DedupeStats* stats_ = nullptr;
};

}  // namespace ads
