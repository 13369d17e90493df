#include "creative/link.hpp"

#include <algorithm>

#include "lib/base/unicode.hpp"

namespace ads::creative {

namespace {

constexpr std::string_view kScheme = "https://";

constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

constexpr bool digit(char c) {
    return c >= '0' && c <= '9';
}

constexpr bool in_name(char c) {
    return digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '_' || c == '.';
}

constexpr bool in_literal(char c) {
    return digit(c) || (lower(c) >= 'a' && lower(c) <= 'f') || c == ':' || c == '.';
}

bool has_scheme(std::string_view url) {
    return url.size() >= kScheme.size() && std::equal(kScheme.begin(), kScheme.end(), url.begin(),
                                                      [](char a, char b) { return a == lower(b); });
}

// Takes the host off the authority; what is left begins with the port's colon.
std::string_view take_host(std::string_view& authority) {
    const size_t end = authority.starts_with('[') ? authority.find(']') : authority.find(':');
    const bool literal = authority.starts_with('[') && end != authority.npos;
    const std::string_view host =
        authority.substr(0, end == authority.npos ? end : end + (literal ? 1 : 0));
    authority.remove_prefix(host.size());
    return host;
}

bool valid_host(std::string_view host) {
    if (host.starts_with('[')) {
        return host.size() > 4 && host.ends_with(']') &&
               std::all_of(host.begin() + 1, host.end() - 1, in_literal);
    }
    return !host.empty() && host.front() != '.' && host.front() != '-' &&
           host.find("..") == host.npos && std::all_of(host.begin(), host.end(), in_name);
}

bool valid_port(std::string_view port) {
    return port.empty() || (port.size() > 1 && port.size() <= 6 && port.front() == ':' &&
                            std::all_of(port.begin() + 1, port.end(), digit));
}

std::string authority_fault(std::string_view authority) {
    if (authority.find('@') != authority.npos) {
        return "must not contain a user name or password";
    }
    const std::string_view host = take_host(authority);
    if (!valid_host(host)) {
        return "must name a host in plain ASCII";
    }
    return valid_port(authority) ? "" : "must have a port of digits";
}

}  // namespace

std::string link_fault(std::string_view url) {
    if (url.size() > kMaxLink) {
        return "must be at most " + std::to_string(kMaxLink) + " bytes";
    }
    if (url.find_first_of("\\\"<>`") != url.npos || has_unprintable(url)) {
        return "must not contain spaces, control characters, backslashes, quotes or angle brackets";
    }
    if (has_scheme(url)) {
        const std::string_view rest = url.substr(kScheme.size());
        return authority_fault(rest.substr(0, std::min(rest.find_first_of("/?#"), rest.size())));
    }
    if (!url.starts_with('/') || url.starts_with("//")) {
        return "must start with https:// or with one /";
    }
    return {};
}

std::string canonical_link(std::string_view url) {
    return has_scheme(url) ? std::string(kScheme).append(url.substr(kScheme.size()))
                           : std::string(url);
}

}  // namespace ads::creative
