// Parses and formats money: 50.00, in the catalog's currency. A cent is always 1/100 of the unit,
// whatever the currency.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/types.hpp"

namespace ads::admin {

// "50", "2.5", "0.05" as cents; empty for invalid amounts and parts of a cent.
std::optional<uint64_t> parse_money(std::string_view text);

// The error of parse_money(), with the correct form: "must be …".
std::string money_fault(std::string_view text);

// Exact, with at least the digits of ISO 4217: "50.00", "50.00 EUR", "50 JPY", "0.00125 EUR".
// Without a currency: two digits.
std::string money_text(MicroCents amount, std::string_view currency = {});

// Rounded to the digits of ISO 4217.
std::string rounded_money(double cents, std::string_view currency = {});

// The value of --budget: "50.00/day", "5000/total"; empty if invalid.
struct BudgetText {
    BudgetType type = BudgetType::daily;
    uint64_t cents = 0;
};
std::optional<BudgetText> parse_budget(std::string_view text);

// The error of a --budget, and the correct form.
std::string budget_fault(std::string_view text);

// "50.00 EUR/day"
std::string budget_text(BudgetType type, MicroCents amount, std::string_view currency = {});

}  // namespace ads::admin
