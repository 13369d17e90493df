// What is allowed in a catalog, but cannot be served as it stands.
#pragma once

#include "core/catalog/model.hpp"

namespace ads::catalog {

// Of a document without faults. What is completed or archived is not looked at.
Faults warnings(const Document& document, size_t max_warnings = kMaxErrors);

// Whether it is a code of ISO 3166-1, or XK, which all databases have for Kosovo.
bool known_country(std::string_view code);

}  // namespace ads::catalog
