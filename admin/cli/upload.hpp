// nginx-ads creative upload.
#pragma once

#include "commands.hpp"

namespace ads::cli {

void add_upload(Arguments& creative, Command& chosen);

}  // namespace ads::cli
