// A wall: the used part of a limit, in memory that outlives processes. What is
// served is taken; what pixels have to confirm is in flight until they do, or until
// the reservation's time is over (core/pacing/reservations.hpp has the rules). Each
// step changes one word: a process that dies in between costs a unit, never adds one.
#pragma once

#include "core/pacing/ahead.hpp"
#include "core/pacing/controller.hpp"
#include "core/pacing/reservations.hpp"
#include "ledger/counters.hpp"

namespace ads {

// What a wall's words may not pass: the limits of a day and of all days. Two words, so that they
// are passed in registers.
struct WallLimits {
    uint64_t day = pacing::kUnlimited;
    uint64_t lifetime = pacing::kUnlimited;
};

// The rights to the lifetime's wall, as DayRights.
struct LifetimeRights {
    Atomic<uint64_t> got;
    Atomic<uint64_t> gave;
    Atomic<uint64_t> refused;
    Atomic<uint64_t> blocked;  // of the lifetime's alone
    Atomic<uint64_t> returning;
    Atomic<uint64_t> stranded;
    std::atomic<uint64_t> part;
    std::atomic<uint64_t> wanted;
    std::atomic<uint64_t> denied;
};

struct alignas(64) WallSlot {
    static constexpr Day kClockDays = 6;

    SlotHead head;
    DayCounter used;            // confirmed + in flight
    Atomic<uint64_t> lifetime;  // the same of all days
    std::array<Atomic<uint64_t>, pacing::kBuckets> buckets;
    DayCounter confirmed;           // of what was in flight: pixels came
    DayCounter expired;             // and those that did not
    std::atomic<uint64_t> tosses;   // of a campaign, {day, count}
    std::atomic<uint64_t> offered;  // the money they were about
    DayRights rights;
    LifetimeRights lifetime_rights;
    // Of what is taken: reservations that are over, and may yet be confirmed by what another node
    // has recorded.
    DayCounter overdue;

    // The limits of a node in a fleet, of which the pacing has released so much of the day's. A
    // return is added to the word first and to `gave` after it, so that whoever sees the second
    // sees the first. `sharing`: beyond what it was granted, its part of what was free at last.
    WallLimits with_rights(Day day, WallLimits limits, uint64_t released,
                           bool sharing) const noexcept {
        const auto with = [](uint64_t limit, uint64_t gave) {
            return std::min(pacing::kUnlimited, limit + gave);
        };
        WallLimits own;
        const uint64_t gave = rights.gave.read(day, std::memory_order_acquire);
        own.day = with(released, gave);
        if (limits.day < pacing::kUnlimited) {
            const uint64_t part = sharing ? units_on(rights.part, day) : 0;
            own.day = std::min({own.day, with(limits.day, gave), rights.got.read(day) + part});
        }
        if (limits.lifetime < pacing::kUnlimited) {
            const uint64_t all = lifetime_rights.gave.load(std::memory_order_acquire);
            constexpr auto relaxed = std::memory_order_relaxed;
            const uint64_t part = sharing ? lifetime_rights.part.load(relaxed) : 0;
            own.lifetime =
                std::min(with(limits.lifetime, all), lifetime_rights.got.load(relaxed) + part);
        }
        return own;
    }

    // n was refused to a node in a fleet. If that was for want of rights, the keeper asks for more;
    // true: it was.
    bool note_refused(Day day, uint64_t n, WallLimits limits, uint64_t released) noexcept {
        constexpr auto relaxed = std::memory_order_relaxed;
        bool lifetime_wanted = false;
        bool lifetime_there = false;
        if (limits.lifetime < pacing::kUnlimited) {
            const uint64_t after = lifetime.load(relaxed) + n;
            const uint64_t gave = lifetime_rights.gave.load(relaxed);
            lifetime_there = after <= lifetime_rights.got.load(relaxed);
            lifetime_wanted = !lifetime_there && after <= limits.lifetime + gave;
        }
        bool day_wanted = false;
        if (limits.day < pacing::kUnlimited) {
            const uint64_t after = used.read(day) + n;
            const uint64_t most = std::min(limits.day, released);
            day_wanted = after > rights.got.read(day) && after <= most + rights.gave.read(day);
        }
        if (lifetime_wanted) {
            lifetime_rights.refused.fetch_add(n, relaxed);
        }
        if (day_wanted) {
            rights.refused.fetch_add(n, relaxed);
        }
        if (day_wanted && lifetime_there) {
            lifetime_rights.blocked.fetch_add(n, relaxed);
        }
        return lifetime_wanted || day_wanted;
    }

    // n were taken on a node in a fleet, and given back: a later wall refused.
    void note_blocked(uint64_t n) noexcept {
        rights.blocked.fetch_add(n, std::memory_order_relaxed);
    }

    // What is used, without what was returned.
    uint64_t spent(Day day) const noexcept {
        const uint64_t gave = rights.gave.read(day, std::memory_order_acquire);
        const uint64_t word = used.read(day);
        return word > gave ? word - gave : 0;
    }
    uint64_t spent_ever() const noexcept {
        const uint64_t gave = lifetime_rights.gave.load(std::memory_order_acquire);
        const uint64_t word = lifetime.load(std::memory_order_relaxed);
        return word > gave ? word - gave : 0;
    }

