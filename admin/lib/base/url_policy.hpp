// Decides from where a pixel of a third party may be fetched. The author of a campaign must not be
// able to reach internal networks with it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ip_address.hpp"

namespace ads {

// The checks that need no resolver.
struct PixelUrl {
    std::string fault;                 // "must …"; empty if there is none
    std::string host;                  // in lower case; an IPv6 address without brackets
    std::optional<IpAddress> literal;  // the host is an address
    std::string target;                // path and query, as sent
};

PixelUrl parse_pixel_url(std::string_view url);

// The addresses of a name. `fault` is set if the answer has invalid addresses.
struct Answers {
    std::vector<IpAddress> addresses;
    std::string fault;
};
using Resolver = std::function<Answers(const std::string& host)>;

// Why a connection to the address is refused, "10.0.0.1 is not public: …"; empty: allowed.
std::string address_fault(const IpAddress& address);

struct PixelCheck {
    std::string fault;  // why it is blocked; empty: allowed
    PixelUrl url;
    // All of them public. Connect to these only: resolving again would give an answer that was not
    // checked.
    std::vector<IpAddress> addresses;

    bool allowed() const noexcept { return fault.empty(); }
};

// Calls the resolver once, and only for a name that is allowed.
PixelCheck check_pixel_url(std::string_view url, const Resolver& resolve);

}  // namespace ads
