// nginx-ads scheduler: what happens to campaigns and experiments by itself. Each
// task has its turns; a turn is done by one of all schedulers, in one transaction
// together with the row that says so.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>

#include "cli/common/options.hpp"
#include "cli/common/service.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/diagnosis/node_status.hpp"
#include "lib/experiment/experiments.hpp"

namespace ads::cli {

namespace {

constexpr int kEventDays = 395;
constexpr size_t kNamesShown = 10;
constexpr size_t kTurnsAtOnce = 500;  // of one task: time zones have fewer midnights

struct Options {
    std::string database;
    std::string tick = "30s";
    std::string instance;
    int event_days = kEventDays;
    bool verbose = false;
    bool json = false;
};

// ---- the log ----

std::string_view tag_of(std::string_view task) {
    return task == "daily-budget-reset"                            ? "daily-reset"
           : task == "prune-expired-events" || task == "scheduler" ? "scheduler"
                                                                   : "lifecycle";
}

// What a turn did: each action with those it was done to.
using Deeds = std::map<std::string, std::vector<std::string>>;

uint64_t count_of(const Deeds& deeds) {
    uint64_t count = 0;
    for (const auto& [action, names] : deeds) {
        count += names.size();
    }
    return count;
}

// "2 activated (7, 9), 1 resumed (4)"
std::string shown(const Deeds& deeds) {
    std::vector<std::string> parts;
    for (const auto& [action, names] : deeds) {
        const size_t some = std::min(names.size(), kNamesShown);
        parts.push_back(fmt::format(
            "{} {} ({}{})", names.size(), action,
            fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(some), ", "),
            names.size() > some ? ", …" : ""));
    }
    return parts.empty() ? "nothing to do" : fmt::format("{}", fmt::join(parts, ", "));
}

// ---- turns ----

struct Totals {
    uint64_t turns = 0;
    uint64_t changes = 0;
    uint64_t failures = 0;
};

class Scheduler {
public:
    explicit Scheduler(const Options& options)
        : options_(options),
          instance_(options.instance.empty() ? host_and_process() : options.instance) {}

    const std::string& instance() const noexcept { return instance_; }

    // Connects if that is needed. Throws SqlError if the connection is lost on the way.
    Totals tick(StopSignal* stop = nullptr) {
        if (!database_) {
            database_ = std::make_unique<Database>(options_.database, "nginx-ads scheduler");
        }
        Totals totals;
        const Rows due = database_->run(
            "SELECT task FROM ads.scheduler_tasks() WHERE ads.due_turn(task) IS NOT NULL "
            "ORDER BY place");
        for (size_t i = 0; i < due.size(); i++) {
            const std::string task(due.at(i, 0));
            for (size_t n = 0; n < kTurnsAtOnce && turn(task, totals); n++) {
                if (stop != nullptr && stop->within(std::chrono::milliseconds(0))) {
                    return totals;
                }
            }
        }
        return totals;
    }

    void disconnect() { database_.reset(); }

private:
    // Whether there was one, and it went well.
    bool turn(const std::string& task, Totals& totals) {
        std::string due;
        Deeds deeds;
        try {
            Transaction transaction(*database_);
            database_->run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
            database_->run("SET LOCAL lock_timeout = '5s'");
            database_->run("SET LOCAL statement_timeout = '60s'");
            due = database_->value("SELECT ads.claim_turn($1, $2)", {task, instance_});
            if (due.empty()) {
                return false;
            }
            deeds = work(task, due);
            database_->run("SELECT ads.finish_turn($1, $2, $3)",
                           {task, due, std::to_string(count_of(deeds))});
            transaction.commit();
        } catch (const SqlError& e) {
            if (e.lost()) {
                throw;
            }
            totals.failures++;
            failed(task, due, explained(e).what());
            return false;
        }
        totals.turns++;
        totals.changes += count_of(deeds);
        if (options_.verbose || !deeds.empty()) {
            log_line(tag_of(task), fmt::format("{}: {}", task, shown(deeds)));
        }
        return true;
    }

    Deeds work(const std::string& task, const std::string& due) {
        Deeds deeds;
        if (task == "check-experiments") {
            Verdicts verdicts = check_experiments(*database_);
            for (const auto& problem : verdicts.broken) {
                log_line(tag_of(task), fmt::format("{}: {}", task, problem));
            }
            if (!verdicts.completed.empty()) {
                deeds["completed"] = std::move(verdicts.completed);
            }
            return deeds;
        }
        const Rows rows = database_->run("SELECT action, what FROM ads.do_turn($1, $2, $3)",
                                         {task, due, std::to_string(options_.event_days)});
        for (size_t i = 0; i < rows.size(); i++) {
            deeds[std::string(rows.at(i, 0))].push_back(printable(rows.at(i, 1)));
        }
        return deeds;
    }

