// Experiments in PostgreSQL, and their verdicts.
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
    double previous_p = 1;  // the smallest of all checks so far
};

// The other variants are compared with the first.
struct Experiment {
    Id id = 0;
    std::string name;
    Id ad_group = 0;
    std::string status;
    std::string metric;
    stats::Plan plan;
    std::optional<Id> winner;
    std::vector<Variant> variants;
    std::string since;  // the first trial; empty: none

    std::vector<stats::Arm> arms() const;
    uint64_t trials() const;
};

// All experiments, those with a status, or one. Throws SqlError.
std::vector<Experiment> read_experiments(Database& database, const std::string& status = {},
                                         Id only = 0);

// One experiment, by id or name. Throws NotFound.
Experiment read_experiment(Database& database, const std::string& id);

stats::Judgement judged(const Experiment& experiment);

// How many trials of each variant a verdict takes, if a variant is better than the first by just
// the mde. Nothing before the first success.
std::optional<uint64_t> needed_trials(const Experiment& experiment);

// "decided", "open", "too_few", "sample_ratio"
std::string_view name_of(stats::Verdict verdict);
// The verdict as a sentence.
std::string sentence(const Experiment& experiment, const stats::Judgement& judgement);

// The figures, for programs and for the log.
json_t* judgement_json(const Experiment& experiment, const stats::Judgement& judgement);

// The experiment with its figures and its verdict.
json_t* analysis_json(const Experiment& experiment);

// Completes the experiments that have a verdict, in the caller's transaction.
struct Verdicts {
    std::vector<std::string> completed;  // "3 (creative 32 wins)"
    std::vector<std::string> broken;     // sentences about wrong traffic splits
};
Verdicts check_experiments(Database& database);

}  // namespace ads::admin
