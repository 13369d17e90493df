// Where a command reads the catalog from: a file, the node's own document, PostgreSQL.
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
    std::string name;                    // how messages call it
    StopList stops;                      // of the node whose state folder it is
    std::unique_ptr<Database> database;  // if it is from there
    bool managed = false;                // commands edit it
    std::string warning;                 // why it is not the one that was wanted; empty: it is
};

// What options name, else what is configured: a state folder, a database. Nothing if
// neither is. Of a node that follows the database both are used: the catalog is the
// database's, with its history, and the stop list the node's; without the database, the node's
// copy.
enum class CatalogFrom { nowhere, file, state, database };
CatalogFrom catalog_from(const CatalogOptions& options);

// A catalog that has faults.
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
