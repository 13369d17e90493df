// Counters of ad groups, in memory that outlives processes. Day and count are one
// word, so that a rollover and the last unit are each decided by a single exchange.
// Two words each, for even and odd local days: a late pixel still finds yesterday's
// count.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/types.hpp"
#include "core/image/reason.hpp"
#include "ledger/atomic.hpp"

namespace ads {

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// {day : 14, used : 50}. The day lasts until 2070.
class DayCount {
public:
    static constexpr int kUsedBits = 50;
    static constexpr uint64_t kMaxUsed = (uint64_t{1} << kUsedBits) - 1;
    static constexpr Day kMaxDay = (1 << (64 - kUsedBits)) - 1;

    constexpr explicit DayCount(uint64_t word) noexcept : word_(word) {}
    static constexpr uint64_t pack(Day day, uint64_t used) noexcept {
        return static_cast<uint64_t>(day) << kUsedBits | used;
    }
    // A day without a number is not counted, and nothing can be taken on it.
    static constexpr bool holds(Day day) noexcept { return day > 0 && day <= kMaxDay; }
    constexpr Day day() const noexcept { return static_cast<Day>(word_ >> kUsedBits); }
    constexpr uint64_t used() const noexcept { return word_ & kMaxUsed; }

private:
    uint64_t word_;
};

enum class Counter : uint8_t { serves, impressions, viewables, clicks, conversions, spend };
inline constexpr size_t kCounters = 6;

inline constexpr Counter counter_of(EventType type) noexcept {
    static_assert(static_cast<int>(Counter::conversions) ==
                  static_cast<int>(EventType::conversion));
    return static_cast<Counter>(type);
}

// Adds n to today's word; another day in it is over.
inline void count_day(std::atomic<uint64_t>& word, Day day, uint64_t n) noexcept {
    if (!DayCount::holds(day)) {
        return;
    }
    uint64_t seen = word.load(std::memory_order_relaxed);
    for (;;) {
        const DayCount now{seen};
        const uint64_t used = now.day() != day ? 0 : now.used();
        if (word.compare_exchange_weak(seen, DayCount::pack(day, used + n),
                                       std::memory_order_relaxed)) {
            return;
        }
    }
}

// The units of a {day, units} word.
inline uint64_t units_on(const std::atomic<uint64_t>& word, Day day) noexcept {
    const DayCount units{word.load(std::memory_order_relaxed)};
    return units.day() == day ? units.used() : 0;
}

inline void set_units(std::atomic<uint64_t>& word, Day day, uint64_t n) noexcept {
    word.store(DayCount::pack(day, n < DayCount::kMaxUsed ? n : DayCount::kMaxUsed),
               std::memory_order_relaxed);
}

// For callers without the local day.
inline constexpr Day kNoToday = DayCount::kMaxDay;

// One counter of one group.
struct DayCounter {
    std::array<Atomic<uint64_t>, 2> words;

    // Adds n to `day` unless that would pass the limit, or the day is too long
    // past to have a word. A stored day does not go back, but for one that lies
    // ahead of `today`: then the clock was wrong, and the count is gone already.
    bool take(Day day, uint64_t n, uint64_t limit, Day today = kNoToday) noexcept {
        if (!DayCount::holds(day)) {
            return false;
        }
        auto& word = words[day & 1];
        uint64_t seen = word.load(std::memory_order_relaxed);
        for (;;) {
            const DayCount now{seen};
            if (now.day() > day && now.day() <= today + 1) {
                return false;
            }
            const uint64_t used = now.day() != day ? 0 : now.used();
            if (n > limit || used > limit - n) {
                return false;
            }
            if (word.compare_exchange_weak(seen, DayCount::pack(day, used + n),
                                           std::memory_order_relaxed)) {
                return true;
            }
        }
    }

    // Undoes a take of this day; never below zero.
    void give_back(Day day, uint64_t n) noexcept {
        auto& word = words[day & 1];
        uint64_t seen = word.load(std::memory_order_relaxed);
        for (;;) {
            const DayCount now{seen};
            if (now.day() != day) {
                return;
            }
            const uint64_t left = now.used() > n ? now.used() - n : 0;
            if (word.compare_exchange_weak(seen, DayCount::pack(day, left),
                                           std::memory_order_relaxed)) {
                return;
            }
        }
    }

    bool count(Day day, uint64_t n, Day today = kNoToday) noexcept {
        return take(day, n, DayCount::kMaxUsed, today);
    }

    uint64_t read(Day day, std::memory_order order = std::memory_order_relaxed) const noexcept {
        const DayCount now{words[day & 1].load(order)};
        return now.day() == day ? now.used() : 0;
    }

