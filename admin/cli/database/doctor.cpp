// nginx-ads doctor: prints the findings of an examination.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "lib/base/json.hpp"
#include "lib/database/doctor.hpp"

namespace ads::cli {

namespace {

struct Options : Examined {
    bool json = false;
};

// ---- text ----

constexpr auto kLevels = std::to_array<std::string_view>({"ok", "warning", "problem"});
constexpr auto kColours = std::to_array<Colour>({Colour::green, Colour::yellow, Colour::red});
constexpr size_t kLevelWidth = 9;
constexpr size_t kCheckWidth = 12;

void show(const std::vector<Finding>& findings) {
    const size_t width = terminal_width();
    constexpr size_t kIndent = kLevelWidth + kCheckWidth;
    for (const auto& finding : findings) {
        const auto level = static_cast<size_t>(finding.level);
        const std::string blanks(kLevelWidth - kLevels[level].size(), ' ');
        const std::string text = wrapped(finding.message, kIndent, width);
        out().put(painted(STDOUT_FILENO, kColours[level], kLevels[level]) + blanks +
                  padded(finding.check, kCheckWidth) + text.substr(std::min(kIndent, text.size())));
        if (!finding.remedy.empty()) {
            out().put(wrapped("-> " + finding.remedy, kIndent, width));
        }
    }
}

// ---- for programs ----

void show_json(const std::vector<Finding>& findings, Level worst) {
    const Json root(json_object());
    json_t* list = json_array();
    for (const auto& finding : findings) {
        json_t* item = json_object();
        json_object_set_new(item, "check", text_json(finding.check));
        json_object_set_new(item, "level", text_json(kLevels[static_cast<size_t>(finding.level)]));
        json_object_set_new(item, "message", text_json(finding.message));
        json_object_set_new(item, "remedy",
                            finding.remedy.empty() ? json_null() : text_json(finding.remedy));
        json_array_append_new(list, item);
    }
    json_object_set_new(root.get(), "level", text_json(kLevels[static_cast<size_t>(worst)]));
    json_object_set_new(root.get(), "findings", list);
    print_json(root);
}

Exit doctor(const Options& options) {
    const auto findings = examine(options);
    Level worst = Level::ok;
    for (const auto& finding : findings) {
        worst = std::max(worst, finding.level);
    }
    options.json ? show_json(findings, worst) : show(findings);
    return worst == Level::problem ? Exit::bad_input : Exit::ok;
}

}  // namespace

void add_doctor(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("doctor", "Check the database, the spool and a node");
    sub->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    sub->add_option("--spool", options->spool, "Folder of ads_spool, to check for a backlog")
        ->option_text("DIR");
    sub->add_option("--status-url", options->status_url, "URL of a node's ads_status")
        ->check(is_web_address())
        ->option_text("URL");
    sub->add_flag("--json", options->json, "Print JSON");
    sub->footer(
        "Each finding is ok, a warning or a problem; warnings and problems have a remedy. Nothing\n"
        "is changed. The exit code is 1 if there is a problem.\n"
        "\n"
        "Example:\n"
        "  nginx-ads doctor --spool /var/lib/nginx-ads/spool --status-url "
        "http://127.0.0.1/console/status");
    sub->callback([options, &chosen] { chosen = [options] { return doctor(*options); }; });
}

}  // namespace ads::cli
