// Simulates days within seconds: requests, decisions, later events and pacing ticks, with the code
// that nginx runs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/catalog/model.hpp"
#include "lib/base/failure.hpp"
#include "lib/decide/request_file.hpp"
#include "lib/decide/traffic.hpp"

namespace ads::admin {

struct Scenario {
    std::string json;     // the catalog
    Seconds day = 0;      // UTC midnight of the reported day
    uint64_t days = 6;    // up to that one; the earlier ones teach the curves
    std::string traffic;  // a kind or a file
    std::optional<double> requests;
    double pixel_loss = 0.08;
    double click_rate = 0.005;      // of impressions
    double conversion_rate = 0.05;  // of clicks
    double weekend = 1;             // traffic on Saturday and Sunday
    Seconds outage_at = 14 * 3600;  // since the midnight of `day`
    uint64_t seed = 1;
    std::optional<Strategy> strategy;    // for all groups
    std::optional<RequestFile> request;  // the same for every visitor
};

// A minute of a limit's day.
struct Minute {
    double target = 0;  // at its beginning
    double used = 0;
    uint64_t serves = 0;
    uint64_t tosses = 0;
};

enum class LimitOf { impressions, clicks, budget, nothing };

// A whole local day of a limit.
struct DayResult {
    Seconds begin = 0;
    double amount = 0;
    double used = 0;
};

// The result of one limit on its last local day.
struct Line {
    LimitOf of = LimitOf::nothing;
    Id campaign = 0;
    Id ad_group = 0;  // 0: the campaign
    std::string name;
    Strategy strategy = Strategy::adaptive;
    Seconds day_begin = 0;
    std::string timezone;
    std::string currency;  // of the catalog; may be empty
    double amount = 0;     // impressions, clicks or micro-cents
    double used = 0;       // of the amount: served or confirmed
    uint64_t serves = 0;
    uint64_t impressions = 0;
    uint64_t clicks = 0;
    MicroCents spend = 0;
    double over = 0;
    double rmse = 0;                  // share of the amount
    double worst = 0;                 // minute, times the even rate
    double worst_after = 0;           // within the hour after the outage
    double dark = 0;                  // share of the active minutes
    Seconds exhausted_at = 0;         // 0: never
    std::optional<double> caught_up;  // minutes after the outage
    std::vector<Minute> minutes;
    std::vector<DayResult> days;  // every day
    double total = 0;             // of a goal or a lifetime budget; 0: neither
    double total_used = 0;
};

struct Simulated {
    std::vector<Line> lines;  // in the order of the catalog
    uint64_t requests = 0;    // of all days
    uint64_t served = 0;
    uint64_t coins = 0;  // tossed
    uint64_t pixels = 0;
    uint64_t late = 0;  // or over budget, so not billed
    std::optional<Interval> outage;
};

// Calls progress(seconds) for each simulated second. Throws Failure.
Simulated simulate(const Scenario& scenario, const catalog::Document& document,
                   const std::function<void(uint64_t)>& progress);

}  // namespace ads::admin
