#include "core/pacing/limits.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ads;
using namespace ads::pacing;

constexpr Seconds kDay = 86'400;
constexpr Seconds kMidnight = 1'794'787'200;  // 2026-11-16T00:00:00Z
constexpr MicroCents kCent = kMicroPerCent;

TEST(PacingPrice, WhatAServeIsExpectedToCost) {
    struct Row {
        PriceModel model;
        MicroCents price;
        uint64_t events;
        uint64_t impressions;
        double expected;
    };
    const Row rows[] = {
        {PriceModel::cpm, 250'000, 0, 0, 250'000},
        {PriceModel::cpm, 250'000, 99, 1'000'000, 250'000},
        {PriceModel::vcpm, 400'000, 7, 9, 400'000},
        {PriceModel::flat, kCent, 0, 0, 1'000'000},
        // (events + 1) / (impressions + 1000)
        {PriceModel::cpc, 40 * kCent, 0, 0, 40'000},
        {PriceModel::cpc, 40 * kCent, 9, 0, 400'000},
        {PriceModel::cpc, 40 * kCent, 9, 9000, 40'000},
        {PriceModel::cpc, 40 * kCent, 0, 39'000, 1000},
        {PriceModel::cpa, 1000 * kCent, 1, 1000, 1'000'000},
        {PriceModel::cpa, 0, 1, 1000, 0},
    };
    for (const Row& row : rows) {
        EXPECT_DOUBLE_EQ(expected_price(row.model, row.price, row.events, row.impressions),
                         row.expected);
    }
}

TEST(PacingPrice, WhatIsReservedIsWholeAndNeverNothing) {
    EXPECT_EQ(reserved_price(PriceModel::cpm, 250'000, 0, 0), 250'000u);
    EXPECT_EQ(reserved_price(PriceModel::cpc, 40 * kCent, 0, 0), 40'000u);
    EXPECT_EQ(reserved_price(PriceModel::cpc, 1, 0, 0), 1u) << "a thousandth of a micro-cent";
    EXPECT_EQ(reserved_price(PriceModel::cpc, 1000, 1, 1001), 1u);
    EXPECT_EQ(reserved_price(PriceModel::cpc, 1001, 1, 1000), 2u) << "rounded up";
    EXPECT_EQ(reserved_price(PriceModel::cpa, 0, 5, 10), 0u);
}

TEST(PacingShare, OfABudgetForSeveralDays) {
    struct Row {
        double amount;
        double before;
        double part;
        double unit;
        double share;
    };
    const Row rows[] = {
        {30'000, 0, 1.0 / 30, 1, 1000},
        {30'000, 20'000, 0.1, 1, 1000},
        {30'000, 29'000, 1, 1, 1000},
        {30'000, 0, 1 / 10.5, 1, 2858},  // rounded up
        {30'000, 0, 1, 1, 30'000},       // the last day
        {30'000, 0, 0, 1, 0},            // a day that is closed
        {30'000, 30'000, 0.2, 1, 0},     // used up
        {30'000, 30'001, 0.2, 1, 0},     // more than that: a late pixel
        {10, 0, 1.0 / 30, 1, 1},         // ten in thirty days: one a day, not 0.33
        {10, 9, 1.0 / 30, 1, 1},
        {1'000'000, 0, 1.0 / 30, 250'000, 250'000},        // money: at least one price
        {1'000'000, 900'000, 1.0 / 30, 250'000, 100'000},  // but no more than there is
    };
    for (const Row& row : rows) {
        EXPECT_DOUBLE_EQ(todays_share(row.amount, row.before, row.part, row.unit), row.share)
            << row.amount << " " << row.before;
    }
}

// Each day an equal share of what is left: nothing stays, whatever was missed.
TEST(PacingShare, AFlightIsUsedUp) {
    for (const double missed : {0.0, 0.3}) {
        double before = 0;
        for (int day = 0; day < 10; day++) {
            const double share = todays_share(1'000'003, before, 1.0 / (10 - day), 1);
            before += day == 9 ? share : share * (1 - missed);
        }
        EXPECT_DOUBLE_EQ(before, 1'000'003) << missed;
    }
}

TEST(PacingWalls, WhichHoldsWhen) {
    const uint64_t whole = 5000 * kCent;
    for (const Strategy strategy :
         {Strategy::asap, Strategy::even, Strategy::pid, Strategy::adaptive}) {
        EXPECT_EQ(budget_walls(BudgetType::daily, 5000 * kCent, 1.2, strategy), (Walls{whole}))
            << name_of(strategy);
        EXPECT_EQ(budget_walls(BudgetType::lifetime, 5000 * kCent, 1.2, strategy),
                  (Walls{kUnlimited, whole}));
    }
    const auto hard = [&](double factor) {
        return budget_walls(BudgetType::daily, 5000 * kCent, factor, Strategy::probabilistic);
    };
    EXPECT_EQ(hard(1.2), (Walls{6000 * kCent}));
    EXPECT_EQ(hard(1.2F), (Walls{6000 * kCent})) << "as the image has it";
    EXPECT_EQ(hard(1.0), (Walls{whole}));
    EXPECT_EQ(hard(2.5), (Walls{12'500 * kCent}));
    EXPECT_EQ(hard(0.5), (Walls{whole})) << "never below the budget";
    EXPECT_EQ(budget_walls(BudgetType::lifetime, 5000 * kCent, 1.2, Strategy::probabilistic),
              (Walls{kUnlimited, whole}))
        << "a lifetime's wall is 100 %";
    EXPECT_EQ(budget_walls(BudgetType::daily, INT64_MAX, 10, Strategy::probabilistic).day,
              kUnlimited);
    EXPECT_EQ(budget_walls(BudgetType::daily, 0, 1.2, Strategy::probabilistic), (Walls{0}));
    EXPECT_EQ(budget_walls(BudgetType::daily, 1, 1.2, Strategy::probabilistic), (Walls{1}))
        << "rounded down";
}

}  // namespace
