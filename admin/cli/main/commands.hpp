// The commands. Each has a file with a function that adds it to the command line. The
// selected command is stored in `chosen` and run after the whole command line has been
// checked.
#pragma once

#include <functional>

#include "cli/common/arguments.hpp"
#include "cli/common/output.hpp"

namespace ads::cli {

using Command = std::function<Exit()>;

void add_validate(Arguments& app, Command& chosen);
void add_decide(Arguments& app, Command& chosen);
void add_why(Arguments& app, Command& chosen);
void add_simulate(Arguments& app, Command& chosen);
void add_pacing(Arguments& app, Command& chosen);
void add_stop(Arguments& app, Command& chosen);
void add_spool(Arguments& app, Command& chosen);
void add_spool_ship(Arguments& spool, Command& chosen);
void add_key(Arguments& app, Command& chosen);
void add_token(Arguments& app, Command& chosen);
void add_consent(Arguments& app, Command& chosen);
void add_consent_decode(Arguments& consent, Command& chosen);
void add_migrate(Arguments& app, Command& chosen);
void add_import(Arguments& app, Command& chosen);
void add_export(Arguments& app, Command& chosen);
void add_currency(Arguments& app, Command& chosen);
void add_doctor(Arguments& app, Command& chosen);
void add_creative(Arguments& app, Command& chosen);
void add_url(Arguments& app, Command& chosen);
void add_manage(Arguments& app, Command& chosen);
void add_fleet(Arguments& app, Command& chosen);
void add_fleet_drain(Arguments& fleet, Command& chosen);
void add_scheduler(Arguments& app, Command& chosen);
void add_experiment(Arguments& app, Command& chosen);
void add_forecast(Arguments& app, Command& chosen);
void add_report(Arguments& app, Command& chosen);
void add_dispatch(Arguments& app, Command& chosen);
void add_privacy(Arguments& app, Command& chosen);
void add_api(Arguments& app, Command& chosen);

}  // namespace ads::cli
