// A request's answer, by the table of routes.
#pragma once

#include <string>

#include "api/route.hpp"
#include "api/scgi.hpp"

namespace ads::api {

// The answer as SCGI has it: a status, headers, an empty line, the body. Never throws.
std::string answer(const ScgiRequest& request, const Config& config, Connections& connections);

// That to a request that could not be read.
std::string refusal(const Refusal& refusal);

}  // namespace ads::api
