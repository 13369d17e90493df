// Everything that outlives a process, laid out in one block of memory: a
// mapped file, or a part of the zone where there is none.
//
//   StateHead | WorkerSlot[kMaxWorkers] | CurveSlot[kCurves] | tossed | DedupeEntry[…] | slots[…]
//
// The slots come last: the file may grow while it is mapped.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/base/siphash.hpp"
#include "core/base/types.hpp"
#include "core/event/event.hpp"
#include "ledger/active_keeper.hpp"
#include "ledger/counters.hpp"
#include "ledger/dedupe.hpp"
#include "ledger/fleet/state.hpp"
#include "ledger/health.hpp"
#include "ledger/process_id.hpp"
#include "ledger/redis_counts.hpp"
#include "ledger/traffic.hpp"
#include "ledger/walls.hpp"

namespace ads {

enum class Total : uint8_t {
    written,
    duplicate,
    invalid,
    dropped,
    expired,
    rejected,
    shipped,      // stored by PostgreSQL
    repeated,     // sent to it once more
    quarantined,  // refused by it permanently
};
inline constexpr size_t kTotals = 9;
inline constexpr size_t kTotalsRoom = 32;

struct alignas(64) TotalCounter {
    std::atomic<uint64_t> value;
};

// Events that were written, by why they are invalid (or not: the net ones) and by
// type. All of a type together are its gross number.
inline constexpr size_t kInvalidSlots = 32;
static_assert(kCount<Invalid> <= kInvalidSlots);
using EventCounts = std::array<std::array<std::atomic<uint64_t>, kCount<EventType>>, kInvalidSlots>;

// What went wrong with the spool.
struct SpoolCounts {
    std::atomic<uint64_t> damaged_records;  // at least; they were not shipped
    std::atomic<uint64_t> damaged_bytes;
    std::atomic<uint64_t> dropped_serves;  // of the dropped events; they stay taken
    std::atomic<uint64_t> slow_writes;
    std::atomic<uint64_t> slow_write_ms;  // of all of these
    std::atomic<uint64_t> longest_write_ms;
};

inline constexpr uint32_t kCurves = 65;            // the site's, and so many placements less one
inline constexpr uint32_t kTossedBits = 1u << 17;  // of slots, modulo

struct StateHead {
    std::atomic<uint64_t> magic;  // written last
    uint32_t node;                // names this machine's state in tokens, never 0
    uint32_t workers;
    SipKey session_key;  // of the hashes of sessions: it outlives a rotation of the key ring
    uint64_t dedupe_offset;
    uint64_t dedupe_entries;
    uint64_t slots_offset;
    std::atomic<uint32_t> slots;   // grows
    std::atomic<uint64_t> unused;  // of an earlier version
    DedupeStats dedupe;
    Health health;
    std::array<TotalCounter, kTotalsRoom> totals;
    EventCounts events;
    SpoolCounts spool;
    SharedTraffic traffic;
    HealthStates health_states;
    KeeperWords keeper;
    FleetState fleet;
    SharedRedisCounts redis;
    // The file and the boot of the machine in which processes use it; 0: not known. A copy has
    // another one.
    std::atomic<uint64_t> location;
};
// So much is kept for it: a field that is added at its end is zero in the files that are there.
inline constexpr size_t kHeadBytes = 16'384;
static_assert(sizeof(StateHead) <= kHeadBytes);

inline constexpr uint64_t kStateMagic = 0x3630'6574'6174'7361;  // changes with the layout

class State {
public:
    State() noexcept = default;

    // Bytes for so many dedupe entries (rounded down to a power of two by
    // dedupe_entries_in) and slots.
    static size_t size(uint64_t dedupe_entries, uint32_t slots) noexcept;
    static uint64_t dedupe_entries_in(size_t bytes) noexcept;

    // Writes an empty state into zeroed memory.
    static void format(std::span<std::byte> memory, uint64_t dedupe_entries, uint32_t slots,
                       uint32_t node, const SipKey& session_key = {}) noexcept;

    // Why memory of `size` bytes is not a valid state; nullptr if it is.
    static const char* check(std::span<const std::byte> memory, size_t size) noexcept;

    // The memory must pass check().
    static State attach(std::byte* memory) noexcept;

    explicit operator bool() const noexcept { return head_ != nullptr; }
    StateHead& head() const noexcept { return *head_; }
    Dedupe& dedupe() noexcept { return dedupe_; }

    void add(Total total, uint64_t n = 1) noexcept {
        head_->totals[static_cast<size_t>(total)].value.fetch_add(n, std::memory_order_relaxed);
    }
    uint64_t total(Total total) const noexcept {
        return head_->totals[static_cast<size_t>(total)].value.load(std::memory_order_relaxed);
    }

