// OpenAPI 3.1, made of the table of routes.
#pragma once

#include "lib/base/json.hpp"

#include <string>

namespace ads::api {

admin::Json openapi(const std::string& prefix);

}  // namespace ads::api
