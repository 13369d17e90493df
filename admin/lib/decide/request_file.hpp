// A request as a JSON document: what nginx would know of a visitor.
#pragma once

#include <string>
#include <vector>

#include "core/decide/request.hpp"

namespace ads::admin {

struct RequestFile {
    std::vector<std::string> placements;
    Device device = Device::desktop;
    std::string geo;       // as the engine compares it
    std::string language;  // the same
    std::string url;
    std::vector<std::pair<std::string, std::string>> keys;
    std::string session;
};

// Throws Failure with the path of what is wrong.
RequestFile read_request(const std::string& path);

}  // namespace ads::admin