    void failed(const std::string& task, const std::string& due, const std::string& why) {
        log_line(tag_of(task), fmt::format("{} failed, and is tried again: {}", task, why));
        if (due.empty()) {
            return;
        }
        try {
            database_->run("SELECT ads.fail_turn($1, $2, $3, $4)", {task, due, instance_, why});
        } catch (const SqlError& e) {
            if (e.lost()) {
                throw;
            }
            log_line("scheduler", fmt::format("cannot record that {} failed: {}", task, e.what()));
        }
    }

    const Options& options_;
    const std::string instance_;
    std::unique_ptr<Database> database_;
};

// ---- the commands ----

Exit tick_once(const Options& options) {
    Scheduler scheduler(options);
    Totals totals;
    try {
        totals = scheduler.tick();
    } catch (const SqlError& e) {
        throw explained(e);
    }
    if (options.json) {
        const Json root(json_object());
        json_object_set_new(root.get(), "instance", text_json(scheduler.instance()));
        json_object_set_new(root.get(), "runs", number_json(totals.turns));
        json_object_set_new(root.get(), "changes", number_json(totals.changes));
        json_object_set_new(root.get(), "failures", number_json(totals.failures));
        print_json(root);
    } else {
        out().put(fmt::format("{} done, {}, {} failed\n", counted(totals.turns, "task"),
                              counted(totals.changes, "change"), totals.failures));
    }
    return totals.failures == 0 ? Exit::ok : Exit::failed;
}

class Daemon {
public:
    explicit Daemon(const Options& options)
        : options_(options), tick_(*parse_timeout(options.tick)), scheduler_(options) {}

    Exit run() {
        log_line("scheduler", fmt::format("started as {}, a tick every {}", scheduler_.instance(),
                                          options_.tick));
        manager_.say("READY=1");
        auto next = Clock::now();
        do {
            tick();
            next = std::max(next + tick_, Clock::now());
        } while (!stopped_by(next));
        manager_.say("STOPPING=1");
        log_line("scheduler", fmt::format("stopped after {}: {}, {}, {} failed",
                                          counted(ticks_, "tick"), counted(totals_.turns, "task"),
                                          counted(totals_.changes, "change"), totals_.failures));
        return Exit::ok;
    }

private:
    using Clock = std::chrono::steady_clock;

    // A database that is away is waited for: what was missed is caught up once.
    void tick() {
        ticks_++;
        try {
            const Totals totals = scheduler_.tick(&stop_);
            totals_.turns += totals.turns;
            totals_.changes += totals.changes;
            totals_.failures += totals.failures;
            if (!trouble_.empty()) {
                log_line("scheduler", "PostgreSQL is back");
            }
            trouble_.clear();
        } catch (const SqlError& e) {
            scheduler_.disconnect();
            complain_once(e.lost() ? fmt::format("the connection was lost: {}", e.what())
                                   : explained(e).what());
        } catch (const Failure& e) {
            if (e.exit() != Exit::failed) {
                throw;
            }
            scheduler_.disconnect();
            complain_once(e.what());
        }
        manager_.say("WATCHDOG=1");
    }

    void complain_once(const std::string& trouble) {
        if (trouble != trouble_) {
            log_line("scheduler", trouble);
        }
        trouble_ = trouble;
    }

    bool stopped_by(Clock::time_point next) {
        for (;;) {
            auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now());
            left = std::max(left, std::chrono::milliseconds(0));
            const auto watchdog = manager_.watchdog();
            const bool early = watchdog && *watchdog / 2 < left;
            if (stop_.within(early ? *watchdog / 2 : left)) {
                return true;
            }
            if (!early) {
                return false;
            }
            manager_.say("WATCHDOG=1");
        }
    }

    const Options& options_;
    const std::chrono::milliseconds tick_;
    StopSignal stop_;
    ServiceManager manager_;
    Scheduler scheduler_;
    Totals totals_;
    uint64_t ticks_ = 0;
    std::string trouble_;
};

// ---- status ----

constexpr const char* kMoment = R"('YYYY-MM-DD"T"HH24:MI:SS"Z"')";

std::string period_text(const Rows& rows, size_t row) {
    const int64_t seconds = rows.number(row, 1);
    return rows.null(row, 1)     ? "midnight"
           : seconds % 3600 == 0 ? fmt::format("{} h", seconds / 3600)
                                 : fmt::format("{} s", seconds);
}

