// Walls, billing and the pacer in shared memory.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <thread>

#include "core/base/rng.hpp"
#include "core/catalog/compile.hpp"
#include "ledger/billing.hpp"
#include "ledger/pacer.hpp"
#include "ledger_memory.hpp"

namespace {

using namespace ads;
using pacing::BucketTimes;
using pacing::kUnlimited;

constexpr Seconds kNoon = 1'794'830'400;  // 2026-11-16T12:00:00Z
constexpr Seconds kReservation = 120;
constexpr Millis kNow = kNoon * 1000;

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

// ---- a catalog on a state ----

struct GroupOf {
    std::string pacing;
    std::string price = R"({"model": "cpm", "amount_cents": 1000})";  // a cent each
};

class PacingFixture : public testing::Test {
protected:
    static constexpr uint32_t kSlots = 64;

    PacingFixture() : memory_(State::size(64, kSlots)) {
        State::format(memory_.span(), 64, kSlots, 1);
        state_ = State::attach(memory_.data());
    }

    void load(const std::vector<GroupOf>& groups, const std::string& budget = "",
              const std::string& timezone = "UTC", Seconds at = kNoon) {
        std::string list;
        Id id = 1;
        for (const auto& group : groups) {
            list +=
                (list.empty() ? "" : ", ") + (R"({"id": )" + std::to_string(id)) +
                R"(, "price": )" + group.price +
                (group.pacing.empty() ? "" : R"(, "pacing": )" + group.pacing) +
                R"(, "creatives": [{"id": )" + std::to_string(100 + id) +
                R"(, "type": "native", "content": {"t": "x"}, "click_url": "https://a.example/"}]})";
            id++;
        }
        const std::string text =
            R"({"placements": [{"id": "p"}], "campaigns": [{"id": 7, "timezone": ")" + timezone +
            '"' + (budget.empty() ? "" : R"(, "budget": )" + budget) + R"(, "ad_groups": [)" +
            list + "]}]}";
        compiled_ = catalog::compile(text, at);
        ASSERT_TRUE(compiled_.ok())
            << compiled_.errors.front().path << ": " << compiled_.errors.front().message;
        image_ = compiled_.image();
        groups_.assign(image_.groups().size(), {});
        campaigns_.assign(image_.campaigns().size(), {});
        const SlotList keys(image_, groups_, campaigns_);
        std::vector<uint32_t> slots(keys.keys.size());
        ASSERT_EQ(state_.assign_slots(keys.keys, slots, at), 0u);
        keys.set(slots);
        pacer_.emplace(state_, kReservation);
        pacer_->bind(image_, {groups_, campaigns_});
        tick(at * 1000);
    }

    void tick(Millis now) {
        pacer_->begin(now);
        while (pacer_->step(3)) {
        }
    }

    Billing billing() {
        slots_ = {groups_, campaigns_};
        return {image_, slots_, state_, kReservation};
    }

    bool serve(Millis now, uint32_t group = 0) {
        reserved_ = 0;
        if (!billing().take(group, now, reserved_)) {
            return false;
        }
        count(Counter::serves, now, group);
        return true;
    }

    void count(Counter counter, Millis now, uint32_t group = 0) {
        const Day day = image_.day_of(image_.campaigns()[0], now / 1000);
        state_.slot(groups_[group].counters).at(counter).count(day, 1, day);
        state_.mark_tossed(groups_[group].counters);
    }

    Invalid event(EventType type, Millis served, Millis now, uint32_t group = 0) {
        const Event event{.type = type,
                          .time = now,
                          .issued = served,
                          .ad_group = image_.groups()[group].id,
                          .price = image_.groups()[group].price_of(type)};
        return billing().settle(event, group, reserved_);
    }

    PaceSlot& pace(uint32_t group = 0) { return state_.pace(groups_[group].impressions_pace); }
    WallSlot& budget() { return state_.wall(campaigns_[0].budget); }
    uint64_t spent(Millis now = kNow) {
        return budget().used.read(image_.day_of(image_.campaigns()[0], now / 1000));
    }

    ledger_test::Memory memory_;
    State state_;
    catalog::Compiled compiled_;
    Image image_;
    std::vector<GroupSlots> groups_;
    std::vector<CampaignSlots> campaigns_;
    Slots slots_;
    std::optional<Pacer> pacer_;
    MicroCents reserved_ = 0;
};

constexpr uint64_t kCent = 1'000'000;

using LedgerBilling = PacingFixture;
using LedgerPacer = PacingFixture;

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
                        Settled settled;
                        ASSERT_EQ(billing().settle(event, 0, reserved_, settled), Invalid::none);
                        billing().undo(event, 0, settled);
                        ASSERT_EQ(walls(), before)
                            << model << ' ' << name_of(type) << ' ' << wait << ' ' << budget;
                    }
                    ASSERT_EQ(billing().settle(event, 0, reserved_), Invalid::none);
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
    Settled settled;
    ASSERT_EQ(billing().settle(event, 0, reserved_, settled), Invalid::none);
    ASSERT_TRUE(serve(kNow + 16 * kReservation * 1000 / 15)) << "in the same place";
    billing().undo(event, 0, settled);
    EXPECT_EQ(spent(), kCent) << "what is in flight of the other";
}

