// What why knows beside the catalog: from PostgreSQL, and from a running node.
#pragma once

#include "cli/common/database.hpp"
#include "cli/common/json.hpp"
#include "diagnosis/diagnosis.hpp"

namespace ads::cli {

// What was delivered, who was seen, and who changed a status when. The database must
// outlive the facts. Throws SqlError.
void add_database_facts(Database& database, diagnosis::Facts& facts);

// The counts of today. What the node has spent of a budget is set in the document, where
// that knows of less.
void add_node_facts(const json_t* status, diagnosis::Facts& facts, catalog::Document& document);

// Warnings of a node that serves another catalog than it should.
void warn_of_node(const json_t* status);

}  // namespace ads::cli
