// nginx-ads migrate: brings the schema of a database up to date.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "cli/common/json.hpp"
#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/database/migrations.hpp"
#include "cli/main/commands.hpp"

namespace ads::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kLockKey = "7017860702461847410";  // any number that is ours: "ads migr"
constexpr std::chrono::milliseconds kRetry(200);

struct Options {
    std::string database;
    int to = 0;  // 0: the last
    bool dry_run = false;
    bool repair = false;
    bool json = false;
};

// ---- what stands against it ----

// Throws if the database is not one that these files may go on with.
void check(const std::vector<MigrationRow>& rows) {
    for (const auto& row : rows) {
        if (row.state == MigrationState::unknown) {
            throw Failure(
                Exit::bad_input,
                fmt::format("the database has migration {} ({}), which this nginx-ads does not "
                            "know: it is older than the database. Use the nginx-ads that "
                            "migrated it, or a newer one.",
                            row.version(), printable(row.name())));
        }
        if (row.state == MigrationState::changed) {
            throw Failure(
                Exit::bad_input,
                fmt::format("{} is not the file that was applied on {}: its checksum begins "
                            "with {:.12}, that of the database with {:.12}. An applied file never "
                            "changes: use the nginx-ads that applied it, and put what is new into "
                            "a new file.",
                            row.migration->file, row.applied->at, row.migration->checksum,
                            printable(row.applied->checksum)));
        }
    }
}

void check_server(Database& database, const std::string& conninfo) {
    if (database.version() < kLeastServer) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} is PostgreSQL {}: {} or newer is needed.", database.shown(),
                                  version_text(database.version()), kLeastServer / 10000));
    }
    if (pooling_of(database, conninfo) == Pooling::transaction) {
        throw Failure(
            Exit::bad_input,
            fmt::format("a pooler in transaction mode stands before {}, so that no lock lasts "
                        "from one statement to the next: give a direct connection to "
                        "PostgreSQL with --database.",
                        database.shown()));
    }
}

// ---- applying ----

// One migration at a time in a database. Whoever has to wait asks again and
// again, without a transaction: CREATE INDEX CONCURRENTLY waits for all that
// are open, so one that waited for our lock would wait for it in a circle.
class Lock {
public:
    explicit Lock(Database& database) : database_(database) {
        bool told = false;
        while (database_.value("SELECT pg_try_advisory_lock($1)", {kLockKey}) != "t") {
            if (!std::exchange(told, true)) {
                warn("another nginx-ads migrate is at work on this database: waiting for it.");
            }
            std::this_thread::sleep_for(kRetry);
        }
        backend_ = database_.backend();
    }
    ~Lock() {
        try {
            database_.run("SELECT pg_advisory_unlock($1)", {kLockKey});
        } catch (const SqlError&) {
            // Ended with the connection.
        }
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    void check() {
        if (database_.backend() != backend_) {
            throw Failure(Exit::failed,
                          "a pooler has exchanged the connection, and the lock is gone with it: "
                          "give a direct connection to PostgreSQL with --database.");
        }
    }

private:
    Database& database_;
    std::string backend_;
};

// The line of a position in the statement; its first one if that is not known.
size_t line_of(const Statement& statement, size_t position) {
    size_t line = statement.line;
    size_t characters = 0;
    for (const char c : statement.text) {
        const bool begins = (static_cast<unsigned char>(c) & 0xc0) != 0x80;
        if (begins && ++characters >= position) {
            break;
        }
        line += c == '\n' ? 1 : 0;
    }
    return line;
}

class Run {
public:
    Run(Database& database, const Migration& migration)
        : database_(database), migration_(migration) {}

    // Seconds that it took. `again`: it is recorded already.
    double run(bool again) {
        const auto begin = Clock::now();
        const auto seconds = [&] {
            return std::chrono::duration<double>(Clock::now() - begin).count();
        };
        if (migration_.transaction) {
            Transaction transaction(database_);
            statements();
            const double took = seconds();
            record(took);
            at_line(0, [&] { transaction.commit(); });
            return took;
        }
        statements();
        const double took = seconds();
        if (!again) {
            record(took);
        }
        return took;
    }

private:
    // `line` 0: of the file as a whole.
    template <class F>
    void at_line(size_t line, F f) {
        try {
            f();
        } catch (const SqlError& e) {
            const std::string place =
                line == 0 ? migration_.file : fmt::format("{}:{}", migration_.file, line);
            throw Failure(Exit::failed, fmt::format("{}: {} {}", place, e.what(), remains()));
        }
    }

    std::string remains() const {
        return migration_.transaction
                   ? "Nothing of this file was applied."
                   : "What the file did before stays; the next run begins the file anew.";
    }

    void statements() {
        for (const auto& statement : statements_of(migration_.text)) {
            try {
                const Rows rows = database_.run(statement.text);
                for (size_t i = 0; statement.generates && i < rows.size(); i++) {
                    at_line(statement.line, [&] { database_.run(std::string(rows.at(i, 0))); });
                }
            } catch (const SqlError& e) {
                at_line(line_of(statement, e.position()), [&] { throw e; });
            }
        }
    }

