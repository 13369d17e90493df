// Warnings: valid in a catalog, but never served.
#pragma once

#include "core/catalog/model.hpp"

namespace ads::catalog {

// For a document without errors. Skips completed and archived objects.
Faults warnings(const Document& document, size_t max_warnings = kMaxErrors);

// Whether it is a code of ISO 3166-1, or XK, which all databases use for Kosovo.
bool known_country(std::string_view code);

}  // namespace ads::catalog
