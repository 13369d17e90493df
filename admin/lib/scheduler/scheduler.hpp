// What happens to campaigns and experiments by itself. Each task has its runs; a run is done by
// one of all schedulers, in one transaction together with the row that says so.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/database.hpp"

namespace ads::admin {

// What a run did: each action with those it was done to.
using Actions = std::map<std::string, std::vector<std::string>>;

struct SchedulerOptions {
    std::string database;
    std::string instance;  // the name in the table of runs
    int event_days = 395;
};

// Gets what became of a run.
struct TaskSink {
    std::function<void(const std::string& task, const Actions& actions)> done;
    std::function<void(const std::string& task, const std::string& trouble)> trouble;
    std::function<bool()> stop;  // asked between runs; empty: never
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

    // Does what is due; connects if that is needed. Throws SqlError if the connection is lost on
    // the way.
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
