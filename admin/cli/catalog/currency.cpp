// nginx-ads currency: the currency of all money in the catalog.
#include <fmt/format.h>

#include "cli/main/commands.hpp"
#include "cli/manage/manage.hpp"
#include "core/catalog/currency.hpp"
#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/base/settings.hpp"
#include "lib/manage/edits.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string code;
    Access access;
};

Exit currency(const Options& options) {
    if (!options.code.empty() && !catalog::valid_currency(options.code)) {
        throw Failure(Exit::usage, fmt::format("the currency must be an ISO 4217 code such as EUR, "
                                               "not \"{}\".",
                                               options.code));
    }
    Database database(options.access.database, "nginx-ads currency");
    try {
        if (!options.code.empty()) {
            Transaction transaction(database);
            database.run("SELECT set_config('ads.actor', $1, true)",
                         {actor_of(options.access.actor)});
            set_currency(database, options.code);
            transaction.commit();
        }
        const std::string now = currency_of(database);
        if (options.access.json) {
            const Json root(json_object());
            json_object_set_new(root.get(), "currency", now.empty() ? json_null() : text_json(now));
            print_json(root);
        } else {
            out().put(now.empty() ? "no currency is set\n" : now + '\n');
        }
        return Exit::ok;
    } catch (const SqlError& e) {
        throw is_refusal(e) ? Failure(Exit::bad_input, e.what()) : explained(e);
    }
}

}  // namespace

void add_currency(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("currency", "Show or set the currency of the catalog");
    sub->add_option("CODE", options->code, "ISO 4217 code such as EUR")->option_text(" ");
    sub->add_option("--db,--database", options->access.database, kDatabaseHelp)
        ->option_text("CONNINFO");
    sub->add_option("--as", options->access.actor, "Actor recorded in the history (default $USER)")
        ->option_text("NAME");
    sub->add_flag("--json", options->access.json, "Print JSON");
    sub->footer(
        "All money of the catalog is in this currency. It can be changed until the first event\n"
        "is counted.\n"
        "\n"
        "Example:\n"
        "  nginx-ads currency EUR");
    sub->callback([options, &chosen] { chosen = [options] { return currency(*options); }; });
}

}  // namespace ads::cli
