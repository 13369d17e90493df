// Which PostgreSQL a command connects to.
#pragma once

#include <string>

namespace ads::admin {

// What --database says, else ADS_DATABASE, else ADS_DATABASE_URL, else a configuration file; empty:
// libpq's own variables decide. Throws Failure if it is not a conninfo.
std::string chosen_conninfo(const std::string& option);

}  // namespace ads::admin
