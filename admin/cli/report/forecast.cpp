// nginx-ads forecast: how much of a budget will be delivered by when, by the last week.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "lib/base/json.hpp"
#include "lib/base/money.hpp"
#include "lib/manage/edits.hpp"
#include "lib/report/forecast.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string database;
    std::string campaign;  // its id or name
    bool json = false;
};

// ---- for people ----

void show_days(const Forecast& forecast) {
    double most = 0;
    for (const auto& day : forecast.days) {
        most = std::max(most, day.spend_cents);
    }
    for (const auto& [day, spend] : forecast.days) {
        out().put(fmt::format("  {}  {:>12}  {}\n", day, rounded_money(spend, forecast.currency),
                              bar(most > 0 ? spend / most : 0, 32)));
    }
}

void show(const Forecast& f) {
    out().put(
        painted(STDOUT_FILENO, f.will_exhaust_early ? Colour::red : Colour::bold, summary_of(f)) +
        "\n");
    out().put(fmt::format("Campaign {} {}, {}, {}\n", f.campaign, printable(f.name), f.status,
                          f.budget_type
                              ? fmt::format("{} budget {}", *f.budget_type,
                                            rounded_money(f.budget_cents.value_or(0), f.currency))
                              : std::string("no budget")));
    if (f.goal_count) {
        out().put(fmt::format("  goals of its ad groups: {} of {}, {} in the end\n",
                              grouped(f.goal_done.value_or(0)), grouped(*f.goal_count),
                              grouped(f.goal_projected.value_or(0))));
    }
    show_days(f);
    out().put(fmt::format("  spent {}, {} a day in the last 7 days\n",
                          rounded_money(f.spent_cents, f.currency),
                          rounded_money(f.average_daily_spend, f.currency)));
    if (f.exhaustion_date) {
        out().put(fmt::format("  the budget lasts {:.1f} days, until {}\n",
                              f.days_remaining.value_or(0), *f.exhaustion_date));
    }
    if (f.average_daily_spend > 0 && (f.days_to_end || f.budget_type == "lifetime")) {
        out().put(fmt::format("  projected total: {}\n",
                              rounded_money(f.projected_total_spend, f.currency)));
    }
}

// ---- for programs ----

void show_json(const Forecast& f) {
    const Json root(json_object());
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
    json_t* list = json_array();
    for (const auto& [day, spend] : f.days) {
        json_t* item = json_object();
        json_object_set_new(item, "day", text_json(day));
        json_object_set_new(item, "spend_cents", json_real(spend));
        json_array_append_new(list, item);
    }
    set("days", list);
    print_json(root);
}

Exit forecast(const Options& options) {
    Database database(options.database, "nginx-ads forecast");
    try {
        const Id campaign = static_cast<Id>(
            id_of(Kind::campaign, found_id(database, Kind::campaign, options.campaign)));
        const Forecast forecast = read_forecast(database, campaign);
        options.json ? show_json(forecast) : show(forecast);
    } catch (const SqlError& e) {
        throw explained(e);
    }
    return Exit::ok;
}

}  // namespace

void add_forecast(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("forecast",
                                   "Say how much of a budget or goal will be delivered by when");
    sub->require_subcommand(1);
    auto* campaign = sub->add_subcommand("campaign", "Of a campaign, by its last 7 days");
    campaign->add_option("CAMPAIGN", options->campaign, "Its id or name")
        ->required()
        ->option_text(" ");
    campaign->add_option("--db,--database", options->database, kDatabaseHelp)
        ->option_text("CONNINFO");
    campaign->add_flag("--json", options->json, "Print an object; money is cents");
    campaign->footer(
        "A lifetime budget is used up one day; of a daily one it is said how much of it is\n"
        "delivered; without a budget, of the goals of the ad groups.\n"
        "\n"
        "Example:\n"
        "  nginx-ads forecast campaign Autumn");
    campaign->callback([options, &chosen] { chosen = [options] { return forecast(*options); }; });
}

}  // namespace ads::cli
