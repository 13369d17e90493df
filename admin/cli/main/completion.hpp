// Commands made of the command line's own description.
#pragma once

#include "cli/main/commands.hpp"

namespace ads::cli {

void add_completion(Arguments& app, Command& chosen);

}  // namespace ads::cli