    // The last day on which anything was counted; 0: none.
    Day latest() const noexcept {
        const auto day = [&](size_t i) {
            return DayCount(words[i].load(std::memory_order_relaxed)).day();
        };
        return std::max(day(0), day(1));
    }

    // Raises the count of a day; a later day begins anew, an earlier one is over.
    void raise(Day day, uint64_t to) noexcept {
        auto& word = words[day & 1];
        uint64_t seen = word.load(std::memory_order_relaxed);
        for (;;) {
            const DayCount now{seen};
            if (!DayCount::holds(day) || to > DayCount::kMaxUsed || now.day() > day ||
                (now.day() == day && now.used() >= to)) {
                return;
            }
            if (word.compare_exchange_weak(seen, DayCount::pack(day, to),
                                           std::memory_order_relaxed)) {
                return;
            }
        }
    }
};

// Reasons are counted but for `none` and `lost`.
inline constexpr size_t kRefusals = static_cast<size_t>(Reason::lost) - 1;

// The kinds of slots of the state: the counters of an ad group, the wall of a
// limit, or how a limit is paced. A campaign's budget is paced once for each
// strategy that its groups use: pace_budget + strategy.
enum class SlotKind : uint8_t {
    group,
    impressions,  // of a group
    clicks,
    budget,  // of a campaign
    pace_impressions,
    pace_clicks,
    pace_budget,
};

inline constexpr bool is_wall(SlotKind kind) noexcept {
    return kind == SlotKind::impressions || kind == SlotKind::clicks || kind == SlotKind::budget;
}

inline constexpr SlotKind pace_of(Strategy strategy) noexcept {
    return static_cast<SlotKind>(static_cast<unsigned>(SlotKind::pace_budget) +
                                 static_cast<unsigned>(strategy));
}

struct SlotKey {
    Id id = 0;
    SlotKind kind = SlotKind::group;
    constexpr SlotKey() noexcept = default;
    constexpr SlotKey(Id id, SlotKind kind = SlotKind::group) noexcept : id(id), kind(kind) {}
    constexpr uint64_t number() const noexcept {
        return uint64_t{static_cast<uint8_t>(kind)} << 32 | id;
    }
};

// A slot belongs to an id, not to a catalog: after an object is deleted its slot is kept for some
// days, in case the object returns.
struct SlotHead {
    std::atomic<uint32_t> id;         // 0: free
    std::atomic<uint16_t> last_seen;  // Unix day of the last catalog with it
    std::atomic<SlotKind> kind;
};
static_assert(sizeof(SlotHead) == 8);

// What a node of a fleet was given of a day's wall, and what it has returned. Both only grow: read
// late, they refuse.
struct DayRights {
    DayCounter got;
    DayCounter gave;
    Atomic<uint64_t> refused;    // for want of rights; only grows
    Atomic<uint64_t> blocked;    // rights that were there, for want of a later wall's; only grows
    Atomic<uint64_t> returning;  // {day, units} that are on their way from the word to `gave`
    Atomic<uint64_t> stranded;   // units that were, when a keeper died
    // Written by the keeper, {day, units}: the node's part of what was free at the last call, and
    // what it asked for then without being granted it.
    std::atomic<uint64_t> part;
    std::atomic<uint64_t> wanted;
    std::atomic<uint64_t> denied;  // of these, what serves needed
};

// More than any of them needs: a field that is appended is zero in existing
// files.
inline constexpr size_t kSlotBytes = 384;

// The counters of one ad group.
struct alignas(64) GroupSlot {
    SlotHead head;
    std::array<DayCounter, kCounters> counters;
    std::array<std::atomic<uint64_t>, 17> refusals;  // of the newest day, by reason
    DayCounter anonymous;  // serves to visitors without a session, where those are capped
    std::array<std::atomic<uint64_t>, kRefusals - 17> more_refusals;
    DayRights anonymous_rights;
    std::array<std::atomic<uint64_t>, 4> room;

    DayCounter& at(Counter c) noexcept { return counters[static_cast<size_t>(c)]; }
    const DayCounter& at(Counter c) const noexcept { return counters[static_cast<size_t>(c)]; }
    // By refusal_index().
    std::atomic<uint64_t>& refusal(size_t i) noexcept {
        return i < refusals.size() ? refusals[i] : more_refusals[i - refusals.size()];
    }
};

static_assert(sizeof(GroupSlot) == kSlotBytes);
// A new reason moves what follows it: that is another layout of the state (ledger/old_state.hpp).
static_assert(offsetof(GroupSlot, anonymous_rights) == 264);

inline size_t refusal_index(Reason reason) noexcept {
    return static_cast<size_t>(reason) - 1;
}

}  // namespace ads
