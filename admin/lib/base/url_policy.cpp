#include "lib/base/url_policy.hpp"

#include <algorithm>
#include <array>

#include "core/base/query.hpp"
#include "lib/base/unicode.hpp"

namespace ads {

namespace {

constexpr size_t kMaxUrl = 2048;
constexpr size_t kMaxHost = 253;
constexpr size_t kMaxLabel = 63;
constexpr std::string_view kScheme = "https://";

// Names that mean something else in every network, or nothing outside of it.
// Not .example: it is what documents use, and it never resolves.
constexpr auto kInternal = std::to_array<std::string_view>(
    {"alt", "arpa", "corp", "domain", "home", "internal", "intranet", "invalid", "lan", "local",
     "localdomain", "localhost", "mail", "onion", "private", "test", "workgroup"});

constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}
constexpr bool digit(char c) {
    return c >= '0' && c <= '9';
}
constexpr bool in_label(char c) {
    return (c >= 'a' && c <= 'z') || digit(c) || c == '-' || c == '_';
}

std::string lowered(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

std::string characters_fault(std::string_view url) {
    if (url.size() > kMaxUrl) {
        return "must be at most " + std::to_string(kMaxUrl) + " bytes";
    }
    if (!valid_utf8(url)) {
        return "must be UTF-8";
    }
    if (url.find('\\') != url.npos || has_unprintable(url)) {
        return "must not contain spaces, control characters, backslashes or invisible characters";
    }
    return {};
}

bool valid_label(std::string_view label) {
    return !label.empty() && label.size() <= kMaxLabel && label.front() != '-' &&
           label.back() != '-' && std::all_of(label.begin(), label.end(), in_label);
}

std::string labels_fault(std::string_view host) {
    while (true) {
        const size_t dot = std::min(host.find('.'), host.size());
        if (!valid_label(host.substr(0, dot))) {
            return "must name a host in plain ASCII letters, digits and hyphens";
        }
        if (dot == host.size()) {
            return {};
        }
        host.remove_prefix(dot + 1);
    }
}

// What browsers and C libraries take for IPv4: "0x7f.1" is this machine.
bool ends_in_number(std::string_view host) {
    const size_t dot = host.rfind('.');
    std::string_view last = dot == host.npos ? host : host.substr(dot + 1);
    const bool hex = last.starts_with("0x");
    last.remove_prefix(hex ? 2 : 0);
    return std::all_of(last.begin(), last.end(),
                       [hex](char c) { return digit(c) || (hex && c >= 'a' && c <= 'f'); });
}

std::string name_fault(std::string_view host) {
    if (host.size() > kMaxHost) {
        return "must name a host of at most " + std::to_string(kMaxHost) + " characters";
    }
    if (host.ends_with('.')) {
        return "must not have a dot at the end of the host";
    }
    if (std::string fault = labels_fault(host); !fault.empty()) {
        return fault;
    }
    const size_t dot = host.rfind('.');
    if (dot == host.npos) {
        return "must name a host with a domain";
    }
    const std::string_view last = host.substr(dot + 1);
    if (std::find(kInternal.begin(), kInternal.end(), last) != kInternal.end()) {
        return "must not name a host of an internal domain, ." + std::string(last);
    }
    return {};
}

// Sets host and literal.
void read_host(std::string_view host, PixelUrl& url) {
    if (host.starts_with('[')) {
        url.host = host.substr(1, host.size() - 2);
        url.literal = parse_ip(url.host);
        if (!url.literal || !url.literal->v6) {
            url.fault = "must have an IPv6 address between brackets";
        }
        return;
    }
    url.host = host;
    if (!host.empty() && !host.ends_with('.') && ends_in_number(host)) {
        url.literal = parse_ip(host);
        url.fault = url.literal ? "" : "must have an IPv4 address of four plain decimal numbers";
        return;
    }
    url.fault = name_fault(host);
}

// The host of "host", "host:443" or "[host]:443".
std::string_view without_port(std::string_view authority, std::string& fault) {
    const size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
    if (bracket == authority.npos) {
        fault = "must close the bracket of an IPv6 address";
        return {};
    }
    const size_t colon = authority.find(':', bracket);
    const std::string_view host = authority.substr(0, colon);
    if (colon != authority.npos && authority.substr(colon) != ":443") {
        fault = "must use port 443";
    } else if (authority.starts_with('[') && host.size() != bracket + 1) {
        fault = "must have nothing but a port behind the address";
    }
    return host;
}

void read_authority(std::string_view authority, PixelUrl& url) {
    if (authority.find('@') != authority.npos) {
        url.fault = "must not contain a user name or password";
        return;
    }
    if (authority.find('%') != authority.npos) {
        url.fault = "must not contain % in the host";
        return;
    }
    const std::string_view host = without_port(authority, url.fault);
    if (url.fault.empty()) {
        read_host(lowered(host), url);
    }
}

}  // namespace

std::string address_fault(const IpAddress& address) {
    const char* use = special_use(address);
    return use == nullptr ? "" : ip_text(address) + " is not public: " + use;
}

PixelUrl parse_pixel_url(std::string_view text) {
    PixelUrl url;
    url.fault = characters_fault(text);
    if (!url.fault.empty()) {
        return url;
    }
    if (lowered(text.substr(0, kScheme.size())) != kScheme) {
        url.fault = "must start with https://";
        return url;
    }
    text.remove_prefix(kScheme.size());
    const size_t end = std::min(text.find_first_of("/?#"), text.size());
    read_authority(text.substr(0, end), url);
    const std::string_view rest = text.substr(end, text.find('#', end) - end);
    url.target = rest.starts_with('/') ? "" : "/";
    url.target += rest;
    if (url.fault.empty() && url.literal) {
        url.fault = address_fault(*url.literal);
    }
    return url;
}

PixelCheck check_pixel_url(std::string_view text, const Resolver& resolve) {
    PixelCheck check;
    check.url = parse_pixel_url(text);
    check.fault = check.url.fault;
    if (!check.fault.empty()) {
        return check;
    }
    if (check.url.literal) {
        check.addresses = {*check.url.literal};
        return check;
    }
    Answers answers = resolve(check.url.host);
    check.fault = std::move(answers.fault);
    if (check.fault.empty() && answers.addresses.empty()) {
        check.fault = "no address found for " + check.url.host;
    }
    for (const IpAddress& address : answers.addresses) {
        if (check.fault.empty()) {
            check.fault = address_fault(address);
        }
    }
    if (check.fault.empty()) {
        check.addresses = std::move(answers.addresses);
    }
    return check;
}

}  // namespace ads
