#include "ledger/old_state.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ledger/state.hpp"

namespace ads {

namespace {

constexpr uint64_t kOldMagic = 0x3530'6574'6174'7361;
constexpr size_t kPage = 4096;
constexpr size_t kSlotWords = 256 / 8;
constexpr size_t kPaceBytes = 152;

// The layout is frozen here: plain words, none of the types that go on changing.
struct Head {
    uint64_t magic;
    uint32_t node;
    uint32_t workers;
    uint64_t session_key[2];
    uint64_t dedupe_offset;
    uint64_t dedupe_entries;
    uint64_t slots_offset;
    uint32_t slots;
    uint64_t lease;
    uint64_t evicted;
    uint64_t health[33];  // of two hours: they begin anew
    alignas(64) uint64_t totals[9][8];
    uint64_t events[32][5];
};
static_assert(sizeof(Head) == 2240);
static_assert(kInvalidSlots == 32 && kCount<EventType> == 5);

struct Curve {
    uint32_t placement;
    uint64_t requests;
    std::byte curve[1224];
    uint64_t padding[5];
};
static_assert(sizeof(Curve) == 1280 && sizeof(pacing::Curve) == sizeof(Curve::curve));

constexpr size_t kWorkers = kPage;
constexpr size_t kWorkerBytes = 2112;
static_assert(sizeof(WorkerSlot) == kWorkerBytes && kMaxWorkers == 256);
constexpr size_t kCurvesAt = kWorkers + (kWorkerBytes * 256 + kPage - 1) / kPage * kPage;
constexpr size_t kTossedAt = kCurvesAt + (sizeof(Curve) * 65 + kPage - 1) / kPage * kPage;
constexpr size_t kDedupeAt = kTossedAt + (size_t{1} << 17) / 8;
static_assert(kCurves == 65);

size_t slots_at(uint64_t entries) noexcept {
    return kDedupeAt + (16 * entries + kPage - 1) / kPage * kPage;
}

const Head& head_of(std::span<const std::byte> old) noexcept {
    return *reinterpret_cast<const Head*>(old.data());
}

// {day : 12, used : 52}
uint64_t day_word(uint64_t word) noexcept {
    const uint64_t used = word & ((uint64_t{1} << 52) - 1);
    return DayCount::pack(static_cast<Day>(word >> 52), std::min(used, DayCount::kMaxUsed));
}

// {day mod 8 : 3, number : 17, amount : 44}; the number's low four bits are the place.
uint64_t bucket_word(uint64_t word) noexcept {
    const auto stamp = static_cast<uint32_t>(word >> 44);
    const uint32_t day = stamp >> 17;
    const uint32_t round = (stamp & ((1u << 17) - 1)) / pacing::kBuckets;
    return pacing::Bucket::pack(day * pacing::Bucket::kRounds + round,
                                word & ((uint64_t{1} << 44) - 1));
}

// Words that follow each other.
class Words {
public:
    explicit Words(const uint64_t* at) noexcept : at_(at) {}
    uint64_t next() noexcept { return *at_++; }
    void day(std::atomic<uint64_t>& to) noexcept { to = day_word(next()); }
    void day(DayCounter& to) noexcept {
        day(to.words[0]);
        day(to.words[1]);
    }

private:
    const uint64_t* at_;
};

void convert_group(Words from, GroupSlot& to) noexcept {
    for (auto& counter : to.counters) {
        from.day(counter);
    }
    for (auto& refusal : to.refusals) {
        from.day(refusal);
    }
    from.day(to.anonymous);
}
static_assert(sizeof(GroupSlot::refusals) == 17 * 8 && kCounters == 6);

void convert_wall(Words from, WallSlot& to) noexcept {
    from.day(to.used);
    to.lifetime = from.next();
    for (auto& bucket : to.buckets) {
        bucket = bucket_word(from.next());
    }
    from.day(to.confirmed);
    from.day(to.expired);
    from.day(to.tosses);
    from.day(to.offered);
}

// The next tick recomputes the rest; learned values are kept.
void convert_pace(const uint64_t* from, PaceSlot& to) noexcept {
    static_assert(sizeof(to.state) >= kPaceBytes);
    std::memcpy(static_cast<void*>(&to.state), from, kPaceBytes);
}

void convert_slot(const uint64_t* from, State& state, uint32_t index) noexcept {
    GroupSlot& to = state.slot(index);
    std::memcpy(static_cast<void*>(&to.head), from, sizeof(SlotHead));
    switch (to.head.kind.load(std::memory_order_relaxed)) {
        case SlotKind::group:
            convert_group(Words(from + 1), to);
            break;
        case SlotKind::impressions:
        case SlotKind::clicks:
        case SlotKind::budget:
            convert_wall(Words(from + 1), state.wall(index));
            break;
        default:
            convert_pace(from + 1, state.pace(index));
    }
}

}  // namespace

size_t converted_size(std::span<const std::byte> old) noexcept {
    if (old.size() < sizeof(Head) || head_of(old).magic != kOldMagic) {
        return 0;
    }
    const Head& head = head_of(old);
    const uint64_t entries = head.dedupe_entries;
    const bool good = head.workers == kMaxWorkers && head.dedupe_offset == kDedupeAt &&
                      entries >= kBucketEntries && std::has_single_bit(entries) &&
                      entries <= old.size() && head.slots_offset == slots_at(entries) &&
                      head.node != 0 &&
                      slots_at(entries) + size_t{head.slots} * kSlotWords * 8 <= old.size();
    return good ? State::size(entries, head.slots) : 0;
}

void convert_state(std::span<const std::byte> old, std::span<std::byte> to) noexcept {
    const Head& head = head_of(old);
    State::format(to, head.dedupe_entries, head.slots, head.node,
                  {head.session_key[0], head.session_key[1]});
    State state = State::attach(to.data());
    StateHead& fresh = state.head();
    fresh.dedupe.evicted = head.evicted;
    for (size_t i = 0; i < std::size(head.totals); i++) {
        fresh.totals[i].value = head.totals[i][0];
    }
    for (size_t i = 0; i < std::size(head.events); i++) {
        for (size_t type = 0; type < std::size(head.events[i]); type++) {
            fresh.events[i][type] = head.events[i][type];
        }
    }
    // The claims of dead workers are completed by the keeper that recovers them.
    std::memcpy(static_cast<void*>(state.dedupe().workers().data()), old.data() + kWorkers,
                kWorkerBytes * kMaxWorkers);
    std::memcpy(to.data() + fresh.dedupe_offset, old.data() + kDedupeAt,
                head.dedupe_entries * sizeof(DedupeEntry));
    const auto* curves = reinterpret_cast<const Curve*>(old.data() + kCurvesAt);
    for (CurveSlot& curve : state.curves()) {
        curve.placement = curves->placement;
        curve.requests = curves->requests;
        std::memcpy(static_cast<void*>(&curve.curve), curves->curve, sizeof curves->curve);
        curves++;
    }
    const auto* slots = reinterpret_cast<const uint64_t*>(old.data() + head.slots_offset);
    for (uint32_t i = 0; i < head.slots; i++, slots += kSlotWords) {
        convert_slot(slots, state, i);
    }
}

}  // namespace ads
