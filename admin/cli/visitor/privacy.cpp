// nginx-ads privacy: what is kept of a person, and forgetting it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/common/person.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "cli/manage/manage.hpp"
#include "cli/spool/event_json.hpp"
#include "core/token/keyring.hpp"
#include "core/token/pseudonym.hpp"
#include "lib/base/database.hpp"
#include "lib/base/files.hpp"
#include "lib/base/json.hpp"
#include "lib/manage/edits.hpp"

namespace ads::cli {

namespace {

constexpr int kRounds = 5;

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

std::vector<std::string> pseudonyms(const std::string& path, const std::string& name) {
    std::string error;
    const auto ring = KeyRing::parse(read_input(path), error);
    if (!ring) {
        throw Failure(Exit::bad_input, fmt::format("{}: {}.", path, error));
    }
    std::vector<std::string> all;
    for (unsigned id = 1; id <= 255; id++) {
        if (const Key* key = ring->find(static_cast<uint8_t>(id)); key != nullptr) {
            char text[kPseudonymChars];
            Out out(text, sizeof text);
            write_pseudonym(out, key->user_key(), name);
            all.emplace_back(out.text());
        }
    }
    return all;
}

Person person_of(const Options& options) {
    Person person;
    if (options.session.empty() == options.user.empty()) {
        throw Failure(Exit::usage, "whose it is must be said with --session or with --user.");
    }
    if (!options.session.empty()) {
        person.session = given(options.session);
        if (!is_session(person.session)) {
            throw Failure(Exit::bad_input, "a session is the 32 hex digits that its cookie holds.");
        }
        return person;
    }
    if (options.secret.empty()) {
        throw Failure(Exit::usage, "--user needs the key ring, --secret, to know the pseudonym.");
    }
    const std::string name = given(options.user);
    if (name.empty()) {
        throw Failure(Exit::bad_input, "the name of the user is empty.");
    }
    person.users = pseudonyms(options.secret, name);
    return person;
}

// ---- PostgreSQL ----

// Hex digits all of them.
std::string list_of(const auto& texts) {
    std::string list = "{";
    for (const auto& text : texts) {
        list += (list.size() == 1 ? "" : ",") + ("\"" + text + "\"");
    }
    return list + "}";
}

Param session_of(const Person& person) {
    return person.session.empty() ? Param() : Param(std::string_view(person.session));
}

std::unique_ptr<Database> connected(const Options& options) {
    return options.files_only ? nullptr
                              : std::make_unique<Database>(options.database, "nginx-ads privacy");
}

// The sessions of a user, from wherever they are known.
void find_sessions(const Options& options, Database* database, Person& person) {
    if (!person.session.empty()) {
        return;
    }
    if (database != nullptr) {
        const Rows rows =
            database->run("SELECT s FROM ads.sessions_of($1) AS s", {list_of(person.users)});
        for (size_t i = 0; i < rows.size(); i++) {
            // Only what a cookie can hold: others were put there by hand.
            if (is_session(rows.at(i, 0))) {
                person.linked.emplace(rows.at(i, 0));
            }
        }
    }
    if (!options.spool.empty()) {
        const Person user = person;
        read_spool(options.spool, user, [&](const Event& event) { person.link(event); });
    }
}

void begin(Database& database, const Options& options) {
    database.run("SELECT set_config('ads.actor', $1, true)", {actor_of(options.actor)});
}

// ---- export ----

json_t* parsed(std::string_view text) {
    json_t* json = json_loadb(text.data(), text.size(), JSON_ALLOW_NUL, nullptr);
    return json == nullptr ? text_json(text) : json;
}

json_t* spool_json(const Options& options, const Person& person) {
    json_t* list = json_array();
    std::string line(kMaxLine, '\0');
    read_spool(options.spool, person, [&](const Event& event) {
        Out out(line.data(), line.size());
        write_event(out, event);
        json_array_append_new(list, parsed(out.text()));
    });
    return list;
}

json_t* frequency_json(const Options& options, const Person& person) {
    constexpr std::array<const char*, 4> kLevels = {"ad_group", "campaign", "creative", "clicks"};
    json_t* list = json_array();
    each_in_state(options.state, person, [&](const Frequency::Seen& seen) {
        json_t* item = json_object();
        json_object_set_new(item, "level",
                            json_string(kLevels[static_cast<size_t>(seen.level) & 3]));
        json_object_set_new(item, "id", number_json(seen.id));
        json_object_set_new(item, "newest", number_json(seen.newest));
        json_array_append_new(list, item);
        return false;
    });
    return list;
}

Exit export_all(const Options& options) {
    Person person = person_of(options);
    const auto database = connected(options);
    const Json root(json_object());
    json_object_set_new(root.get(), "session",
                        person.session.empty() ? json_null() : text_json(person.session));
    try {
        find_sessions(options, database.get(), person);
        if (database) {
            json_object_set_new(root.get(), "events", json_array());
            json_object_set_new(root.get(), "trials", json_array());
            Transaction transaction(*database);
            begin(*database, options);
            const Rows rows =
                database->run("SELECT kind, fact FROM ads.export_person($1, $2, $3)",
                              {session_of(person), list_of(person.users), list_of(person.linked)});
            for (size_t i = 0; i < rows.size(); i++) {
                json_array_append_new(
                    json_object_get(root.get(), std::string(rows.at(i, 0)).c_str()),
                    parsed(rows.at(i, 1)));
            }
            database->run(
                "SELECT ads.note_privacy('export', jsonb_build_object('by', $1::text, "
                "'rows', $2::bigint))",
                {person.session.empty() ? "user" : "session", std::to_string(rows.size())});
            transaction.commit();
        }
    } catch (const SqlError& e) {
        throw explained(e);
    }
    if (!options.spool.empty()) {
        json_object_set_new(root.get(), "spool", spool_json(options, person));
    }
    if (!options.state.empty()) {
        json_object_set_new(root.get(), "frequency", frequency_json(options, person));
    }
    print_json(root);
    return Exit::ok;
}

// ---- erase ----

struct Erased {
    uint64_t events = 0;  // in PostgreSQL
    uint64_t trials = 0;
    uint64_t spool = 0;
    uint64_t frequency = 0;

