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

// ---- text ----

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
        out().put(fmt::format("  goals of its ad groups: {} of {}{}\n",
                              grouped(f.goal_done.value_or(0)), grouped(*f.goal_count),
                              f.goal_open ? std::string()
                                          : fmt::format(", projected total {}",
                                                        grouped(f.goal_projected.value_or(0)))));
    }
    show_days(f);
    out().put(fmt::format("  spent {}, {} per day in the last 7 days\n",
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

Exit forecast(const Options& options) {
    Database database(options.database, "nginx-ads forecast");
    try {
        const Id campaign = static_cast<Id>(
            id_of(Kind::campaign, found_id(database, Kind::campaign, options.campaign)));
        const Forecast forecast = read_forecast(database, campaign);
        options.json ? print_json(Json(forecast_json(forecast))) : show(forecast);
    } catch (const SqlError& e) {
        throw explained(e);
    }
    return Exit::ok;
}

}  // namespace

void add_forecast(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("forecast", "Forecast the delivery of budgets and goals");
    sub->require_subcommand(1);
    auto* campaign = sub->add_subcommand("campaign", "Forecast a campaign from its last 7 days");
    campaign->add_option("CAMPAIGN", options->campaign, "The campaign, an id or a name")
        ->required()
        ->option_text(" ");
    campaign->add_option("--db,--database", options->database, kDatabaseHelp)
        ->option_text("CONNINFO");
    campaign->add_flag("--json", options->json, "Print JSON; amounts are in cents");
    campaign->footer(
        "For a lifetime budget, prints when it is exhausted; for a daily one, the delivered "
        "share;\n"
        "without a budget, the delivered share of the ad groups' goals.\n"
        "\n"
        "Example:\n"
        "  nginx-ads forecast campaign Autumn");
    campaign->callback([options, &chosen] { chosen = [options] { return forecast(*options); }; });
}

}  // namespace ads::cli