void show_status(const Rows& rows) {
    const auto or_dash = [&](size_t row, int column) {
        return rows.null(row, column) ? std::string("-") : printable(rows.at(row, column));
    };
    out().put(fmt::format("{:<22}{:<10}{:<22}{:>8}  {:<22}{}\n", "task", "every", "last run",
                          "changed", "next due", "by"));
    for (size_t i = 0; i < rows.size(); i++) {
        out().put(fmt::format("{:<22}{:<10}{:<22}{:>8}  {:<22}{}\n", rows.at(i, 0),
                              period_text(rows, i), or_dash(i, 2), or_dash(i, 5), or_dash(i, 6),
                              or_dash(i, 4)));
    }
    for (size_t i = 0; i < rows.size(); i++) {
        if (!rows.null(i, 7)) {
            out().put(fmt::format("{} {} failed at {}, {}: {}\n",
                                  painted(STDOUT_FILENO, Colour::red, "!"), rows.at(i, 0),
                                  rows.at(i, 8),
                                  counted(static_cast<uint64_t>(rows.number(i, 9)), "attempt"),
                                  printable(rows.at(i, 7))));
        }
    }
}

void show_status_json(const Rows& rows) {
    const Json root(json_object());
    json_t* list = json_array();
    for (size_t i = 0; i < rows.size(); i++) {
        json_t* item = json_object();
        const auto text = [&](const char* name, int column) {
            json_object_set_new(item, name,
                                rows.null(i, column) ? json_null() : text_json(rows.at(i, column)));
        };
        const auto number = [&](const char* name, int column) {
            json_object_set_new(
                item, name,
                rows.null(i, column) ? json_null() : json_integer(rows.number(i, column)));
        };
        text("task", 0);
        number("every_seconds", 1);
        text("last_run", 2);
        json_object_set_new(item, "seconds",
                            rows.null(i, 3) ? json_null() : json_real(rows.real(i, 3)));
        text("instance", 4);
        number("changed", 5);
        text("next_due", 6);
        text("error", 7);
        text("failed_at", 8);
        number("attempts", 9);
        json_array_append_new(list, item);
    }
    json_object_set_new(root.get(), "tasks", list);
    print_json(root);
}

Exit status(const Options& options) {
    Database database(options.database, "nginx-ads scheduler");
    try {
        const auto moment = [](const char* column) {
            return fmt::format("to_char({} AT TIME ZONE 'UTC', {})", column, kMoment);
        };
        const Rows rows = database.run(fmt::format(
            "SELECT task, every_seconds, {}, seconds, instance, changed, {}, error, {}, "
            "attempts FROM ads.scheduler_status()",
            moment("due_at"), moment("next_due"), moment("failed_at")));
        options.json ? show_status_json(rows) : show_status(rows);
    } catch (const SqlError& e) {
        throw explained(e);
    }
    return Exit::ok;
}

Validator is_tick() {
    return Validator(
        [](const std::string& text) {
            const auto time = parse_timeout(text);
            return time && time->count() >= 10
                       ? std::string()
                       : fmt::format("must be a time from 10ms to 60m like 30s, not \"{}\"",
                                     printable(text));
        },
        "TIME");
}

Arguments* add_worker(Arguments& parent, const std::shared_ptr<Options>& options, const char* name,
                      const char* what) {
    auto* sub = parent.add_subcommand(name, what);
    sub->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    sub->add_option("--instance", options->instance,
                    "The name in the table of runs (default HOST:PID)")
        ->option_text("NAME");
    sub->add_option("--keep-events", options->event_days,
                    "Drop events that are older than so many days (default 395)")
        ->check(whole_number(31, 36500))
        ->option_text("DAYS");
    sub->add_flag("--verbose", options->verbose, "Also tell of tasks that had nothing to do");
    return sub;
}

}  // namespace

void add_scheduler(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("scheduler", "Start, end and pause campaigns when it is time");
    sub->require_subcommand(1);
    auto* daemon = add_worker(*sub, options, "run", "Work until SIGTERM or SIGINT");
    daemon->add_option("--tick", options->tick, "Look for work this often (default 30s)")
        ->check(is_tick())
        ->option_text("TIME");
    daemon->footer(
        "Any number of schedulers may run, on any number of machines: each task is done once for\n"
        "each time it is due. The log is on standard error.\n"
        "\n"
        "Example:\n"
        "  nginx-ads scheduler run --database \"host=db dbname=ads user=scheduler\"");
    daemon->callback([options, &chosen] { chosen = [options] { return Daemon(*options).run(); }; });

    auto* once = add_worker(*sub, options, "tick", "Do what is due, once, and end: for cron");
    once->add_flag("--json", options->json, "Print an object");
    once->footer(
        "The exit code is 3 if a task failed.\n"
        "\n"
        "Example:\n"
        "  * * * * * nginx-ads scheduler tick > /dev/null");
    once->callback([options, &chosen] { chosen = [options] { return tick_once(*options); }; });

    auto* state = sub->add_subcommand("status", "Say when tasks ran, and when they are due");
    state->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    state->add_flag("--json", options->json, "Print an object");
    state->footer(
        "Example:\n"
        "  nginx-ads scheduler status --json");
    state->callback([options, &chosen] { chosen = [options] { return status(*options); }; });
}

}  // namespace ads::cli
