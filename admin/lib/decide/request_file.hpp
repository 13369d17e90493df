// A request as a JSON document: what nginx would know of a visitor.
#pragma once

#include <string>
#include <string_view>
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

// Throws InvalidInput with the path of what is wrong. `name` is how messages call the document.
RequestFile parse_request(std::string_view text, const std::string& name);

// The same of a file, or standard input for "-". Throws Failure.
RequestFile read_request(const std::string& path);

}  // namespace ads::admin
