// Checks everything between events and PostgreSQL: the connection, the schema, a spool, a node.
#pragma once

#include <string>
#include <vector>

#include "lib/database/findings.hpp"

namespace ads::admin {

// What to examine. Empty: what is configured, if anything; the spool only if it is given.
struct Examined {
    std::string database;
    std::string spool;
    std::string status_url;
};

// Changes nothing. Throws Failure if a parameter is invalid.
std::vector<Finding> examine(const Examined& what);

}  // namespace ads::admin
