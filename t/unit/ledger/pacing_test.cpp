// Walls and billing in shared memory.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <thread>

#include "pacing_fixture.hpp"

namespace {

using namespace pacing_test;
using pacing::BucketTimes;
using pacing::kUnlimited;

// ---- walls ----

TEST(LedgerWalls, TheLastUnitIsTakenOnce) {
    WallSlot wall{};
    constexpr uint64_t kCap = 1000;
    std::atomic<uint64_t> taken{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++) {
        threads.emplace_back([&] {
            for (int i = 0; i < 1000; i++) {
                taken += wall.take(320, 1, kCap, kUnlimited, 320) ? 1 : 0;
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(taken, kCap);
    EXPECT_EQ(wall.used.read(320), kCap);
    EXPECT_EQ(wall.lifetime, kCap);
}

TEST(LedgerWalls, ALifetimeThatRefusesGivesTheDayBack) {
    WallSlot wall{};
    EXPECT_TRUE(wall.take(320, 6, 10, 8, 320));
    EXPECT_FALSE(wall.take(320, 3, 10, 8, 320));
    EXPECT_EQ(wall.used.read(320), 6u);
    EXPECT_TRUE(wall.take(321, 2, 10, 8, 321)) << "a new day, the same lifetime";
    EXPECT_FALSE(wall.take(321, 1, 10, 8, 321));
}

// confirmed + in flight never passes the limit, and what is confirmed is all that
// was let through: against a list of serves.
TEST(LedgerWalls, ReservationsEqualAListOfServes) {
    for (uint64_t seed = 1; seed <= 30; seed++) {
        Rng rng(seed);
        WallSlot wall{};
        const uint64_t cap = 20 + rng.below(60);
        const BucketTimes times = BucketTimes::of(320, kNoon - 3600, kReservation);
        struct Serve {
            Millis at;
            bool confirmed = false;
        };
        std::deque<Serve> serves;
        uint64_t confirmed = 0;
        Millis now = kNow;
        for (int step = 0; step < 3000; step++) {
            now += static_cast<Millis>(rng.below(2000));
            if (rng.below(3) > 0) {
                if (wall.take(320, 1, cap, kUnlimited, 320)) {
                    wall.reserve(times, now, 1);
                    serves.push_back({now});
                }
            } else if (!serves.empty()) {
                Serve& serve = serves[rng.below(serves.size())];
                if (!serve.confirmed && wall.confirm(times, serve.at, 1, cap, kUnlimited, 320)) {
                    serve.confirmed = true;
                    confirmed++;
                }
            }
            if (step % 7 == 0) {
                wall.expire(times, now);
            }
            ASSERT_LE(wall.used.read(320), cap);
            ASSERT_EQ(wall.used.read(320), confirmed + wall.in_flight(times));
        }
        EXPECT_EQ(confirmed, cap) << "there was time enough";
    }
}

// ---- billing ----

constexpr uint64_t kCent = 1'000'000;

using LedgerBilling = PacingFixture;

TEST_F(LedgerBilling, ServesUpToTheCap) {
    load({{R"({"strategy": "asap", "daily_impression_cap": 3})"}});
    int served = 0;
    for (int i = 0; i < 10; i++) {
        served += serve(kNow + i) ? 1 : 0;
    }
    EXPECT_EQ(served, 3);
    EXPECT_TRUE(serve(kNow + 12 * 3'600'000)) << "a new day";
}

TEST_F(LedgerBilling, BudgetIsReservedConfirmedOrFreed) {
    load({{R"({"strategy": "asap"})"}}, R"({"type": "daily", "amount_cents": 2})");
    EXPECT_TRUE(serve(kNow));
    EXPECT_TRUE(serve(kNow + 1));
    EXPECT_FALSE(serve(kNow + 2)) << "all is reserved";
    EXPECT_EQ(event(EventType::impression, kNow, kNow + 2000), Invalid::none);
    tick(kNow + 140'000);
    EXPECT_EQ(spent(), kCent) << "the other pixel did not come";
    EXPECT_TRUE(serve(kNow + 140'000));
    EXPECT_EQ(event(EventType::impression, kNow + 1, kNow + 141'000), Invalid::late)
        << "its place is another's";
    EXPECT_EQ(event(EventType::impression, kNow + 140'000, kNow + 142'000), Invalid::none);
    EXPECT_EQ(spent(), 2 * kCent);
}

TEST_F(LedgerBilling, ALatePixelIsBilledWhereThereIsRoom) {
    load({{R"({"strategy": "asap", "cap_on": "impression", "daily_impression_cap": 2})"}});
    EXPECT_TRUE(serve(kNow));
    tick(kNow + 140'000);
    EXPECT_EQ(event(EventType::impression, kNow, kNow + 150'000), Invalid::none);
    EXPECT_TRUE(serve(kNow + 150'000));
    EXPECT_FALSE(serve(kNow + 150'001));
}

TEST_F(LedgerBilling, ClicksReserveAnExpectationAndPayInFull) {
    load({{R"({"strategy": "asap"})", R"({"model": "cpc", "amount_cents": 40})"}},
         R"({"type": "daily", "amount_cents": 60})");
    EXPECT_TRUE(serve(kNow));
    EXPECT_EQ(reserved_, static_cast<MicroCents>(40 * kCent / 1000));
    EXPECT_EQ(event(EventType::impression, kNow, kNow + 1000), Invalid::none);
    EXPECT_EQ(spent(), 0u) << "released with the impression";
    EXPECT_EQ(event(EventType::click, kNow, kNow + 2000), Invalid::none);
    EXPECT_EQ(spent(), 40 * kCent);
    EXPECT_FALSE(serve(kNow + 2500)) << "the next click could not be paid";
    EXPECT_EQ(event(EventType::click, kNow, kNow + 3000), Invalid::over_budget);
    EXPECT_EQ(spent(), 40 * kCent);
}

// The share of serves that are seen: of clicks it is what resolves, not what is paid.
TEST_F(LedgerBilling, AnImpressionThatResolvesAClicksReservationIsConfirmed) {
    load({{R"({"strategy": "asap"})", R"({"model": "cpc", "amount_cents": 40})"}},
         R"({"type": "daily", "amount_cents": 6000})");
    uint64_t seen = 0;
    for (int i = 0; i < 10; i++) {
        ASSERT_TRUE(serve(kNow + i));
        if (i % 5 != 0) {
            EXPECT_EQ(event(EventType::impression, kNow + i, kNow + 1000), Invalid::none);
            seen += static_cast<uint64_t>(reserved_);
        }
    }
    EXPECT_EQ(budget().confirmed.read(320), seen);
    EXPECT_EQ(spent(), seen / 4) << "in flight: two of ten";
    tick(kNow + 140'000);
    EXPECT_EQ(spent(), 0u);
    EXPECT_EQ(budget().expired.read(320), seen / 4);
    ASSERT_TRUE(serve(kNow + 150'000));
    billing().give_back(0, kNow + 150'000, reserved_);
    EXPECT_EQ(budget().confirmed.read(320), seen) << "a serve that is undone was not seen";
    EXPECT_EQ(spent(), 0u);
}

TEST_F(LedgerBilling, WhatAServeIsWorthOutlivesMidnight) {
    load({{R"({"strategy": "asap"})", R"({"model": "cpc", "amount_cents": 40})"}},
         R"({"type": "daily", "amount_cents": 6000})");
    for (int i = 0; i < 9000; i++) {
        count(Counter::impressions, kNow);
        if (i % 20 == 0) {
            count(Counter::clicks, kNow);
        }
    }
    const uint64_t price = billing().price(0, 320);
    EXPECT_EQ(price, 40 * kCent * 451 / 10'000);
    EXPECT_EQ(billing().price(0, 321), price) << "tomorrow";
    EXPECT_EQ(billing().price(0, 322), 40 * kCent / 1000) << "the day after knows nothing";
}

// Money for which a bucket has no room is not served, rather than never freed.
TEST_F(LedgerBilling, ABucketThatIsFullRefuses) {
    load({{R"({"strategy": "asap"})", R"({"model": "flat", "amount_cents": 100000000})"}},
         R"({"type": "daily", "amount_cents": 1000000000})");
    int served = 0;
    while (served < 100 && serve(kNow)) {
        served++;
    }
    EXPECT_EQ(served, 2) << "of 10^14 micro-cents each";
    EXPECT_EQ(spent(), 2 * 100'000'000 * kCent) << "what was refused is given back";
    EXPECT_TRUE(serve(kNow + 8000)) << "the next bucket";
    tick(kNow + 200'000);
    EXPECT_EQ(spent(), 0u) << "all of it is freed";
}

TEST_F(LedgerBilling, APixelThatTheBudgetDoesNotPayTakesNothingOfTheCap) {
    load({{R"({"strategy": "asap", "cap_on": "impression", "daily_impression_cap": 5})"}},
         R"({"type": "daily", "amount_cents": 1})");
    EXPECT_TRUE(serve(kNow));
    tick(kNow + 140'000);
    EXPECT_TRUE(serve(kNow + 140'000));
    EXPECT_EQ(event(EventType::impression, kNow + 140'000, kNow + 141'000), Invalid::none);
    EXPECT_EQ(event(EventType::impression, kNow, kNow + 141'000), Invalid::late);
    const WallSlot& cap = state_.wall(groups_[0].impressions);
    EXPECT_EQ(cap.used.read(320), 1u);
    EXPECT_EQ(cap.lifetime, 1u);
    EXPECT_EQ(cap.confirmed.read(320), 1u) << "only what is billed is confirmed";
}

TEST_F(LedgerBilling, MidnightDoesNotFreeWhatIsInFlightOfALifetime) {
    load({{R"({"strategy": "asap", "cap_on": "impression", "goal": {"impressions": 1}})"}},
         R"({"type": "lifetime", "amount_cents": 1})");
    const Millis late = kNow + 43'200'000 - 5'000;  // five seconds before midnight
    EXPECT_TRUE(serve(late));
    tick(late + 10'000);
    EXPECT_FALSE(serve(late + 10'000));
    EXPECT_EQ(event(EventType::impression, late, late + 15'000), Invalid::none);
    tick(late + 200'000);
    EXPECT_FALSE(serve(late + 200'000));
}

// What is served before midnight and never seen is given back to the day it was taken from,
// so that the days of a limit add up to the whole.
TEST_F(LedgerBilling, WhatExpiresAfterMidnightIsOfTheDayOfItsServe) {
    load({{R"({"strategy": "asap", "cap_on": "impression", "goal": {"impressions": 90}})"}},
         R"({"type": "lifetime", "amount_cents": 90})");
    const Millis midnight = kNow + 43'200'000;
    const std::array<WallSlot*, 2> walls{&state_.wall(groups_[0].impressions), &budget()};
    const auto check = [&](uint64_t yesterday, uint64_t today, const char* when) {
        for (size_t i = 0; i < walls.size(); i++) {
            const uint64_t unit = i == 0 ? 1 : kCent;
            EXPECT_EQ(walls[i]->used.read(320), yesterday * unit) << when << ' ' << i;
            EXPECT_EQ(walls[i]->used.read(321), today * unit) << when << ' ' << i;
            EXPECT_EQ(walls[i]->lifetime, (yesterday + today) * unit) << when << ' ' << i;
        }
    };
    for (int i = 0; i < 5; i++) {
        ASSERT_TRUE(serve(midnight - 10'000));
    }
    ASSERT_TRUE(serve(midnight + 10'000));
    check(5, 1, "in flight");
    EXPECT_EQ(event(EventType::impression, midnight - 10'000, midnight + 20'000), Invalid::none);
    tick(midnight + 124'000);
    check(1, 1, "the tick frees it");
    EXPECT_EQ(walls[0]->expired.read(320), 4u);
    EXPECT_EQ(walls[0]->expired.read(321), 0u);
    // A serve that takes the place of an old bucket frees that as well.
    ASSERT_TRUE(serve(midnight + 10'000 + 16 * 8000));
    check(1, 1, "a serve frees it");
    EXPECT_EQ(walls[0]->expired.read(321), 1u);
}

// A process that was stopped before midnight, or whose clock went back, does not give today's
// reservations back to a day of last week.
TEST_F(LedgerBilling, AProcessStillInYesterdayLeavesTodaysReservations) {
    struct Case {
        const char* limits;
        const char* budget;
    };
    for (const Case& at :
         {Case{R"({"strategy": "asap", "cap_on": "impression", "daily_impression_cap": 9})",
               R"({"type": "daily", "amount_cents": 9})"},
          Case{R"({"strategy": "asap", "cap_on": "impression", "goal": {"impressions": 90}})",
               R"({"type": "lifetime", "amount_cents": 90})"}}) {
        load({{at.limits}}, at.budget);
        const Millis midnight = kNow + 43'200'000;
        const std::array<WallSlot*, 2> walls{&state_.wall(groups_[0].impressions), &budget()};
        const auto check = [&](uint64_t yesterday, uint64_t today, const char* when) {
            for (size_t i = 0; i < walls.size(); i++) {
                const uint64_t unit = i == 0 ? 1 : kCent;
                EXPECT_EQ(walls[i]->used.read(320), yesterday * unit) << at.limits << when << i;
                EXPECT_EQ(walls[i]->used.read(321), today * unit) << at.limits << when << i;
            }
        };
        ASSERT_TRUE(serve(midnight + 1000));
        tick(midnight - 300'000);
        check(0, 1, "a late tick leaves it");
        ASSERT_TRUE(serve(midnight - 128'000 + 1000));
        check(1, 0, "a late serve takes its bucket, and frees it");
        ASSERT_TRUE(serve(midnight + 20'000));
        tick(midnight + 150'000);
        check(0, 0, "each day gets its own");
        ASSERT_TRUE(serve(midnight + 200'000));
        tick(midnight + 330'000);
        check(0, 0, "nothing is left");
    }
}

TEST_F(LedgerBilling, ALimitThatIsNewCountsWhatWasBefore) {
    load({{""}});
    for (int i = 0; i < 4; i++) {
        count(Counter::serves, kNow);
        count(Counter::impressions, kNow);
    }
    state_.slot(groups_[0].counters).at(Counter::spend).count(320, 4 * kCent, 320);
    load({{R"({"strategy": "asap", "daily_impression_cap": 6})"}},
         R"({"type": "daily", "amount_cents": 5})");
    billing().catch_up(kNoon);
    billing().catch_up(kNoon);
    EXPECT_TRUE(serve(kNow));
    EXPECT_FALSE(serve(kNow)) << "the budget is used up";
    EXPECT_EQ(state_.wall(groups_[0].impressions).used.read(320), 5u);
}

TEST_F(LedgerBilling, ViewableOnesPayWhenSeen) {
    load({{R"({"strategy": "asap"})", R"({"model": "vcpm", "amount_cents": 1000})"}},
         R"({"type": "daily", "amount_cents": 1})");
    EXPECT_TRUE(serve(kNow));
    EXPECT_EQ(event(EventType::impression, kNow, kNow + 1000), Invalid::none);
    EXPECT_FALSE(serve(kNow + 1000)) << "still reserved";
    EXPECT_EQ(event(EventType::viewable, kNow, kNow + 2000), Invalid::none);
    EXPECT_EQ(spent(), kCent);
}

TEST_F(LedgerBilling, AGroupThatIsRefusedByTheBudgetGetsItsUnitBack) {
    load({{R"({"strategy": "asap", "daily_impression_cap": 5})"}},
         R"({"type": "daily", "amount_cents": 2})");
    EXPECT_TRUE(serve(kNow));
    EXPECT_TRUE(serve(kNow));
    EXPECT_FALSE(serve(kNow));
    EXPECT_EQ(state_.wall(groups_[0].impressions).used.read(320), 2u);
}

TEST_F(LedgerBilling, WhatIsTakenBackIsFree) {
    load({{R"({"strategy": "asap", "cap_on": "impression", "daily_impression_cap": 1})"}},
         R"({"type": "daily", "amount_cents": 1})");
    for (int i = 0; i < 5; i++) {
        ASSERT_TRUE(serve(kNow + i)) << i;
        billing().give_back(0, kNow + i, reserved_);
    }
}

TEST_F(LedgerBilling, ALifetimeBudgetKnowsWhatTheCatalogSays) {
    load({{R"({"strategy": "asap"})"}},
         R"({"type": "lifetime", "amount_cents": 10, "spent_cents": 8})");
    EXPECT_TRUE(serve(kNow));
    EXPECT_EQ(event(EventType::impression, kNow, kNow + 1000), Invalid::none);
    EXPECT_TRUE(serve(kNow + 86'400'000)) << "tomorrow";
    EXPECT_FALSE(serve(kNow + 86'400'000));
}

// An event that could not be written leaves no trace, whatever it is of and whenever it comes.
TEST_F(LedgerBilling, WhatIsUndoneLeavesNoTrace) {
    const auto of = [](const WallSlot& wall) {
        std::vector<uint64_t> all{wall.used.read(320), wall.confirmed.read(320), wall.lifetime};
        for (const auto& bucket : wall.buckets) {
            all.push_back(bucket);
        }
        return all;
    };
    const std::string pacing =
        R"({"strategy": "asap", "cap_on": "impression", "daily_impression_cap": 50, "daily_click_cap": 50})";
    for (const char* budget : {R"({"type": "daily", "amount_cents": 5000})",
                               R"({"type": "lifetime", "amount_cents": 5000})"}) {
        for (const char* model : {"cpm", "vcpm", "cpc", "cpa", "flat"}) {
            for (const Millis wait : {Millis{1000}, Millis{300'000}}) {
                load(
                    {{pacing, R"({"model": ")" + std::string(model) + R"(", "amount_cents": 40})"}},
                    budget);
                ASSERT_TRUE(serve(kNow));
                const Millis now = kNow + wait;
                if (wait > 100'000) {
                    tick(now);
                }
                for (const auto type : {EventType::impression, EventType::viewable,
                                        EventType::click, EventType::conversion}) {
                    const Event event{.type = type,
                                      .time = now,
                                      .issued = kNow,
                                      .ad_group = 1,
                                      .price = image_.groups()[0].price_of(type)};
                    const auto walls = [&] {
                        return std::array{of(this->budget()), of(state_.wall(groups_[0].clicks)),
                                          of(state_.wall(groups_[0].impressions))};
                    };
                    const auto before = walls();
                    for (int i = 0; i < 3; i++) {
                        Charged charged;
                        ASSERT_EQ(billing().charge(event, 0, reserved_, charged), Invalid::none);
                        billing().undo(event, 0, charged);
                        ASSERT_EQ(walls(), before)
                            << model << ' ' << name_of(type) << ' ' << wait << ' ' << budget;
                    }
                    ASSERT_EQ(billing().charge(event, 0, reserved_), Invalid::none);
                }
            }
        }
    }
}

// What was in flight is not put into the place of another time.
TEST_F(LedgerBilling, WhatIsUndoneTooLateIsFree) {
    load({{R"({"strategy": "asap"})"}}, R"({"type": "daily", "amount_cents": 2})");
    ASSERT_TRUE(serve(kNow));
    const Event event{.type = EventType::impression,
                      .time = kNow + 1000,
                      .issued = kNow,
                      .ad_group = 1,
                      .price = static_cast<MicroCents>(kCent)};
    Charged charged;
    ASSERT_EQ(billing().charge(event, 0, reserved_, charged), Invalid::none);
    ASSERT_TRUE(serve(kNow + 16 * kReservation * 1000 / 15)) << "in the same place";
    billing().undo(event, 0, charged);
    EXPECT_EQ(spent(), kCent) << "what is in flight of the other";
}

}  // namespace
