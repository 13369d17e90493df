// The fields of a token by name: the output of "token inspect" and the input of "token mint".
#pragma once

#include <jansson.h>

#include "core/token/token.hpp"

namespace ads::cli {

// Adds the fields to `object`.
void put_fields(json_t* object, const Token& token);

// The token described by the object; unknown members are ignored. Without `issued` it is issued at
// `now`, without `serve` it is of a random serve. Its key is 0 if the object has none. Throws
// BadLine.
Token token_of(const json_t* object, Millis now);

}  // namespace ads::cli
