#include "ledger/visitor/frequency.hpp"

#include <bit>
#include <new>

#include "core/base/hash.hpp"

namespace ads {

namespace {

struct TableShape {
    uint32_t deepest;  // the highest count its rings answer for
    uint32_t slots;    // one more at least: the oldest slot is the next to be written
    uint32_t share;    // sixteenths of the memory
};

constexpr std::array<TableShape, kFrequencyTables> kShapes{{
    {12, 13, 12},
    {64, 65, 2},
    {kFrequencyMaxCount, kFrequencyMaxCount + 1, 1},
    {kFrequencyMaxCount, 0, 1},
}};
constexpr uint32_t kCounts = 3;  // the table without times

// The part of the memory that a cap uses. The first three are tables of rings.
enum Part : uint32_t { small_ring, middle_ring, large_ring, day_count, lifetime_count };

constexpr int kTries = 64;
constexpr uint32_t kStale = 2;       // seconds that a claim is respected; it takes nanoseconds
constexpr uint32_t kLeastLife = 10;  // so that a clock set right finds what it was
constexpr uint32_t kDayLife = 17;
constexpr uint32_t kForever = 31;

constexpr uint32_t kGenerations = FrequencyBucket::kGenerations;
constexpr uint64_t kKeyMask = ~FrequencyBucket::kGenerationMask;

constexpr size_t bucket_bytes(uint32_t slots) noexcept {
    const size_t bytes =
        sizeof(FrequencyBucket) + sizeof(uint32_t) * size_t{slots} * FrequencyBucket::kEntries;
    return (bytes + 63) / 64 * 64;
}

constexpr uint64_t buckets_in(const TableShape& shape, uint64_t bytes) noexcept {
    return std::max<uint64_t>(1, bytes / 16 * shape.share / bucket_bytes(shape.slots));
}

constexpr Part part_of(const FrequencyLimit& limit) noexcept {
    if (limit.count <= kShapes[small_ring].deepest) {
        return small_ring;
    }
    if (limit.unit != CapUnit::rolling) {
        return limit.unit == CapUnit::day ? day_count : lifetime_count;
    }
    return limit.count <= kShapes[middle_ring].deepest ? middle_ring : large_ring;
}

// An entry is dead 2^life seconds after its newest time.
uint32_t life_of(const FrequencyLimit& limit, uint32_t now) noexcept {
    switch (limit.unit) {
        case CapUnit::day:
            return kDayLife;  // 36 hours: longer than any local day
        case CapUnit::rolling:
            return std::clamp<uint32_t>(std::bit_width(now - limit.since), kLeastLife,
                                        kForever - 1);
        case CapUnit::lifetime:
            break;
    }
    return kForever;
}

using Phase = EntryPhase;

// The control word: {phase : 2, generation : 14, life : 5, full : 1, head : 10, last : 32}.
// The newest time, `last`, belongs to the slot before `head`. `full`: the ring has wrapped
// around. In an entry without times, head is the count. A busy word differs from its ready
// word in the phase only, so that any process can finish a claim.
struct Control {
    Phase phase;
    uint32_t generation;
    uint32_t life;
    bool full;
    uint32_t head;
    uint32_t last;

    static Control of(uint64_t word) noexcept {
        return {static_cast<Phase>(word >> 62),
                static_cast<uint32_t>(FrequencyBucket::generation_of(word)),
                static_cast<uint32_t>(word >> 43) & 31,
                (word >> 42 & 1) != 0,
                static_cast<uint32_t>(word >> 32) & 1023,
                static_cast<uint32_t>(word)};
    }
    uint64_t word() const noexcept {
        return static_cast<uint64_t>(phase) << 62 | uint64_t{generation} << 48 |
               uint64_t{life} << 43 | uint64_t{full} << 42 | uint64_t{head} << 32 | last;
    }
    uint64_t as(Phase other) const noexcept {
        Control changed = *this;
        changed.phase = other;
        return changed.word();
    }

    uint32_t depth(uint32_t slots) const noexcept { return full ? slots : head; }
    bool empty() const noexcept { return head == 0 && !full; }

