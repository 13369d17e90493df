// nginx-ads forecast: when a budget is gone, by what was spent in the last week.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "commands.hpp"
#include "core/types.hpp"
#include "database.hpp"
#include "json.hpp"
#include "options.hpp"
#include "table.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string database;
    Id campaign = 0;
    bool json = false;
};

enum Column {
    kId,
    kName,
    kStatus,
    kZone,
    kType,
    kBudget,
    kSpent,
    kAverage,
    kDaysRemaining,
    kExhaustion,
    kProjected,
    kEarly,
    kDaysToEnd,
    kDelivery,
};

std::string money(double cents) {
    return fmt::format("{:.2f}", cents / 100);
}

// ---- for people ----

void show_days(const Rows& days) {
    double most = 0;
    for (size_t i = 0; i < days.size(); i++) {
        most = std::max(most, days.real(i, 1));
    }
    for (size_t i = 0; i < days.size(); i++) {
        const double spend = days.real(i, 1);
        out().put(fmt::format("  {}  {:>12}  {}\n", days.at(i, 0), money(spend),
                              bar(most > 0 ? spend / most : 0, 32)));
    }
}

void show(const Rows& rows, const Rows& days) {
    const bool daily = rows.at(0, kType) == "daily";
    out().put(fmt::format(
        "{}  {}, {}\n",
        painted(STDOUT_FILENO, Colour::bold,
                fmt::format("Campaign {} {}", rows.at(0, kId), printable(rows.at(0, kName)))),
        rows.at(0, kStatus),
        rows.null(0, kType)
            ? std::string("no budget")
            : fmt::format("{} budget {}", rows.at(0, kType), money(rows.real(0, kBudget)))));
    show_days(days);
    out().put(fmt::format("  spent {}, {} a day\n", money(rows.real(0, kSpent)),
                          money(rows.real(0, kAverage))));
    if (!rows.null(0, kExhaustion)) {
        const bool early = rows.flag(0, kEarly);
        out().put(fmt::format(
            "  the budget lasts {:.1f} days, until {}{}\n", rows.real(0, kDaysRemaining),
            rows.at(0, kExhaustion),
            early ? painted(STDOUT_FILENO, Colour::red, ": before the flight ends") : ""));
    } else if (daily && !rows.null(0, kDelivery)) {
        out().put(fmt::format("  {:.1f} % of each day's budget\n", 100 * rows.real(0, kDelivery)));
    }
    if (rows.real(0, kAverage) <= 0) {
        out().put("  nothing was spent in the last 7 days\n");
    } else if (!rows.null(0, kDaysToEnd) || rows.at(0, kType) == "lifetime") {
        out().put(fmt::format("  {} in the end\n", money(rows.real(0, kProjected))));
    }
}

// ---- for programs ----

void show_json(const Rows& rows, const Rows& days) {
    const Json root(json_object());
    const auto set = [&](const char* name, json_t* value) {
        json_object_set_new(root.get(), name, value);
    };
    const auto text = [&](int column) {
        return rows.null(0, column) ? json_null() : text_json(rows.at(0, column));
    };
    const auto real = [&](int column) {
        return rows.null(0, column) ? json_null() : json_real(rows.real(0, column));
    };
    set("campaign", json_integer(rows.number(0, kId)));
    set("name", text(kName));
    set("status", text(kStatus));
    set("timezone", text(kZone));
    set("budget_type", text(kType));
    set("budget_cents", real(kBudget));
    set("spent_cents", real(kSpent));
    set("average_daily_spend", real(kAverage));
    set("days_remaining", real(kDaysRemaining));
    set("exhaustion_date", text(kExhaustion));
    set("projected_total_spend", real(kProjected));
    set("will_exhaust_early", json_boolean(rows.flag(0, kEarly)));
    set("days_to_end", real(kDaysToEnd));
    set("delivery", real(kDelivery));
    json_t* list = json_array();
    for (size_t i = 0; i < days.size(); i++) {
        json_t* day = json_object();
        json_object_set_new(day, "day", text_json(days.at(i, 0)));
        json_object_set_new(day, "spend_cents", json_real(days.real(i, 1)));
        json_array_append_new(list, day);
    }
    set("days", list);
    print_json(root);
}

Exit forecast(const Options& options) {
    Database database(options.database, "nginx-ads forecast");
    const std::string id = std::to_string(options.campaign);
    try {
        const Rows rows = database.run(
            "SELECT campaign_id, name, status, timezone, budget_type, budget_cents, spent_cents, "
            "average_daily_spend, days_remaining, to_char(exhaustion_date, 'YYYY-MM-DD'), "
            "projected_total_spend, will_exhaust_early, days_to_end, delivery "
            "FROM ads.forecast($1)",
            {id});
        if (rows.empty()) {
            throw Failure(Exit::bad_input, fmt::format("there is no campaign {}.", id));
        }
        const Rows days = database.run(
            "SELECT to_char(day, 'YYYY-MM-DD'), spend_cents FROM ads.recent_spend($1)", {id});
        options.json ? show_json(rows, days) : show(rows, days);
    } catch (const SqlError& e) {
        throw explained(e);
    }
    return Exit::ok;
}

}  // namespace

void add_forecast(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("forecast", "Say how long a budget lasts");
    sub->require_subcommand(1);
    auto* campaign = sub->add_subcommand("campaign", "Of a campaign, by its last 7 days");
    campaign->add_option("ID", options->campaign, "The campaign")
        ->required()
        ->check(whole_number(1, 0xffff'ffff))
        ->option_text(" ");
    campaign->add_option("--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    campaign->add_flag("--json", options->json, "Print an object; money is cents");
    campaign->footer(
        "A lifetime budget is used up one day; of a daily one it is said how much of it is\n"
        "delivered.\n"
        "\n"
        "Example:\n"
        "  nginx-ads forecast campaign 7");
    campaign->callback([options, &chosen] { chosen = [options] { return forecast(*options); }; });
}

}  // namespace ads::cli
