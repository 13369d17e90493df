#include "ledger/visitor/rate_limit.hpp"

#include <algorithm>
#include <new>

#include "core/base/hash.hpp"

namespace ads {

namespace {

constexpr int kTries = 256;
constexpr uint64_t kStale = 2000;  // ms that a claim is respected; it takes nanoseconds

constexpr uint32_t kPartSlots = kRateParts + 1;  // the oldest still counts when one is written

constexpr uint32_t kRingTimeBits = 37;  // four years of ms
constexpr uint32_t kIndexBits = 34;     // eight years of the shortest parts
constexpr uint32_t kCountBits = 20;
static_assert(kRateMost < 1u << kCountBits);

using Phase = EntryPhase;

// The control word: {phase : 2, generation : 8, rest : 54}. A busy entry's rest is the time of
// the claim.
constexpr uint32_t kRestBits = RateBucket::kRestBits;
constexpr uint64_t kRestMask = RateBucket::kRestMask;

constexpr uint64_t word_of(Phase phase, uint64_t generation, uint64_t rest) noexcept {
    return RateBucket::word_of(phase, generation, rest);
}
constexpr Phase phase_of(uint64_t word) noexcept {
    return RateBucket::phase_of(word);
}
constexpr uint64_t generation_of(uint64_t word) noexcept {
    return RateBucket::generation_of(word);
}

// Restores a number from its low bits: the one nearest to `near`.
constexpr uint64_t nearest(uint64_t kept, uint32_t bits, uint64_t near) noexcept {
    const uint32_t shift = 64 - bits;
    return near + static_cast<uint64_t>(static_cast<int64_t>((kept - near) << shift) >> shift);
}

// An exact entry: {count : 9, head : 8, newest : 37}. The newest time belongs to
// the slot before `head`; `count` times, with it, were in the window when it came.
struct Ring {
    uint32_t count;
    uint32_t head;
    uint64_t newest;

    static Ring of(uint64_t word) noexcept {
        return {static_cast<uint32_t>(word >> 45) & 511, static_cast<uint32_t>(word >> 37) & 255,
                word & ((uint64_t{1} << kRingTimeBits) - 1)};
    }
    uint64_t rest() const noexcept {
        return uint64_t{count} << 45 | uint64_t{head} << 37 |
               (newest & ((uint64_t{1} << kRingTimeBits) - 1));
    }
};

// An entry of parts: {count : 20, index : 34}, of the running part.
struct Part {
    uint32_t count;
    uint64_t index;

    static Part of(uint64_t word) noexcept {
        return {static_cast<uint32_t>(word >> kIndexBits) & ((1u << kCountBits) - 1),
                word & ((uint64_t{1} << kIndexBits) - 1)};
    }
    uint64_t rest() const noexcept {
        return uint64_t{count} << kIndexBits | (index & ((uint64_t{1} << kIndexBits) - 1));
    }
    // As stored in a slot once the part is over.
    static uint64_t slot(uint64_t generation, uint64_t index, uint32_t count) noexcept {
        return word_of(Phase::ready, generation, Part{count, index}.rest());
    }
};

// How far the times of a key may be ahead.
constexpr uint64_t slack_of(const RateRule& rule) noexcept {
    return std::max(rule.window, kRateBack);
}

constexpr size_t bucket_bytes(const RateRule& rule) noexcept {
    const size_t entry = rule.exact() ? sizeof(uint32_t) * rule.rate : 8 * kPartSlots;
    return (sizeof(RateBucket) + entry * RateBucket::kEntries + 63) / 64 * 64;
}

template <class T>
std::atomic<T>* slots_of(RateBucket& bucket, uint32_t entry, uint32_t slots) noexcept {
    return reinterpret_cast<std::atomic<T>*>(&bucket + 1) + size_t{slots} * entry;
}

constexpr uint64_t kExpired = 1;  // rank of an entry whose window is over

}  // namespace

struct RateTable::Place : RateBucket::Place {
    RateBucket* bucket = nullptr;

