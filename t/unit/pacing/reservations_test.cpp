#include "core/pacing/reservations.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "core/base/rng.hpp"

namespace {

using namespace ads;
using namespace ads::pacing;

TEST(PacingReservations, SixteenBucketsOfAFifteenth) {
    const BucketTimes times = BucketTimes::of(5, 1000, 120);
    EXPECT_EQ(times.width, 8000);
    EXPECT_EQ(BucketTimes::of(5, 1000, 1).width, 1000) << "at least a second";
    EXPECT_EQ(BucketTimes::of(5, 1000, 100).width, 6667) << "rounded up: none ends too soon";
    EXPECT_EQ(times.number(999'000), 0u) << "a clock that went back";
    EXPECT_EQ(times.number(1'000'000), 0u);
    EXPECT_EQ(times.number(1'007'999), 0u);
    EXPECT_EQ(times.number(1'008'000), 1u);
    // A day of 25 hours fits its numbers, whatever the reservation.
    EXPECT_LT(90'000'000 / BucketTimes::of(5, 0, 1).width, Bucket::kNumbers);

    // Served at the bucket's first and last moment.
    for (const Millis served : {1'000'000, 1'007'999}) {
        Reservations r;
        EXPECT_TRUE(r.reserve(times, served, 3).done);
        uint64_t freed = 0;
        const auto expire_at = [&](Millis now) {
            r.expire(times, now, [&](Day day, uint64_t n) {
                EXPECT_EQ(day, 5);
                freed += n;
            });
        };
        expire_at(served + 119'999);
        EXPECT_EQ(freed, 0u) << "younger than the reservation";
        EXPECT_EQ(r.in_flight(times), 3u);
        expire_at(1'128'000 - 1);
        EXPECT_EQ(freed, 0u);
        expire_at(1'128'000);
        EXPECT_EQ(freed, 3u);
        EXPECT_EQ(r.in_flight(times), 0u);
    }
}

TEST(PacingReservations, SettlesWhatIsThere) {
    const BucketTimes times = BucketTimes::of(5, 0, 120);
    Reservations r;
    r.reserve(times, 10'000, 100);
    r.reserve(times, 12'000, 50);
    EXPECT_EQ(r.in_flight(times), 150u);
    EXPECT_EQ(r.unreserve(times, 10'000, 60), 60u);
    EXPECT_EQ(r.unreserve(times, 30'000, 60), 0u) << "another bucket";
    EXPECT_EQ(r.unreserve(times, 10'000 + 16 * 8000, 60), 0u) << "another time in the same";
    EXPECT_EQ(r.unreserve(BucketTimes::of(6, 0, 120), 10'000, 60), 0u) << "another day";
    EXPECT_EQ(r.unreserve(times, 12'000, 200), 90u) << "never more than there is";
    EXPECT_EQ(r.in_flight(times), 0u);
    EXPECT_EQ(r.unreserve(times, 12'000, 1), 0u);
}

TEST(PacingReservations, WhatIsOverwrittenIsFreed) {
    const BucketTimes times = BucketTimes::of(5, 0, 120);
    Reservations r;
    r.reserve(times, 0, 7);
    const BucketStep step = r.reserve(times, 16 * 8000, 2);  // no tick came in between
    EXPECT_TRUE(step.done);
    EXPECT_EQ(step.freed, 7u);
    EXPECT_EQ(times.day_of(0, step.stamp, 16 * 8000, 5), 5);
    EXPECT_EQ(r.in_flight(times), 2u);
    const BucketTimes next = BucketTimes::of(6, 90'000, 120);
    const BucketStep over = r.reserve(next, 90'000'000, 1);
    EXPECT_EQ(over.freed, 2u);
    EXPECT_EQ(next.day_of(0, over.stamp, 90'000'000, 6), 5) << "yesterday's wall gets it";
    EXPECT_EQ(r.in_flight(next), 1u);
    EXPECT_EQ(r.in_flight(times), 0u);
}

TEST(PacingReservations, AFullBucketRefuses) {
    const BucketTimes times = BucketTimes::of(5, 0, 120);
    Reservations r;
    EXPECT_TRUE(r.reserve(times, 0, Bucket::kMost).done);
    EXPECT_FALSE(r.reserve(times, 0, 1).done);
    EXPECT_EQ(r.in_flight(times), Bucket::kMost);
    EXPECT_TRUE(r.reserve(times, 8000, 1).done);
}

TEST(PacingReservations, TheDayOfAStamp) {
    for (Day day = 0; day < 30; day++) {
        const BucketTimes now = BucketTimes::of(day, 0, 120);
        for (Day age = 0; age < 8 && age <= day; age++) {
            const auto then = static_cast<Day>(day - age);
            EXPECT_EQ(now.day_of(0, BucketTimes::of(then, 0, 120).stamp(500'000), 0, day), then);
        }
    }
}

// A process that is behind the others by a midnight, and a week-old bucket, have the same stamp.
TEST(PacingReservations, TheDayOfAStampThatIsAhead) {
    const BucketTimes now = BucketTimes::of(20, 20 * 86'400, 120);
    const uint32_t stamp = BucketTimes::of(21, 21 * 86'400, 120).stamp(21 * 86'400'000 + 500'000);
    const Millis at = 21 * 86'400'000 - 1000;
    EXPECT_EQ(now.day_of(0, stamp, at, 21), 21);
    EXPECT_EQ(now.day_of(0, stamp, at, 20), 13);
    EXPECT_FALSE(expire(Bucket::pack(stamp, 5), 0, now, at, 21).done);
    EXPECT_EQ(expire(Bucket::pack(stamp, 5), 0, now, at, 20).freed, 5u);
}

// A lifetime's budget has no midnight, and its numbers go round.
TEST(PacingReservations, ALifetimeGoesOn) {
    const Millis around = Millis{Bucket::kNumbers} * 8000;
    for (const Millis now : {Millis{1'794'787'200'000}, 13'690 * around - 60'000}) {
        const BucketTimes times = BucketTimes::of(9, now / 86'400'000 * 86'400, 120, false);
        Reservations r;
        r.reserve(times, now, 4);
        uint64_t freed = 0;
        const auto count = [&](Day day, uint64_t n) {
            EXPECT_EQ(day, 9);
            freed += n;
        };
        r.expire(times, now + 119'999, count);
        EXPECT_EQ(freed, 0u);
        EXPECT_EQ(r.unreserve(times, now, 1), 1u);
        r.expire(times, now + 136'000, count);
        EXPECT_EQ(freed, 3u);
    }
}

// A bucket of a lifetime's budget belongs to the day on which it begins.
TEST(PacingReservations, TheDayOfALifetimesBucket) {
    constexpr Millis kMidnight = 1'794'787'200'000;  // 2026-11-16T00:00:00Z
    constexpr Millis kDay = 86'400'000;
    const auto times = BucketTimes::of(320, kMidnight / 1000, 120, false);
    const auto day_of = [&](Millis served, Millis now, Day latest = 320) {
        return times.day_of(times.place(served), times.stamp(served), now, latest);
    };
    EXPECT_EQ(day_of(kMidnight, kMidnight + 130'000), 320);
    EXPECT_EQ(day_of(kMidnight - 1, kMidnight + 130'000), 319);
    EXPECT_EQ(day_of(kMidnight - 1, kMidnight + kDay - 1), 319) << "nobody has asked all day";
    EXPECT_EQ(day_of(kMidnight - kDay, kMidnight + 5000), 319);
    EXPECT_EQ(day_of(kMidnight - kDay - 1, kMidnight + 5000), 318);
    EXPECT_EQ(day_of(kMidnight + 9000, kMidnight + 1000), 320) << "the clock went back";
    EXPECT_EQ(day_of(kMidnight + kDay + 9000, kMidnight + kDay - 1, 321), 321);
    EXPECT_EQ(day_of(kMidnight + kDay - 9000, kMidnight + kDay - 60'000, 321), 320);
    // 6,667 ms: a bucket begins before midnight and ends after it.
    const auto odd = BucketTimes::of(320, kMidnight / 1000, 100, false);
    EXPECT_EQ(odd.day_of(odd.place(kMidnight), odd.stamp(kMidnight), kMidnight + 120'000, 320),
              kMidnight % odd.width == 0 ? 320 : 319);
}

// ---- against a list of serves, one by one -----------------------------------

struct Served {
    Millis at;
    Day day;
    uint64_t n;
    bool pixel = false;    // has come
    bool reserved = true;  // still
};

class Model {
public:
    explicit Model(uint64_t seed) : rng_(seed) {}

    void run(int steps) {
        for (int i = 0; i < steps && !testing::Test::HasFailure(); i++) {
            now_ += static_cast<Millis>(rng_.below(3) == 0 ? rng_.below(30'000) : rng_.below(1500));
            if (rng_.below(400) == 0) {
                now_ += static_cast<Millis>(rng_.below(2 * kLength));  // asleep
            }
            const uint64_t what = rng_.below(10);
            if (what < 5) {
                serve();
            } else if (what < 9) {
                pixel();
            } else {
                tick();
            }
            check();
        }
    }

    uint64_t late = 0;
    uint64_t billed = 0;

private:
    static constexpr Millis kLength = 900'000;  // short days: many midnights
    static constexpr Seconds kReservation = 120;
    static constexpr uint64_t kCap = 60;

    Day today() const { return static_cast<Day>(1 + now_ / kLength); }
    BucketTimes times(Day day) const {
        return BucketTimes::of(day, (day - 1) * kLength / 1000, kReservation);
    }

    void freed(Day day, uint64_t n) {
        ASSERT_GE(wall_[day], n);
        wall_[day] -= n;
    }

    // The model's side: what is no longer reserved once these buckets are gone.
    template <class Gone>
    void forget(Gone gone) {
        for (Served& s : served_) {
            if (s.reserved && !s.pixel && gone(s)) {
                s.reserved = false;
            }
        }
    }

    void serve() {
        const uint64_t n = 1 + rng_.below(3);
        const Day day = today();
        const BucketTimes t = times(day);
        if (wall_[day] + n > kCap) {
            return;
        }
        wall_[day] += n;
        const BucketStep step = reservations_.reserve(t, now_, n);
        ASSERT_TRUE(step.done);
        if (step.freed > 0) {
            freed(t.day_of(t.place(now_), step.stamp, now_, day), step.freed);
        }
        const size_t place = t.place(now_);
        forget([&](const Served& s) {
            return times(s.day).place(s.at) == place &&
                   (s.day != day || t.number(s.at) != t.number(now_));
        });
        served_.push_back({now_, day, n});
    }

    // Some serve's pixel, sooner or later; each comes once.
    void pixel() {
        if (served_.empty()) {
            return;
        }
        const size_t recent = std::min<size_t>(served_.size(), 80);
        Served& s = served_[served_.size() - 1 - rng_.below(recent)];
        if (s.pixel || now_ - s.at > 2 * kLength) {
            return;
        }
        s.pixel = true;
        const uint64_t there = reservations_.unreserve(times(s.day), s.at, s.n);
        EXPECT_EQ(there, s.reserved ? s.n : 0);
        if (now_ - s.at < kReservation * 1000 && today() == s.day) {
            EXPECT_EQ(there, s.n) << "a reservation lasts its time";
        }
        const uint64_t missing = s.n - there;
        if (missing > 0 && wall_[s.day] + missing > kCap) {
            late++;
            return;
        }
        wall_[s.day] += missing;
        confirmed_[s.day] += s.n;
        billed++;
    }

    void tick() {
        const Day day = today();
        const BucketTimes t = times(day);
        reservations_.expire(t, now_, [&](Day of, uint64_t n) { freed(of, n); });
        forget([&](const Served& s) {
            return s.day != day || t.number(now_) - t.number(s.at) >= kBuckets;
        });
    }

    void check() {
        std::map<Day, uint64_t> flying;
        for (const Served& s : served_) {
            flying[s.day] += s.reserved && !s.pixel ? s.n : 0;
        }
        for (const auto& [day, used] : wall_) {
            ASSERT_LE(used, kCap);
            ASSERT_EQ(used, confirmed_[day] + flying[day]) << "the wall is confirmed + in flight";
        }
        ASSERT_EQ(reservations_.in_flight(times(today())), flying[today()]);
    }

    Rng rng_;
    Millis now_ = 0;
    Reservations reservations_;
    std::map<Day, uint64_t> wall_;
    std::map<Day, uint64_t> confirmed_;
    std::vector<Served> served_;
};

TEST(PacingReservations, TheWallIsConfirmedAndInFlight) {
    uint64_t late = 0;
    uint64_t billed = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        Model model(seed);
        model.run(1500);
        late += model.late;
        billed += model.billed;
        ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
    EXPECT_GT(late, 100u) << "the case was met";
    EXPECT_GT(billed, 5000u);
}

}  // namespace
