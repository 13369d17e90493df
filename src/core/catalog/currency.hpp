// The currencies of ISO 4217.
#pragma once

#include <string_view>

namespace ads::catalog {

// Whether it is the code of a currency in use, like "EUR".
bool valid_currency(std::string_view code);

// The number of decimals of its amounts; 2 for an unknown currency.
int currency_digits(std::string_view code);

}  // namespace ads::catalog
