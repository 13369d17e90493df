#include "api/address.hpp"

#include "core/base/query.hpp"

namespace ads::api {

namespace {

constexpr size_t kMostSegments = 8;

// The text without its escapes; a plus stays a plus.
bool decode(std::string_view raw, std::string& text) {
    std::string buffer(raw.size(), '\0');
    std::string_view decoded;
    if (!decode_component(raw, buffer, decoded)) {
        return false;
    }
    text = decoded;
    return text.find('\0') == text.npos && valid_utf8(text);
}

bool read_path(std::string_view path, Address& address) {
    while (!path.empty()) {
        path.remove_prefix(1);  // the slash
        const size_t end = std::min(path.find('/'), path.size());
        std::string segment;
        if (address.segments.size() == kMostSegments || !decode(path.substr(0, end), segment) ||
            segment.empty() || segment == "." || segment == "..") {
            return false;
        }
        address.segments.push_back(std::move(segment));
        path.remove_prefix(end);
    }
    return !address.segments.empty();
}

bool read_parameters(std::string_view raw, Address& address) {
    std::string buffer(raw.size(), '\0');
    Query query;
    if (read_query(raw, buffer, query)) {
        return false;
    }
    for (const auto& [name, value] : query.params) {
        if (value.find('\0') != value.npos || !address.query.emplace(name, value).second) {
            return false;
        }
    }
    return true;
}

}  // namespace

std::optional<Address> read_address(std::string_view uri, std::string_view prefix) {
    const size_t mark = std::min(uri.find('?'), uri.size());
    std::string_view path = uri.substr(0, mark);
    if (!path.starts_with(prefix) || path.size() == prefix.size() || path[prefix.size()] != '/') {
        return std::nullopt;
    }
    path.remove_prefix(prefix.size());
    const std::string_view raw = mark == uri.size() ? std::string_view() : uri.substr(mark + 1);
    Address address;
    if (!read_path(path, address) || !read_parameters(raw, address)) {
        return std::nullopt;
    }
    return address;
}

}  // namespace ads::api
