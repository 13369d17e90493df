// What is said when the command line is wrong.
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

// What is wrong with the help that was asked for: a command that there is none of. Empty if
// nothing is.
std::string help_fault(CLI::App& app, const std::vector<std::string>& arguments);

// Explains the error on standard error; for people with the help of an incomplete command.
Exit usage_error(CLI::App& app, const CLI::ParseError& error,
                 const std::vector<std::string>& arguments, bool json);

}  // namespace ads::cli
