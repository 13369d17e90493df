#include "core/base/ip_address.hpp"

#include <arpa/inet.h>

#include <cstdio>
#include <utility>

namespace ads {

namespace {

// The first of the longest runs of groups that are zero: where, how many.
std::pair<size_t, size_t> longest_zeros(const std::array<uint8_t, 16>& bytes) {
    std::pair<size_t, size_t> best{0, 0};
    size_t length = 0;
    for (size_t i = 0; i < 8; i++) {
        length = bytes[2 * i] == 0 && bytes[2 * i + 1] == 0 ? length + 1 : 0;
        if (length > best.second) {
            best = {i + 1 - length, length};
        }
    }
    return best;
}

struct Network {
    std::array<uint8_t, 16> prefix;
    unsigned bits;
    const char* what;
};

bool within(const std::array<uint8_t, 16>& bytes, const Network& network) {
    for (unsigned i = 0; i * 8 < network.bits; i++) {
        const unsigned left = network.bits - i * 8;
        const auto mask = static_cast<uint8_t>(left >= 8 ? 0xff : 0xff << (8 - left));
        if (((bytes[i] ^ network.prefix[i]) & mask) != 0) {
            return false;
        }
    }
    return true;
}

// https://www.iana.org/assignments/iana-ipv4-special-registry, and two that
// clouds answer on.
constexpr Network kV4[] = {
    {{0}, 8, "this network"},
    {{10}, 8, "a private network"},
    {{100, 64}, 10, "a carrier-grade NAT network"},
    {{127}, 8, "this machine"},
    {{168, 63, 129, 16}, 32, "a cloud metadata service"},
    {{169, 254}, 16, "a link-local address"},
    {{172, 16}, 12, "a private network"},
    {{192, 0, 0}, 24, "reserved for protocols"},
    {{192, 0, 2}, 24, "reserved for documentation"},
    {{192, 88, 99}, 24, "a 6to4 relay"},
    {{192, 168}, 16, "a private network"},
    {{198, 18}, 15, "reserved for benchmarks"},
    {{198, 51, 100}, 24, "reserved for documentation"},
    {{203, 0, 113}, 24, "reserved for documentation"},
    {{224}, 4, "a multicast address"},
    {{240}, 4, "reserved"},
};

// Only 2000::/3 is public, and of it not all. The first ones that fit count.
constexpr Network kV6[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 128, "no address"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, "this machine"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, "an embedded IPv4 address"},
    {{0, 0x64, 0xff, 0x9b}, 32, "an embedded IPv4 address"},
    {{0x01, 0x00}, 64, "a discard-only prefix"},
    {{0x20, 0x01}, 23, "reserved for protocols"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "reserved for documentation"},
    {{0x20, 0x02}, 16, "an embedded IPv4 address"},
    {{0x3f, 0xff}, 20, "reserved for documentation"},
    {{0xfc}, 7, "a private network"},
    {{0xfe, 0x80}, 10, "a link-local address"},
    {{0xff}, 8, "a multicast address"},
};

constexpr Network kPublicV6 = {{0x20}, 3, nullptr};

}  // namespace

std::optional<IpAddress> parse_ip(std::string_view text) {
    char copy[INET6_ADDRSTRLEN];
    if (text.size() >= sizeof copy || text.find('\0') != text.npos) {
        return std::nullopt;
    }
    copy[text.copy(copy, text.size())] = '\0';
    IpAddress address;
    address.v6 = text.find(':') != text.npos;
    return inet_pton(address.v6 ? AF_INET6 : AF_INET, copy, address.bytes.data()) == 1
               ? std::optional(address)
               : std::nullopt;
}

std::string ip_text(const IpAddress& address) {
    const auto& b = address.bytes;
    char text[16];
    if (!address.v6) {
        std::snprintf(text, sizeof text, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
        return text;
    }
    const auto [gap, length] = longest_zeros(b);
    std::string out;
    for (size_t i = 0; i < 8; i++) {
        if (length > 1 && i == gap) {
            out += "::";
            i += length - 1;
            continue;
        }
        out += out.empty() || out.ends_with(':') ? "" : ":";
        std::snprintf(text, sizeof text, "%x", b[2 * i] << 8 | b[2 * i + 1]);
        out += text;
    }
    return out;
}

const char* special_use(const IpAddress& address) noexcept {
    if (!address.v6) {
        for (const Network& network : kV4) {
            if (within(address.bytes, network)) {
                return network.what;
            }
        }
        return nullptr;
    }
    for (const Network& network : kV6) {
        if (within(address.bytes, network)) {
            return network.what;
        }
    }
    return within(address.bytes, kPublicV6) ? nullptr : "outside the public internet";
}

}  // namespace ads
