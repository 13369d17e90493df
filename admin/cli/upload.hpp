// nginx-ads creative upload.
#pragma once

#include "commands.hpp"

namespace ads::cli {

void add_upload(CLI::App& creative, Command& chosen);

}  // namespace ads::cli
