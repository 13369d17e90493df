#include "core/pacing/adaptive.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/rng.hpp"
#include "core/pacing/controller.hpp"

namespace {

using namespace ads;
using namespace ads::pacing;

constexpr Seconds kMidnight = 1'794'787'200;  // 2026-11-16T00:00:00Z
constexpr Seconds kDay = 86'400;
constexpr Day kToday = 320;

// Noon of an even day of a million tosses, and a cap of a tenth of that.
Outlook noon() {
    return {.elapsed = 43'200,
            .total = 86'400,
            .passed = 0.5,
            .target = 0.5,
            .target_soon = 0.5 + 30.0 / 86'400,
            .supply = 1'000'000};
}

Delivery half() {
    return {.amount = 86'400, .unit = 1, .used = 43'200, .rate = 10, .seen = 500'000};
}

TEST(PacingAdaptive, FollowsTheTarget) {
    struct Row {
        double used;
        double p;
    };
    // One serve a second is due; lam is 10, tau 300, kappa 2.
    const Row rows[] = {
        {43'200, 0.1},
        {43'170, 0.11},  // 30 behind: made good in 300 s
        {42'900, 0.2},   // 300 behind: 1 + 1, which is nearly all that is allowed
        {42'000, 2 * (44'400.0 / 43'200) / 10},  // at most twice what is due
        {43'350, 0.05},
        {43'500, 0},
        {50'000, 0},
        {86'399, 0},
        {86'400, 0},
        {90'000, 0},
    };
    for (const Row& row : rows) {
        Delivery d = half();
        d.used = row.used;
        EXPECT_NEAR(adaptive(noon(), d, 0.7), row.p, 1e-12) << row.used;
    }
}

TEST(PacingAdaptive, NoTossesNoNews) {
    Delivery d = half();
    d.rate = 0;
    EXPECT_DOUBLE_EQ(adaptive(noon(), d, 0.37), 0.37);
    d.used = d.amount;
    EXPECT_DOUBLE_EQ(adaptive(noon(), d, 0.37), 0) << "unless there is nothing left";
}

TEST(PacingAdaptive, NothingIsLeftBelowOneUnit) {
    Outlook o = noon();
    o.target = o.target_soon = 1;
    Delivery d{.amount = 1'000'000, .unit = 250'000, .used = 750'000, .rate = 1, .seen = 500'000};
    EXPECT_GT(adaptive(o, d, 0), 0) << "exactly one";
    d.used = 750'001;
    EXPECT_EQ(adaptive(o, d, 0), 0);
    d = {.amount = 0, .unit = 0, .used = 0, .rate = 1, .seen = 1};
    EXPECT_EQ(adaptive(o, d, 0), 0);
}

TEST(PacingAdaptive, InUnitsOfMoney) {
    Delivery d = half();
    d.amount *= 250'000;
    d.used *= 250'000;
    d.unit = 250'000;
    EXPECT_NEAR(adaptive(noon(), d, 0), 0.1, 1e-12);
}

TEST(PacingAdaptive, LostPixelsAreMadeUpFor) {
    Delivery d = half();
    d.confirm = 0.8;
    EXPECT_NEAR(adaptive(noon(), d, 0), 0.125, 1e-12);
    EXPECT_DOUBLE_EQ(confirm_rate(0, 0), 0.9);
    EXPECT_DOUBLE_EQ(confirm_rate(910, 1000), 1000.0 / 1100);
    EXPECT_NEAR(confirm_rate(92'000, 100'000), 0.92, 1e-4);
}

// Near the end deviations are made good in a quarter of what is left, in ten
// seconds at the least.
TEST(PacingAdaptive, HurriesAtTheEnd) {
    struct Row {
        double left;
        double horizon;
    };
    for (const Row& row :
         {Row{4000, 300}, Row{1200, 300}, Row{400, 100}, Row{40, 10}, Row{4, 10}}) {
        Outlook o = noon();
        o.elapsed = o.total - row.left;
        o.passed = 1 - row.left / o.total;
        o.target = o.target_soon = 1;
        Delivery d = half();
        d.used = d.amount - 20;
        d.rate = 100;
        d.seen = o.supply * o.passed;
        const double expected = std::min(20 / row.horizon, 2 * 20 / row.left) / 100;
        EXPECT_NEAR(adaptive(o, d, 0), expected, 1e-12) << row.left;
    }
}

TEST(PacingAdaptive, HoldsNothingBackInAShortage) {
    // V·(1 − F) tosses are to come, half of the day's; what is left against that:
    struct Row {
        double supply;
        double seen;
        double p;
    };
    const Row rows[] = {
        {1'000'000, 500'000, 0.1},
        {108'000 * 1.0, 54'000, 0.1},           // 43,200 of 54,000: 0.8, not yet
        {43'200 / 0.9 * 2, 43'200 / 0.9, 0.5},  // 0.9: half way
        {86'400, 43'200, 1},                    // 1: all
        {50'000, 25'000, 1},
    };
    for (const Row& row : rows) {
        Outlook o = noon();
        o.supply = row.supply;
        Delivery d = half();
        d.seen = row.seen;
        EXPECT_NEAR(adaptive(o, d, 0), row.p, 1e-9) << row.supply;
    }
    // A day with half the traffic: level (0.25 + 0.05) / (0.5 + 0.05).
    Outlook o = noon();
    o.supply = 180'000;
    Delivery d = half();
    d.seen = 45'000;
    const double to_come = 180'000 * 0.5 * 0.30 / 0.55;
    EXPECT_NEAR(adaptive(o, d, 0), (43'200 / to_come - 0.8) / 0.2, 1e-9);
    o.passed = 1;
    EXPECT_NEAR(adaptive(o, d, 0), 0.1, 1e-9) << "nothing is to come";
}

// ---- the controller around it ------------------------------------------------

const std::vector<Interval> kAlwaysOpen = {{kMidnight - kDay, kMidnight + 8 * kDay}};

ActiveDay whole_day() {
    return ActiveDay(kAlwaysOpen, kMidnight, kMidnight + kDay);
}

Supply even_supply() {
    return Supply(whole_day(), {});
}

// Twelve hours with three times the traffic of the others.
CurveSums two_steps() {
    Curve curve;
    curve.known.fill(~uint64_t{0});
    curve.known[4] = 0xffff'ffff;
    for (size_t i = 0; i < kBins; i++) {
        curve.bins[i] = i < kBins / 2 ? 100 : 300;
    }
    return CurveSums(curve);
}

double at(double second) {
    return static_cast<double>(kMidnight) + second;
}

TEST(PacingController, TheAimOfCapsAndGoals) {
    struct Row {
        const char* what;
        Terms terms;
        double before;
        double part;
        bool limited;
        double impressions;
        double clicks;  // 0: not limited
    };
    const Terms none;
    Terms cap;
    cap.impression_cap = 20'000;
    Terms goal;
    goal.goal = 500'000;
    Terms both = goal;
    both.impression_cap = 20'000;
    Terms clicks;
    clicks.click_cap = 50;
    Terms click_goal;
    click_goal.goal = 300;
    click_goal.goal_on = EventType::click;
    Terms soon = goal;
    soon.strategy = Strategy::asap;
    const Row rows[] = {
        {"no limit", none, 0, 1, false, 0, 0},
        {"a cap", cap, 0, 1, true, 20'000, 0},
        {"a goal of ten days", goal, 0, 0.1, true, 50'000, 0},
        {"half of it done", goal, 250'000, 0.1, true, 25'000, 0},
        {"on the last day", goal, 490'000, 1, true, 10'000, 0},
        {"of thirty days", goal, 0, 1.0 / 30, true, 16'667, 0},
        {"closed today", goal, 0, 0, true, 0, 0},
        {"done", goal, 500'000, 1, true, 0, 0},
        {"the cap is less", both, 0, 0.1, true, 20'000, 0},
        {"the goal is less", both, 450'000, 0.1, true, 5000, 0},
        {"clicks", clicks, 0, 1, false, 0, 50},
        {"a goal of clicks", click_goal, 100, 0.01, false, 0, 2},
        {"asap waits for no tomorrow", soon, 100'000, 0.1, true, 400'000, 0},
    };
    for (const Row& row : rows) {
        const DayPlan plan = impressions_plan(row.terms, row.before, row.part);
        EXPECT_EQ(plan.limited, row.limited) << row.what;
        if (row.limited) {
            EXPECT_DOUBLE_EQ(plan.amount, row.impressions) << row.what;
            EXPECT_DOUBLE_EQ(plan.stop, row.impressions) << row.what;
            EXPECT_DOUBLE_EQ(plan.unit, 1) << row.what;
        }
        const DayPlan click_aim = clicks_plan(row.terms, 0.002, row.before, row.part);
        EXPECT_EQ(click_aim.limited, row.clicks > 0) << row.what;
        if (row.clicks > 0) {
            EXPECT_DOUBLE_EQ(click_aim.amount, row.clicks) << row.what;
            EXPECT_DOUBLE_EQ(click_aim.unit, 0.002) << row.what;
        }
    }
    Terms billed = cap;
    billed.cap_on = CapOn::impression;
    EXPECT_FALSE(impressions_plan(cap, 0, 1).billed);
    EXPECT_TRUE(impressions_plan(billed, 0, 1).billed);
}

TEST(PacingController, TheAimOfBudgets) {
    const MicroCents cent = kMicroPerCent;
    const auto plan = [&](BudgetType type, Strategy strategy, double before, double part) {
        return budget_plan(type, 3000 * cent, 1.2, strategy, 250'000, before, part);
    };
    const DayPlan daily = plan(BudgetType::daily, Strategy::adaptive, 1e9, 0.1);
    EXPECT_DOUBLE_EQ(daily.amount, 3e9);
    EXPECT_DOUBLE_EQ(daily.stop, 3e9);
    EXPECT_TRUE(daily.billed) << "spend is what pixels confirm";
    EXPECT_DOUBLE_EQ(plan(BudgetType::daily, Strategy::probabilistic, 0, 1).stop, 3.6e9);
    EXPECT_DOUBLE_EQ(plan(BudgetType::lifetime, Strategy::adaptive, 0, 1.0 / 30).amount, 1e8);
    EXPECT_DOUBLE_EQ(plan(BudgetType::lifetime, Strategy::adaptive, 1e9, 0.25).amount, 5e8);
    EXPECT_DOUBLE_EQ(plan(BudgetType::lifetime, Strategy::probabilistic, 0, 1.0 / 30).stop, 1.2e8)
        << "as the source, which treats it as a day's budget";
    EXPECT_DOUBLE_EQ(plan(BudgetType::lifetime, Strategy::asap, 1e9, 0.1).amount, 2e9);
    EXPECT_DOUBLE_EQ(plan(BudgetType::lifetime, Strategy::adaptive, 3e9, 0.1).amount, 0);
    // Correction: never rounded to zero.
    EXPECT_DOUBLE_EQ(
        budget_plan(BudgetType::lifetime, 500'000, 1.2, Strategy::adaptive, 250'000, 0, 1.0 / 30)
            .amount,
        250'000);
}

TEST(PacingController, AllIsToBeDoneBeforeTheEnd) {
    const Supply supply = even_supply();
    DayPlan plan{.limited = true, .amount = 1000};
    const auto target = [&](double second) { return outlook({}, plan, supply, at(second)).target; };
    EXPECT_DOUBLE_EQ(target(0), 0);
    EXPECT_DOUBLE_EQ(target(43'140), 0.5);
    EXPECT_LT(target(86'270), 1);
    EXPECT_DOUBLE_EQ(target(86'280), 1) << "120 s";
    EXPECT_DOUBLE_EQ(target(86'400), 1);
    plan.billed = true;
    EXPECT_LT(target(86'030), 1);
    EXPECT_DOUBLE_EQ(target(86'040), 1) << "360 s where pixels have to confirm";
    // No more than a twentieth of a short day.
    const std::vector<Interval> open = {{kMidnight + 3600, kMidnight + 5600}};
    const Supply brief(ActiveDay(open, kMidnight, kMidnight + kDay), {});
    EXPECT_DOUBLE_EQ(outlook({}, plan, brief, at(3600 + 950)).target, 0.5);
    EXPECT_DOUBLE_EQ(outlook({}, plan, brief, at(3600 + 1900)).target, 1);
    EXPECT_DOUBLE_EQ(outlook({}, plan, brief, at(1000)).target, 0);
}

TEST(PacingController, TheTargetFollowsTheTraffic) {
    const CurveSums sums = two_steps();
    const CurveSums* curves[] = {&sums};
    const Supply supply(whole_day(), curves);
    ASSERT_TRUE(supply.warm());
    DayPlan plan{.limited = true, .amount = 1000};
    const Outlook noon = outlook({}, plan, supply, at(43'200));
    EXPECT_NEAR(noon.passed, 0.25, 0.003);
    EXPECT_NEAR(noon.target, 0.25, 0.005);
    const Outlook evening = outlook({}, plan, supply, at(64'800));
    EXPECT_NEAR(evening.passed, 0.625, 0.003);
    EXPECT_NEAR((evening.target_soon - evening.target) * 86'400 / 30, 1.5, 0.01)
        << "one and a half times the even rate";
    plan.follow_traffic = 0;
    EXPECT_NEAR(outlook({}, plan, supply, at(43'200)).target, 0.5, 0.001) << "w = 0: even";
    plan.follow_traffic = 0.5;
    EXPECT_NEAR(outlook({}, plan, supply, at(43'200)).target, 0.375, 0.005);
}

TEST(PacingController, AColdCurveIsEven) {
    const CurveSums cold;
    const CurveSums warm = two_steps();
    const CurveSums* one[] = {&cold};
    const CurveSums* mixed[] = {&warm, &cold};
    const CurveSums* many[] = {&warm, &warm, &warm, &warm, &warm};
    for (const auto& supply : {Supply(whole_day(), one), Supply(whole_day(), mixed),
                               Supply(whole_day(), many), even_supply()}) {
        EXPECT_FALSE(supply.warm());
        EXPECT_DOUBLE_EQ(supply.whole(), 86'400);
        EXPECT_DOUBLE_EQ(supply.mass(at(43'200)), 43'200);
    }
    const CurveSums* two[] = {&warm, &warm};
    EXPECT_NEAR(Supply(whole_day(), two).whole(), 2 * Supply(whole_day(), {&two[0], 1}).whole(),
                1e-3);
    const DayPlan plan{.limited = true, .amount = 1000, .unit = 4};
    EXPECT_DOUBLE_EQ(outlook({}, plan, even_supply(), at(0)).supply, 2500) << "V = 10·C/u";
    const DayPlan tiny{.limited = true, .amount = 0.01, .unit = 1};
    EXPECT_DOUBLE_EQ(outlook({}, tiny, even_supply(), at(0)).supply, 1) << "at least one";
}

// A day of even tosses, one second after the other.
void live_through(State& state, const DayPlan& plan, const Supply& supply, Day day, double from,
                  double to, double tosses_per_second) {
    for (double t = from; t < to; t += 1) {
        Reading r{.now = t, .day = day};
        r.tosses = static_cast<uint64_t>((t - static_cast<double>(supply.day().begin())) *
                                         tosses_per_second);
        observe(state, r);
        pace(state, plan, supply, r);
    }
}

TEST(PacingController, LearnsItsShareOfTheTraffic) {
    const std::vector<Interval> open = {{kMidnight - kDay, kMidnight + 8 * kDay}};
    const auto supply = [&](int day, std::span<const CurveSums* const> curves) {
        return Supply(ActiveDay(open, kMidnight + day * kDay, kMidnight + (day + 1) * kDay),
                      curves);
    };
    const CurveSums sums = two_steps();
    const CurveSums* curves[] = {&sums};
    const DayPlan plan{.limited = true, .amount = 1e6};
    State state;
    live_through(state, plan, supply(0, {}), kToday, at(0), at(kDay), 5);
    EXPECT_EQ(state.share, 0) << "not before the day is over";
    Reading r{.now = at(kDay), .day = kToday + 1};
    observe(state, r);
    EXPECT_NEAR(state.share, 5, 0.01) << "per second, as long as there is no curve";
    pace(state, plan, supply(1, {}), r);
    EXPECT_NEAR(outlook(state, plan, supply(1, {}), r.now).supply, 432'000, 1000);
    // The curve gets warm: the same tosses of a day.
    pace(state, plan, supply(1, curves), r);
    EXPECT_NEAR(outlook(state, plan, supply(1, curves), r.now).supply, 432'000, 1000);
    live_through(state, plan, supply(1, curves), kToday + 1, at(kDay), at(2 * kDay), 10);
    observe(state, {.now = at(2 * kDay), .day = kToday + 2});
    EXPECT_NEAR(outlook(state, plan, supply(2, curves), at(2 * kDay)).supply,
                0.7 * 432'000 + 0.3 * 864'000, 2000);
    // A few hours teach nothing.
    const double before = state.share;
    live_through(state, plan, supply(2, curves), kToday + 2, at(2 * kDay), at(2 * kDay + 7200),
                 100);
    observe(state, {.now = at(3 * kDay), .day = kToday + 3});
    EXPECT_DOUBLE_EQ(state.share, before);
}

TEST(PacingController, TheDaysTargetIsFixedWhenItBegins) {
    State state;
    observe(state, {.now = at(0), .day = kToday, .before = 1000});
    EXPECT_EQ(state.before, 1000);
    observe(state, {.now = at(50), .day = kToday, .before = 1010});
    EXPECT_EQ(state.before, 1000) << "a late pixel of yesterday moves nothing";
    observe(state, {.now = at(kDay), .day = kToday + 1, .before = 2000});
    EXPECT_EQ(state.before, 2000);
}

TEST(PacingController, TossesASecond) {
    State state;
    observe(state, {.now = at(86'398), .day = kToday, .tosses = 5000});
    EXPECT_EQ(state.rate.value(), 0) << "nothing is known of the time before";
    observe(state, {.now = at(86'399), .day = kToday, .tosses = 5020});
    EXPECT_DOUBLE_EQ(state.rate.value(), 20);
    observe(state, {.now = at(86'400), .day = kToday + 1, .tosses = 20});
    EXPECT_DOUBLE_EQ(state.rate.value(), 20) << "the counter of a new day";
    observe(state, {.now = at(86'401), .day = kToday + 1, .tosses = 10});
    EXPECT_DOUBLE_EQ(state.rate.value(), 20) << "one that went back counts as none";
    const double before = state.rate.value();
    observe(state, {.now = at(86'301), .day = kToday + 1, .tosses = 30});
    EXPECT_DOUBLE_EQ(state.rate.value(), before) << "neither does a clock";
}

// A silence is not a rate: while nobody comes, the last one is all that is known.
TEST(PacingController, WhoVisitsOnlyTheTossedGetsTheSame) {
    Rng rng(3);
    State each;
    State seldom;
    uint64_t tosses = 0;
    for (int s = 0; s < 20'000; s++) {
        const bool quiet = s > 9000 && s < 12'000;
        const uint64_t more = quiet ? 0 : rng.below(s < 5000 ? 3 : 20) / (s < 5000 ? 2 : 1);
        tosses += more;
        const Reading r{.now = at(s), .day = kToday, .tosses = tosses};
        observe(each, r);
        if (more > 0 || s == 0) {
            observe(seldom, r);
        }
        ASSERT_DOUBLE_EQ(each.rate.value(), seldom.rate.value()) << s;
    }
}

TEST(PacingController, WhoeverHasNoLimitIsServed) {
    State state;
    const Pace p = pace(state, {}, even_supply(), {.now = at(5), .day = kToday});
    EXPECT_EQ(p.probability, 1);
    EXPECT_EQ(p.allowed, static_cast<double>(kUnlimited));
}

TEST(PacingController, StrategiesByName) {
    struct Row {
        Strategy strategy;
        double used;
        double probability;
        double allowed;
        PaceStatus status;
        bool exhausted;
    };
    constexpr auto kAll = static_cast<double>(kUnlimited);
    // Noon: half of 86,400 is due, 43,260 by the target of adaptive.
    const Row rows[] = {
        {Strategy::asap, 0, 1, kAll, PaceStatus::under_pace, false},
        {Strategy::asap, 86'399, 1, kAll, PaceStatus::over_pace, false},
        {Strategy::asap, 86'400, 0, kAll, PaceStatus::over_pace, true},
        {Strategy::even, 43'199, 1, 43'200, PaceStatus::on_pace, false},
        {Strategy::even, 43'200, 1, 43'200, PaceStatus::on_pace, false},
        {Strategy::probabilistic, 43'200 * 1.2, 1, kAll, PaceStatus::on_pace, false},
        {Strategy::probabilistic, 43'200 * 1.6, 1 / 1.6, kAll, PaceStatus::over_pace, false},
        {Strategy::probabilistic, 86'400, 0.5, kAll, PaceStatus::over_pace, false},
        {Strategy::probabilistic, 103'680, 0, kAll, PaceStatus::over_pace, true},
        {Strategy::pid, 21'600, 0.3, kAll, PaceStatus::under_pace, false},
        {Strategy::pid, 43'200, 0, kAll, PaceStatus::on_pace, false},
        {Strategy::adaptive, 50'000, 0, kAll, PaceStatus::on_pace, false},
        {Strategy::adaptive, 86'400, 0, kAll, PaceStatus::over_pace, true},
    };
    for (const Row& row : rows) {
        State state;
        const DayPlan plan{.strategy = row.strategy,
                           .limited = true,
                           .amount = 86'400,
                           .stop = row.strategy == Strategy::probabilistic ? 103'680.0 : 86'400.0};
        Reading r{.now = at(43'199), .day = kToday, .tosses = 499'990, .used = row.used};
        observe(state, r);
        r.now = at(43'200);
        r.tosses = 500'000;
        observe(state, r);
        const Pace p = pace(state, plan, even_supply(), r);
        EXPECT_NEAR(p.probability, row.probability, 1e-9) << name_of(row.strategy) << row.used;
        EXPECT_DOUBLE_EQ(p.allowed, row.allowed) << name_of(row.strategy) << row.used;
        EXPECT_EQ(p.status, row.status) << name_of(row.strategy) << row.used;
        EXPECT_EQ(p.exhausted, row.exhausted) << name_of(row.strategy) << row.used;
    }
}

TEST(PacingController, AFlightThatIsUsedUp) {
    for (size_t s = 0; s < kCount<Strategy>; s++) {
        State state;
        const DayPlan plan{.strategy = static_cast<Strategy>(s), .limited = true, .amount = 0};
        const Reading r{.now = at(100), .day = kToday};
        observe(state, r);
        const Pace p = pace(state, plan, even_supply(), r);
        EXPECT_EQ(p.probability, 0);
        EXPECT_EQ(p.allowed, 0);
        EXPECT_TRUE(p.exhausted);
        EXPECT_TRUE(std::isinf(p.utilization));
        EXPECT_EQ(p.status, PaceStatus::over_pace);
    }
}

TEST(PacingController, WhatIsInFlightCountsAsFarAsItIsConfirmed) {
    State state;
    const DayPlan plan{
        .strategy = Strategy::adaptive, .limited = true, .billed = true, .amount = 1000};
    const Reading r{.now = at(43'200),
                    .day = kToday,
                    .used = 400,
                    .in_flight = 100,
                    .confirmed = 410,
                    .resolved = 500};
    observe(state, r);
    EXPECT_DOUBLE_EQ(pace(state, plan, even_supply(), r).used, 400 + 100 * 500.0 / 600);
}

TEST(PacingController, TheFirstTossOfADayMeetsAnOpenDoor) {
    State state;
    const DayPlan plan{.limited = true, .amount = 100};
    Reading r{.now = at(10), .day = kToday};
    observe(state, r);
    EXPECT_DOUBLE_EQ(pace(state, plan, even_supply(), r).probability, 0.1) << "C / (u·V)";
    live_through(state, plan, even_supply(), kToday, at(20), at(80'000), 0.002);
    const double before = state.probability;
    EXPECT_GT(before, 0);
    r = {.now = at(80'000), .day = kToday, .tosses = 160, .used = 100};
    observe(state, r);
    EXPECT_EQ(pace(state, plan, even_supply(), r).probability, 0) << "used up";
    // Midnight, nobody asks, and the probability is the one from before.
    r = {.now = at(kDay), .day = kToday + 1};
    state.rate = {};
    observe(state, r);
    EXPECT_DOUBLE_EQ(
        pace(state, plan,
             Supply(ActiveDay(kAlwaysOpen, kMidnight + kDay, kMidnight + 2 * kDay), {}), r)
            .probability,
        before);
}

}  // namespace
