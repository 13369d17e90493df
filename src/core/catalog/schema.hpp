// The catalog document as JSON Schema (draft 7), for editors and other programs.
#pragma once

#include <string>

namespace ads::catalog {

// read_document() refuses everything that the schema refuses, and errors across keys (an end
// before its start, a duplicate id).
std::string schema();

}  // namespace ads::catalog
