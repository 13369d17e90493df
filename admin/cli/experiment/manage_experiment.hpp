// How an experiment begins and ends, and what is shown of it.
#pragma once

#include "cli/manage/manage_edit.hpp"

namespace ads::cli {

// Both return the id of the experiment, and throw Failure.
std::string start_experiment(Edits& edits, const std::string& id);
std::string stop_experiment(Edits& edits, const std::string& id, const std::string& winner);

// Its variants with their figures, and how it ended.
void print_variants(Database& database, const json_t* experiment);

}  // namespace ads::cli
