// Facts for why besides the catalog: from PostgreSQL, and from a running node.
#pragma once

#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/catalog/catalog_source.hpp"
#include "lib/diagnosis/diagnosis.hpp"

namespace ads::admin {

// Deliveries, served visitors, and changes of status with author and time. The database must
// outlive the facts. Throws SqlError.
void add_database_facts(Database& database, diagnosis::Facts& facts);

// A node, and the query for it.
struct NodeQuery {
    std::string url;        // empty: no node
    bool required = false;  // a failure is thrown; otherwise it becomes a warning
    std::string timeout = "5s";
    Id ad_group = 0;  // 0: all
    Id campaign = 0;  // 0: all
};
// The node of --status-url, else the configured one; but none if the catalog is a file, which that
// node may not serve.
NodeQuery node_of(const std::string& option, const CatalogOptions& catalog);

struct NodeAnswer {
    bool answered = false;
    std::vector<std::string> warnings;
};

// Adds the counts of today. What the node has spent of a budget is set in the document if the
// document has less, and tags that the node does not show are paused.
NodeAnswer add_node_counts(const NodeQuery& query, diagnosis::Facts& facts,
                           catalog::Document& document);

// The same, from a page of the status.
void add_node_facts(const json_t* status, diagnosis::Facts& facts, catalog::Document& document);

// Warnings if the node does not serve the expected catalog.
std::vector<std::string> node_warnings(const json_t* status);

json_t* diagnosis_json(const diagnosis::Diagnosis& diagnosis);

}  // namespace ads::admin
