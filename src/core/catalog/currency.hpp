// The currencies of ISO 4217.
#pragma once

#include <string_view>

namespace ads::catalog {

// Whether it is the code of a currency in use, like "EUR".
bool valid_currency(std::string_view code);

// How many decimals its amounts are written with: 2 of most, and of none or an unknown one.
int currency_digits(std::string_view code);

}  // namespace ads::catalog
