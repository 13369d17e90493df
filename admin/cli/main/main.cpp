// nginx-ads: the command beside the module.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <optional>

#include "cli/main/commands.hpp"
#include "cli/main/completion.hpp"
#include "cli/main/usage.hpp"
#include "lib/base/database.hpp"
#include "version.hpp"

namespace ads::cli {

namespace {

constexpr const char* kFooter =
    "Exit codes:\n"
    "  0  success\n"
    "  1  invalid input: an invalid catalog, key ring or token, a damaged spool, an\n"
    "     invalid response, an unknown object, a database that is newer or was changed,\n"
    "     a problem found by doctor, a refused creative or image, a blocked URL\n"
    "  2  invalid command line\n"
    "  3  a read, write or connection failed\n"
    "\n"
    "Example:\n"
    "  nginx-ads validate /etc/nginx-ads/catalog.json\n"
    "\n"
    "Colours are used on a terminal only, and never with NO_COLOR set.";

// At the end of every command's help; the command's own says what a 1 may be.
constexpr const char* kExitCodes =
    "Exit codes: 0 success, 1 invalid input, 2 invalid command line,\n"
    "3 a read, write or connection failed.";

void add_exit_codes(CLI::App& app) {
    for (auto* sub : app.get_subcommands([](CLI::App*) { return true; })) {
        const std::string footer = sub->get_footer();
        sub->footer(footer + (footer.empty() ? "" : "\n\n") + kExitCodes);
        add_exit_codes(*sub);
    }
}

// Commands without JSON output print at least their errors as JSON.
void add_json(CLI::App& app) {
    static bool asked = false;  // run() looks itself, before the line is read
    const auto commands = app.get_subcommands([](CLI::App*) { return true; });
    if (commands.empty() && app.get_option_no_throw("--json") == nullptr) {
        app.add_flag("--json", asked, "Print errors as JSON");
    }
    for (auto* sub : commands) {
        add_json(*sub);
    }
}

// "help campaign list" is "campaign list --help".
std::vector<std::string> arguments_of(int argc, char** argv) {
    std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    if (!arguments.empty() && arguments[0] == "help" &&
        (arguments.size() == 1 || !arguments[1].starts_with('-'))) {
        arguments.erase(arguments.begin());
        arguments.emplace_back("--help");
    }
    return arguments;
}

void add_help(Arguments& app) {
    auto* help = app.add_subcommand("help", "Print the help of a command");
    help->footer("Example:\n  nginx-ads help campaign list");
}

// The heading over the lists of commands.
void call_commands(CLI::App& app) {
    for (auto* sub : app.get_subcommands([](CLI::App*) { return true; })) {
        sub->group("Commands");
        call_commands(*sub);
    }
}

void describe(Arguments& arguments, Command& chosen) {
    CLI::App& app = arguments.app();
    app.name("nginx-ads");
    app.set_version_flag("-V,--version", "nginx-ads " ADS_VERSION, "Print the version and exit");
    app.set_help_flag("-h,--help", "Print this help and exit");
    app.get_formatter()->label("SUBCOMMAND", "COMMAND");
    app.get_formatter()->label("Positionals", "Arguments");
    app.get_formatter()->label("REQUIRED", "");
    app.get_formatter()->column_width(28);
    app.footer(kFooter);
    app.require_subcommand(1);
    add_validate(arguments, chosen);
    add_decide(arguments, chosen);
    add_why(arguments, chosen);
    add_simulate(arguments, chosen);
    add_pacing(arguments, chosen);
    add_stop(arguments, chosen);
    add_spool(arguments, chosen);
    add_key(arguments, chosen);
    add_token(arguments, chosen);
    add_consent(arguments, chosen);
    add_migrate(arguments, chosen);
    add_import(arguments, chosen);
    add_currency(arguments, chosen);
    add_export(arguments, chosen);
    add_doctor(arguments, chosen);
    add_creative(arguments, chosen);
    add_url(arguments, chosen);
    add_manage(arguments, chosen);
    add_fleet(arguments, chosen);
    add_scheduler(arguments, chosen);
    add_experiment(arguments, chosen);
    add_forecast(arguments, chosen);
    add_report(arguments, chosen);
    add_dispatch(arguments, chosen);
    add_privacy(arguments, chosen);
    add_api(arguments, chosen);
    add_completion(arguments, chosen);
    add_help(arguments);
    add_json(app);
    call_commands(app);
}

// The exit code, unless the command line leaves a command to run.
std::optional<Exit> read_command_line(CLI::App& app, const std::vector<std::string>& arguments,
                                      bool json) {
    try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
        return std::nullopt;
    } catch (const CLI::CallForVersion& e) {
        out().put(fmt::format("{}\n", e.what()));
    } catch (const CLI::Success&) {
        if (const std::string fault = help_fault(app, arguments); !fault.empty()) {
            throw Failure(Exit::usage, fault);
        }
        add_exit_codes(app);
        out().put(app.help());
    } catch (const CLI::ParseError& e) {
        return usage_error(app, e, arguments, json);
    }
    return Exit::ok;
}

Exit run(int argc, char** argv) {
    Command chosen;
    Arguments arguments(
        "Companion of the nginx-ads module: catalogs, decisions, the spool, keys, tokens, "
        "consent, PostgreSQL.");
    describe(arguments, chosen);
    const std::vector<std::string> words = arguments_of(argc, argv);
    const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
    if (json) {
        print_messages_as_json();
    }
    Exit exit = Exit::ok;
    try {
        const auto ended = read_command_line(arguments.app(), words, json);
        exit = ended ? *ended : chosen();
        out().flush();
    } catch (const ReaderGone&) {
        return exit;
    } catch (const Failure& e) {
        complain(e.what());
        return e.exit();
    }
    return exit;
}

}  // namespace

}  // namespace ads::cli

int main(int argc, char** argv) {
    using namespace ads::cli;
    ads::admin::send_warnings_to(warn);
    std::signal(SIGPIPE, SIG_IGN);  // write() tells of it, and the exit code stays ours
    try {
        return static_cast<int>(run(argc, argv));
    } catch (const ReaderGone&) {
        return static_cast<int>(Exit::failed);  // while printing an error
    } catch (const std::exception& e) {
        complain(e.what());
        return static_cast<int>(Exit::failed);
    }
}
