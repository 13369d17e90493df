// A forecast, as of ads.forecast() (functions/reports.sql). Prints nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <jansson.h>
#include "core/base/types.hpp"

#include "lib/base/database.hpp"

namespace ads::admin {

struct SpendOfDay {
    std::string day;
    double spend_cents = 0;
};

// Money is in cents; days are local days of the campaign, "2026-12-24".
struct Forecast {
    uint64_t campaign = 0;
    std::string name;
    std::string status;
    std::string timezone;
    std::optional<std::string> budget_type;
    std::optional<double> budget_cents;
    double spent_cents = 0;
    double average_daily_spend = 0;
    std::optional<double> days_remaining;
    std::optional<std::string> exhaustion_date;
    double projected_total_spend = 0;
    bool will_exhaust_early = false;
    std::optional<double> days_to_end;
    std::optional<double> delivery;  // of the budget, or of the goals without one
    std::optional<uint64_t> goal_count;
    std::optional<uint64_t> goal_done;
    std::optional<uint64_t> goal_projected;
    std::optional<double> goal_daily;  // of the last 7 days
    bool goal_open = false;            // one of them has no end
    std::optional<std::string> starts_on;
    std::optional<std::string> ends_on;
    std::optional<std::string> deliver_by;
    std::string flight;  // ahead, running, over
    std::string today;
    std::string currency;  // empty: none is set
    std::vector<SpendOfDay> days;
};

// Throws Failure if the campaign does not exist.
Forecast read_forecast(Database& database, Id campaign);

// "Will deliver 63 % of its budget by 24 Dec."
std::string summary_of(const Forecast& forecast);

json_t* forecast_json(const Forecast& forecast);

}  // namespace ads::admin
