// Where a third party's pixel may be fetched from. Whoever writes a campaign
// must not reach our own network with it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ip_address.hpp"

namespace ads {

// What may be known before anybody is asked.
struct PixelUrl {
    std::string fault;                 // "must …"; empty if there is none
    std::string host;                  // in small letters; of an IPv6 address without brackets
    std::optional<IpAddress> literal;  // the host is an address
    std::string target;                // path and query, as sent
};

PixelUrl parse_pixel_url(std::string_view url);

// What a name stands for. `fault` tells of answers that are no addresses.
struct Answers {
    std::vector<IpAddress> addresses;
    std::string fault;
};
using Resolver = std::function<Answers(const std::string& host)>;

// Why an address may not be dialled, "10.0.0.1 is not public: …"; empty if it may.
std::string address_fault(const IpAddress& address);

struct PixelCheck {
    std::string fault;  // why it is blocked; empty if it is allowed
    PixelUrl url;
    // All public. Only these may be dialled: to resolve again would be to trust
    // an answer that nobody has seen.
    std::vector<IpAddress> addresses;

    bool allowed() const noexcept { return fault.empty(); }
};

// Asks the resolver once, and only for a name that may be asked for.
PixelCheck check_pixel_url(std::string_view url, const Resolver& resolve);

}  // namespace ads
