// The source of the catalog that a command reads: a file, the node's copy, or PostgreSQL.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/catalog/compile.hpp"
#include "core/catalog/model.hpp"
#include "core/decide/stop_list.hpp"
#include "lib/base/database.hpp"

namespace ads::admin {

struct CatalogOptions {
    std::string file;      // --catalog
    std::string state;     // --state
    std::string database;  // --database
};

struct CatalogSource {
    catalog::Document document;
    std::string name;                    // for messages
    StopList stops;                      // of the node with this state folder
    std::unique_ptr<Database> database;  // if that is the source
    bool managed = false;                // commands edit it
    std::string warning;                 // why it is not the requested one; empty: it is
};

// The source that options name, else the configured one: a state folder, a database. Nothing if
// neither is set. For a node that follows the database both are used: the catalog and its history
// are from the database, the stop list is from the node; if the database is down, the node's copy
// is used.
enum class CatalogFrom { nowhere, file, state, database };
CatalogFrom catalog_from(const CatalogOptions& options);

// A catalog with errors.
class InvalidCatalog : public Failure {
public:
    InvalidCatalog(std::string name, std::vector<catalog::Error> errors, size_t more_errors);

    const std::string name;
    const std::vector<catalog::Error> errors;
    const size_t more_errors;
};

// The catalog in PostgreSQL, without the connection. Throws SqlError, InvalidCatalog.
CatalogSource catalog_of(Database& database);

// Throws Failure; InvalidCatalog if it was read and is invalid.
CatalogSource read_catalog(const CatalogOptions& options, const std::string& application);

}  // namespace ads::admin
