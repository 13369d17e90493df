// How often a visitor has seen what: exact frequency caps for all workers, in
// memory that outlives them. No locks, no pointers, no allocation; a process
// may stop or die at any instruction, which may cost an impression and never
// adds one.
//
// Per (visitor, subject) there is a ring of the last serve times. One word
// controls a ring, {phase, generation, life, full, head, newest time}; a serve
// is one exchange of that word, whatever number of caps the ring answers for.
// The newest time is in the word alone until the next one comes, who first
// copies it to its slot. Times of a ring never go back, a slot only ever gets a
// later time, and the k-th last time is what a cap of k asks for: so a helper
// that comes late can make a cap stricter, not looser.
//
// Rings come in three sizes, for caps up to 12, 64 and 1000. Caps of more than
// 12 in a day or a lifetime need no times: they have a mere count, in the head.
// Which of these five a cap uses depends on the cap alone, so that a change of
// one cap leaves what the others know.
//
// Fifteen entries are a bucket. A new key goes into one of them in three steps:
// claim it (busy), write its key, and *commit* by exchanging the bucket's word,
// which succeeds only if no other key came in since the bucket was searched:
// a key is never there twice. Whoever comes next makes a committed entry ready
// if its owner has not; what is left busy is taken over after some seconds, and
// an owner that wakes up later finds each of its exchanges refused.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/types.hpp"

namespace ads {

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

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

// Clicks on a creative are counted apart from its serves: a level that no catalog
// can name.
inline constexpr auto kClicksLevel = static_cast<CapLevel>(kCount<CapLevel>);

// What is capped, and its caps. All who serve a subject must name the same caps
// for it: a serve is noted only where one of them looks.
struct FrequencySubject {
    CapLevel level = CapLevel::ad_group;
    Id id = 0;
    std::span<const FrequencyLimit> limits;
};

inline constexpr uint32_t kFrequencyMaxCount = 1000;  // a higher count is taken for this one
inline constexpr uint32_t kFrequencyEntries = 15;  // to a bucket: two lines of keys, two of words
inline constexpr size_t kFrequencyTables = 4;
inline constexpr size_t kFrequencyFirst = 4096;  // where the first table begins

// A bucket; the times of its entries follow.
struct alignas(64) FrequencyBucket {
    std::atomic<uint64_t> commit;                               // {epoch, generation, entry}
    std::array<std::atomic<uint64_t>, kFrequencyEntries> keys;  // {key : 50, generation : 14}
    std::array<std::atomic<uint64_t>, kFrequencyEntries> controls;
    uint64_t unused;
};
static_assert(sizeof(FrequencyBucket) == 256);

struct FrequencyHead {
    std::atomic<uint64_t> magic;  // written last
    uint64_t bytes;               // as asked for; everything else follows from it
    alignas(64) std::atomic<uint64_t> evicted;
    std::atomic<uint64_t> refused_busy;
};

inline constexpr uint64_t kFrequencyMagic = 0x3130'7165'7266'7361;  // changes with the layout

class Frequency {
public:
    Frequency() noexcept = default;

    // What a table of about `bytes` takes in memory.
    static size_t size(uint64_t bytes) noexcept;

    // Writes an empty table into zeroed memory of size(bytes).
    static void format(std::span<std::byte> memory, uint64_t bytes) noexcept;

    // Why the memory is no table of ours; nullptr if it is.
    static const char* check(std::span<const std::byte> memory) noexcept;

    // The memory must pass check().
    static Frequency attach(std::byte* memory) noexcept;

    explicit operator bool() const noexcept { return head_ != nullptr; }

    // Whether a take would succeed; changes nothing. `session` is a keyed hash
    // of the visitor's session, `now` Unix seconds.
    bool allows(uint64_t session, std::span<const FrequencySubject> subjects,
                uint32_t now) const noexcept;

    // Notes a serve with every subject, or with none if one of their caps is
    // reached.
    bool take(uint64_t session, std::span<const FrequencySubject> subjects, uint32_t now) noexcept;

    // Undoes a take, with the very same arguments. Where a serve of a later
    // second came since, it stays noted.
    void give_back(uint64_t session, std::span<const FrequencySubject> subjects,
                   uint32_t now) noexcept;

    // What is known of a visitor: calls `see` for each ring and count, and forgets it if
    // that says so. Looks at the whole table.
    struct Seen {
        CapLevel level;
        Id id;
        uint32_t newest;  // Unix seconds
    };
    void each_of(uint64_t session, void* context,
                 bool (*see)(void* context, const Seen& seen)) noexcept;

    // Entries thrown out although a cap may still have asked for them.
    uint64_t evicted() const noexcept { return head_->evicted.load(std::memory_order_relaxed); }
    // Takes refused because too many others were at the same bucket.
    uint64_t refused_busy() const noexcept {
        return head_->refused_busy.load(std::memory_order_relaxed);
    }

private:
    struct Table {
        std::byte* memory = nullptr;
        uint64_t buckets = 0;
        uint32_t slots = 0;  // of a ring; 0: counts only
    };
    struct Step;   // one ring or count of a take
    struct Place;  // an entry, and its control word as seen
    enum class Outcome : uint8_t { taken, capped, busy };

    // Calls `work(step)` for each ring and count of the subjects while it says true.
    template <class Work>
    bool each_step(uint64_t session, std::span<const FrequencySubject> subjects, uint32_t now,
                   Work work) const noexcept;

    static bool find(const Step& step, Place& place) noexcept;
    static bool admits(const Step& step, const Place& place) noexcept;
    static bool allows(const Step& step) noexcept;
    Outcome take(const Step& step) noexcept;
    void insert(const Step& step) noexcept;
    static void give_back(const Step& step) noexcept;

    FrequencyHead* head_ = nullptr;
    std::array<Table, kFrequencyTables> tables_{};
};

}  // namespace ads
