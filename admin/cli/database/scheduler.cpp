// nginx-ads scheduler: what happens to campaigns and experiments by itself. Each
// task has its runs; a run is done by one of all schedulers, in one transaction
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
#include "lib/scheduler/scheduler.hpp"

namespace ads::cli {

namespace {

constexpr int kEventDays = 395;
constexpr size_t kNamesShown = 10;

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

// "2 activated (7, 9), 1 resumed (4)"
std::string shown(const Actions& actions) {
    std::vector<std::string> parts;
    for (const auto& [action, names] : actions) {
        const size_t some = std::min(names.size(), kNamesShown);
        parts.push_back(fmt::format(
            "{} {} ({}{})", names.size(), action,
            fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(some), ", "),
            names.size() > some ? ", …" : ""));
    }
    return parts.empty() ? "nothing to do" : fmt::format("{}", fmt::join(parts, ", "));
}

Scheduler scheduler_of(const Options& options, const std::string& instance,
                       std::function<bool()> stop) {
    return {{options.database, instance, options.event_days},
            {[&options](const std::string& task, const Actions& actions) {
                 if (options.verbose || !actions.empty()) {
                     log_line(tag_of(task), fmt::format("{}: {}", task, shown(actions)));
                 }
             },
             [](const std::string& task, const std::string& trouble) {
                 log_line(tag_of(task), trouble);
             },
             std::move(stop)}};
}

std::string instance_of(const Options& options) {
    return options.instance.empty() ? host_and_process() : options.instance;
}

// ---- the commands ----

Exit tick_once(const Options& options) {
    const std::string instance = instance_of(options);
    Scheduler scheduler = scheduler_of(options, instance, nullptr);
    Totals totals;
    try {
        totals = scheduler.tick();
    } catch (const SqlError& e) {
        throw explained(e);
    }
    if (options.json) {
        const Json root(json_object());
        json_object_set_new(root.get(), "instance", text_json(instance));
        json_object_set_new(root.get(), "runs", number_json(totals.runs));
        json_object_set_new(root.get(), "changes", number_json(totals.changes));
        json_object_set_new(root.get(), "failures", number_json(totals.failures));
        print_json(root);
    } else {
        out().put(fmt::format("{} done, {}, {} failed\n", counted(totals.runs, "task"),
                              counted(totals.changes, "change"), totals.failures));
    }
    return totals.failures == 0 ? Exit::ok : Exit::failed;
}

class Daemon {
public:
    explicit Daemon(const Options& options)
        : options_(options),
          tick_(*parse_timeout(options.tick)),
          instance_(instance_of(options)),
          scheduler_(scheduler_of(options, instance_,
                                  [this] { return stop_.within(std::chrono::milliseconds(0)); })) {}

    Exit run() {
        log_line("scheduler",
                 fmt::format("started as {}, a tick every {}", instance_, options_.tick));
        manager_.say("READY=1");
        auto next = Clock::now();
        do {
            tick();
            next = std::max(next + tick_, Clock::now());
        } while (!stopped_by(next));
        manager_.say("STOPPING=1");
        log_line("scheduler", fmt::format("stopped after {}: {}, {}, {} failed",
                                          counted(ticks_, "tick"), counted(totals_.runs, "task"),
                                          counted(totals_.changes, "change"), totals_.failures));
        return Exit::ok;
    }

private:
    using Clock = std::chrono::steady_clock;

    // A database that is away is waited for: what was missed is caught up once.
    void tick() {
        ticks_++;
        try {
            const Totals totals = scheduler_.tick();
            totals_.runs += totals.runs;
            totals_.changes += totals.changes;
            totals_.failures += totals.failures;
            if (!trouble_.empty()) {
                log_line("scheduler", "connected to PostgreSQL again");
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
    const std::string instance_;
    StopSignal stop_;
    ServiceManager manager_;
    Scheduler scheduler_;
    Totals totals_;
    uint64_t ticks_ = 0;
    std::string trouble_;
};

// ---- status ----

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
        const Rows rows = scheduler_status(database);
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
                       : fmt::format("must be a time from 10ms to 60m such as 30s, not \"{}\"",
                                     printable(text));
        },
        "TIME");
}

Arguments* add_worker(Arguments& parent, const std::shared_ptr<Options>& options, const char* name,
                      const char* what) {
    auto* sub = parent.add_subcommand(name, what);
    sub->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    sub->add_option("--instance", options->instance, "Name in the table of runs (default HOST:PID)")
        ->option_text("NAME");
    sub->add_option("--keep-events", options->event_days, "Days to keep events (default 395)")
        ->check(whole_number(31, 36500))
        ->option_text("DAYS");
    sub->add_flag("--verbose", options->verbose, "Log tasks that had nothing to do");
    return sub;
}

}  // namespace

void add_scheduler(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("scheduler", "Start, end and pause campaigns on schedule");
    sub->require_subcommand(1);
    auto* daemon = add_worker(*sub, options, "run", "Run until SIGTERM or SIGINT");
    daemon->add_option("--tick", options->tick, "Interval between checks for work (default 30s)")
        ->check(is_tick())
        ->option_text("TIME");
    daemon->footer(
        "Any number of schedulers may run, on any number of machines: each task is done once for\n"
        "each time it is due. The log is on standard error.\n"
        "\n"
        "Example:\n"
        "  nginx-ads scheduler run --database \"host=db dbname=ads user=scheduler\"");
    daemon->callback([options, &chosen] { chosen = [options] { return Daemon(*options).run(); }; });

    auto* once = add_worker(*sub, options, "tick", "Run what is due and exit; for cron");
    once->add_flag("--json", options->json, "Print JSON");
    once->footer(
        "The exit code is 3 if a task failed.\n"
        "\n"
        "Example:\n"
        "  * * * * * nginx-ads scheduler tick > /dev/null");
    once->callback([options, &chosen] { chosen = [options] { return tick_once(*options); }; });

    auto* state = sub->add_subcommand("status", "Show when tasks ran and when they are due");
    state->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    state->add_flag("--json", options->json, "Print JSON");
    state->footer(
        "Example:\n"
        "  nginx-ads scheduler status --json");
    state->callback([options, &chosen] { chosen = [options] { return status(*options); }; });
}

}  // namespace ads::cli
