// Rate limits: the number of requests of a key within a sliding window, exact for all workers,
// in memory that outlives them. No locks, no pointers, no allocation; a process may stop or die
// at any instruction.
//
// Up to kRateExact requests per window, a key has a ring of times, four bytes each: the k-th
// last one decides whether another request passes. Above that it has the counts of the last
// kRateParts parts of a window, and a request is considered as old as the youngest of its part:
// so never more pass than allowed, and room is freed up to one part late.
//
// A key is an entry of a bucket (bucket.hpp), and a request is one exchange of its control word.
// The newest time, or the count of the running part, is in the word alone until the next
// request, which first copies it to its slot. Refused requests change nothing, so that retrying
// does not extend the wait.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/siphash.hpp"
#include "ledger/visitor/bucket.hpp"

namespace ads {

inline constexpr uint32_t kRateExact = 256;
inline constexpr uint32_t kRateParts = 64;
inline constexpr uint32_t kRateMost = 1'000'000;      // requests a window
inline constexpr uint32_t kRateShortest = 1000;       // ms of a window
inline constexpr uint32_t kRateLongest = 86'400'000;  // the same
inline constexpr uint32_t kRateBack = 60'000;         // ms, see RateTable::take()
inline constexpr uint32_t kRateStripes = 16;          // so that workers count apart
inline constexpr size_t kRateFirst = 4096;            // where the buckets begin

struct RateRule {
    uint32_t rate = 0;    // 1 … kRateMost
    uint32_t window = 0;  // ms, kRateShortest … kRateLongest

    bool operator==(const RateRule&) const = default;
    constexpr bool exact() const noexcept { return rate <= kRateExact; }

    // The part of a window that a moment belongs to, and when a part begins.
    constexpr uint64_t part_at(uint64_t ms) const noexcept { return ms * kRateParts / window; }
    constexpr uint64_t begin_of(uint64_t part) const noexcept {
        return (part * window + kRateParts - 1) / kRateParts;
    }
};

// The slots of its entries follow a bucket.
using RateBucket = Bucket<8>;
static_assert(sizeof(RateBucket) == 256);

struct alignas(64) RateStripe {
    std::atomic<uint64_t> passed;
    std::atomic<uint64_t> refused;
};

struct RateHead {
    RateRule rule;
    uint64_t buckets;
    SipKey hash;  // so that clients cannot choose the entries to evict
    alignas(64) std::atomic<int64_t> entries;
    std::atomic<uint64_t> evicted;
    std::atomic<uint64_t> busy;
    std::array<RateStripe, kRateStripes> stripes;
};
static_assert(sizeof(RateHead) <= kRateFirst);

struct RateVerdict {
    bool passes = true;
    uint32_t remaining = 0;  // how many more would pass now
    uint32_t wait = 0;       // ms until one would pass
};

struct RateTotals {
    uint64_t passed = 0;
    uint64_t refused = 0;
    uint64_t evicted = 0;  // keys evicted within their window
    uint64_t busy = 0;     // requests that passed uncounted because of contention
    uint64_t entries = 0;
    uint64_t capacity = 0;
};

class RateTable {
public:
    RateTable() noexcept = default;

    // The memory of a table of one bucket.
    static size_t least(const RateRule& rule) noexcept;

    // Writes an empty table into zeroed memory of at least least(rule) bytes.
    static void format(std::span<std::byte> memory, const RateRule& rule,
                       const SipKey& hash) noexcept;

    // Memory that format() has written.
    static RateTable attach(std::byte* memory) noexcept;

    explicit operator bool() const noexcept { return head_ != nullptr; }
    const RateRule& rule() const noexcept { return head_->rule; }
    uint64_t hash(std::string_view key) const noexcept { return siphash(head_->hash, key); }

    // Counts a request, if it passes. `now` is a clock that runs on, in ms, and
    // may be some ms behind that of others: within kRateBack or a window, the time of
    // the newest request counts instead. A key whose times are yet further in the
    // future starts anew: the clock was set back. `stripe` is any number of the caller's.
    RateVerdict take(uint64_t key, uint64_t now, uint32_t stripe = 0) noexcept;

    // The verdict of take(), without counting.
    RateVerdict look(uint64_t key, uint64_t now) const noexcept;

    // Counts a refusal by look().
    void count_refused(uint32_t stripe) noexcept {
        head_->stripes[stripe % kRateStripes].refused.fetch_add(1, std::memory_order_relaxed);
    }

    RateTotals totals() const noexcept;

private:
    struct Place;   // an entry, and its control word as seen
    struct Weight;  // the requests of an entry at a moment

    RateBucket& bucket_of(uint64_t key) const noexcept;
    bool find(RateBucket& bucket, uint64_t key, Place& place) const noexcept;
    Weight weigh(const Place& place, uint64_t now) const noexcept;
    Weight weigh_ring(const Place& place, uint64_t asked) const noexcept;
    Weight weigh_parts(const Place& place, uint64_t asked) const noexcept;
    bool add(const Place& place, const Weight& weight) noexcept;
    void count_entries(int64_t more) noexcept {
        if (more != 0) {
            head_->entries.fetch_add(more, std::memory_order_relaxed);
        }
    }
    bool insert(RateBucket& bucket, uint64_t key, uint64_t now, uint64_t commit) noexcept;
    bool was_seen(RateBucket& bucket, uint64_t wanted, uint64_t commit,
                  uint64_t now) const noexcept;
    uint64_t ready(uint64_t busy, uint64_t now) const noexcept;
    static uint64_t rank(uint64_t word, uint64_t now, const RateRule& rule) noexcept;
    uint64_t slack() const noexcept;
    RateVerdict verdict(const Weight& weight, uint64_t asked) const noexcept;

    RateHead* head_ = nullptr;
    std::byte* first_ = nullptr;
    size_t stride_ = 0;  // of the buckets
};

}  // namespace ads
