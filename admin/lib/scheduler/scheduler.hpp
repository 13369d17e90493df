// What happens to campaigns and experiments by itself. Each task has its turns; a turn is done by
// one of all schedulers, in one transaction together with the row that says so.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/database.hpp"

namespace ads::admin {

// What a turn did: each action with those it was done to.
using Deeds = std::map<std::string, std::vector<std::string>>;

struct SchedulerOptions {
    std::string database;
    std::string instance;  // the name in the table of runs
    int event_days = 395;
};

// Gets what became of a turn.
struct TurnSink {
    std::function<void(const std::string& task, const Deeds& deeds)> done;
    std::function<void(const std::string& task, const std::string& trouble)> trouble;
    std::function<bool()> stop;  // asked between turns; empty: never
};

struct Totals {
    uint64_t turns = 0;
    uint64_t changes = 0;
    uint64_t failures = 0;
};

class Scheduler {
public:
    Scheduler(SchedulerOptions options, TurnSink sink)
        : options_(std::move(options)), sink_(std::move(sink)) {}

    // Does what is due; connects if that is needed. Throws SqlError if the connection is lost on
    // the way.
    Totals tick();
    void disconnect() { database_.reset(); }

private:
    bool turn(const std::string& task, Totals& totals);
    Deeds work(const std::string& task, const std::string& due);
    void failed(const std::string& task, const std::string& due, const std::string& why);

    const SchedulerOptions options_;
    const TurnSink sink_;
    std::unique_ptr<Database> database_;
};

// Each task with its last turn and its next one: task, every_seconds, due_at, seconds, instance,
// changed, next_due, error, failed_at, attempts.
Rows scheduler_status(Database& database);

}  // namespace ads::admin
