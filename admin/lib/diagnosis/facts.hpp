// What why knows beside the catalog: from PostgreSQL, and from a running node.
#pragma once

#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/catalog/catalog_source.hpp"
#include "lib/diagnosis/diagnosis.hpp"

namespace ads::admin {

// What was delivered, who was seen, and who changed a status when. The database must
// outlive the facts. Throws SqlError.
void add_database_facts(Database& database, diagnosis::Facts& facts);

// A node, and what is asked of it.
struct NodeQuery {
    std::string url;        // empty: none is asked
    bool required = false;  // a failure is thrown, else it is a warning of the answer
    std::string timeout = "5s";
    Id ad_group = 0;  // 0: all
    Id campaign = 0;  // 0: all
};
// The node of --status-url, else the configured one, unless the catalog is a file, which that
// node may not serve.
NodeQuery node_of(const std::string& option, const CatalogOptions& catalog);

struct NodeAnswer {
    bool answered = false;
    std::vector<std::string> warnings;
};

// Adds the counts of today. What the node has spent of a budget is set in the document, where
// that knows of less.
NodeAnswer add_node_counts(const NodeQuery& query, diagnosis::Facts& facts,
                           catalog::Document& document);

// The same, from a page of the status.
void add_node_facts(const json_t* status, diagnosis::Facts& facts, catalog::Document& document);

// Sentences, if the node does not serve the catalog that it should.
std::vector<std::string> node_warnings(const json_t* status);

json_t* diagnosis_json(const diagnosis::Diagnosis& diagnosis);

}  // namespace ads::admin
