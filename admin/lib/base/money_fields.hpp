// Catalog members with amounts: "price.amount_cents" is shown as "price.amount".
#pragma once

#include <jansson.h>

#include <cmath>
#include <string>
#include <string_view>

#include "lib/base/money.hpp"

namespace ads::admin {

inline constexpr std::string_view kCents = "_cents";

inline bool is_money(std::string_view path) {
    return path.ends_with(kCents);
}

inline std::string money_name(std::string_view path) {
    return std::string(path.substr(0, path.size() - kCents.size()));
}

// A number of cents, whole or not.
inline MicroCents micro_of(const json_t* cents) {
    return json_is_integer(cents)
               ? json_integer_value(cents) * kMicroPerCent
               : std::llround(json_number_value(cents) * static_cast<double>(kMicroPerCent));
}

}  // namespace ads::admin
