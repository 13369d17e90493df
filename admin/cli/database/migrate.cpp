// nginx-ads migrate: brings the schema of a database up to date.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "lib/base/json.hpp"
#include "lib/database/migrations.hpp"
#include "version.hpp"

namespace ads::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kLockKey = "7017860702461847410";  // any number that is ours: "ads migr"
constexpr std::chrono::milliseconds kRetry(200);

struct Options {
    std::string database;
    bool dry_run = false;
    bool repair = false;
    bool json = false;
};

// ---- obstacles ----

// Throws if these files must not be applied to the database.
void check(const std::vector<FileRow>& rows, const AppliedFiles& applied) {
    for (const auto& row : rows) {
        if (row.state == FileState::unknown) {
            throw Failure(Exit::bad_input,
                          fmt::format("the database is newer than this nginx-ads: it has {}. Use "
                                      "the nginx-ads that migrated it, or a newer one.",
                                      printable(row.path)));
        }
        if (row.state == FileState::changed) {
            throw Failure(
                Exit::bad_input,
                fmt::format("{} is not the file that was applied on {}: its checksum begins "
                            "with {:.12}, that of the database with {:.12}. Applied files must "
                            "not change: use the nginx-ads that applied it, and put changes into a "
                            "new file.",
                            row.path, row.applied->at, row.file->checksum,
                            printable(row.applied->checksum)));
        }
        if (row.file->replaces > 0 && row.applied == nullptr && !row.replaced) {
            for (const auto& [path, one] : applied.files) {
                if (one.version > 0 && one.version < row.file->replaces) {
                    throw Failure(Exit::bad_input,
                                  fmt::format("the database has {}, but not migration {}: migrate "
                                              "it with an older nginx-ads first.",
                                              printable(path), row.file->replaces));
                }
            }
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
            fmt::format("{} is behind a pooler in transaction mode, which does not keep locks "
                        "between statements: connect directly to "
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
                warn("another nginx-ads migrate is running on this database: waiting for it.");
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
                          "a pooler changed the connection, so the lock is lost: "
                          "connect directly to PostgreSQL with --database.");
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

// Runs what `f` does; an error of it is one of the file, at the line (0: of the file as a whole).
template <class F>
void at_line(const SchemaFile& file, size_t line, F f) {
    try {
        f();
    } catch (const SqlError& e) {
        throw Failure(
            Exit::failed,
            fmt::format("{}: {} {}", line == 0 ? file.path : fmt::format("{}:{}", file.path, line),
                        e.what(),
                        file.transaction
                            ? "Nothing was applied."
                            : "The earlier statements of the file remain; the next run "
                              "starts the file again."));
    }
}

void run_statements(Database& database, const SchemaFile& file) {
    for (const auto& statement : statements_of(file.text)) {
        try {
            const Rows rows = database.run(statement.text);
            for (size_t i = 0; statement.generates && i < rows.size(); i++) {
                at_line(file, statement.line, [&] { database.run(std::string(rows.at(i, 0))); });
            }
        } catch (const SqlError& e) {
            at_line(file, line_of(statement, e.position()), [&] { throw e; });
        }
    }
}

void record(Database& database, const SchemaFile& file, double seconds) {
    const std::string took = fmt::format("{:.6f}", seconds);
    at_line(file, 0, [&] {
        if (file.numbered()) {
            database.run(
                "INSERT INTO ads.migrations (version, name, checksum, seconds) "
                "VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                {std::to_string(file.version), file.name, file.checksum, took});
        } else {
            database.run(
                "INSERT INTO ads.function_files (path, checksum, seconds, release) "
                "VALUES ($1, $2, $3, $4) ON CONFLICT (path) DO UPDATE SET "
                "checksum = excluded.checksum, seconds = excluded.seconds, "
                "release = excluded.release, applied_at = now()",
                {file.path, file.checksum, took, ADS_VERSION});
        }
    });
}

void make_tables(Database& database) {
    Transaction transaction(database);
    database.run("CREATE SCHEMA IF NOT EXISTS ads");
    database.run(
        "CREATE TABLE IF NOT EXISTS ads.migrations ("
        "version int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, "
        "applied_at timestamptz NOT NULL DEFAULT now(), seconds double precision NOT NULL)");
    database.run(
        "CREATE TABLE IF NOT EXISTS ads.function_files ("
        "path text PRIMARY KEY, checksum text NOT NULL, "
        "applied_at timestamptz NOT NULL DEFAULT now(), seconds double precision NOT NULL, "
        "release text NOT NULL)");
    transaction.commit();
}

// ---- migrate ----

struct Step {
    const SchemaFile* file;
    bool again;     // to repair
    bool replaced;  // only recorded
    double seconds = 0;
};

class Migrate {
public:
    explicit Migrate(const Options& options)
        : options_(options), database_(options.database, "nginx-ads migrate") {}

    Exit run() {
        check_server(database_, options_.database);
        if (options_.dry_run) {
            done_ = steps(applied_files(database_));
            for (const auto& step : done_) {
                say(fmt::format("would {} {}{}{}\n", step.replaced ? "record" : "apply",
                                step.file->path, step.again ? " again" : "",
                                step.file->transaction ? "" : " (without a transaction)"));
            }
            say(done_.empty() ? "" : "Nothing was changed: this was a dry run.\n");
        } else {
            apply();
        }
        if (options_.json) {
            show_json();
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

    // The steps in order: first all that can be done in one transaction.
    std::vector<Step> steps(const AppliedFiles& applied) {
        const auto rows = compared(applied);
        check(rows, applied);
        std::vector<Step> list;
        for (const auto& row : rows) {
            const bool pending = row.state == FileState::pending;
            const bool again = !pending && options_.repair && !row.file->transaction;
            const bool rights = !row.file->numbered() && &row == &rows.back() && !list.empty();
            if (pending || again || rights) {
                list.push_back({row.file, again, row.replaced});
            } else {
                version_ = std::max(version_, row.file->version);
            }
        }
        std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
            return a.file->transaction > b.file->transaction;
        });
        if (list.empty()) {
            say(fmt::format("{}: version {}, nothing to do.\n", database_.shown(), version_));
        }
        return list;
    }

    void apply() {
        // What a role or a database may have set is for others: here an index of a
        // large table takes its time, and names are those of the files.
        database_.run("SET search_path = pg_catalog");
        database_.run("SET statement_timeout = 0");
        database_.run("SET idle_in_transaction_session_timeout = 0");
        database_.run("SET client_min_messages = warning");
        // Functions call each other: as pg_restore, which does not look into them either.
        database_.run("SET check_function_bodies = off");
        Lock lock(database_);
        make_tables(database_);
        auto list = steps(applied_files(database_));
        const auto rest = std::find_if(list.begin(), list.end(),
                                       [](const auto& step) { return !step.file->transaction; });
        lock.check();
        if (rest != list.begin()) {
            Transaction transaction(database_);
            std::for_each(list.begin(), rest, [&](auto& step) { run_step(step); });
            at_line(*list.front().file, 0, [&] { transaction.commit(); });
            std::for_each(list.begin(), rest, [&](const auto& step) { told(step); });
        }
        make_partitions();
        for (auto step = rest; step != list.end(); ++step) {
            lock.check();
            run_step(*step);
            told(*step);
        }
        if (!done_.empty()) {
            say(fmt::format("{}: version {}.\n", database_.shown(), version_));
        }
    }

    void run_step(Step& step) {
        const auto begin = Clock::now();
        if (!step.replaced) {
            run_statements(database_, *step.file);
        }
        step.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        record(database_, *step.file, step.seconds);
    }

    void told(const Step& step) {
        version_ = std::max(version_, step.file->version);
        done_.push_back(step);
        say(step.replaced ? fmt::format("recorded {}\n", step.file->path)
                          : fmt::format("applied {}{} in {:.2f} s\n", step.file->path,
                                        step.again ? " again" : "", step.seconds));
    }

    void make_partitions() {
        const Rows rows = database_.run("SELECT ads.ensure_partitions()");
        for (size_t i = 0; i < rows.size(); i++) {
            partitions_.emplace_back(rows.at(i, 0));
            say(fmt::format("created partition {}\n", printable(partitions_.back())));
        }
    }

    void show_json() {
        const Json root(json_object());
        json_t* list = json_array();
        for (const auto& done : done_) {
            json_t* item = json_object();
            json_object_set_new(item, "file", text_json(done.file->path));
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

std::string painted_state(const FileRow& row) {
    const Colour colour = row.state == FileState::applied   ? Colour::green
                          : row.state == FileState::pending ? Colour::yellow
                                                            : Colour::red;
    return painted(STDOUT_FILENO, colour, name_of(row.state));
}

void show_table(const std::vector<FileRow>& rows) {
    out().put(fmt::format("{:<30}{:<22}{:>9}  {}\n", "file", "applied at", "seconds", "state"));
    for (const auto& row : rows) {
        out().put(
            fmt::format("{}{:<22}{:>9}  {}\n", padded(printable(row.path), 30),
                        row.applied == nullptr ? "-" : row.applied->at,
                        row.applied == nullptr ? "-" : fmt::format("{:.2f}", row.applied->seconds),
                        painted_state(row)));
    }
}

void show_rows_json(const Database& database, const std::vector<FileRow>& rows) {
    const Json root(json_object());
    json_t* list = json_array();
    for (const auto& row : rows) {
        const Applied* applied = row.applied;
        json_t* item = json_object();
        json_object_set_new(item, "file", text_json(row.path));
        json_object_set_new(item, "state", text_json(name_of(row.state)));
        json_object_set_new(
            item, "checksum",
            text_json(row.file != nullptr ? row.file->checksum : applied->checksum));
        json_object_set_new(item, "applied_at",
                            applied == nullptr ? json_null() : text_json(applied->at));
        json_object_set_new(item, "seconds",
                            applied == nullptr ? json_null() : json_real(applied->seconds));
        json_array_append_new(list, item);
    }
    json_object_set_new(root.get(), "database", text_json(database.shown()));
    json_object_set_new(root.get(), "files", list);
    print_json(root);
}

Exit status(const Options& options) {
    Database database(options.database, "nginx-ads migrate");
    const auto applied = applied_files(database);
    const auto rows = compared(applied);
    if (options.json) {
        show_rows_json(database, rows);
    } else {
        out().put(fmt::format("{}\n\n", database.shown()));
        show_table(rows);
    }
    check(rows, applied);
    const auto pending = std::count_if(
        rows.begin(), rows.end(), [](const auto& row) { return row.state == FileState::pending; });
    if (!options.json) {
        out().put(pending == 0
                      ? "\nNothing to do.\n"
                      : fmt::format("\n{} pending: run \"nginx-ads migrate\".\n", pending));
    }
    return Exit::ok;
}

}  // namespace

void add_migrate(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("migrate", "Bring the database schema up to date");
    sub->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    sub->add_flag("--dry-run", options->dry_run, "Print the files without applying them");
    sub->add_flag("--repair", options->repair, "Rebuild invalid and missing indexes");
    sub->add_flag("--json", options->json, "Print JSON");
    sub->footer(
        "Table files are applied once, in order; function files again whenever they have changed,\n"
        "all in one transaction. Indexes that are built concurrently follow, and resume after an\n"
        "interruption. Concurrent runs wait for each other. A pooler in transaction mode is not\n"
        "supported: connect directly.\n"
        "\n"
        "Example:\n"
        "  nginx-ads migrate --database \"host=db.example.com dbname=ads user=ads_owner\"");
    sub->require_subcommand(0, 1);
    sub->callback([options, sub, &chosen] {
        if (!sub->has_subcommand()) {
            chosen = [options] { return Migrate(*options).run(); };
        }
    });
    auto* state = sub->add_subcommand("status", "Print which schema files are applied");
    state->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    state->add_flag("--json", options->json, "Print JSON");
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
