// nginx-ads privacy: what is kept of a person, and forgetting it.
#include <arpa/inet.h>
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
    RedisConf redis;
    std::string redis_password_file;
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

// ---- Redis ----

std::string password_in(const std::string& file) {
    std::string text = read_input(file);
    text.resize(text.find_last_not_of(" \t\r\n") + 1);
    if (text.empty()) {
        throw Failure(Exit::bad_input, fmt::format("{} is empty.", shown_name(file)));
    }
    return text;
}

bool is_ip(const std::string& host) {
    in6_addr room;
    return inet_pton(AF_INET, host.c_str(), &room) == 1 || host.starts_with('[');
}

// Null if none is asked for.
std::unique_ptr<RedisSessions> redis_of(const Options& options) {
    RedisConf conf = options.redis;
    if (conf.addresses.empty()) {
        if (!options.redis_password_file.empty() || conf.tls || !conf.prefix.empty()) {
            throw Failure(Exit::usage, "the other --redis- options require --redis.");
        }
        return nullptr;
    }
    if (options.secret.empty()) {
        throw Failure(Exit::usage,
                      "--redis requires --secret, the key ring, to compute the key of a session.");
    }
    if (!options.redis_password_file.empty()) {
        conf.password = password_in(options.redis_password_file);
    } else if (!conf.user.empty()) {
        throw Failure(Exit::usage, "--redis-user requires --redis-password-file.");
    }
    if (!conf.tls && !(conf.ca + conf.cert + conf.key + conf.server_name).empty()) {
        throw Failure(Exit::usage,
                      "--redis-ca, --redis-cert, --redis-key and --redis-server-name require "
                      "--redis-tls.");
    }
    if (conf.cert.empty() != conf.key.empty()) {
        throw Failure(Exit::usage, "--redis-cert and --redis-key require each other.");
    }
    if (conf.tls && conf.server_name.empty()) {
        const std::string& first = conf.addresses.front();
        conf.server_name = first.substr(0, first.rfind(':'));
        if (first.starts_with("unix:") || is_ip(conf.server_name)) {
            throw Failure(Exit::usage,
                          "--redis-tls requires --redis-server-name where the address is not a "
                          "host name.");
        }
    }
    return std::make_unique<RedisSessions>(std::move(conf), user_keys(options.secret));
}

Places places_of(const Options& options, Database* database, RedisSessions* redis) {
    return {database, options.spool, options.state, redis, actor_of(options.actor)};
}

Exit export_all(const Options& options) {
    Person person = person_of(options);
    const auto redis = redis_of(options);
    const auto database = connected(options);
    print_json(export_person(places_of(options, database.get(), redis.get()), std::move(person)));
    return Exit::ok;
}

void show(const Options& options, const Erased& erased, bool redis) {
    if (options.json) {
        const Json root(json_object());
        json_object_set_new(root.get(), "events", number_json(erased.events));
        json_object_set_new(root.get(), "trials", number_json(erased.trials));
        json_object_set_new(root.get(), "spool", number_json(erased.spool));
        json_object_set_new(root.get(), "frequency", number_json(erased.frequency));
        if (redis) {
            json_object_set_new(root.get(), "redis", number_json(erased.redis));
        }
        print_json(root);
        return;
    }
    out().put(
        fmt::format("erased: {} and {} in PostgreSQL, {} in the spool, {} of frequency "
                    "caps{}\n",
                    counted(erased.events, "event"), counted(erased.trials, "trial"),
                    counted(erased.spool, "event"),
                    erased.frequency == 1 ? "1 entry" : fmt::format("{} entries", erased.frequency),
                    redis ? fmt::format(", {} in Redis", counted(erased.redis, "key")) : ""));
}

Exit erase(const Options& options) {
    Person person = person_of(options);
    const auto redis = redis_of(options);
    const auto database = connected(options);
    const Erased erased =
        erase_person(places_of(options, database.get(), redis.get()), std::move(person));
    if (erased.more) {
        warn(
            "there is still more of them, round after round: somebody is there with this cookie. "
            "Erase it, and run this again.");
    }
    for (const auto& path : erased.set_aside) {
        warn(fmt::format("{} was set aside as unusable and cannot be searched: remove it.", path));
    }
    show(options, erased, redis != nullptr);
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
    sub->add_option("--secret", options->secret,
                    "The key ring of ads_secret, for --user and --redis")
        ->option_text("FILE");
    sub->add_option("--spool", options->spool, "The folder of ads_spool")->option_text("FOLDER");
    sub->add_option("--state", options->state, "The folder of ads_state")->option_text("FOLDER");
    auto* database = sub->add_option("--db,--database", options->database, kDatabaseHelp)
                         ->option_text("CONNINFO");
    sub->add_flag("--files-only", options->files_only, "Search files only, not PostgreSQL")
        ->excludes(database);
    RedisConf& redis = options->redis;
    sub->add_option("--redis", redis.addresses,
                    "A server of ads_redis: HOST:PORT or unix:/PATH; may be repeated")
        ->option_text("ADDRESS")
        ->allow_extra_args(false);
    sub->add_option("--redis-user", redis.user, "The user of ads_redis")->option_text("NAME");
    sub->add_option("--redis-password-file", options->redis_password_file, "File with its password")
        ->option_text("FILE");
    sub->add_option("--redis-prefix", redis.prefix, "prefix= of ads_redis")->option_text("TEXT");
    sub->add_flag("--redis-tls", redis.tls, "Connect by TLS");
    sub->add_option("--redis-ca", redis.ca, "Certificates that are trusted")->option_text("FILE");
    sub->add_option("--redis-cert", redis.cert, "Certificate of the client")->option_text("FILE");
    sub->add_option("--redis-key", redis.key, "Key of that certificate")->option_text("FILE");
    sub->add_option("--redis-server-name", redis.server_name, "Name in the server's certificate")
        ->option_text("NAME");
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
