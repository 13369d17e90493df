// Catalogs that the command line names.
#pragma once

#include <string>
#include "cli/common/arguments.hpp"

#include "core/catalog/compile.hpp"

namespace ads::cli {

// A line "FILE: PATH: MESSAGE" on standard error for each.
void show_errors(const std::string& file, const std::vector<catalog::Error>& errors,
                 size_t more_errors);

// The same with "warning: " before the message.
void show_warnings(const std::string& file, const catalog::Faults& warnings);

// The value of --at; empty is now.
Seconds moment(const std::string& text);
Validator is_moment();

}  // namespace ads::cli
