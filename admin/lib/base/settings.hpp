// Settings of the whole catalog in PostgreSQL.
#pragma once

#include <string>

#include "lib/base/database.hpp"

namespace ads::admin {

// ISO 4217; empty if none is set.
inline std::string currency_of(Database& database) {
    return database.value("SELECT coalesce((SELECT currency FROM ads.settings), '')");
}

// PostgreSQL refuses to change it once events were counted.
inline void set_currency(Database& database, const std::string& code) {
    database.run("UPDATE ads.settings SET currency = nullif($1, '')", {code});
}

}  // namespace ads::admin
