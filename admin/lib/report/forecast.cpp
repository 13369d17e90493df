#include "lib/report/forecast.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "lib/base/json.hpp"
#include "lib/base/money.hpp"
#include "lib/base/settings.hpp"
#include "lib/base/text.hpp"

namespace ads::admin {

namespace {

constexpr const char* kForecast =
    "SELECT campaign_id, name, status, timezone, budget_type, budget_cents, spent_cents, "
    "average_daily_spend, days_remaining, to_char(exhaustion_date, 'YYYY-MM-DD'), "
    "projected_total_spend, will_exhaust_early, days_to_end, delivery, goal_count, goal_done, "
    "goal_projected, to_char(starts_on, 'YYYY-MM-DD'), to_char(ends_on, 'YYYY-MM-DD'), "
    "to_char(deliver_by, 'YYYY-MM-DD'), flight, goal_daily, coalesce(goal_open, false), "
    "to_char(ads.now() AT TIME ZONE timezone, 'YYYY-MM-DD') FROM ads.forecast($1)";

// "24 Dec", or in another year "24 Dec 2027".
std::string day_text(const std::string& day, const std::string& today) {
    constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const int month = std::atoi(day.substr(5, 2).c_str());
    const std::string text =
        fmt::format("{} {}", std::atoi(day.substr(8, 2).c_str()), kMonths[(month + 11) % 12]);
    return day.substr(0, 4) == today.substr(0, 4) ? text : text + " " + day.substr(0, 4);
}

// Not "100 %" of what is not all.
std::string percent(double share) {
    return fmt::format("{:.0f} %", share < 1 ? std::floor(100 * share + 1e-9) : 100 * share);
}

std::string state_of(const Forecast& f) {
    return f.status == "active" ? "" : fmt::format("; it is {} now", f.status);
}

std::string without_target(const Forecast& f, const std::string& by) {
    if (f.average_daily_spend <= 0) {
        return "No budget, no goal, and no spend in the last 7 days";
    }
    return by.empty() ? fmt::format("No budget, no goal and no end: spends {} per day",
                                    rounded_money(f.average_daily_spend, f.currency))
                      : fmt::format("No budget and no goal: projected spend {}{}",
                                    rounded_money(f.projected_total_spend, f.currency), by);
}

// A date in many years says less than how many they are.
std::string by_text(const Forecast& f) {
    constexpr double kFar = 730;
    constexpr double kYear = 365.25;
    if (!f.deliver_by) {
        return {};
    }
    if (!f.ends_on && f.days_remaining && *f.days_remaining > kFar) {
        return fmt::format(" in about {:.0f} years at this rate", *f.days_remaining / kYear);
    }
    return fmt::format(" by {}", day_text(*f.deliver_by, f.today));
}

}  // namespace

Forecast read_forecast(Database& database, Id campaign) {
    const std::string id = std::to_string(campaign);
    const Rows rows = database.run(kForecast, {id});
    if (rows.empty()) {
        throw NotFound(fmt::format("there is no campaign {}.", id));
    }
    int column = 0;
    const auto text = [&] { return std::string(rows.at(0, column++)); };
    const auto real = [&] { return rows.real(0, column++); };
    const auto maybe = [&](auto value) {
        return rows.null(0, column) ? (column++, std::nullopt) : std::optional(value());
    };
    const auto count = [&] { return static_cast<uint64_t>(rows.number(0, column++)); };
    Forecast f;
    f.campaign = count();
    f.name = text();
    f.status = text();
    f.timezone = text();
    f.budget_type = maybe(text);
    f.budget_cents = maybe(real);
    f.spent_cents = real();
    f.average_daily_spend = real();
    f.days_remaining = maybe(real);
    f.exhaustion_date = maybe(text);
    f.projected_total_spend = real();
    f.will_exhaust_early = rows.flag(0, column++);
    f.days_to_end = maybe(real);
    f.delivery = maybe(real);
    f.goal_count = maybe(count);
    f.goal_done = maybe(count);
    f.goal_projected = maybe(count);
    f.starts_on = maybe(text);
    f.ends_on = maybe(text);
    f.deliver_by = maybe(text);
    f.flight = text();
    f.goal_daily = maybe(real);
    f.goal_open = rows.flag(0, column++);
    f.today = text();
    f.currency = currency_of(database);
    const Rows days = database.run(
        "SELECT to_char(day, 'YYYY-MM-DD'), spend_cents FROM ads.recent_spend($1)", {id});
    for (size_t i = 0; i < days.size(); i++) {
        f.days.push_back({std::string(days.at(i, 0)), days.real(i, 1)});
    }
    return f;
}

std::string summary_of(const Forecast& f) {
    const std::string by = by_text(f);
    if (f.flight == "ahead" && f.starts_on) {
        return fmt::format("Starts on {}: no data for a forecast yet.",
                           day_text(*f.starts_on, f.today));
    }
    if (!f.delivery) {
        return without_target(f, by) + state_of(f) + ".";
    }
    const char* what = f.budget_type ? "budget" : f.goal_count ? "goal" : "";
    if (f.flight == "over") {
        return fmt::format("Delivered {} of its {}{}.", percent(*f.delivery), what, by);
    }
    if (f.budget_type == "daily") {
        return fmt::format("Will deliver {} of each day's budget{}{}.", percent(*f.delivery),
                           f.ends_on ? " until " + day_text(*f.ends_on, f.today) : "", state_of(f));
    }
    if (!f.budget_type && f.goal_open) {
        return fmt::format("No end date for a goal: {} of {} delivered, {:.0f} per day{}.",
                           grouped(f.goal_done.value_or(0)), grouped(*f.goal_count),
                           f.goal_daily.value_or(0), state_of(f));
    }
    std::string text = fmt::format("Will deliver {} of its {}{}", percent(*f.delivery), what, by);
    if (f.will_exhaust_early && f.ends_on) {
        text += fmt::format(", before the flight ends on {}", day_text(*f.ends_on, f.today));
    } else if (f.average_daily_spend <= 0 && f.budget_type) {
        text += ": nothing was spent in the last 7 days";
    }
    return text + state_of(f) + ".";
}

json_t* forecast_json(const Forecast& f) {
    Json root(json_object());
    const auto set = [&](const char* name, json_t* value) {
        json_object_set_new(root.get(), name, value);
    };
    const auto text = [](const std::optional<std::string>& value) {
        return value ? text_json(*value) : json_null();
    };
    const auto real = [](const std::optional<double>& value) {
        return value ? json_real(*value) : json_null();
    };
    const auto count = [](const std::optional<uint64_t>& value) {
        return value ? number_json(*value) : json_null();
    };
    set("summary", text_json(summary_of(f)));
    set("campaign", number_json(f.campaign));
    set("name", text_json(f.name));
    set("status", text_json(f.status));
    set("timezone", text_json(f.timezone));
    set("currency", f.currency.empty() ? json_null() : text_json(f.currency));
    set("flight", text_json(f.flight));
    set("delivery", real(f.delivery));
    set("deliver_by", text(f.deliver_by));
    set("starts_on", text(f.starts_on));
    set("ends_on", text(f.ends_on));
    set("days_to_end", real(f.days_to_end));
    set("budget_type", text(f.budget_type));
    set("budget_cents", real(f.budget_cents));
    set("spent_cents", json_real(f.spent_cents));
    set("average_daily_spend", json_real(f.average_daily_spend));
    set("days_remaining", real(f.days_remaining));
    set("exhaustion_date", text(f.exhaustion_date));
    set("will_exhaust_early", json_boolean(f.will_exhaust_early));
    set("projected_total_spend", json_real(f.projected_total_spend));
    set("goal_count", count(f.goal_count));
    set("goal_done", count(f.goal_done));
    set("goal_projected", count(f.goal_projected));
    set("goal_daily", real(f.goal_daily));
    set("goal_open", json_boolean(f.goal_open));
    json_t* list = json_array();
    for (const auto& [day, spend] : f.days) {
        json_t* item = json_object();
        json_object_set_new(item, "day", text_json(day));
        json_object_set_new(item, "spend_cents", json_real(spend));
        json_array_append_new(list, item);
    }
    set("days", list);
    return root.release();
}

}  // namespace ads::admin