    uint64_t all() const { return events + trials + spool + frequency; }
    void add(const Erased& other) {
        events += other.events;
        trials += other.trials;
        spool += other.spool;
        frequency += other.frequency;
    }
};

// First PostgreSQL is told, which stores what nodes still send of them without them; then the
// spool: what is shipped after that is anonymous.
Erased erase_once(const Options& options, Database* database, Person& person) {
    Erased erased;
    find_sessions(options, database, person);
    if (database != nullptr) {
        database->run("SELECT ads.mark_erased($1, $2, $3)",
                      {session_of(person), list_of(person.users), list_of(person.linked)});
    }
    if (!options.spool.empty()) {
        const SpoolErased in_spool = erase_in_spool(options.spool, person);
        erased.spool = in_spool.events + in_spool.places;
    }
    if (!options.state.empty()) {
        each_in_state(options.state, person, [&](const Frequency::Seen&) {
            erased.frequency++;
            return true;
        });
    }
    if (database != nullptr) {
        const Rows rows =
            database->run("SELECT events, trials FROM ads.erase_person($1, $2, $3)",
                          {session_of(person), list_of(person.users), list_of(person.linked)});
        erased.events = static_cast<uint64_t>(rows.number(0, 0));
        erased.trials = static_cast<uint64_t>(rows.number(0, 1));
    }
    return erased;
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
    Erased erased;
    try {
        // What was on its way from one place to the other is found in the next round;
        // the last one finds nothing.
        for (int round = 0;; round++) {
            const Erased found = erase_once(options, database.get(), person);
            erased.add(found);
            if (found.all() == 0) {
                break;
            }
            if (round + 1 == kRounds) {
                warn(
                    "there is still more of them, round after round: somebody is there with this "
                    "cookie. Erase it, and run this again.");
                break;
            }
        }
        if (database) {
            Transaction transaction(*database);
            begin(*database, options);
            database->run(
                "SELECT ads.note_privacy('erase', jsonb_build_object('by', $1::text, 'events', "
                "$2::bigint, 'trials', $3::bigint, 'spool', $4::bigint, 'frequency', $5::bigint))",
                {person.session.empty() ? "user" : "session", std::to_string(erased.events),
                 std::to_string(erased.trials), std::to_string(erased.spool),
                 std::to_string(erased.frequency)});
            transaction.commit();
        }
    } catch (const SqlError& e) {
        throw explained(e);
    }
    if (!options.state.empty()) {
        for (const auto& path : set_aside(options.state)) {
            warn(fmt::format("{} was set aside and cannot be searched: remove it.", path));
        }
    }
    show(options, erased);
    return Exit::ok;
}

// ---- the command line ----

void add_options(Arguments* sub, const std::shared_ptr<Options>& options) {
    auto* session = sub->add_option("--session", options->session,
                                    "The value of the session's cookie; - reads it from standard "
                                    "input")
                        ->option_text("ID");
    sub->add_option("--user", options->user,
                    "The user as ads_user names it; - reads it from standard input")
        ->option_text("NAME")
        ->excludes(session);
    sub->add_option("--secret", options->secret, "The key ring of ads_secret, for --user")
        ->option_text("FILE");
    sub->add_option("--spool", options->spool, "The folder of ads_spool")->option_text("FOLDER");
    sub->add_option("--state", options->state, "The folder of ads_state")->option_text("FOLDER");
    auto* database = sub->add_option("--db,--database", options->database, kDatabaseHelp)
                         ->option_text("CONNINFO");
    sub->add_flag("--files-only", options->files_only, "There is no PostgreSQL")
        ->excludes(database);
    sub->add_option("--as", options->actor, "Who is named in the log (default $USER)")
        ->option_text("NAME");
}

}  // namespace

void add_privacy(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("privacy", "Say what is kept of a person, or forget it");
    sub->require_subcommand(1);

    auto* reading = sub->add_subcommand("export", "Print all that is kept, as JSON");
    add_options(reading, options);
    reading->footer(
        "Example:\n"
        "  nginx-ads privacy export --session 0123456789abcdef0123456789abcdef "
        "--spool /var/lib/nginx-ads/spool");
    reading->callback([options, &chosen] { chosen = [options] { return export_all(*options); }; });

    auto* erasing = sub->add_subcommand("erase", "Forget it, everywhere");
    add_options(erasing, options);
    erasing->add_flag("--json", options->json, "Print an object");
    erasing->footer(
        "Events stay counted, as those of somebody who did not consent. Run it on every machine\n"
        "that has a spool and a state folder; nginx may run.\n"
        "\n"
        "Example:\n"
        "  nginx-ads privacy erase --session 0123456789abcdef0123456789abcdef \\\n"
        "    --spool /var/lib/nginx-ads/spool --state /var/lib/nginx-ads/state");
    erasing->callback([options, &chosen] { chosen = [options] { return erase(*options); }; });
}

}  // namespace ads::cli
