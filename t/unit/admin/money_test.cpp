// Money as people write and read it.
#include "lib/base/money.hpp"

#include <gtest/gtest.h>

#include "core/catalog/currency.hpp"

namespace ads::admin {
namespace {

TEST(Money, IsReadInUnitsWithAtMostTwoDecimals) {
    EXPECT_EQ(parse_money("50.00"), 5000u);
    EXPECT_EQ(parse_money("50"), 5000u);
    EXPECT_EQ(parse_money("2.5"), 250u);
    EXPECT_EQ(parse_money("0.05"), 5u);
    EXPECT_EQ(parse_money("0"), 0u);
    EXPECT_EQ(parse_money("100000000.00"), 10'000'000'000u);
    for (const char* wrong : {"", ".", "5.", ".5", "2.505", "0.001", "-1", "+1", "1,50", "1 000",
                              "1e3", "5 EUR", "100000000.01", "99999999999999999999", "0x10"}) {
        EXPECT_EQ(parse_money(wrong), std::nullopt) << wrong;
    }
}

TEST(Money, IsShownWithTheDigitsOfItsCurrency) {
    constexpr MicroCents kFifty = 5000 * kMicroPerCent;
    EXPECT_EQ(money_text(kFifty), "50.00");
    EXPECT_EQ(money_text(kFifty, "EUR"), "50.00 EUR");
    EXPECT_EQ(money_text(kFifty, "JPY"), "50 JPY");
    EXPECT_EQ(money_text(kFifty, "KWD"), "50.000 KWD");
    EXPECT_EQ(money_text(0), "0.00");
    EXPECT_EQ(money_text(-kFifty, "JPY"), "-50 JPY");
}

TEST(Money, IsNeverShownAsLessThanItIs) {
    EXPECT_EQ(money_text(12'500'000), "0.125");
    EXPECT_EQ(money_text(1), "0.00000001");
    EXPECT_EQ(money_text(505 * kMicroPerCent / 10, "JPY"), "0.505 JPY");
}

TEST(Money, FiguresAreRounded) {
    EXPECT_EQ(rounded_money(1234.567), "12.35");
    EXPECT_EQ(rounded_money(1234.567, "USD"), "12.35 USD");
    EXPECT_EQ(rounded_money(1234.567, "JPY"), "12 JPY");
    EXPECT_EQ(rounded_money(1234.567, "TND"), "12.346 TND");
}

TEST(Money, BudgetsSayWhatTheyAreFor) {
    const auto day = parse_budget("50.00/day");
    ASSERT_TRUE(day);
    EXPECT_EQ(day->type, BudgetType::daily);
    EXPECT_EQ(day->cents, 5000u);
    const auto total = parse_budget("5000/total");
    ASSERT_TRUE(total);
    EXPECT_EQ(total->type, BudgetType::lifetime);
    EXPECT_EQ(total->cents, 500'000u);
    for (const char* wrong :
         {"", "50", "daily:5000", "50/week", "/day", "50.001/day", "-5/day", "none"}) {
        EXPECT_FALSE(parse_budget(wrong)) << wrong;
    }
    EXPECT_EQ(budget_text(BudgetType::daily, 5000 * kMicroPerCent, "EUR"), "50.00 EUR/day");
    EXPECT_EQ(budget_text(BudgetType::lifetime, 5000 * kMicroPerCent), "50.00/total");
}

TEST(Money, TheOldSpellingIsRefusedWithTheNewOne) {
    EXPECT_NE(budget_fault("daily:5000").find("\"daily:5000\"; write 50.00/day"),
              std::string::npos);
    EXPECT_NE(budget_fault("lifetime:123405").find("1234.05/total"), std::string::npos);
    EXPECT_EQ(budget_fault("daily:x").find("now written"), std::string::npos);
}

TEST(Money, CurrenciesAreThoseOfIso4217) {
    for (const char* code : {"EUR", "USD", "JPY", "KWD", "CLF", "ZWG", "AED"}) {
        EXPECT_TRUE(catalog::valid_currency(code)) << code;
    }
    for (const char* code : {"", "EU", "EURO", "eur", "EDA", "XTS", "DEM", "URF"}) {
        EXPECT_FALSE(catalog::valid_currency(code)) << code;
    }
    EXPECT_EQ(catalog::currency_digits("EUR"), 2);
    EXPECT_EQ(catalog::currency_digits("JPY"), 0);
    EXPECT_EQ(catalog::currency_digits("BHD"), 3);
    EXPECT_EQ(catalog::currency_digits(""), 2);
}

}  // namespace
}  // namespace ads::admin
