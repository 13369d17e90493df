// Commands that are generated from the description of the command line.
#pragma once

#include "cli/main/commands.hpp"

namespace ads::cli {

void add_completion(Arguments& app, Command& chosen);

}  // namespace ads::cli
