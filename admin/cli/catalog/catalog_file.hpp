// Reads catalogs named on the command line.
#pragma once

#include <optional>
#include <string>

#include "cli/common/arguments.hpp"
#include "cli/common/output.hpp"
#include "core/catalog/compile.hpp"
#include "lib/catalog/catalog_source.hpp"

namespace ads::cli {

// Prints a line "FILE: PATH: MESSAGE" to standard error for each error.
void show_errors(const std::string& file, const std::vector<catalog::Error>& errors,
                 size_t more_errors);

// The same with "warning: " before the message.
void show_warnings(const std::string& file, const catalog::Faults& warnings);

// Adds --catalog, --state and --database.
void add_catalog_options(Arguments& command, CatalogOptions& options);

// Reads the catalog; empty after reporting its errors. Throws Failure.
std::optional<CatalogSource> read_or_tell(const CatalogOptions& options,
                                          const std::string& application);

// The value of --at; empty: now.
Seconds moment(const std::string& text);
Validator is_moment();

}  // namespace ads::cli
