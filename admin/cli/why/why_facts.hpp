// What why knows beside the catalog: from PostgreSQL, and from a running node.
#pragma once

#include "cli/catalog/catalog_source.hpp"
#include "cli/common/database.hpp"
#include "cli/common/json.hpp"
#include "diagnosis/diagnosis.hpp"

namespace ads::cli {

// What was delivered, who was seen, and who changed a status when. The database must
// outlive the facts. Throws SqlError.
void add_database_facts(Database& database, diagnosis::Facts& facts);

// A node, and what is asked of it.
struct NodeQuery {
    std::string url;        // empty: none is asked
    bool required = false;  // a failure is thrown, else it is a warning
    std::string timeout = "5s";
    Id ad_group = 0;  // 0: all
    Id campaign = 0;  // 0: all
};
// The node of --status-url, else the configured one, unless the catalog is a file, which that
// node may not serve.
NodeQuery node_of(const std::string& option, const CatalogOptions& catalog);

// Adds the counts of today. What the node has spent of a budget is set in the document, where
// that knows of less. Returns whether the node answered.
bool add_node_counts(const NodeQuery& query, diagnosis::Facts& facts, catalog::Document& document);

// The same, from a page of the status.
void add_node_facts(const json_t* status, diagnosis::Facts& facts, catalog::Document& document);

// Warns if the node does not serve the catalog that it should.
void warn_of_node(const json_t* status);

}  // namespace ads::cli