    // All or nothing.
    bool take(Day day, uint64_t n, uint64_t limit, uint64_t lifetime_limit, Day today) noexcept {
        // A clock that goes back by some days finds them used; a day that lies further
        // ahead was never there.
        if (!used.take(day, n, limit, static_cast<Day>(today + kClockDays))) {
            return false;
        }
        if (!take_lifetime(n, lifetime_limit)) {
            used.give_back(day, n);
            return false;
        }
        return true;
    }

    void give_back(Day day, uint64_t n) noexcept {
        used.give_back(day, n);
        change(lifetime, [&](uint64_t was) { return was > n ? was - n : 0; });
    }

    bool take_lifetime(uint64_t n, uint64_t limit) noexcept {
        uint64_t was = lifetime.load(std::memory_order_relaxed);
        do {
            if (n > limit || was > limit - n) {
                return false;
            }
        } while (!lifetime.compare_exchange_weak(was, was + n, std::memory_order_relaxed));
        return true;
    }

    // What others say was used already: it does not become less.
    void raise_lifetime(uint64_t to) noexcept {
        change(lifetime, [&](uint64_t was) { return std::max(was, to); });
    }

    // Counts from before the limit existed: never decreases.
    void raise(Day day, uint64_t to) noexcept {
        const uint64_t was = used.read(day);
        if (was < to) {
            used.count(day, to - was, day);
            lifetime.fetch_add(to - was, std::memory_order_relaxed);
        }
    }

    // Puts n, which was taken on the day of `times`, into flight. False: the bucket is full,
    // and n is given back. `frozen`: what has to leave the bucket for it stays taken.
    bool reserve(const pacing::BucketTimes& times, Millis now, uint64_t n,
                 bool frozen = false) noexcept {
        const auto step = apply(place(times, now), [&](uint64_t word) {
            return pacing::reserve(word, times.stamp(now), n);
        });
        if (!step.done) {
            give_back(times.day, n);
            return false;
        }
        free_expired(times, times.place(now), step, now, frozen);
        return true;
    }

    // Frees what is overdue: no other node has anything to tell of it.
    void free_overdue() noexcept {
        for (auto& word : overdue.words) {
            const DayCount left(word.exchange(0, std::memory_order_relaxed));
            if (left.used() > 0) {
                give_back(left.day(), left.used());
                expired.count(left.day(), left.used());
            }
        }
    }

    // The reservation of an earlier serve; it stays taken.
    uint64_t unreserve(const pacing::BucketTimes& served, Millis at, uint64_t n) noexcept {
        const auto step = apply(place(served, at), [&](uint64_t word) {
            return pacing::unreserve(word, served.stamp(at), n);
        });
        return step.freed;
    }

    // The pixel of a serve: what is in flight is confirmed, what is not has to be taken.
    // `in_flight` is told how much of it was.
    bool confirm(const pacing::BucketTimes& served, Millis at, uint64_t n, uint64_t limit,
                 uint64_t lifetime_limit, Day today, uint64_t* in_flight = nullptr) noexcept {
        uint64_t there = unreserve(served, at, n);
        if (there < n) {
            there += take_overdue(served.day, n - there);
        }
        if (in_flight != nullptr) {
            *in_flight = there;
        }
        if (there < n && !take(served.day, n - there, limit, lifetime_limit, today)) {
            give_back(served.day, there);
            return false;
        }
        confirmed.count(served.day, n, today);
        return true;
    }

    // A confirmed amount is not billed after all: frees it.
    void release_confirmed(Day day, uint64_t n) noexcept {
        confirmed.give_back(day, n);
        give_back(day, n);
    }

    // Undoes a confirm, of which so much was in flight.
    void undo_confirm(const pacing::BucketTimes& served, Millis at, uint64_t n,
                      uint64_t there) noexcept {
        confirmed.give_back(served.day, n);
        give_back(served.day, n - there);
        put_back(served, at, there);
    }

    // The pixel of a serve came, and what was reserved for it was an expectation only: it is
    // free again. It counts as confirmed: a serve that is seen. Returns how much it was.
    uint64_t resolve(const pacing::BucketTimes& served, Millis at, uint64_t n, Day today) noexcept {
        const uint64_t there = unreserve(served, at, n);
        give_back(served.day, there);
        confirmed.count(served.day, there, today);
        return there;
    }

    // Undoes resolve(): the amount is in flight again unless it was taken since.
    void undo_resolve(const pacing::BucketTimes& served, Millis at, uint64_t there, uint64_t limit,
                      uint64_t lifetime_limit, Day today) noexcept {
        confirmed.give_back(served.day, there);
        if (take(served.day, there, limit, lifetime_limit, today)) {
            put_back(served, at, there);
        }
    }

    // The serve is undone.
    void cancel(const pacing::BucketTimes& served, Millis at, uint64_t n) noexcept {
        give_back(served.day, unreserve(served, at, n));
    }

