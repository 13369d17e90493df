// Reports of a simulation: a table and charts for people, JSON for programs, SVG for
// documents.
#pragma once

#include <string>
#include <vector>

#include "cli/common/output.hpp"
#include "lib/decide/simulate.hpp"

namespace ads::cli {

// One simulation, or the same one for each strategy.
using Runs = std::vector<Simulated>;

void show_runs(const Scenario& scenario, const Runs& runs);
void show_runs_json(const Scenario& scenario, const Runs& runs);

// Cumulative delivery against the target, a panel for each limit.
std::string svg_of(const Scenario& scenario, const Runs& runs);

}  // namespace ads::cli
