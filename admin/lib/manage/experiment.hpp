// Starts and ends experiments.
#pragma once

#include "lib/manage/edits.hpp"

namespace ads::admin {

// Both return the id of the experiment, and throw Failure.
std::string start_experiment(Edits& edits, const std::string& id);
std::string stop_experiment(Edits& edits, const std::string& id, const std::string& winner);

}  // namespace ads::admin
