// Parses values of flags to catalog values: caps, hours, goals, key-values and money. "none"
// removes the value. All throw Failure with the correct form.
#pragma once

#include <jansson.h>

#include <string>
#include <vector>

#include "cli/common/output.hpp"
#include "lib/base/money.hpp"

namespace ads::cli {

// "2.50"
uint64_t money_of(const char* flag, const std::string& text);
json_t* money_json(const char* flag, const std::string& text);

// "50.00/day", "5000/total"; null without.
std::optional<BudgetText> budget_of(const std::string& text);

// "3/day", "10/7d", "1/lifetime/campaign"
json_t* caps_json(const std::vector<std::string>& texts);

// "mon-fri:9-17", "sat,sun:10:30-24", "22-6"
json_t* hours_json(const std::vector<std::string>& texts);

// "500000", "500000/impressions", "2000/clicks"
json_t* goal_json(const std::string& text);

// "section=sports,politics"; without a value the key is removed.
void set_keys(json_t* keys, const std::vector<std::string>& texts);

// Separated by commas.
json_t* list_json(std::string_view text);

// Other values remain strings, which the catalog check reports.
json_t* number_or_text(const std::string& text);

}  // namespace ads::cli
