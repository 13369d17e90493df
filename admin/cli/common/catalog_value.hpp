// Formats catalog values for people: as they are written in flags, not as JSON.
#pragma once

#include <jansson.h>

#include <string>
#include <string_view>

namespace ads::cli {

// The value of the member at this path, as in "frequency_caps" or "price.amount_cents": "3/day",
// "2.50 EUR", "mon-fri:09:00-17:00"; "none" for an empty value.
std::string shown_value(std::string_view path, const json_t* value, const std::string& currency);

}  // namespace ads::cli
