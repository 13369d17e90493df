#include "core/visitor/network_list.hpp"

#include <algorithm>
#include <charconv>

#include "core/base/list_lines.hpp"

namespace ads {

namespace {

// ::ffff:0:0/96
bool is_mapped(const IpAddress& address) noexcept {
    const auto& b = address.bytes;
    return address.v6 && b[10] == 0xff && b[11] == 0xff &&
           std::all_of(b.begin(), b.begin() + 10, [](uint8_t byte) { return byte == 0; });
}

IpAddress unmapped(const IpAddress& address) noexcept {
    IpAddress v4;
    std::copy(address.bytes.begin() + 12, address.bytes.end(), v4.bytes.begin());
    return v4;
}

struct Network {
    IpAddress address;
    unsigned bits = 0;
};

std::optional<Network> parse_network(std::string_view text) {
    const size_t slash = text.find('/');
    const auto address = parse_ip(text.substr(0, slash));
    if (!address) {
        return std::nullopt;
    }
    Network network{*address, address->v6 ? 128u : 32u};
    if (slash != text.npos) {
        const std::string_view bits = text.substr(slash + 1);
        unsigned value = 0;
        const auto [end, wrong] = std::from_chars(bits.data(), bits.data() + bits.size(), value);
        if (wrong != std::errc() || end != bits.data() + bits.size() || value > network.bits ||
            (bits.size() > 1 && bits[0] == '0')) {
            return std::nullopt;
        }
        network.bits = value;
    }
    if (is_mapped(network.address) && network.bits >= 96) {
        return Network{unmapped(network.address), network.bits - 96};
    }
    return network;
}

}  // namespace

NetworkList::Number NetworkList::number_of(const IpAddress& address) noexcept {
    Number number = 0;
    for (size_t i = 0; i < (address.v6 ? 16u : 4u); i++) {
        number = number << 8 | address.bytes[i];
    }
    return number;
}

std::optional<NetworkList> NetworkList::parse(std::string_view text, std::string& error) {
    if (text.size() > kMaxFile) {
        error = "it is larger than " + std::to_string(kMaxFile >> 20) + " MB";
        return std::nullopt;
    }
    NetworkList list;
    error = each_line(text, [&](std::string_view line) -> std::string {
        const auto network = parse_network(line);
        if (!network) {
            return quoted_line(line) + " must be a network such as 192.0.2.0/24 or 2001:db8::/32";
        }
        const unsigned rest = (network->address.v6 ? 128u : 32u) - network->bits;
        const Number mask = rest == 128 ? ~Number{0} : (Number{1} << rest) - 1;
        const Number number = number_of(network->address);
        (network->address.v6 ? list.v6_ : list.v4_).push_back({number & ~mask, number | mask});
        list.size_++;
        return {};
    });
    if (!error.empty()) {
        return std::nullopt;
    }
    merge(list.v4_);
    merge(list.v6_);
    return list;
}

void NetworkList::merge(std::vector<Range>& ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const Range& a, const Range& b) { return a.first < b.first; });
    size_t kept = 0;
    for (const Range& range : ranges) {
        if (kept > 0 && range.first <= ranges[kept - 1].last) {
            ranges[kept - 1].last = std::max(ranges[kept - 1].last, range.last);
        } else {
            ranges[kept++] = range;
        }
    }
    ranges.resize(kept);
    ranges.shrink_to_fit();
}

bool NetworkList::contains(const IpAddress& address) const noexcept {
    if (is_mapped(address)) {
        return contains(unmapped(address));
    }
    const auto& ranges = address.v6 ? v6_ : v4_;
    const Number number = number_of(address);
    const auto after =
        std::upper_bound(ranges.begin(), ranges.end(), number,
                         [](Number value, const Range& range) { return value < range.first; });
    return after != ranges.begin() && number <= (after - 1)->last;
}

}  // namespace ads
