// A request as a JSON document: everything that nginx would know of a visitor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/decide/request.hpp"

namespace ads::admin {

struct RequestFile {
    std::vector<std::string> placements;
    Device device = Device::desktop;
    std::string geo;       // in the form that is compared
    std::string language;  // the same
    std::string url;
    std::vector<std::pair<std::string, std::string>> keys;
    std::string session;
};

// Throws InvalidInput with the path of the error. `name` is used in messages.
RequestFile parse_request(std::string_view text, const std::string& name);

// The same for a file, or standard input for "-". Throws Failure.
RequestFile read_request(const std::string& path);

}  // namespace ads::admin