    std::atomic<uint64_t>& control() const noexcept { return bucket->controls[entry]; }
};

struct RateTable::Weight {
    uint64_t now = 0;    // as it is for this entry
    uint32_t count = 0;  // in the window
    uint64_t room = 0;   // when the oldest of them leaves it
    bool ahead = false;  // its times are of a clock that was set back since
};

size_t RateTable::least(const RateRule& rule) noexcept {
    return kRateFirst + bucket_bytes(rule);
}

void RateTable::format(std::span<std::byte> memory, const RateRule& rule,
                       const SipKey& hash) noexcept {
    auto* head = ::new (memory.data()) RateHead{};
    head->rule = rule;
    head->buckets = (memory.size() - kRateFirst) / bucket_bytes(rule);
    head->hash = hash;
}

RateTable RateTable::attach(std::byte* memory) noexcept {
    RateTable table;
    table.head_ = reinterpret_cast<RateHead*>(memory);
    table.first_ = memory + kRateFirst;
    table.stride_ = bucket_bytes(table.head_->rule);
    return table;
}

uint64_t RateTable::slack() const noexcept {
    return slack_of(head_->rule);
}

// The bucket comes from the high bits, the key is the low ones.
RateBucket& RateTable::bucket_of(uint64_t key) const noexcept {
    return *reinterpret_cast<RateBucket*>(first_ + bucket(key, head_->buckets) * stride_);
}

bool RateTable::find(RateBucket& bucket, uint64_t key, Place& place) const noexcept {
    place.bucket = &bucket;
    return bucket.find(key << 8, place);
}

RateTable::Weight RateTable::weigh_ring(const Place& place, uint64_t asked) const noexcept {
    const RateRule& rule = head_->rule;
    const Ring ring = Ring::of(place.word);
    const uint64_t newest = nearest(ring.newest, kRingTimeBits, asked);
    if (ring.count == 0 || (newest <= asked && asked - newest >= rule.window)) {
        return {.now = asked};
    }
    if (newest > asked && newest - asked > slack()) {
        return {.now = asked, .ahead = true};
    }
    const uint64_t now = std::max(asked, newest);
    const auto* times = slots_of<uint32_t>(*place.bucket, place.entry, rule.rate);
    uint32_t count = ring.count;
    uint32_t at = ring.head + rule.rate - count;  // the oldest
    at -= at >= rule.rate ? rule.rate : 0;
    uint64_t oldest = newest;
    while (count > 1) {
        // Acquired, so that a time of a later request shows in the control word too. All
        // that count are within two windows of now: 32 bits are enough.
        oldest = nearest(times[at].load(std::memory_order_acquire), 32, now);
        if (oldest + rule.window > now) {
            break;
        }
        oldest = newest;
        at = at + 1 == rule.rate ? 0 : at + 1;
        count--;
    }
    return {.now = now, .count = count, .room = oldest + rule.window};
}

RateTable::Weight RateTable::weigh_parts(const Place& place, uint64_t asked) const noexcept {
    const RateRule& rule = head_->rule;
    const Part running = Part::of(place.word);
    uint64_t index = rule.part_at(asked);
    const uint64_t newest = nearest(running.index, kIndexBits, index);
    if (running.count == 0 || (newest <= index && index - newest > kRateParts)) {
        return {.now = asked};
    }
    if (newest > index && rule.begin_of(newest) - asked > slack()) {
        return {.now = asked, .ahead = true};
    }
    const uint64_t now = newest > index ? rule.begin_of(newest) : asked;
    index = std::max(index, newest);
    const auto* slots = slots_of<uint64_t>(*place.bucket, place.entry, kPartSlots);
    const uint64_t generation = generation_of(place.word);
    uint64_t oldest = newest;
    uint32_t count = running.count;
    for (uint64_t i = newest - 1; index - i <= kRateParts; i--) {
        const uint64_t slot = slots[i % kPartSlots].load(std::memory_order_acquire);
        const uint32_t its = Part::of(slot).count;
        if (its > 0 && slot == Part::slot(generation, i, its)) {
            count += its;
            oldest = i;
        }
    }
    return {.now = now, .count = count, .room = rule.begin_of(oldest + kRateParts + 1)};
}

RateTable::Weight RateTable::weigh(const Place& place, uint64_t now) const noexcept {
    return head_->rule.exact() ? weigh_ring(place, now) : weigh_parts(place, now);
}

// False if another process changed the entry first.
bool RateTable::add(const Place& place, const Weight& weight) noexcept {
    const RateRule& rule = head_->rule;
    const uint64_t generation = generation_of(place.word);
    auto& control = place.control();
    uint64_t rest = 0;
    if (rule.exact()) {
        Ring ring = Ring::of(place.word);
        if (weight.count > 0) {
            auto* times = slots_of<uint32_t>(*place.bucket, place.entry, rule.rate);
            write_back(times[(ring.head == 0 ? rule.rate : ring.head) - 1],
                       static_cast<uint32_t>(ring.newest), control, place.word);
        }
        ring.head = ring.head + 1 == rule.rate ? 0 : ring.head + 1;
        ring.count = weight.count + 1;
        ring.newest = weight.now;
        rest = ring.rest();
    } else {
        Part running = Part::of(place.word);
        const uint64_t index = rule.part_at(weight.now);
        const uint64_t newest = nearest(running.index, kIndexBits, index);
        if (newest == index) {
            running.count++;
        } else {
            if (weight.count > 0) {
                auto* slots = slots_of<uint64_t>(*place.bucket, place.entry, kPartSlots);
                write_back(slots[newest % kPartSlots],
                           Part::slot(generation, newest, running.count), control, place.word);
            }
            running = {1, index};
        }
        rest = running.rest();
    }
    uint64_t expected = place.word;
    return control.compare_exchange_strong(expected, word_of(Phase::ready, generation, rest));
}

// The ready word of a claim, with the claim's own request. It follows from the claim alone, so
// that any process can finish it.
uint64_t RateTable::ready(uint64_t busy, uint64_t now) const noexcept {
    const uint64_t time = nearest(busy & kRestMask, kRestBits, now);
    const uint64_t rest = head_->rule.exact()
                              ? Ring{1, head_->rule.rate == 1 ? 0u : 1u, time}.rest()
                              : Part{1, head_->rule.part_at(time)}.rest();
    return word_of(Phase::ready, generation_of(busy), rest);
}

// Whether a search for `wanted` that began after reading `commit` has seen the committed entry.
// Finishes the commit if its owner has not.
bool RateTable::was_seen(RateBucket& bucket, uint64_t wanted, uint64_t commit,
                         uint64_t now) const noexcept {
    if (commit == 0) {
        return true;  // no key yet
    }
    const auto [entry, generation] = RateBucket::committed(commit);
    uint64_t word = bucket.controls[entry].load();
    if (phase_of(word) == Phase::busy && generation_of(word) == generation) {
        bucket.controls[entry].compare_exchange_strong(word, ready(word, now));
        return false;
    }
    return bucket.keys[entry].load() != (wanted | generation) || phase_of(word) != Phase::ready ||
           generation_of(word) != generation;
}

// Always inlined, and without branches for the usual entry: a new key calls it fifteen times.
[[gnu::always_inline]] inline uint64_t RateTable::rank(uint64_t word, uint64_t now,
                                                       const RateRule& rule) noexcept {
    if (phase_of(word) == Phase::free) {
        return 0;
    }
    if (phase_of(word) == Phase::busy) {
        // Stale: the process died or is stopped, or the clock was set back.
        const uint64_t since = nearest(word & kRestMask, kRestBits, now);
        return now - since + kStale > 2 * kStale ? 0 : RateBucket::kNever;
    }
    uint64_t newest = 0;
    uint64_t life = rule.window;
    if (rule.exact()) {
        newest = nearest(Ring::of(word).newest, kRingTimeBits, now);
    } else {
        newest = rule.begin_of(nearest(Part::of(word).index, kIndexBits, rule.part_at(now)));
        life += rule.window / kRateParts + 1;
    }
    // The age may be negative: of another worker's clock, or of one that was set back.
    const auto age = static_cast<int64_t>(now - newest);
    const auto slack = static_cast<int64_t>(slack_of(rule));
    const bool expired = age >= static_cast<int64_t>(life) || age < -slack;
    return expired ? kExpired : RateBucket::kNever - 1 - static_cast<uint64_t>(slack + age);
}

// Puts a key that was not found into the bucket, with its first request. `commit` was read
// before the search: the insertion fails if a key was committed since. Returns false under
// contention: the caller searches again.
bool RateTable::insert(RateBucket& bucket, uint64_t key, uint64_t now, uint64_t commit) noexcept {
    const uint64_t wanted = key << 8;
    if (!was_seen(bucket, wanted, commit, now)) {
        return false;
    }
    RateBucket::Victim victim;
    const RateRule rule = head_->rule;
    for (uint32_t i = 0; i < RateBucket::kEntries; i++) {
        const uint64_t word = bucket.controls[i].load();
        victim.consider(rank(word, now, rule), i, word, 0);
    }
    victim.key = bucket.keys[victim.entry].load();
    if (!victim.usable(kExpired)) {
        return false;
    }
    const uint64_t mine = word_of(Phase::busy, RateBucket::next_generation(victim), now);
    if (!bucket.claim(victim, mine)) {
        return false;
    }
    const int64_t before = phase_of(victim.word) == Phase::ready ? 1 : 0;
    if (victim.rank > kExpired) {
        head_->evicted.fetch_add(1, std::memory_order_relaxed);
    }
    if (!rule.exact()) {
        // Generations repeat: slots of an earlier one must not count then.
        auto* slots = slots_of<uint64_t>(bucket, victim.entry, kPartSlots);
        for (uint32_t i = 0; i < kPartSlots; i++) {
            slots[i].store(0, std::memory_order_release);
        }
    }
    const bool published = bucket.publish(victim, wanted, commit, mine, ready(mine, now));
    count_entries((published ? 1 : 0) - before);
    return published;
}

RateVerdict RateTable::verdict(const Weight& weight, uint64_t asked) const noexcept {
    const uint32_t rate = head_->rule.rate;
    return weight.count < rate ? RateVerdict{true, rate - weight.count, 0}
                               : RateVerdict{false, 0, static_cast<uint32_t>(weight.room - asked)};
}

RateVerdict RateTable::take(uint64_t key, uint64_t now, uint32_t stripe) noexcept {
    RateBucket& bucket = bucket_of(key);
    // All lines at once: with a million keys none is cached.
    for (size_t line = 0; line < sizeof bucket; line += 64) {
        __builtin_prefetch(reinterpret_cast<const std::byte*>(&bucket) + line, 1);
    }
    auto& counts = head_->stripes[stripe % kRateStripes];
    for (int tries = 0; tries < kTries; tries++) {
        Place place;
        const uint64_t commit = bucket.commit.load();
        if (!find(bucket, key, place)) {
            if (insert(bucket, key, now, commit)) {
                counts.passed.fetch_add(1, std::memory_order_relaxed);
                return {true, head_->rule.rate - 1, 0};
            }
            continue;
        }
        const Weight weight = weigh(place, now);
        if (weight.ahead) {
            uint64_t expected = place.word;
            const uint64_t free = word_of(Phase::free, generation_of(place.word), 0);
            if (place.control().compare_exchange_strong(expected, free)) {
                count_entries(-1);
            }
            continue;
        }
        RateVerdict result = verdict(weight, now);
        if (!result.passes) {
            if (place.control().load(std::memory_order_acquire) == place.word) {
                counts.refused.fetch_add(1, std::memory_order_relaxed);
                return result;
            }
        } else if (add(place, weight)) {
            counts.passed.fetch_add(1, std::memory_order_relaxed);
            result.remaining--;
            return result;
        }
    }
    // Under contention, rather uncounted than refused.
    head_->busy.fetch_add(1, std::memory_order_relaxed);
    return {true, 0, 0};
}

RateVerdict RateTable::look(uint64_t key, uint64_t now) const noexcept {
    RateBucket& bucket = bucket_of(key);
    for (int tries = 0; tries < kTries; tries++) {
        Place place;
        if (!find(bucket, key, place)) {
            break;
        }
        const RateVerdict result = verdict(weigh(place, now), now);
        if (place.control().load(std::memory_order_acquire) == place.word) {
            return result;
        }
    }
    return {true, head_->rule.rate, 0};
}

RateTotals RateTable::totals() const noexcept {
    RateTotals totals;
    for (const auto& stripe : head_->stripes) {
        totals.passed += stripe.passed.load(std::memory_order_relaxed);
        totals.refused += stripe.refused.load(std::memory_order_relaxed);
    }
    totals.evicted = head_->evicted.load(std::memory_order_relaxed);
    totals.busy = head_->busy.load(std::memory_order_relaxed);
    totals.capacity = head_->buckets * RateBucket::kEntries;
    // A process that died in the middle of a claim may have left it one off.
    totals.entries = static_cast<uint64_t>(std::clamp<int64_t>(
        head_->entries.load(std::memory_order_relaxed), 0, static_cast<int64_t>(totals.capacity)));
    return totals;
}

}  // namespace ads
