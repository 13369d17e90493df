// Amounts and limits: the price of a serve, today's part of a longer goal or budget, and the walls.
// Amounts are micro-cents or counts.
#pragma once

#include <cstdint>

#include "core/base/types.hpp"

namespace ads::pacing {

inline constexpr uint64_t kUnlimited = (uint64_t{1} << 50) - 1;  // the most a wall can hold

// The expected cost of a serve. For clicks and actions: one event in a thousand impressions, until
// the rate is known.
double expected_price(PriceModel model, MicroCents price, uint64_t events,
                      uint64_t impressions) noexcept;

// The same as a reservation: whole micro-cents, zero only for a price of zero.
uint64_t reserved_price(PriceModel model, MicroCents price, uint64_t events,
                        uint64_t impressions) noexcept;

// Today's part of an amount for several days, of the rest when the local day began. Never
// rounded to zero: at least one `unit`, if that much is left and today has any part at
// all.
double todays_share(double amount, double before_today, double part, double unit) noexcept;

// The walls of a budget, in micro-cents. The wall of the day is for daily budgets: 100 %, except
// that `probabilistic` may use hard_cap times that. The wall of the lifetime is 100 % for all
// strategies.
struct Walls {
    uint64_t day = kUnlimited;
    uint64_t lifetime = kUnlimited;
    bool operator==(const Walls&) const = default;
};

Walls budget_walls(BudgetType type, MicroCents amount, double hard_cap, Strategy strategy) noexcept;

}  // namespace ads::pacing
