// The catalog document as JSON Schema (draft 7), for editors and other programs.
#pragma once

#include <string>

namespace ads::catalog {

// What it refuses, read_document() refuses as well. What concerns several keys (an end before
// its start, an id that is there twice) only read_document() knows.
std::string schema();

}  // namespace ads::catalog
