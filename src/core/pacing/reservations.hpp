// Reservations of serves that no pixel has confirmed yet.
// Not kept per serve but in 16 buckets of a fifteenth of
// the reservation time each, so that a serve's bucket
// exists for at least that time and follows from the age of
// its token.
//
// A wall's word is confirmed + in flight (PACING.md). These rules keep it so, whichever process
// dies in between:
//
//   serve     take n from the wall, then reserve n
//   pixel     unreserve n. What was there stays in the wall: it is confirmed. What
//             was not (late, or the day is over) has to be taken from the wall of
//             the serve's day; refused: give the rest back, record it as late
//   release   unreserve n, give what was there back (clicks and actions, when the
//             impression resolves: their price was only an expectation)
//   tick      expire, give what was there back to the wall of its day
//
// Every step changes one word, so in shared memory it is one compare-and-exchange with the
// functions here. A process that starts calls expire first: a stamp repeats after eight days.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/base/types.hpp"

namespace ads::pacing {

inline constexpr uint32_t kBuckets = 16;

// {stamp : 16, amount : 48}, the stamp {day mod 8 : 3, round : 13}. Buckets are numbered
// through the day: the index is the number modulo 16, the round is the rest. Zeroed memory is
// empty.
struct Bucket {
    static constexpr int kAmountBits = 48;
    static constexpr uint64_t kMost = (uint64_t{1} << kAmountBits) - 1;
    static constexpr uint32_t kRounds = uint32_t{1} << 13;
    static constexpr uint32_t kNumbers = kRounds * kBuckets;

    static constexpr uint64_t pack(uint32_t stamp, uint64_t amount) noexcept {
        return uint64_t{stamp} << kAmountBits | amount;
    }
    static constexpr uint32_t stamp(uint64_t word) noexcept {
        return static_cast<uint32_t>(word >> kAmountBits);
    }
    static constexpr uint64_t amount(uint64_t word) noexcept { return word & kMost; }
};

// The buckets of a limit on a local day. Those of a daily limit are numbered anew each day, so
// that none belongs to two. Those of a limit that lasts longer go on over midnight: they are
// numbered from the epoch, and one belongs to the day on which it begins.
struct BucketTimes {
    static constexpr Millis kDay = 86'400'000;

    Day day = 0;
    Millis begin = 0;      // of the local day
    Millis width = 8'000;  // a fifteenth of the reservation's time, at least a second
    bool daily = true;

    static BucketTimes of(Day day, Seconds begin, Seconds reservation, bool daily = true) noexcept {
        return {day, begin * 1000, std::max<Millis>(1000, (reservation * 1000 + 14) / 15), daily};
    }

