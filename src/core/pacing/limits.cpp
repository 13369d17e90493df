#include "core/pacing/limits.hpp"

#include <algorithm>
#include <cmath>

namespace ads::pacing {

namespace {

// A third of 30 is 10, not 10.000000000000002 and so 11.
constexpr double kRounding = 1e-6;

}  // namespace

double expected_price(PriceModel model, MicroCents price, uint64_t events,
                      uint64_t impressions) noexcept {
    const auto exact = static_cast<double>(price);
    if (model != PriceModel::cpc && model != PriceModel::cpa) {
        return exact;
    }
    return exact * (static_cast<double>(events) + 1) / (static_cast<double>(impressions) + 1000);
}

uint64_t reserved_price(PriceModel model, MicroCents price, uint64_t events,
                        uint64_t impressions) noexcept {
    const double exact = expected_price(model, price, events, impressions);
    return exact > 0 ? static_cast<uint64_t>(std::ceil(exact)) : 0;
}

double todays_share(double amount, double before_today, double part, double unit) noexcept {
    const double left = std::max(0.0, amount - before_today);
    return part > 0 ? std::min(left, std::max(std::ceil(left * part - kRounding), unit)) : 0;
}

Walls budget_walls(BudgetType type, MicroCents amount, double hard_cap,
                   Strategy strategy) noexcept {
    const auto whole = static_cast<uint64_t>(std::max<MicroCents>(0, amount));
    if (type == BudgetType::lifetime) {
        return {.lifetime = std::min(whole, kUnlimited)};
    }
    if (strategy != Strategy::probabilistic) {
        return {.day = std::min(whole, kUnlimited)};
    }
    // The image has the factor as a float: 1.2 is meant, not 1.2000000477.
    const double factor = std::max(1.0, std::round(hard_cap * 1e6) / 1e6);
    const double wall = std::floor(static_cast<double>(whole) * factor + 1e-6);
    return {.day =
                wall < static_cast<double>(kUnlimited) ? static_cast<uint64_t>(wall) : kUnlimited};
}

}  // namespace ads::pacing
