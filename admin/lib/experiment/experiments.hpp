// Experiments in PostgreSQL, and what their figures say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/types.hpp"
#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/base/stats.hpp"

namespace ads::admin {

struct Variant {
    Id creative = 0;
    std::string name;
    double share = 0;
    stats::Arm arm;
    double previous_p = 1;  // the least of all looks so far
};

// The first variant is what the others are compared with.
struct Experiment {
    Id id = 0;
    std::string name;
    Id ad_group = 0;
    std::string status;
    std::string metric;
    stats::Plan plan;
    std::optional<Id> winner;
    std::vector<Variant> variants;

    std::vector<stats::Arm> arms() const;
    uint64_t trials() const;
};

// All of them, those of a status, or one. Throws SqlError.
std::vector<Experiment> read_experiments(Database& database, const std::string& status = {},
                                         Id only = 0);

// One, by its id or its name. Throws NotFound.
Experiment read_experiment(Database& database, const std::string& id);

stats::Judgement judged(const Experiment& experiment);

// "decided", "open", "too_few", "sample_ratio"
std::string_view name_of(stats::Verdict verdict);
// The verdict as a sentence.
std::string sentence(const Experiment& experiment, const stats::Judgement& judgement);

// The figures, for programs and for the log.
json_t* judgement_json(const Experiment& experiment, const stats::Judgement& judgement);

// The experiment with its figures and its verdict.
json_t* analysis_json(const Experiment& experiment);

// Completes what has a verdict, in the caller's transaction.
struct Verdicts {
    std::vector<std::string> completed;  // "3 (creative 32 wins)"
    std::vector<std::string> broken;     // sentences about splits that cannot be right
};
Verdicts check_experiments(Database& database);

}  // namespace ads::admin
