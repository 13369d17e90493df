// A bucket of fifteen keys, the unit of the tables of frequency caps and rate limits. No locks:
// a process may stop or die at any instruction.
//
// An entry has a key {key, generation} and a control word {phase, generation, rest}; the key
// is valid while both have the same generation. Everything an entry holds follows from its
// control word, so that an update is one exchange of that word.
//
// A new key is inserted in three steps: claim an entry (busy), write its key, and *commit* by
// exchanging the bucket's word, which succeeds only if no other key was committed since the
// bucket was searched, so that a key is never in it twice. The next process to insert a key
// finishes a committed entry whose owner has not; an entry that stays busy is taken over after
// some seconds, and an owner that wakes up later finds each of its exchanges refused.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ads {

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

enum class EntryPhase : uint8_t { free, ready, busy };

template <uint32_t kGenerationBits>
struct alignas(64) Bucket {
    static constexpr uint32_t kEntries = 15;  // two cache lines of keys, two of control words
    static constexpr uint32_t kGenerations = 1u << kGenerationBits;
    static constexpr uint64_t kGenerationMask = kGenerations - 1;
    static constexpr uint32_t kRestBits = 62 - kGenerationBits;
    static constexpr uint64_t kRestMask = (uint64_t{1} << kRestBits) - 1;

    std::atomic<uint64_t> commit;  // {epoch, generation, entry : 4} of the last key
    std::array<std::atomic<uint64_t>, kEntries> keys;
    std::array<std::atomic<uint64_t>, kEntries> controls;
    uint64_t unused;

    static constexpr uint64_t word_of(EntryPhase phase, uint64_t generation,
                                      uint64_t rest) noexcept {
        return static_cast<uint64_t>(phase) << 62 | generation << kRestBits | (rest & kRestMask);
    }
    static constexpr EntryPhase phase_of(uint64_t word) noexcept {
        return static_cast<EntryPhase>(word >> 62);
    }
    static constexpr uint64_t generation_of(uint64_t word) noexcept {
        return (word >> kRestBits) & kGenerationMask;
    }

    // The ready entry of a key, with its control word as read.
    struct Place {
        uint32_t entry = 0;
        uint64_t word = 0;
    };

    // `key` has zeros in place of the generation.
    bool find(uint64_t key, Place& place) const noexcept {
        for (uint32_t i = 0; i < kEntries; i++) {
            const uint64_t found = keys[i].load(std::memory_order_acquire);
            if ((found & ~kGenerationMask) != key) {
                continue;
            }
            const uint64_t word = controls[i].load(std::memory_order_acquire);
            if (phase_of(word) == EntryPhase::ready &&
                generation_of(word) == (found & kGenerationMask)) {
                place = {i, word};
                return true;
            }
        }
        return false;
    }

    // The entry of the last key, from `commit` as read; an entry of kEntries or more: none.
    struct Committed {
        uint32_t entry;
        uint64_t generation;
    };
    static constexpr Committed committed(uint64_t commit) noexcept {
        return {static_cast<uint32_t>(commit & 15), (commit >> 4) & kGenerationMask};
    }

    // The entry to reuse. Ranks: 0 is free, up to `kExpired` expired, kNever claimed by another
    // process; the lowest is chosen.
    static constexpr uint64_t kNever = ~uint64_t{0};
    struct Victim {
        uint64_t rank = kNever;
        uint32_t entry = 0;
        uint64_t word = 0;
        uint64_t key = 0;
        bool contended = false;

        void consider(uint64_t its, uint32_t index, uint64_t control, uint64_t old_key) noexcept {
            contended = contended || its == kNever;
            if (its < rank) {
                rank = its;
                entry = index;
                word = control;
                key = old_key;
            }
        }
        // A claim of another process may yet be freed: until then no live key is evicted.
        bool usable(uint64_t expired) const noexcept {
            return rank != kNever && (rank <= expired || !contended);
        }
    };

    static constexpr uint32_t next_generation(const Victim& victim) noexcept {
        return static_cast<uint32_t>(generation_of(victim.word) + 1) & kGenerationMask;
    }

    bool claim(const Victim& victim, uint64_t busy) noexcept {
        uint64_t expected = victim.word;
        return controls[victim.entry].compare_exchange_strong(expected, busy);
    }

    // Writes the key of a claimed entry and commits it, else frees the entry. `commit_seen` was
    // read before the search. The key is exchanged as well: if this process was stopped here
    // and lost the entry, the key of the new owner stays.
    bool publish(const Victim& victim, uint64_t key, uint64_t commit_seen, uint64_t busy,
                 uint64_t ready) noexcept {
        auto& control = controls[victim.entry];
        const uint64_t generation = generation_of(busy);
        uint64_t old_key = victim.key;
        if (keys[victim.entry].compare_exchange_strong(old_key, key | generation) &&
            commit.compare_exchange_strong(
                commit_seen, ((commit_seen >> kEpochShift) + 1) << kEpochShift | generation << 4 |
                                 victim.entry)) {
            control.compare_exchange_strong(busy, ready);
            return true;
        }
        control.compare_exchange_strong(busy, word_of(EntryPhase::free, generation, 0));
        return false;
    }

private:
    static constexpr uint32_t kEpochShift = kGenerationBits + 4;
};

// Sets a slot to the value that its control word implied when it was read as `seen`. The word is
// checked between reading and exchanging the slot, so that a late process changes nothing.
template <class T>
void write_back(std::atomic<T>& slot, T value, const std::atomic<uint64_t>& control,
                uint64_t seen) noexcept {
    T old = slot.load(std::memory_order_acquire);
    while (old != value && control.load(std::memory_order_acquire) == seen &&
           !slot.compare_exchange_weak(old, value)) {
    }
}

}  // namespace ads