    constexpr uint32_t number(Millis at) const noexcept {
        const Millis origin = daily ? begin : 0;
        const Millis since = at > origin ? at - origin : 0;
        return static_cast<uint32_t>(since / width % Bucket::kNumbers);
    }
    constexpr uint32_t place(Millis at) const noexcept { return number(at) % kBuckets; }
    constexpr uint32_t day_bits() const noexcept { return daily ? day & 7u : 0; }
    constexpr uint32_t stamp(Millis at) const noexcept {
        return day_bits() * Bucket::kRounds + number(at) / kBuckets;
    }
    // The number of the bucket with that index and stamp.
    static constexpr uint32_t number_of(uint32_t place, uint32_t stamp) noexcept {
        return stamp % Bucket::kRounds * kBuckets + place;
    }
    // The day of a bucket that is at most a week old at `now`. Another process may be ahead: one
    // that was stopped over midnight, or whose clock went back, finds what was served on `latest`.
    constexpr Day day_of(uint32_t place, uint32_t stamp, Millis now, Day latest) const noexcept {
        const Day next = static_cast<Day>(day + 1);
        uint32_t age = 0;
        if (daily) {
            age = (day + 8u - stamp / Bucket::kRounds) % 8;
            if (age == 7 && latest == next) {
                return next;
            }
        } else {
            const uint32_t passed =
                (number(now) + Bucket::kNumbers - number_of(place, stamp)) % Bucket::kNumbers;
            // More than half of all numbers: the clock has gone back.
            const bool ahead = passed >= Bucket::kNumbers / 2;
            const Millis began = (now / width - passed + (ahead ? Bucket::kNumbers : 0)) * width;
            if (ahead) {
                return latest == next && began >= begin + kDay ? next : day;
            }
            if (began < begin) {
                age = static_cast<uint32_t>(1 + (begin - began - 1) / kDay);
            }
        }
        return static_cast<Day>(age <= day ? day - age : 0);
    }
    // Whether a serve in the bucket with that index and stamp may be confirmed at `now`.
    constexpr bool live(uint32_t place, uint32_t stamp, Millis now) const noexcept {
        const uint32_t age =
            (number(now) + Bucket::kNumbers - number_of(place, stamp)) % Bucket::kNumbers;
        return stamp / Bucket::kRounds == day_bits() && age < kBuckets;
    }
};

// The next word of a bucket, and what was removed from it.
struct BucketStep {
    uint64_t word = 0;
    uint64_t freed = 0;
    uint32_t stamp = 0;  // of what was removed
    bool done = true;
};

// Removes an amount of another time. Not done: the amount is too large.
constexpr BucketStep reserve(uint64_t word, uint32_t stamp, uint64_t n) noexcept {
    const bool same = Bucket::stamp(word) == stamp;
    const uint64_t held = same ? Bucket::amount(word) : 0;
    if (n > Bucket::kMost - held) {
        return {.word = word, .done = false};
    }
    return {Bucket::pack(stamp, held + n), same ? 0 : Bucket::amount(word), Bucket::stamp(word)};
}

// Removes at most n.
constexpr BucketStep unreserve(uint64_t word, uint32_t stamp, uint64_t n) noexcept {
    const uint64_t held = Bucket::stamp(word) == stamp ? Bucket::amount(word) : 0;
    const uint64_t freed = held < n ? held : n;
    return {word - freed, freed, stamp, freed > 0};
}

// Undoes an unreserve of n, unless an amount of another time is in the bucket now.
constexpr BucketStep put_back(uint64_t word, uint32_t stamp, uint64_t n) noexcept {
    if (Bucket::stamp(word) != stamp || n > Bucket::kMost - Bucket::amount(word)) {
        return {.word = word, .done = false};
    }
    return {.word = word + n};
}

// `latest` is the last day on which anything was taken. What was served on a later day than that
// of `times` is left to processes that have reached that day.
constexpr BucketStep expire(uint64_t word, uint32_t place, const BucketTimes& times, Millis now,
                            Day latest) noexcept {
    if (Bucket::amount(word) == 0 || times.live(place, Bucket::stamp(word), now) ||
        times.day_of(place, Bucket::stamp(word), now, latest) > times.day) {
        return {.word = word, .done = false};
    }
    return {Bucket::pack(Bucket::stamp(word), 0), Bucket::amount(word), Bucket::stamp(word)};
}

// All of one wall, for one thread.
struct Reservations {
    std::array<uint64_t, kBuckets> words{};

    BucketStep reserve(const BucketTimes& times, Millis now, uint64_t n) noexcept {
        const size_t at = times.place(now);
        return apply(at, pacing::reserve(words[at], times.stamp(now), n));
    }

    // The remainder of a serve at that time: at most n.
    uint64_t unreserve(const BucketTimes& times, Millis served, uint64_t n) noexcept {
        const size_t at = times.place(served);
        return apply(at, pacing::unreserve(words[at], times.stamp(served), n)).freed;
    }

    // Calls freed(day, n) for all expired buckets.
    template <class Freed>
    void expire(const BucketTimes& times, Millis now, Freed freed) noexcept {
        for (uint32_t i = 0; i < kBuckets; i++) {
            const BucketStep step = apply(i, pacing::expire(words[i], i, times, now, times.day));
            if (step.freed > 0) {
                freed(times.day_of(i, step.stamp, now, times.day), step.freed);
            }
        }
    }

    // For the day of `times`, or for all days if the limit is not daily.
    uint64_t in_flight(const BucketTimes& times) const noexcept {
        uint64_t sum = 0;
        for (const uint64_t word : words) {
            sum += Bucket::stamp(word) / Bucket::kRounds == times.day_bits() ? Bucket::amount(word)
                                                                             : 0;
        }
        return sum;
    }

private:
    BucketStep apply(size_t at, const BucketStep& step) noexcept {
        words[at] = step.word;
        return step;
    }
};

}  // namespace ads::pacing
