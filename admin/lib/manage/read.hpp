// One object. Objects are named by their id, or by a name that only one of them has. Both throw
// NotFound and SqlError.
#pragma once

#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/manage/kinds.hpp"

namespace ads::admin {

// As in the catalog, with its delivery. An ad group and a creative have their parents.
Json read_object(Database& database, Kind kind, const std::string& id);

// The same without the delivery, by its id alone.
Json catalog_object(Database& database, Kind kind, const std::string& id);

}  // namespace ads::admin