    // For FrequencyBucket::Victim: the oldest first, expired entries up to kExpired.
    static constexpr uint64_t kExpired = uint64_t{1} << 32;
    uint64_t rank(uint32_t now) const noexcept {
        if (phase == Phase::free) {
            return 0;
        }
        if (phase == Phase::busy) {
            // Stale: the process died or is stopped, or the clock was set back.
            return now - last + kStale > 2 * kStale ? 0 : FrequencyBucket::kNever;
        }
        const bool dead = life != kForever && last < now && now - last > 1u << life;
        return dead ? last : kExpired + 1 + last;
    }
};

// The inverse of mix13: each of its steps turned back, the last one first.
constexpr uint64_t unmix13(uint64_t x) noexcept {
    x ^= x >> 31 ^ x >> 62;
    x *= 0x319642b2d24d8ec3u;
    x ^= x >> 27 ^ x >> 54;
    x *= 0x96de1b173f119089u;
    x ^= x >> 30 ^ x >> 60;
    return x;
}
static_assert(unmix13(mix13(0x0123'4567'89ab'cdef)) == 0x0123'4567'89ab'cdef);

// Finishes the last commit if its owner has not.
void finish_commit(FrequencyBucket& bucket, uint64_t commit) noexcept {
    const auto [entry, generation] = FrequencyBucket::committed(commit);
    if (entry >= FrequencyBucket::kEntries) {
        return;
    }
    uint64_t word = bucket.controls[entry].load();
    const Control control = Control::of(word);
    if (control.phase == Phase::busy && control.generation == generation) {
        bucket.controls[entry].compare_exchange_strong(word, control.as(Phase::ready));
    }
}

}  // namespace

struct Frequency::Step {
    FrequencyBucket* bucket;
    uint32_t slots;
    Part part;
    uint64_t key;  // the low bits are zero
    std::span<const FrequencyLimit> limits;
    uint32_t now;

    std::atomic<uint32_t>* times(uint32_t entry) const noexcept {
        return reinterpret_cast<std::atomic<uint32_t>*>(bucket + 1) + size_t{slots} * entry;
    }
    uint32_t life() const noexcept {
        uint32_t life = 0;
        for (const auto& limit : limits) {
            if (part_of(limit) == part) {
                life = std::max(life, life_of(limit, now));
            }
        }
        return life;
    }
};

size_t Frequency::size(uint64_t bytes) noexcept {
    size_t size = kFrequencyFirst;
    for (const auto& shape : kShapes) {
        size += buckets_in(shape, bytes) * bucket_bytes(shape.slots);
    }
    return size;
}

void Frequency::format(std::span<std::byte> memory, uint64_t bytes) noexcept {
    static_assert(sizeof(FrequencyHead) <= kFrequencyFirst);
    auto* head = ::new (memory.data()) FrequencyHead{};
    head->bytes = bytes;
    head->magic.store(kFrequencyMagic, std::memory_order_release);
}

const char* Frequency::check(std::span<const std::byte> memory) noexcept {
    if (memory.size() < sizeof(FrequencyHead)) {
        return "it is too short";
    }
    const auto* head = reinterpret_cast<const FrequencyHead*>(memory.data());
    if (head->magic.load(std::memory_order_acquire) != kFrequencyMagic) {
        return "it was written by another version, or by another program";
    }
    // The first comparison keeps the second one's arithmetic in range.
    if (head->bytes / 2 > memory.size() || size(head->bytes) > memory.size()) {
        return "it is shorter than its head says";
    }
    return nullptr;
}

Frequency Frequency::attach(std::byte* memory) noexcept {
    Frequency frequency;
    frequency.head_ = reinterpret_cast<FrequencyHead*>(memory);
    std::byte* at = memory + kFrequencyFirst;
    for (size_t i = 0; i < kFrequencyTables; i++) {
        const uint64_t buckets = buckets_in(kShapes[i], frequency.head_->bytes);
        frequency.tables_[i] = {at, buckets, kShapes[i].slots};
        at += buckets * bucket_bytes(kShapes[i].slots);
    }
    return frequency;
}

template <class Visit>
bool Frequency::each_step(uint64_t session, std::span<const FrequencySubject> subjects,
                          uint32_t now, Visit visit) const noexcept {
    for (const auto& subject : subjects) {
        uint32_t parts = 0;
        for (const auto& limit : subject.limits) {
            parts |= 1u << part_of(limit);
        }
        for (; parts != 0; parts &= parts - 1) {
            const auto part = static_cast<Part>(std::countr_zero(parts));
            const Table& table = tables_[std::min<uint32_t>(part, kCounts)];
            const uint64_t what =
                uint64_t{part + 1} << 40 | static_cast<uint64_t>(subject.level) << 32 | subject.id;
            const uint64_t hash = mix13(session + mix13(what));
            // The bucket comes from the high bits, the key is the low ones.
            std::byte* at = table.memory + bucket(hash, table.buckets) * bucket_bytes(table.slots);
            const Step step{reinterpret_cast<FrequencyBucket*>(at), table.slots,    part,
                            hash << std::countr_zero(kGenerations), subject.limits, now};
            if (!visit(step)) {
                return false;
            }
        }
    }
    return true;
}

// True if none of the caps is reached. Holds if the control word is still the
// same afterwards.
bool Frequency::admits(const Step& step, const FrequencyBucket::Place& place) noexcept {
    const Control control = Control::of(place.word);
    const auto* times = step.times(place.entry);
    for (const auto& limit : step.limits) {
        if (part_of(limit) != step.part) {
            continue;
        }
        const uint32_t count = std::min(limit.count, kFrequencyMaxCount);
        if (count == 0) {
            return false;
        }
        if (step.slots == 0) {
            // A count covers one day. If the clock was set back, the last serve may
            // be of a later day, and the count of this day is lost.
            if ((control.last >= limit.since && control.head >= count) ||
                (step.part == day_count && control.last > step.now)) {
                return false;
            }
        } else if (count <= control.depth(step.slots)) {
            uint32_t at = control.head + step.slots - count;
            at -= at >= step.slots ? step.slots : 0;
            // Acquired, so that a time of a later serve shows in the control word too.
            const uint32_t time =
                count == 1 ? control.last : times[at].load(std::memory_order_acquire);
            if (time >= limit.since) {
                return false;
            }
        }
    }
    return true;
}

bool Frequency::allows(const Step& step) noexcept {
    for (int tries = 0; tries < kTries; tries++) {
        FrequencyBucket::Place place;
        if (!step.bucket->find(step.key, place)) {
            return std::ranges::all_of(step.limits, [](const auto& l) { return l.count > 0; });
        }
        const bool admitted = admits(step, place);
        if (step.bucket->controls[place.entry].load(std::memory_order_acquire) == place.word) {
            return admitted;
        }
    }
    return false;
}

Frequency::Outcome Frequency::take(const Step& step) noexcept {
    for (int tries = 0; tries < kTries; tries++) {
        FrequencyBucket::Place place;
        if (!step.bucket->find(step.key, place)) {
            insert(step);
            continue;
        }
        auto& word = step.bucket->controls[place.entry];
        if (!admits(step, place)) {
            if (word.load(std::memory_order_acquire) == place.word) {
                return Outcome::capped;
            }
            continue;
        }
        Control control = Control::of(place.word);
        if (step.slots == 0) {
            const auto same = [&](const FrequencyLimit& limit) {
                return part_of(limit) == step.part && control.last >= limit.since;
            };
            control.head = std::ranges::any_of(step.limits, same) ? control.head + 1 : 1;
        } else {
            if (!control.empty()) {
                write_back(
                    step.times(place.entry)[(control.head == 0 ? step.slots : control.head) - 1],
                    control.last, word, place.word);
            }
            control.head = control.head + 1 == step.slots ? 0 : control.head + 1;
            control.full = control.full || control.head == 0;
        }
        control.life = std::max(control.life, step.life());
        control.last = std::max(control.last, step.now);
        if (word.compare_exchange_strong(place.word, control.word())) {
            return Outcome::taken;
        }
    }
    return Outcome::busy;
}

// Puts the key into the bucket, without a serve. May do nothing under contention: the caller
// searches again anyway.
void Frequency::insert(const Step& step) noexcept {
    FrequencyBucket& bucket = *step.bucket;
    // Read before the search: the commit fails if a key came in after this.
    uint64_t commit = bucket.commit.load();
    finish_commit(bucket, commit);
    FrequencyBucket::Victim victim;
    for (uint32_t i = 0; i < FrequencyBucket::kEntries; i++) {
        const uint64_t word = bucket.controls[i].load();
        const uint64_t key = bucket.keys[i].load();
        const Control control = Control::of(word);
        if (control.phase == Phase::ready && (step.key | control.generation) == key) {
            return;
        }
        victim.consider(control.rank(step.now), i, word, key);
    }
    if (!victim.usable(Control::kExpired)) {
        return;
    }
    const Control mine{Phase::busy, FrequencyBucket::next_generation(victim), step.life(), false, 0,
                       step.now};
    if (!bucket.claim(victim, mine.word())) {
        return;
    }
    if (victim.rank > Control::kExpired) {
        head_->evicted.fetch_add(1, std::memory_order_relaxed);
    }
    bucket.publish(victim, step.key, commit, mine.word(), mine.as(Phase::ready));
}

// Serves of the same second are alike: the newest may be another's, and ours
// then stands for it.
void Frequency::give_back(const Step& step) noexcept {
    for (int tries = 0; tries < kTries; tries++) {
        FrequencyBucket::Place place;
        if (!step.bucket->find(step.key, place)) {
            return;
        }
        Control control = Control::of(place.word);
        if (control.empty() || control.last != step.now) {
            return;
        }
        if (step.slots == 0) {
            control.head--;
        } else {
            control.head = (control.head == 0 ? step.slots : control.head) - 1;
            if (!control.empty()) {
                const uint32_t newest = (control.head == 0 ? step.slots : control.head) - 1;
                control.last = step.times(place.entry)[newest].load(std::memory_order_acquire);
            }
        }
        if (step.bucket->controls[place.entry].compare_exchange_strong(place.word,
                                                                       control.word())) {
            return;
        }
    }
}

// A key is a hash of visitor and subject; it can be turned back, since mixing loses
// nothing. Of the hash all but the highest bits are in the key, and these have chosen
// the bucket: for each that may have, the visitor is taken off, and what is left is a
// subject or, for others' entries, nothing that makes sense. One of others is taken for
// ours once in a hundred million.
void Frequency::each_of(uint64_t session, void* context,
                        bool (*see)(void* context, const Seen& seen)) noexcept {
    constexpr int kLost = std::countr_zero(kGenerations);
    for (uint32_t t = 0; t < kFrequencyTables; t++) {
        const Table& table = tables_[t];
        for (uint64_t b = 0; b < table.buckets; b++) {
            auto& entries =
                *reinterpret_cast<FrequencyBucket*>(table.memory + b * bucket_bytes(table.slots));
            // The high parts of hashes that lead to this bucket.
            const uint64_t first = (b << kLost) / table.buckets;
            const uint64_t last = ((b + 1) << kLost) / table.buckets;
            for (uint32_t i = 0; i < FrequencyBucket::kEntries; i++) {
                uint64_t key = entries.keys[i].load(std::memory_order_acquire);
                uint64_t word = entries.controls[i].load(std::memory_order_acquire);
                const Control control = Control::of(word);
                if (control.phase != Phase::ready || control.generation != (key & ~kKeyMask)) {
                    continue;
                }
                for (uint64_t high = first; high <= last && high < kGenerations; high++) {
                    const uint64_t hash = high << (64 - kLost) | key >> kLost;
                    const uint64_t what = unmix13(unmix13(hash) - session);
                    const uint64_t part = (what >> 40) - 1;
                    const uint64_t level = what >> 32 & 0xff;
                    if (bucket(hash, table.buckets) != b || part > lifetime_count ||
                        std::min<uint64_t>(part, kCounts) != t ||
                        level > static_cast<uint64_t>(kClicksLevel)) {
                        continue;
                    }
                    if (see(context,
                            {static_cast<CapLevel>(level), static_cast<Id>(what), control.last})) {
                        // Free first, so that the exchange of a process that has found it
                        // fails. Then the key, unless it was replaced.
                        const Control empty{Phase::free, control.generation, 0, false, 0, 0};
                        if (entries.controls[i].compare_exchange_strong(word, empty.word())) {
                            entries.keys[i].compare_exchange_strong(key, 0);
                        }
                    }
                    break;
                }
            }
        }
    }
}

bool Frequency::allows(uint64_t session, std::span<const FrequencySubject> subjects,
                       uint32_t now) const noexcept {
    return each_step(session, subjects, now, [](const Step& step) { return allows(step); });
}

bool Frequency::take(uint64_t session, std::span<const FrequencySubject> subjects,
                     uint32_t now) noexcept {
    size_t steps = 0;
    each_step(session, subjects, now, [&](const Step&) { return ++steps < 2; });
    // A take that is taken back disturbs others: with several steps, look first.
    if (steps > 1 && !allows(session, subjects, now)) {
        return false;
    }
    size_t taken = 0;
    Outcome outcome = Outcome::taken;
    each_step(session, subjects, now, [&](const Step& step) {
        outcome = take(step);
        taken += outcome == Outcome::taken ? 1 : 0;
        return outcome == Outcome::taken;
    });
    if (outcome == Outcome::taken) {
        return true;
    }
    if (outcome == Outcome::busy) {
        head_->refused_busy.fetch_add(1, std::memory_order_relaxed);
    }
    if (taken > 0) {
        each_step(session, subjects, now, [&](const Step& step) {
            give_back(step);
            return --taken > 0;
        });
    }
    return false;
}

void Frequency::give_back(uint64_t session, std::span<const FrequencySubject> subjects,
                          uint32_t now) noexcept {
    each_step(session, subjects, now, [](const Step& step) {
        give_back(step);
        return true;
    });
}

}  // namespace ads
