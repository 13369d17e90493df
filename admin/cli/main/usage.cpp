#include "cli/main/usage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace ads::cli {

namespace {

std::vector<std::string> commands_of(const CLI::App& app) {
    std::vector<std::string> names;
    for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
        names.push_back(sub->get_name());
    }
    return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
    std::vector<std::string> names;
    for (const auto* option : app.get_options()) {
        for (const auto& name : option->get_lnames()) {
            names.push_back("--" + name);
        }
    }
    return names;
}

bool needs_command(const CLI::App& app) {
    return app.get_require_subcommand_min() > 0;
}

// How far the arguments name commands, and the first word that names none.
struct Reached {
    CLI::App* app;
    std::string path;
    std::string stray;
    std::string option;  // the first one before that word
};

Reached reach(CLI::App& app, const std::vector<std::string>& arguments) {
    Reached reached{&app, app.get_name(), {}, {}};
    for (const auto& word : arguments) {
        const auto known = commands_of(*reached.app);
        if (known.empty()) {
            break;
        }
        if (word.starts_with('-')) {
            if (reached.option.empty() && word != "--json") {  // which the commands below have
                reached.option = word;
            }
            continue;
        }
        if (std::find(known.begin(), known.end(), word) == known.end()) {
            // Where no command has to follow, it may be an argument or a value.
            reached.stray = needs_command(*reached.app) ? word : "";
            break;
        }
        reached.app = reached.app->get_subcommand(word);
        reached.path += " " + word;
    }
    return reached;
}

// "WHAT: did you mean …?", or a hint at --help if no name is similar.
std::string with_advice(const std::string& what, std::string_view word,
                        const std::vector<std::string>& known, const Reached& reached) {
    const std::string best = nearest(word, known);
    return best.empty() ? fmt::format("{}: see \"{} --help\".", what, reached.path)
                        : fmt::format("{}: did you mean \"{}\"?", what, best);
}

// Of the arguments that an ExtrasError lists at its end, the first option: what
// stands with it is its value. Else the first argument.
std::string first_extra(std::string_view message) {
    const size_t colon = message.find(": ");
    const std::string_view list = colon == message.npos ? message : message.substr(colon + 2);
    const size_t option = list.starts_with('-') ? 0 : list.find(" -");
    const std::string_view rest =
        option == list.npos ? list : list.substr(option == 0 ? 0 : option + 1);
    return std::string(rest.substr(0, rest.find(' ')));
}

std::string no_command(const std::string& word, const Reached& reached) {
    return with_advice(fmt::format("there is no command \"{} {}\"", reached.path, word), word,
                       commands_of(*reached.app), reached);
}

std::string extra(const std::string& word, const Reached& reached) {
    if (!word.starts_with('-') && !commands_of(*reached.app).empty()) {
        return no_command(word, reached);
    }
    if (!word.starts_with('-')) {
        return fmt::format("unexpected argument \"{}\": see \"{} --help\".", word, reached.path);
    }
    const std::string option = word.substr(0, word.find('='));
    return with_advice(fmt::format("\"{}\" has no option {}", reached.path, option), option,
                       options_of(*reached.app), reached);
}

std::string explain(const CLI::ParseError& error, const Reached& reached) {
    if (!reached.stray.empty()) {
        return no_command(reached.stray, reached);
    }
    const int code = error.get_exit_code();
    if (code == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
        return extra(first_extra(error.what()), reached);
    }
    const std::string_view message = error.what();
    if (code == static_cast<int>(CLI::ExitCodes::ArgumentMismatch) &&
        message.ends_with("missing")) {
        return fmt::format("{} requires a value; see \"{} --help\".",
                           message.substr(0, message.find(':')), reached.path);
    }
    return fmt::format("{}; see \"{} --help\".", message, reached.path);
}

}  // namespace

std::string help_fault(CLI::App& app, const std::vector<std::string>& arguments) {
    const Reached reached = reach(app, arguments);
    return reached.stray.empty() ? std::string() : no_command(reached.stray, reached);
}

Exit usage_error(CLI::App& app, const CLI::ParseError& error,
                 const std::vector<std::string>& arguments, bool json) {
    const Reached reached = reach(app, arguments);
    const bool incomplete = reached.stray.empty() && needs_command(*reached.app);
    if (incomplete && !reached.option.empty()) {
        complain(extra(reached.option, reached));
    } else if (incomplete) {
        if (json) {
            complain(fmt::format("\"{}\" requires one of the commands {}.", reached.path,
                                 fmt::join(commands_of(*reached.app), ", ")));
        } else {
            error_line(app.help());
            complain(fmt::format("\"{}\" requires one of the commands above.", reached.path));
        }
    } else {
        complain(explain(error, reached));
    }
    return Exit::usage;
}

}  // namespace ads::cli