    void add_events(Invalid invalid, EventType type, uint64_t n) noexcept {
        count_of(invalid, type).fetch_add(n, std::memory_order_relaxed);
    }
    uint64_t events(Invalid invalid, EventType type) const noexcept {
        return count_of(invalid, type).load(std::memory_order_relaxed);
    }

    void add_damage(uint64_t records, uint64_t bytes) noexcept {
        head_->spool.damaged_records.fetch_add(records, std::memory_order_relaxed);
        head_->spool.damaged_bytes.fetch_add(bytes, std::memory_order_relaxed);
    }

    void refuse(uint32_t slot, Reason reason, Day day, uint64_t n) noexcept {
        count_day(slots_[slot].refusal(refusal_index(reason)), day, n);
    }

    GroupSlot& slot(uint32_t index) const noexcept { return slots_[index]; }
    WallSlot& wall(uint32_t index) const noexcept {
        return reinterpret_cast<WallSlot&>(slots_[index]);
    }
    PaceSlot& pace(uint32_t index) const noexcept {
        return reinterpret_cast<PaceSlot&>(slots_[index]);
    }

    // Zeroes what a slot holds, whatever that is; its owner stays.
    void clear_slot(uint32_t slot) noexcept;

    // Groups whose coin was tossed, by their counters' slot.
    void mark_tossed(uint32_t slot) noexcept {
        auto& word = tossed_[slot % kTossedBits / 64];
        const uint64_t bit = uint64_t{1} << (slot % 64);
        if ((word.load(std::memory_order_relaxed) & bit) == 0) {
            word.fetch_or(bit, std::memory_order_relaxed);
        }
    }
    std::span<std::atomic<uint64_t>> tossed() const noexcept { return tossed_; }

    std::span<CurveSlot> curves() const noexcept { return curves_; }
    // The curve of a placement, by its hash; 0, the site's, where all are taken.
    uint32_t curve_of(uint32_t placement) noexcept;
    // So many requests for a placement, by its hash: its curve learns of them, and the site's.
    void add_requests(uint32_t placement, uint64_t n) noexcept;

    uint32_t slots() const noexcept { return head_->slots.load(std::memory_order_acquire); }

    // Gives each key its slot, in `out`: the one it has, else a free one, else one
    // whose owner has been gone for some days. Where these are too few, `grow` is asked for
    // that many slots in all. Returns how many found none (they get kNoSlot). One caller at
    // a time.
    static constexpr uint32_t kNoSlot = 0xffff'ffff;
    using Grow = std::function<void(uint64_t slots)>;
    uint32_t assign_slots(std::span<const SlotKey> keys, std::span<uint32_t> out, Seconds now,
                          const Grow& grow = {});

    // The slots that these have, kNoSlot for those without.
    void find_slots(std::span<const SlotKey> keys, std::span<uint32_t> out) const;

    // The worker's place; kNoSlot if all are taken. The place of a dead worker is not given out
    // before it is recovered.
    uint32_t enter(ProcessId process) noexcept;
    void leave(uint32_t worker) noexcept;
    bool has_place(ProcessId process) const noexcept { return place_of(process) != kNoSlot; }
    uint32_t place_of(ProcessId process) const noexcept;

    // Whether any worker or keeper of it lives.
    bool in_use(uint64_t now, Alive alive) const noexcept;

    // The processes that it names use the state of which it is a copy: they count as dead.
    void disown_processes() noexcept;

    // find_dead: the place of a dead worker, or kNoSlot. leave_dead: frees it, once its claims are
    // completed.
    uint32_t find_dead(ProcessId me, Alive alive, ProcessId& dead) const noexcept;
    void leave_dead(uint32_t worker, ProcessId dead) noexcept;

    // Segments with a lower sequence are closed and their events counted, so that they may go.
    uint32_t counted_below(uint32_t worker) const noexcept {
        return workers_[worker].counted_below.load(std::memory_order_acquire);
    }
    void set_counted_below(uint32_t worker, uint32_t sequence) noexcept {
        workers_[worker].counted_below.store(sequence, std::memory_order_release);
    }
    // The shipper requests the end of a segment that is shipped completely.
    void ask_to_close(ProcessId process, uint32_t sequence) noexcept;
    bool is_asked_to_close(uint32_t worker, uint32_t sequence) const noexcept {
        return workers_[worker].close.load(std::memory_order_acquire) == sequence + 1;
    }

private:
    SlotKey key_of(uint32_t slot) const noexcept;
    bool holds_rights(uint32_t slot) const noexcept;
    std::atomic<uint64_t>& count_of(Invalid invalid, EventType type) const noexcept {
        return head_->events[static_cast<size_t>(invalid)][static_cast<size_t>(type)];
    }

    StateHead* head_ = nullptr;
    GroupSlot* slots_ = nullptr;
    std::span<WorkerSlot> workers_;
    std::span<CurveSlot> curves_;
    std::span<std::atomic<uint64_t>> tossed_;
    Dedupe dedupe_;
};

}  // namespace ads
