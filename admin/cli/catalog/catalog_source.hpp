// Where a command reads the catalog from: a file, the node's own document, PostgreSQL.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/common/arguments.hpp"
#include "cli/common/database.hpp"
#include "core/catalog/model.hpp"
#include "core/decide/stop_list.hpp"

namespace ads::cli {

struct CatalogOptions {
    std::string file;      // --catalog
    std::string state;     // --state
    std::string database;  // --database
};

struct CatalogSource {
    catalog::Document document;
    std::string name;                    // how messages call it
    StopList stops;                      // of the node whose state folder it is
    std::unique_ptr<Database> database;  // if it is from there
    bool managed = false;                // commands edit it
};

// Adds --catalog, --state and --database.
void add_catalog_options(Arguments& command, CatalogOptions& options);

// What options name, else what is configured: a state folder, a database. Nothing if
// neither is.
enum class CatalogFrom { nowhere, file, state, database };
CatalogFrom catalog_from(const CatalogOptions& options);

// Reads the catalog, and has said what is wrong with it if there is none. Throws Failure.
std::optional<CatalogSource> read_catalog(const CatalogOptions& options,
                                          const std::string& application);

}  // namespace ads::cli