    // Frees what nothing can confirm any more.
    void expire(const pacing::BucketTimes& times, Millis now) noexcept {
        for (uint32_t i = 0; i < pacing::kBuckets; i++) {
            const auto step = apply(buckets[i], [&](uint64_t word) {
                return pacing::expire(word, i, times, now, used.latest());
            });
            free_expired(times, i, step, now);
        }
    }

    // Whether anything was served on that day, by what is left of it.
    bool untouched(Day day) const noexcept {
        return spent(day) == 0 && confirmed.read(day) == 0 && expired.read(day) == 0;
    }

    uint64_t in_flight(const pacing::BucketTimes& times) const noexcept {
        pacing::Reservations copy;
        for (size_t i = 0; i < buckets.size(); i++) {
            copy.words[i] = buckets[i].load(std::memory_order_relaxed);
        }
        return copy.in_flight(times);
    }

private:
    Atomic<uint64_t>& place(const pacing::BucketTimes& times, Millis at) noexcept {
        return buckets[times.place(at)];
    }

    // Restores an amount in flight, or frees it if its time is over.
    void put_back(const pacing::BucketTimes& served, Millis at, uint64_t n) noexcept {
        const auto step = apply(place(served, at), [&](uint64_t word) {
            return pacing::put_back(word, served.stamp(at), n);
        });
        if (!step.done) {
            give_back(served.day, n);
        }
    }

    // At most n.
    uint64_t take_overdue(Day day, uint64_t n) noexcept {
        auto& word = overdue.words[day & 1];
        uint64_t was = word.load(std::memory_order_relaxed);
        for (;;) {
            const DayCount left(was);
            const uint64_t taken = left.day() == day ? std::min(n, left.used()) : 0;
            if (taken == 0 ||
                word.compare_exchange_weak(was, was - taken, std::memory_order_relaxed)) {
                return taken;
            }
        }
    }

    template <class F>
    static void change(Atomic<uint64_t>& word, F f) noexcept {
        uint64_t was = word.load(std::memory_order_relaxed);
        while (!word.compare_exchange_weak(was, f(was), std::memory_order_relaxed)) {
        }
    }

    template <class F>
    static pacing::BucketStep apply(Atomic<uint64_t>& word, F f) noexcept {
        uint64_t was = word.load(std::memory_order_relaxed);
        for (;;) {
            const pacing::BucketStep step = f(was);
            if (!step.done ||
                word.compare_exchange_weak(was, step.word, std::memory_order_relaxed)) {
                return step;
            }
        }
    }

    void free_expired(const pacing::BucketTimes& times, uint32_t place,
                      const pacing::BucketStep& step, Millis now, bool frozen = false) noexcept {
        if (step.freed > 0) {
            const Day day = times.day_of(place, step.stamp, now, used.latest());
            if (frozen && overdue.count(day, step.freed)) {
                return;
            }
            give_back(day, step.freed);
            expired.count(day, step.freed);
        }
    }
};
static_assert(sizeof(WallSlot) == kSlotBytes);

// How a limit is paced. Only the active keeper touches `state`; its result is
// for all. Zeroed memory lets nothing pass: the first tick comes before the first
// request.
struct alignas(64) PaceSlot {
    SlotHead head;
    std::atomic<pacing::Threshold> threshold;
    std::atomic<uint64_t> allowed;  // may be used by now, {day, amount}
    std::atomic<double> probability;
    std::atomic<double> amount;  // of today
    std::atomic<double> ideal;   // by now
    std::atomic<double> utilization;
    std::atomic<PaceStatus> status;
    std::atomic<bool> exhausted;
    pacing::State state;
    pacing::DayShare share;  // of a goal or a lifetime budget; as `state`

    void publish(Day day, const pacing::DayPlan& plan, const pacing::Pace& pace) noexcept;

    // Only `even` limits the amount by now; its new day begins at zero.
    uint64_t allowed_on(Day day, Strategy strategy) const noexcept {
        if (strategy != Strategy::even) {
            return pacing::kUnlimited;
        }
        const DayCount word(allowed.load(std::memory_order_relaxed));
        return word.day() == day ? word.used() : 0;
    }

    // Whether a tick has found the limit exhausted for that day.
    bool exhausted_on(Day day) const noexcept {
        return exhausted.load(std::memory_order_relaxed) &&
               DayCount(allowed.load(std::memory_order_relaxed)).day() == day;
    }
};
static_assert(sizeof(PaceSlot) <= kSlotBytes);
static_assert(std::atomic<double>::is_always_lock_free);

// The traffic of a placement; the first of all is of the site.
struct alignas(64) CurveSlot {
    std::atomic<uint32_t> placement;  // hash of its slug; 0: free
    std::atomic<uint64_t> requests;
    pacing::Curve curve;  // written by the active keeper
    pacing::Week week;    // the same
    std::array<std::atomic<uint64_t>, 116> room;
};
static_assert(sizeof(CurveSlot) == 3072);

}  // namespace ads
