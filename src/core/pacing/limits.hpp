// How much, and where it ends: the price of a serve, today's share of what
// was booked for longer, and the walls. Amounts are micro-cents or counts.
#pragma once

#include <cstdint>

#include "core/base/types.hpp"

namespace ads::pacing {

inline constexpr uint64_t kUnlimited = (uint64_t{1} << 50) - 1;  // the most a wall can hold

// The expected cost of a serve. For clicks and actions: one event in a
// thousand impressions, until it is known better.
double expected_price(PriceModel model, MicroCents price, uint64_t events,
                      uint64_t impressions) noexcept;

// The same as what is reserved: whole micro-cents, nothing only for nothing.
uint64_t reserved_price(PriceModel model, MicroCents price, uint64_t events,
                        uint64_t impressions) noexcept;

// Today's part of an amount for several days, out of what was left when the local day
// began. Never rounded to zero: at least one `unit`, as long as that much is left and
// today has any part at all.
double todays_share(double amount, double before_today, double part, double unit) noexcept;

// Where the words of a budget end, in micro-cents. The day's wall is for daily
// budgets: 100 %, and only `probabilistic` may go to hard_cap times that. The
// lifetime's wall is 100 % for everyone.
struct Walls {
    uint64_t day = kUnlimited;
    uint64_t lifetime = kUnlimited;
    bool operator==(const Walls&) const = default;
};

Walls budget_walls(BudgetType type, MicroCents amount, double hard_cap, Strategy strategy) noexcept;

}  // namespace ads::pacing
