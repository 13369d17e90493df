// The address of a request: the segments of its path, and the parameters of its query.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ads::api {

struct Address {
    std::vector<std::string> segments;  // below the prefix, decoded
    std::map<std::string, std::string, std::less<>> query;
};

// Of REQUEST_URI. Nothing if it is not below the prefix, has an empty segment or one of dots, is
// not UTF-8, or has a parameter twice.
std::optional<Address> read_address(std::string_view uri, std::string_view prefix);

}  // namespace ads::api