// ---- the pacer ----

TEST_F(LedgerPacer, TheFirstRoundComesBeforeTheFirstRequest) {
    load({{R"({"strategy": "asap", "daily_impression_cap": 3})"},
          {R"({"strategy": "adaptive", "daily_impression_cap": 100000})"},
          {R"({"strategy": "even", "daily_impression_cap": 1000})"},
          {""}});
    EXPECT_EQ(pace(0).threshold, pacing::kAlways);
    EXPECT_GT(pace(1).threshold, pacing::kNever);
    EXPECT_LT(pace(1).threshold, pacing::kAlways);
    EXPECT_EQ(pace(2).allowed_on(320, Strategy::even), 500u) << "noon";
    EXPECT_EQ(pace(2).allowed_on(321, Strategy::even), 0u) << "a new day begins with nothing";
    EXPECT_EQ(pace(1).allowed_on(321, Strategy::adaptive), kUnlimited);
    EXPECT_EQ(groups_[3].impressions_pace, kNone);
}

// A catalog of the afternoon is behind from the start, but not for want of traffic:
// it catches up at twice the rate, and does not pour everything out.
TEST_F(LedgerPacer, ACatalogOfTheAfternoonCatchesUpSmoothly) {
    load({{R"({"daily_impression_cap": 86400})"}});
    Rng rng(5);
    uint64_t served = 0;
    for (Seconds second = kNoon; second < kNoon + 3600; second++) {
        tick(second * 1000);
        for (int i = 0; i < 100; i++) {
            const bool passes = pacing::passes(rng.next(), pace().threshold);
            state_.mark_tossed(groups_[0].counters);
            if (passes && serve(second * 1000 + i)) {
                served++;
            } else {
                state_.refuse(groups_[0].counters, Reason::pacing, 320, 1);
            }
        }
    }
    EXPECT_GT(served, 1.9 * 2 * 3600);
    EXPECT_LT(served, 2.3 * 2 * 3600);
}

TEST_F(LedgerPacer, UsedUpUntilMidnight) {
    load({{R"({"strategy": "asap", "daily_impression_cap": 3})"}}, "", "America/New_York");
    for (int i = 0; i < 3; i++) {
        EXPECT_TRUE(serve(kNow));
    }
    tick(kNow + 1000);
    EXPECT_TRUE(pace().exhausted);
    EXPECT_EQ(pace().threshold, pacing::kNever);
    tick((kNoon + 17 * 3600 - 1) * 1000);  // 23:59:59 there
    EXPECT_TRUE(pace().exhausted);
    tick((kNoon + 17 * 3600) * 1000);
    state_.mark_tossed(groups_[0].counters);
    tick((kNoon + 17 * 3600 + 1) * 1000);
    EXPECT_FALSE(pace().exhausted);
    EXPECT_EQ(pace().threshold, pacing::kAlways);
}

TEST_F(LedgerPacer, OnlyTheTossedAreLookedAtEachSecond) {
    load({{R"({"strategy": "even", "daily_impression_cap": 86400})"},
          {R"({"strategy": "even", "daily_impression_cap": 86400})"}});
    state_.mark_tossed(groups_[1].counters);
    tick(kNow + 1'000);
    EXPECT_EQ(pace(0).allowed_on(320, Strategy::even), 43'200u);
    EXPECT_EQ(pace(1).allowed_on(320, Strategy::even), 43'201u);
    for (Seconds s = 2; s <= 61; s++) {
        tick(kNow + s * 1000);
    }
    EXPECT_GT(pace(0).allowed_on(320, Strategy::even), 43'201u) << "within a minute each is";
    tick(kNow + 3600'000);
    EXPECT_EQ(pace(0).allowed_on(320, Strategy::even), 46'800u) << "all are after a leap";
}

// A whole day of requests, each second a tick: what the simulator shows of the core
// holds for the walls in shared memory, too.
TEST_F(LedgerPacer, ADayIsDeliveredAndNotPassed) {
    constexpr uint64_t kCap = 20'000;
    const Seconds midnight = kNoon - 43'200;
    load({{R"({"daily_impression_cap": 20000})"}}, "", "UTC", midnight);
    Rng rng(3);
    uint64_t served = 0;
    uint64_t at_noon = 0;
    for (Seconds second = midnight; second < midnight + 86'400; second++) {
        tick(second * 1000);
        for (int i = 0; i < 2; i++) {
            const bool passes = pacing::passes(rng.next(), pace().threshold);
            state_.mark_tossed(groups_[0].counters);
            if (passes && serve(second * 1000 + 100 * i)) {
                served++;
            } else {
                state_.refuse(groups_[0].counters, Reason::pacing,
                              image_.day_of(image_.campaigns()[0], second), 1);
            }
        }
        at_noon = second == kNoon ? served : at_noon;
    }
    EXPECT_LE(served, kCap);
    EXPECT_GE(served, kCap * 999 / 1000);
    EXPECT_NEAR(static_cast<double>(at_noon), kCap / 2.0, kCap * 0.01);
}

}  // namespace
