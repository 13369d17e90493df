// Prints the results of nginx-ads why.
#pragma once

#include <vector>

#include "cli/common/output.hpp"
#include "lib/base/json.hpp"
#include "lib/diagnosis/diagnosis.hpp"

namespace ads::cli {

// One ad group in full: causes, remedies, and the counts of a node.
void show_diagnosis(const diagnosis::Diagnosis& diagnosis, bool catalog_known);

// Several, each with its causes.
void show_diagnoses(const std::vector<diagnosis::Diagnosis>& list);

}  // namespace ads::cli
