// Addresses of IPv4 and IPv6, and which of them are on the public internet.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ads {

struct IpAddress {
    std::array<uint8_t, 16> bytes{};
    bool v6 = false;  // else the first four bytes count

    bool operator==(const IpAddress&) const = default;
};

// Four decimal numbers without leading zeros, or IPv6 as in RFC 4291, without
// brackets and zone. Other forms that a C library accepts are invalid.
std::optional<IpAddress> parse_ip(std::string_view text);

std::string ip_text(const IpAddress& address);

// Why the address is not public ("a private network"); null if it is.
const char* special_use(const IpAddress& address) noexcept;

}  // namespace ads
