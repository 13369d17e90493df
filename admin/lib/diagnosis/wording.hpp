// Names and values in the texts of causes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/diagnosis/diagnosis.hpp"

namespace ads::diagnosis {

Object object_of(const catalog::Campaign& campaign);
Object object_of(const catalog::AdGroup& group);
Object object_of(const catalog::Creative& creative);
Object object_of(const catalog::Placement& placement);

// campaign 7 "Spring"
std::string named(const Object& object);
// campaign 7
std::string called(const Object& object);

// 500.00 EUR; 0
std::string money(MicroCents amount, const std::string& currency);

// 2026-11-18 10:00 Europe/Berlin
std::string local_time(Seconds when, const std::string& timezone);
// The end of a flight: midnight is shown as the day before, which is the last day.
std::string local_edge(Seconds when, const std::string& timezone, bool end);
// Wed 10:00
std::string local_hour(Seconds when, const std::string& timezone);

// 728×90; "any size"
std::string size(uint32_t width, uint32_t height);
// image or html
std::string types(const std::vector<CreativeType>& types);

// "a", "a and b", "a, b and 3 more"
std::string listed(const std::vector<std::string>& texts, size_t most = 3,
                   std::string_view last = "and");

// ": nginx-ads ad-group update 12 --weight 1" where the catalog is in PostgreSQL, as it can be run.
std::string by_command(const Facts& facts, std::string_view arguments);
// "campaign update 7 --budget 100.00/day": doubles the budget.
std::string raised_budget(const catalog::Campaign& campaign);
// The local day this many days from now, for --start and --end.
std::string day_from(Seconds now, int days, const std::string& timezone);
// An amount for a flag, 2.00. Rounded up to a cent.
std::string flag_amount(MicroCents amount);
// "--cpm 2.00": a price of this model; with fractions of a cent as --set.
std::string price_flag(PriceModel model, MicroCents amount);

// The remedy, as a command if the catalog is in PostgreSQL.
std::string remedy(const Facts& facts, std::string_view command, std::string_view otherwise);

}  // namespace ads::diagnosis
