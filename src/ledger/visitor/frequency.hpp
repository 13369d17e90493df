// Frequency caps: the exact number of serves per visitor, for all workers, in memory that
// outlives them. No locks, no pointers, no allocation; a process may stop or die at any
// instruction, which may lose an impression and never adds one.
//
// Per (visitor, subject) there is a ring of the last serve times, an entry of a bucket
// (bucket.hpp). Its control word is {phase, generation, life, full, head, newest time}; a serve
// is one exchange of that word for any number of caps of the ring. The newest time is in the
// word alone until the next serve, which first copies it to its slot. Times of a ring never go
// back, a slot only ever gets a later time, and a cap of k reads the k-th last time: so a late
// helper can make a cap stricter, not looser.
//
// Rings have three sizes, for caps up to 12, 64 and 1000. Caps of more than 12 per day or
// lifetime need no times: they have a count, in the head. The cap alone determines which of
// these five it uses, so that changing one cap keeps the history of the others.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/types.hpp"
#include "ledger/visitor/bucket.hpp"

namespace ads {

// One cap, at this moment: fewer than `count` serves since `since` (Unix
// seconds, that second included).
struct FrequencyLimit {
    CapUnit unit = CapUnit::day;
    uint32_t count = 0;
    uint32_t since = 0;

    // A rolling window is (now - seconds, now]; a day begins at `day_start`.
    static constexpr FrequencyLimit at(CapUnit unit, uint32_t count, uint32_t seconds,
                                       uint32_t day_start, uint32_t now) noexcept {
        const uint32_t since = unit == CapUnit::lifetime ? 0
                               : unit == CapUnit::day    ? day_start
                               : seconds > now           ? 0
                                                         : now - seconds + 1;
        return {unit, count, since};
    }
};

// Clicks on a creative are counted apart from its serves: a level that does not exist in
// catalogs.
inline constexpr auto kClicksLevel = static_cast<CapLevel>(kCount<CapLevel>);

// A capped object and its caps. All serves of a subject must pass the same caps: a serve is
// recorded only where one of them reads it.
struct FrequencySubject {
    CapLevel level = CapLevel::ad_group;
    Id id = 0;
    std::span<const FrequencyLimit> limits;
};

inline constexpr uint32_t kFrequencyMaxCount = 1000;  // a higher count is reduced to this one
inline constexpr size_t kFrequencyTables = 4;
inline constexpr size_t kFrequencyFirst = 4096;  // where the first table begins

// The times of its entries follow a bucket.
using FrequencyBucket = Bucket<14>;
static_assert(sizeof(FrequencyBucket) == 256);

struct FrequencyHead {
    std::atomic<uint64_t> magic;  // written last
    uint64_t bytes;               // as requested; everything else follows from it
    alignas(64) std::atomic<uint64_t> evicted;
    std::atomic<uint64_t> refused_busy;
};

inline constexpr uint64_t kFrequencyMagic = 0x3130'7165'7266'7361;  // changes with the layout

class Frequency {
public:
    Frequency() noexcept = default;

    // The memory of a table of about `bytes`.
    static size_t size(uint64_t bytes) noexcept;

    // Writes an empty table into zeroed memory of size(bytes).
    static void format(std::span<std::byte> memory, uint64_t bytes) noexcept;

    // Why the memory is not a valid table; nullptr if it is.
    static const char* check(std::span<const std::byte> memory) noexcept;

    // The memory must pass check().
    static Frequency attach(std::byte* memory) noexcept;

    explicit operator bool() const noexcept { return head_ != nullptr; }

    // Whether a take would succeed; changes nothing. `session` is a keyed hash
    // of the visitor's session, `now` Unix seconds.
    bool allows(uint64_t session, std::span<const FrequencySubject> subjects,
                uint32_t now) const noexcept;

    // Records a serve for all subjects, or for none if a cap is reached.
    bool take(uint64_t session, std::span<const FrequencySubject> subjects, uint32_t now) noexcept;

    // Undoes a take; the arguments must be the same. If a serve of a later second came since, it
    // remains recorded.
    void give_back(uint64_t session, std::span<const FrequencySubject> subjects,
                   uint32_t now) noexcept;

    // Calls `see` for each ring and count of a visitor, and removes it if that returns true.
    // Scans the whole table.
    struct Seen {
        CapLevel level;
        Id id;
        uint32_t newest;  // Unix seconds
    };
    void each_of(uint64_t session, void* context,
                 bool (*see)(void* context, const Seen& seen)) noexcept;

    // Entries evicted before they expired.
    uint64_t evicted() const noexcept { return head_->evicted.load(std::memory_order_relaxed); }
    // Takes refused because of contention at a bucket.
    uint64_t refused_busy() const noexcept {
        return head_->refused_busy.load(std::memory_order_relaxed);
    }

private:
    struct Table {
        std::byte* memory = nullptr;
        uint64_t buckets = 0;
        uint32_t slots = 0;  // of a ring; 0: counts only
    };
    struct Step;  // one ring or count of a take
    enum class Outcome : uint8_t { taken, capped, busy };

    // Calls `visit(step)` for each ring and count of the subjects while it returns true.
    template <class Visit>
    bool each_step(uint64_t session, std::span<const FrequencySubject> subjects, uint32_t now,
                   Visit visit) const noexcept;

    static bool admits(const Step& step, const FrequencyBucket::Place& place) noexcept;
    static bool allows(const Step& step) noexcept;
    Outcome take(const Step& step) noexcept;
    void insert(const Step& step) noexcept;
    static void give_back(const Step& step) noexcept;

    FrequencyHead* head_ = nullptr;
    std::array<Table, kFrequencyTables> tables_{};
};

}  // namespace ads
