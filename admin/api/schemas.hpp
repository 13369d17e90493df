// The schemas of what the API takes and answers.
#pragma once

#include <jansson.h>

namespace ads::api {

// By name. Those of campaigns and what is in them are the catalog's own.
json_t* schemas();

}  // namespace ads::api
