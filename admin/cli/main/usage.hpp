// Messages for an invalid command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/output.hpp"
#include "lib/base/nearest.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace ads::cli {

// The error of a request for help: an unknown command. Empty without one.
std::string help_fault(CLI::App& app, const std::vector<std::string>& arguments);

// Prints the error to standard error; for people, followed by the help of an incomplete command.
Exit usage_error(CLI::App& app, const CLI::ParseError& error,
                 const std::vector<std::string>& arguments, bool json);

}  // namespace ads::cli
