// A token's fields by name: what "token inspect" prints and "token mint" takes.
#pragma once

#include <jansson.h>

#include "core/token/token.hpp"

namespace ads::cli {

// Adds the fields to `object`.
void put_fields(json_t* object, const Token& token);

// The token that the object tells of; members that are no fields are left
// alone. Without `issued` it is of `now`, without `serve` of a random serve.
// Its key is 0 where the object has none. Throws BadLine.
Token token_of(const json_t* object, Millis now);

}  // namespace ads::cli
