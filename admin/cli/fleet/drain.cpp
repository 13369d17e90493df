// nginx-ads fleet drain: returns the rights of a node that is stopped.
#include <fmt/format.h>

#include <memory>

#include "cli/common/options.hpp"
#include "cli/main/commands.hpp"
#include "io/fleet_rights.hpp"
#include "lib/base/config_file.hpp"
#include "lib/base/conninfo.hpp"
#include "lib/base/database.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string database;
    std::string name;
    std::string state;
    std::string run = "/run/nginx-ads";
    std::string timeout = "10s";
};

Exit drain(const Options& options) {
    DrainConf conf;
    conf.name = options.name;
    conf.state = options.state.empty() ? configured("state").value : options.state;
    conf.run = options.run;
    conf.conninfo = chosen_conninfo(options.database);
    conf.timeout = parse_timeout(options.timeout)->count();
    if (conf.state.empty()) {
        throw Failure(
            Exit::usage,
            "a node is required: pass its state folder (ads_state) with --state DIR, or a line "
            "\"state = DIR\" in /etc/nginx-ads.conf.");
    }
    const Alarm alarm;
    std::string error;
    if (!drain_fleet(conf, alarm, error)) {
        throw Failure(Exit::failed, fmt::format("{}.", printable(error)));
    }
    out().put(fmt::format("{} has returned its rights.\n", printable(options.name)));
    return Exit::ok;
}

}  // namespace

void add_fleet_drain(Arguments& fleet, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* app = fleet.add_subcommand("drain", "Return the rights of a stopped node");
    app->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    app->add_option("--name", options->name, "Name of the node, as in ads_fleet")
        ->required()
        ->option_text("NAME");
    app->add_option("--state", options->state, "Folder of ads_state")->option_text("DIR");
    app->add_option("--run", options->run, "Folder run= of ads_fleet (default /run/nginx-ads)")
        ->option_text("DIR");
    app->add_option("--timeout", options->timeout, "Total time limit (default 10s)")
        ->check(is_timeout())
        ->option_text("TIME");
    app->footer(
        "Run it as the user of nginx's master, after nginx has stopped and its spool is shipped,\n"
        "for example as ExecStopPost= of the nginx unit. Until then a stopped node keeps what it\n"
        "holds.\n"
        "\n"
        "Example:\n"
        "  nginx-ads fleet drain --name web1 --state /var/lib/nginx-ads/state");
    app->callback([options, &chosen] { chosen = [options] { return drain(*options); }; });
}

}  // namespace ads::cli