    void record(double seconds) {
        at_line(0, [&] {
            database_.run(
                "INSERT INTO ads.migrations (version, name, checksum, seconds) "
                "VALUES ($1, $2, $3, $4)",
                {std::to_string(migration_.version), migration_.name, migration_.checksum,
                 fmt::format("{:.6f}", seconds)});
        });
    }

    Database& database_;
    const Migration& migration_;
};

void make_table(Database& database) {
    Transaction transaction(database);
    database.run("CREATE SCHEMA IF NOT EXISTS ads");
    database.run(
        "CREATE TABLE IF NOT EXISTS ads.migrations ("
        "version int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, "
        "applied_at timestamptz NOT NULL DEFAULT now(), seconds double precision NOT NULL)");
    transaction.commit();
}

// Names of the partitions that were made.
std::vector<std::string> ensure_partitions(Database& database) {
    std::vector<std::string> made;
    if (database.value("SELECT to_regprocedure('ads.ensure_partitions(int)') IS NOT NULL") == "t") {
        const Rows rows = database.run("SELECT ads.ensure_partitions()");
        for (size_t i = 0; i < rows.size(); i++) {
            made.emplace_back(rows.at(i, 0));
        }
    }
    return made;
}

// ---- migrate ----

struct Step {
    const Migration* migration;
    bool again;  // to repair
    double seconds;
};

class Migrate {
public:
    explicit Migrate(const Options& options)
        : options_(options), database_(options.database, "nginx-ads migrate") {}

    Exit run() {
        check_server(database_, options_.database);
        if (options_.dry_run) {
            const auto applied = applied_migrations(database_);
            plan(applied.value_or(std::map<int, Applied>()));
        } else {
            apply();
        }
        if (options_.json) {
            show_json();
        } else if (options_.dry_run) {
            out().put(done_.empty() ? "" : "Nothing was changed: this was a dry run.\n");
        }
        return Exit::ok;
    }

private:
    void say(const std::string& line) {
        if (!options_.json) {
            out().put(line);
            out().flush();
        }
    }

    std::vector<Step> steps(const std::map<int, Applied>& applied) {
        const auto rows = compared(applied);
        check(rows);
        std::vector<Step> list;
        for (const auto& row : rows) {
            const bool pending = row.state == MigrationState::pending;
            const bool again = !pending && options_.repair && !row.migration->transaction;
            version_ = pending ? version_ : row.version();
            if ((pending || again) && (options_.to == 0 || row.version() <= options_.to)) {
                list.push_back({row.migration, again, 0});
            }
        }
        if (list.empty()) {
            say(fmt::format("{}: version {}, nothing to do.\n", database_.shown(), version_));
        }
        return list;
    }

    void plan(const std::map<int, Applied>& applied) {
        for (const auto& step : steps(applied)) {
            say(fmt::format("would apply {}{}{}\n", step.migration->file,
                            step.again ? " again" : "",
                            step.migration->transaction ? "" : " (without a transaction)"));
            done_.push_back(step);
        }
    }

    void apply() {
        // What a role or a database may have set is for others: here an index of a
        // large table takes its time, and names are those of the files.
        database_.run("SET search_path = pg_catalog");
        database_.run("SET statement_timeout = 0");
        database_.run("SET idle_in_transaction_session_timeout = 0");
        Lock lock(database_);
        make_table(database_);
        for (auto& step : steps(*applied_migrations(database_))) {
            lock.check();
            step.seconds = Run(database_, *step.migration).run(step.again);
            version_ = std::max(version_, step.migration->version);
            done_.push_back(step);
            say(fmt::format("applied {}{} in {:.2f} s\n", step.migration->file,
                            step.again ? " again" : "", step.seconds));
        }
        partitions_ = ensure_partitions(database_);
        for (const auto& name : partitions_) {
            say(fmt::format("made partition {}\n", printable(name)));
        }
        if (!done_.empty()) {
            say(fmt::format("{}: version {}.\n", database_.shown(), version_));
        }
    }

    void show_json() {
        const Json root(json_object());
        json_t* list = json_array();
        for (const auto& done : done_) {
            json_t* item = json_object();
            json_object_set_new(item, "version", number_json(done.migration->version));
            json_object_set_new(item, "name", text_json(done.migration->name));
            json_object_set_new(item, "file", text_json(done.migration->file));
            json_object_set_new(item, "seconds",
                                options_.dry_run ? json_null() : json_real(done.seconds));
            json_array_append_new(list, item);
        }
        json_t* made = json_array();
        for (const auto& name : partitions_) {
            json_array_append_new(made, text_json(name));
        }
        json_object_set_new(root.get(), "database", text_json(database_.shown()));
        json_object_set_new(root.get(), "dry_run", json_boolean(options_.dry_run));
        json_object_set_new(root.get(), "version", number_json(version_));
        json_object_set_new(root.get(), options_.dry_run ? "would_apply" : "applied", list);
        json_object_set_new(root.get(), "partitions", made);
        print_json(root);
    }

