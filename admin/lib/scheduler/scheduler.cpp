#include "lib/scheduler/scheduler.hpp"

#include <fmt/format.h>

#include "lib/base/text.hpp"
#include "lib/experiment/experiments.hpp"

namespace ads::admin {

namespace {

constexpr size_t kRunsAtOnce = 500;  // of one task: time zones have fewer midnights
constexpr const char* kMoment = R"('YYYY-MM-DD"T"HH24:MI:SS"Z"')";

uint64_t count_of(const Actions& actions) {
    uint64_t count = 0;
    for (const auto& [action, names] : actions) {
        count += names.size();
    }
    return count;
}

}  // namespace

Totals Scheduler::tick() {
    if (!database_) {
        database_ = std::make_unique<Database>(options_.database, "nginx-ads scheduler");
    }
    Totals totals;
    const Rows due = database_->run(
        "SELECT task FROM ads.scheduler_tasks() WHERE ads.due_run(task) IS NOT NULL "
        "ORDER BY place");
    for (size_t i = 0; i < due.size(); i++) {
        const std::string task(due.at(i, 0));
        for (size_t n = 0; n < kRunsAtOnce && run_once(task, totals); n++) {
            if (sink_.stop && sink_.stop()) {
                return totals;
            }
        }
    }
    return totals;
}

// Whether there was one, and it went well.
bool Scheduler::run_once(const std::string& task, Totals& totals) {
    std::string due;
    Actions actions;
    try {
        Transaction transaction(*database_);
        database_->run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
        database_->run("SET LOCAL lock_timeout = '5s'");
        database_->run("SET LOCAL statement_timeout = '60s'");
        due = database_->value("SELECT ads.claim_run($1, $2)", {task, options_.instance});
        if (due.empty()) {
            return false;
        }
        actions = run_task(task, due);
        database_->run("SELECT ads.finish_run($1, $2, $3)",
                       {task, due, std::to_string(count_of(actions))});
        transaction.commit();
    } catch (const SqlError& e) {
        if (e.lost()) {
            throw;
        }
        totals.failures++;
        failed(task, due, explained(e).what());
        return false;
    }
    totals.runs++;
    totals.changes += count_of(actions);
    sink_.done(task, actions);
    return true;
}

Actions Scheduler::run_task(const std::string& task, const std::string& due) {
    Actions actions;
    if (task == "check-experiments") {
        Verdicts verdicts = check_experiments(*database_);
        for (const auto& problem : verdicts.broken) {
            sink_.trouble(task, fmt::format("{}: {}", task, problem));
        }
        if (!verdicts.completed.empty()) {
            actions["completed"] = std::move(verdicts.completed);
        }
        return actions;
    }
    const Rows rows = database_->run("SELECT action, what FROM ads.run_task($1, $2, $3)",
                                     {task, due, std::to_string(options_.event_days)});
    for (size_t i = 0; i < rows.size(); i++) {
        actions[std::string(rows.at(i, 0))].push_back(printable(rows.at(i, 1)));
    }
    return actions;
}

void Scheduler::failed(const std::string& task, const std::string& due, const std::string& why) {
    sink_.trouble(task, fmt::format("{} failed and will be retried: {}", task, why));
    if (due.empty()) {
        return;
    }
    try {
        database_->run("SELECT ads.fail_run($1, $2, $3, $4)", {task, due, options_.instance, why});
    } catch (const SqlError& e) {
        if (e.lost()) {
            throw;
        }
        sink_.trouble("scheduler", fmt::format("cannot record that {} failed: {}", task, e.what()));
    }
}

Rows scheduler_status(Database& database) {
    const auto moment = [](const char* column) {
        return fmt::format("to_char({} AT TIME ZONE 'UTC', {})", column, kMoment);
    };
    return database.run(
        fmt::format("SELECT task, every_seconds, {}, seconds, instance, changed, {}, error, {}, "
                    "attempts FROM ads.scheduler_status()",
                    moment("due_at"), moment("next_due"), moment("failed_at")));
}

}  // namespace ads::admin
