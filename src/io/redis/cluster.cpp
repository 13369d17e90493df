#include "io/redis/cluster.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <span>

namespace ads {

namespace {

// CRC-16/XMODEM, as the specification of Redis Cluster has it.
constexpr std::array<uint16_t, 256> make_crc_table() noexcept {
    std::array<uint16_t, 256> table{};
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021u : 0u);
        }
        table[byte] = static_cast<uint16_t>(crc);
    }
    return table;
}

constexpr auto kCrcTable = make_crc_table();

bool is_ip(const std::string& text) noexcept {
    std::array<unsigned char, sizeof(in6_addr)> room;
    return inet_pton(AF_INET, text.c_str(), room.data()) == 1 ||
           inet_pton(AF_INET6, text.c_str(), room.data()) == 1;
}

std::optional<uint16_t> number(std::string_view text, uint32_t most) noexcept {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value > most) {
        return std::nullopt;
    }
    return static_cast<uint16_t>(value);
}

// The parts of a reply in their order, in which the elements of an array follow it.
class Parts {
public:
    explicit Parts(const RespReader& reply) noexcept : reply_(reply) {}

    const RespNode* next() noexcept {
        return at_ < reply_.nodes().size() ? &reply_.nodes()[at_++] : nullptr;
    }

    // The number of elements of the array that is next; -1 if none is.
    int64_t array() noexcept {
        const RespNode* node = next();
        return node != nullptr && node->type == RespType::array ? node->integer : -1;
    }

    // The integer that is next, from 0 to `most`; -1 if none is.
    int64_t integer(int64_t most) noexcept {
        const RespNode* node = next();
        return node != nullptr && node->type == RespType::integer && node->integer >= 0 &&
                       node->integer <= most
                   ? node->integer
                   : -1;
    }

    // Passes by so many elements, with all that is in them.
    void skip(int64_t elements) noexcept {
        while (elements > 0) {
            const RespNode* node = next();
            if (node == nullptr) {
                return;
            }
            elements += (node->type == RespType::array ? node->integer : 0) - 1;
        }
    }

    std::string_view text(const RespNode* node) const noexcept {
        return node != nullptr && (node->type == RespType::text || node->type == RespType::status)
                   ? reply_.text(*node)
                   : std::string_view();
    }

private:
    const RespReader& reply_;
    size_t at_ = 0;
};

// A server: host, port, id, and since Redis 7 what else it is called. False if it is none.
bool read_server(Parts& parts, const RedisAddress& from, RedisAddress& server) {
    const int64_t elements = parts.array();
    if (elements < 2) {
        return false;
    }
    const RespNode* host = parts.next();
    const int64_t port = parts.integer(65'535);
    if (host == nullptr || port < 0) {
        return false;
    }
    server.port = static_cast<uint16_t>(port);
    server.ip = parts.text(host);
    if (host->type == RespType::nil || server.ip.empty()) {
        server.ip = from.ip;
    }
    if (elements < 4) {
        parts.skip(elements - 2);
        return true;
    }
    parts.skip(1);
    const int64_t names = parts.array();
    if (names < 0) {
        return false;
    }
    // A host that is a name has its address here.
    for (int64_t i = 0; i + 1 < names; i += 2) {
        const bool ip = parts.text(parts.next()) == "ip";
        const std::string_view value = parts.text(parts.next());
        if (ip) {
            server.ip = value;
        }
    }
    parts.skip(names % 2);
    parts.skip(elements - 4);
    return true;
}

uint8_t find(std::span<const RedisAddress> addresses, const RedisAddress& address) noexcept {
    const auto found = std::ranges::find(addresses, address);
    return found == addresses.end() ? RedisSlots::kNone
                                    : static_cast<uint8_t>(found - addresses.begin());
}

}  // namespace

uint16_t redis_slot(std::string_view key) noexcept {
    if (const size_t open = key.find('{'); open != std::string_view::npos) {
        const size_t close = key.find('}', open);
        if (close != std::string_view::npos && close > open + 1) {
            key = key.substr(open + 1, close - open - 1);
        }
    }
    uint16_t crc = 0;
    for (const char c : key) {
        crc =
            static_cast<uint16_t>(crc << 8) ^ kCrcTable[(crc >> 8) ^ static_cast<unsigned char>(c)];
    }
    return crc % kRedisSlots;
}

std::optional<RedisRedirect> parse_redirect(std::string_view error) {
    RedisRedirect redirect;
    if (error.starts_with("ASK ")) {
        redirect.ask = true;
        error.remove_prefix(4);
    } else if (error.starts_with("MOVED ")) {
        error.remove_prefix(6);
    } else {
        return std::nullopt;
    }
    const size_t space = error.find(' ');
    const size_t colon = error.rfind(':');
    if (space == std::string_view::npos || colon == std::string_view::npos || colon < space) {
        return std::nullopt;
    }
    const auto slot = number(error.substr(0, space), kRedisSlots - 1);
    const auto port = number(error.substr(colon + 1), 65'535);
    redirect.to.ip = error.substr(space + 1, colon - space - 1);
    if (!slot || !port || *port == 0 || (!redirect.to.ip.empty() && !is_ip(redirect.to.ip))) {
        return std::nullopt;
    }
    redirect.slot = *slot;
    redirect.to.port = *port;
    return redirect;
}

bool RedisSlots::read(const RespReader& reply, const RedisAddress& from) {
    struct Range {
        uint16_t first;
        uint16_t last;
        RedisAddress server;
    };
    Parts parts(reply);
    const int64_t count = parts.array();
    if (count <= 0) {
        return false;
    }
    std::vector<Range> ranges;
    std::vector<RedisAddress> known;  // each master once, up to the most
    int64_t slots = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t elements = parts.array();
        const int64_t first = parts.integer(kRedisSlots - 1);
        const int64_t last = parts.integer(kRedisSlots - 1);
        RedisAddress server;
        if (elements < 3 || first < 0 || last < first || !read_server(parts, from, server)) {
            return false;
        }
        parts.skip(elements - 3);  // replicas
        slots += last - first + 1;
        if (slots > kRedisSlots) {
            return false;
        }
        if (server.port == 0 || !is_ip(server.ip)) {
            continue;
        }
        if (find(known, server) == kNone) {
            if (known.size() == kMostServers) {
                continue;
            }
            known.push_back(server);
        }
        ranges.push_back({static_cast<uint16_t>(first), static_cast<uint16_t>(last), server});
    }
    if (ranges.empty()) {
        return false;
    }
    for (RedisAddress& address : addresses_) {
        if (find(known, address) == kNone) {
            address = {};
        }
    }
    server_.fill(kNone);
    for (const Range& range : ranges) {
        std::fill(server_.begin() + range.first, server_.begin() + range.last + 1,
                  add(range.server));
    }
    return true;
}

uint8_t RedisSlots::add(const RedisAddress& server) {
    uint8_t number = find(addresses_, server);
    if (number != kNone) {
        return number;
    }
    number = find(addresses_, {});
    if (number == kNone) {
        if (addresses_.size() == kMostServers) {
            return kNone;
        }
        number = static_cast<uint8_t>(addresses_.size());
        addresses_.emplace_back();
    }
    addresses_[number] = server;
    return number;
}

uint8_t RedisSlots::move(uint16_t slot, const RedisAddress& to) {
    const uint8_t server = add(to);
    if (server != kNone) {
        server_[slot] = server;
    }
    return server;
}

}  // namespace ads
