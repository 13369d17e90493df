// The commands. Each has a file of its own with a function that adds it to
// the command line; a chosen command is left in `chosen` and run once the
// whole command line is known to be right.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "output.hpp"

namespace ads::cli {

using Command = std::function<Exit()>;

void add_validate(CLI::App& app, Command& chosen);
void add_decide(CLI::App& app, Command& chosen);
void add_why(CLI::App& app, Command& chosen);
void add_simulate(CLI::App& app, Command& chosen);
void add_pacing(CLI::App& app, Command& chosen);
void add_stop(CLI::App& app, Command& chosen);
void add_spool(CLI::App& app, Command& chosen);
void add_key(CLI::App& app, Command& chosen);
void add_token(CLI::App& app, Command& chosen);
void add_consent(CLI::App& app, Command& chosen);
void add_consent_decode(CLI::App& consent, Command& chosen);
void add_migrate(CLI::App& app, Command& chosen);
void add_import(CLI::App& app, Command& chosen);
void add_export(CLI::App& app, Command& chosen);
void add_doctor(CLI::App& app, Command& chosen);
void add_creative(CLI::App& app, Command& chosen);
void add_url(CLI::App& app, Command& chosen);
void add_manage(CLI::App& app, Command& chosen);
void add_scheduler(CLI::App& app, Command& chosen);
void add_experiment(CLI::App& app, Command& chosen);
void add_forecast(CLI::App& app, Command& chosen);
void add_report(CLI::App& app, Command& chosen);
void add_dispatch(CLI::App& app, Command& chosen);
void add_privacy(CLI::App& app, Command& chosen);

}  // namespace ads::cli
