// "https://news.example.com:8443": where a page or a node is.
#pragma once

#include <string_view>

namespace ads {

// A host name, an IPv4 address or an IPv6 address in brackets, and perhaps a port. Safe in URLs,
// JSON and HTML as it is.
bool valid_host(std::string_view host) noexcept;

// http:// or https:// and a host; no path, not even a slash.
bool valid_origin(std::string_view origin) noexcept;

}  // namespace ads
