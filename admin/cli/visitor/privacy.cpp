// nginx-ads privacy: what is kept of a person, and forgetting it.
#include <fmt/format.h>

#include <optional>

#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "cli/manage/manage.hpp"
#include "core/token/pseudonym.hpp"
#include "lib/base/database.hpp"
#include "lib/base/files.hpp"
#include "lib/base/json.hpp"
#include "lib/privacy/privacy.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string session;
    std::string user;
    std::string secret;
    std::string spool;
    std::string state;
    std::string database;
    std::string actor;
    bool files_only = false;
    bool json = false;
};

// ---- who ----

// "-": not on the command line, where others may see it.
std::string given(const std::string& option) {
    if (option != kStdin) {
        return option;
    }
    std::string text = read_input(option);
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
        text.pop_back();
    }
    return text;
}

Person person_of(const Options& options) {
    Person person;
    if (options.session.empty() == options.user.empty()) {
        throw Failure(Exit::usage, "--session or --user is required.");
    }
    if (!options.session.empty()) {
        person.session = given(options.session);
        if (!is_session(person.session)) {
            throw Failure(Exit::bad_input, "a session must be the 32 hex digits of its cookie.");
        }
        return person;
    }
    if (options.secret.empty()) {
        throw Failure(Exit::usage,
                      "--user requires --secret, the key ring, to compute the pseudonym.");
    }
    const std::string name = given(options.user);
    if (name.empty()) {
        throw Failure(Exit::bad_input, "the name of the user is empty.");
    }
    person.users = pseudonyms(options.secret, name);
    return person;
}

std::unique_ptr<Database> connected(const Options& options) {
    return options.files_only ? nullptr
                              : std::make_unique<Database>(options.database, "nginx-ads privacy");
}

Places places_of(const Options& options, Database* database) {
    return {database, options.spool, options.state, actor_of(options.actor)};
}

Exit export_all(const Options& options) {
    Person person = person_of(options);
    const auto database = connected(options);
    print_json(export_person(places_of(options, database.get()), std::move(person)));
    return Exit::ok;
}

void show(const Options& options, const Erased& erased) {
    if (options.json) {
        const Json root(json_object());
        json_object_set_new(root.get(), "events", number_json(erased.events));
        json_object_set_new(root.get(), "trials", number_json(erased.trials));
        json_object_set_new(root.get(), "spool", number_json(erased.spool));
        json_object_set_new(root.get(), "frequency", number_json(erased.frequency));
        print_json(root);
        return;
    }
    out().put(fmt::format(
        "erased: {} and {} in PostgreSQL, {} in the spool, {} of frequency "
        "caps\n",
        counted(erased.events, "event"), counted(erased.trials, "trial"),
        counted(erased.spool, "event"),
        erased.frequency == 1 ? "1 entry" : fmt::format("{} entries", erased.frequency)));
}

Exit erase(const Options& options) {
    Person person = person_of(options);
    const auto database = connected(options);
    const Erased erased = erase_person(places_of(options, database.get()), std::move(person));
    if (erased.more) {
        warn(
            "there is still more of them, round after round: somebody is there with this cookie. "
            "Erase it, and run this again.");
    }
    for (const auto& path : erased.set_aside) {
        warn(fmt::format("{} was set aside as unusable and cannot be searched: remove it.", path));
    }
    show(options, erased);
    return Exit::ok;
}

// ---- the command line ----

void add_options(Arguments* sub, const std::shared_ptr<Options>& options) {
    auto* session = sub->add_option("--session", options->session,
                                    "Value of the session cookie; - reads it from standard "
                                    "input")
                        ->option_text("ID");
    sub->add_option("--user", options->user, "Value of ads_user; - reads it from standard input")
        ->option_text("NAME")
        ->excludes(session);
    sub->add_option("--secret", options->secret, "The key ring of ads_secret, for --user")
        ->option_text("FILE");
    sub->add_option("--spool", options->spool, "The folder of ads_spool")->option_text("FOLDER");
    sub->add_option("--state", options->state, "The folder of ads_state")->option_text("FOLDER");
    auto* database = sub->add_option("--db,--database", options->database, kDatabaseHelp)
                         ->option_text("CONNINFO");
    sub->add_flag("--files-only", options->files_only, "Search files only, not PostgreSQL")
        ->excludes(database);
    sub->add_option("--as", options->actor, "Actor recorded in the log (default $USER)")
        ->option_text("NAME");
}

}  // namespace

void add_privacy(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("privacy", "Export or erase the data of a person");
    sub->require_subcommand(1);

    auto* reading = sub->add_subcommand("export", "Print all stored data as JSON");
    add_options(reading, options);
    reading->footer(
        "Example:\n"
        "  nginx-ads privacy export --session 0123456789abcdef0123456789abcdef "
        "--spool /var/lib/nginx-ads/spool");
    reading->callback([options, &chosen] { chosen = [options] { return export_all(*options); }; });

    auto* erasing = sub->add_subcommand("erase", "Erase the data everywhere");
    add_options(erasing, options);
    erasing->add_flag("--json", options->json, "Print JSON");
    erasing->footer(
        "Events stay counted, without identifiers, as those of a visitor without consent. Run it\n"
        "on every machine with a spool and a state folder; nginx may be running.\n"
        "\n"
        "Example:\n"
        "  nginx-ads privacy erase --session 0123456789abcdef0123456789abcdef \\\n"
        "    --spool /var/lib/nginx-ads/spool --state /var/lib/nginx-ads/state");
    erasing->callback([options, &chosen] { chosen = [options] { return erase(*options); }; });
}

}  // namespace ads::cli