    const Options& options_;
    Database database_;
    int version_ = 0;  // of the database, 0: none
    std::vector<Step> done_;
    std::vector<std::string> partitions_;
};

// ---- status ----

std::string painted_state(const MigrationRow& row) {
    const Colour colour = row.state == MigrationState::applied   ? Colour::green
                          : row.state == MigrationState::pending ? Colour::yellow
                                                                 : Colour::red;
    return painted(STDOUT_FILENO, colour, name_of(row.state));
}

void show_table(const std::vector<MigrationRow>& rows) {
    out().put(fmt::format("{:>7}  {:<24}{:<22}{:>9}  {}\n", "version", "name", "applied at",
                          "seconds", "state"));
    for (const auto& row : rows) {
        out().put(fmt::format(
            "{:>7}  {}{:<22}{:>9}  {}\n", row.version(), padded(printable(row.name()), 24),
            row.applied == nullptr ? "-" : row.applied->at,
            row.applied == nullptr ? "-" : fmt::format("{:.2f}", row.applied->seconds),
            painted_state(row)));
    }
}

void show_rows_json(const Database& database, const std::vector<MigrationRow>& rows) {
    const Json root(json_object());
    json_t* list = json_array();
    for (const auto& row : rows) {
        const Applied* applied = row.applied;
        json_t* item = json_object();
        json_object_set_new(item, "version", number_json(static_cast<uint64_t>(row.version())));
        json_object_set_new(item, "name", text_json(row.name()));
        json_object_set_new(item, "state", text_json(name_of(row.state)));
        json_object_set_new(item, "applied_at",
                            applied == nullptr ? json_null() : text_json(applied->at));
        json_object_set_new(item, "seconds",
                            applied == nullptr ? json_null() : json_real(applied->seconds));
        json_array_append_new(list, item);
    }
    json_object_set_new(root.get(), "database", text_json(database.shown()));
    json_object_set_new(root.get(), "migrations", list);
    print_json(root);
}

Exit status(const Options& options) {
    Database database(options.database, "nginx-ads migrate");
    const auto applied = applied_migrations(database).value_or(std::map<int, Applied>());
    const auto rows = compared(applied);
    if (options.json) {
        show_rows_json(database, rows);
    } else {
        out().put(fmt::format("{}\n\n", database.shown()));
        show_table(rows);
    }
    check(rows);
    const auto pending = std::count_if(rows.begin(), rows.end(), [](const auto& row) {
        return row.state == MigrationState::pending;
    });
    if (!options.json) {
        out().put(pending == 0
                      ? "\nNothing to do.\n"
                      : fmt::format("\n{} pending: run \"nginx-ads migrate\".\n", pending));
    }
    return Exit::ok;
}

Validator is_version() {
    return Validator(
        [](const std::string& text) {
            const auto& all = migrations();
            const bool known = std::any_of(all.begin(), all.end(), [&](const auto& migration) {
                return std::to_string(migration.version) == text;
            });
            return known || all.empty()
                       ? std::string()
                       : fmt::format("must be a version from {} to {}, not \"{}\"",
                                     all.front().version, all.back().version, printable(text));
        },
        "VERSION");
}

}  // namespace

void add_migrate(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("migrate", "Bring a database's schema up to date");
    sub->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    sub->add_option("--to", options->to, "Apply no migration after this one (default all)")
        ->check(is_version())
        ->option_text("VERSION");
    sub->add_flag("--dry-run", options->dry_run, "Only say what would be applied");
    sub->add_flag("--repair", options->repair,
                  "Apply those that build indexes again: what is invalid or missing is replaced");
    sub->add_flag("--json", options->json, "Print an object");
    sub->footer(
        "Each migration is applied once, in order, and recorded with its checksum in\n"
        "ads.migrations. It is done as a whole or not at all; those that cannot be (indexes that\n"
        "are built while others write) go on where they were interrupted. Several migrates at\n"
        "once wait for each other. A pooler in transaction mode will not do: connect directly.\n"
        "\n"
        "Example:\n"
        "  nginx-ads migrate --database \"host=db.example.com dbname=ads user=ads_owner\"");
    sub->require_subcommand(0, 1);
    sub->callback([options, sub, &chosen] {
        if (!sub->has_subcommand()) {
            chosen = [options] { return Migrate(*options).run(); };
        }
    });
    auto* state = sub->add_subcommand("status", "Say which migrations the database has");
    state->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    state->add_flag("--json", options->json, "Print an object");
    state->footer(
        "The exit code is 1 if an applied file has changed since, or if the database is newer "
        "than\n"
        "the command; pending migrations are no error.\n"
        "\n"
        "Example:\n"
        "  nginx-ads migrate status --json");
    state->callback([options, &chosen] { chosen = [options] { return status(*options); }; });
}

}  // namespace ads::cli
