// Networks whose requests are not counted: a text file, one line each, `192.0.2.0/24`,
// `2001:db8::/32` or a single address; `#` starts a comment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ip_address.hpp"

namespace ads {

class NetworkList {
public:
    static constexpr size_t kMaxFile = 4 << 20;

    // Parses the list; sets `error` to a sentence that names the line. Bits of an address after its
    // prefix are ignored.
    static std::optional<NetworkList> parse(std::string_view text, std::string& error);

    // An IPv4 address written as IPv6 (::ffff:192.0.2.1) is that IPv4 address.
    bool contains(const IpAddress& address) const noexcept;

    size_t size() const noexcept { return size_; }  // lines

private:
    // Addresses as numbers; those of IPv4 are below 2^32.
    using Number = unsigned __int128;
    struct Range {
        Number first;
        Number last;
    };
    static Number number_of(const IpAddress& address) noexcept;
    static void merge(std::vector<Range>& ranges);

    std::vector<Range> v4_;  // sorted and disjoint
    std::vector<Range> v6_;
    size_t size_ = 0;
};

}  // namespace ads
