// Scheduled tasks for campaigns and experiments. Each run of a task is done by one of all
// schedulers, in one transaction together with its row in ads.scheduler_runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/database.hpp"

namespace ads::admin {

// The result of a run: each action with the ids it applied to.
using Actions = std::map<std::string, std::vector<std::string>>;

struct SchedulerOptions {
    std::string database;
    std::string instance;  // the name in ads.scheduler_runs
    int event_days = 395;
};

// Receives the outcome of a run.
struct TaskSink {
    std::function<void(const std::string& task, const Actions& actions)> done;
    std::function<void(const std::string& task, const std::string& trouble)> trouble;
    std::function<bool()> stop;  // called between runs; empty: never stops
};

struct Totals {
    uint64_t runs = 0;
    uint64_t changes = 0;
    uint64_t failures = 0;
};

class Scheduler {
public:
    Scheduler(SchedulerOptions options, TaskSink sink)
        : options_(std::move(options)), sink_(std::move(sink)) {}

    // Does the due runs; connects if necessary. Throws SqlError if the connection is
    // lost.
    Totals tick();
    void disconnect() { database_.reset(); }

private:
    bool run_once(const std::string& task, Totals& totals);
    Actions run_task(const std::string& task, const std::string& due);
    void failed(const std::string& task, const std::string& due, const std::string& why);

    const SchedulerOptions options_;
    const TaskSink sink_;
    std::unique_ptr<Database> database_;
};

// Each task with its last run and its next one: task, every_seconds, due_at, seconds, instance,
// changed, next_due, error, failed_at, attempts.
Rows scheduler_status(Database& database);

}  // namespace ads::admin
