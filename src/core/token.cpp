#include "core/token.hpp"

#include <openssl/crypto.h>

#include <array>
#include <cstring>

namespace ads {

namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Two characters for each 12 bits: half the look-ups of the usual table.
constexpr auto kPairs = [] {
    std::array<std::array<char, 2>, 4096> table{};
    for (size_t i = 0; i < table.size(); i++) {
        table[i] = {kAlphabet[i >> 6], kAlphabet[i & 63]};
    }
    return table;
}();

constexpr auto kValues = [] {
    std::array<int8_t, 256> table{};
    table.fill(-1);
    for (int i = 0; i < 64; i++) {
        table[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
    }
    return table;
}();

void encode(const uint8_t* from, char* to) noexcept {
    for (size_t i = 0; i < kTokenBytes; i += 3, to += 4) {
        const uint32_t bits = static_cast<uint32_t>(from[i]) << 16 |
                              static_cast<uint32_t>(from[i + 1]) << 8 | from[i + 2];
        std::memcpy(to, kPairs[bits >> 12].data(), 2);
        std::memcpy(to + 2, kPairs[bits & 4095].data(), 2);
    }
}

bool decode(const char* from, uint8_t* to) noexcept {
    int bad = 0;
    for (size_t i = 0; i < kTokenBytes; i += 3, from += 4) {
        const int a = kValues[static_cast<unsigned char>(from[0])];
        const int b = kValues[static_cast<unsigned char>(from[1])];
        const int c = kValues[static_cast<unsigned char>(from[2])];
        const int d = kValues[static_cast<unsigned char>(from[3])];
        bad |= a | b | c | d;
        const auto bits = static_cast<uint32_t>(a << 18 | b << 12 | c << 6 | d);
        to[i] = static_cast<uint8_t>(bits >> 16);
        to[i + 1] = static_cast<uint8_t>(bits >> 8);
        to[i + 2] = static_cast<uint8_t>(bits);
    }
    return bad >= 0;
}

// All but the version, which the domain names.
std::span<const uint8_t, Key::kBodyBytes> signed_part(const uint8_t* bytes) noexcept {
    static_assert(kTokenBody == Key::kBodyBytes + 1);
    return std::span<const uint8_t, Key::kBodyBytes>(bytes + 1, Key::kBodyBytes);
}

void store48(uint8_t* to, int64_t value) noexcept {
    std::memcpy(to, &value, 6);
}

int64_t load48(const uint8_t* from) noexcept {
    int64_t value = 0;
    std::memcpy(&value, from, 6);
    return value;
}

void write_body(const Token& token, uint8_t key, uint8_t* to) noexcept {
    to[0] = kTokenVersion;
    to[1] = static_cast<uint8_t>(token.type);
    to[2] = key;
    to[3] = token.flags;
    store48(to + 4, token.issued);
    store(to + 10, token.serve);
    store(to + 18, token.campaign);
    store(to + 22, token.ad_group);
    store(to + 26, token.creative);
    store(to + 30, token.experiment);
    store48(to + 34, token.price);
    store48(to + 40, token.reserve);
    store(to + 46, token.placement);
    store(to + 50, token.agent);
    store(to + 52, token.node);
}

Token read_body(const uint8_t* from) noexcept {
    Token token;
    token.type = static_cast<EventType>(from[1]);
    token.key = from[2];
    token.flags = from[3];
    token.issued = load48(from + 4);
    token.serve = load<uint64_t>(from + 10);
    token.campaign = load<Id>(from + 18);
    token.ad_group = load<Id>(from + 22);
    token.creative = load<Id>(from + 26);
    token.experiment = load<Id>(from + 30);
    token.price = load48(from + 34);
    token.reserve = load48(from + 40);
    token.placement = load<uint32_t>(from + 46);
    token.agent = load<uint16_t>(from + 50);
    token.node = load<uint32_t>(from + 52);
    return token;
}

}  // namespace

void mint(const Token& token, const Key& key, char* out) noexcept {
    uint8_t bytes[kTokenBytes];
    write_body(token, key.id(), bytes);
    key.mac(signed_part(bytes), bytes + kTokenBody);
    encode(bytes, out);
}

TokenError open_token(std::string_view text, const KeyRing& ring, Token& token) noexcept {
    uint8_t bytes[kTokenBytes];
    if (text.size() != kTokenChars || !decode(text.data(), bytes)) {
        return TokenError::malformed;
    }
    if (bytes[0] != kTokenVersion) {
        return TokenError::bad_version;
    }
    const Key* key = ring.find(bytes[2]);
    if (key == nullptr) {
        return TokenError::unknown_key;
    }
    uint8_t mac[Key::kMacBytes];
    key->mac(signed_part(bytes), mac);
    if (CRYPTO_memcmp(mac, bytes + kTokenBody, sizeof mac) != 0) {
        return TokenError::bad_mac;
    }
    if (bytes[1] >= kCount<EventType>) {
        return TokenError::malformed;
    }
    token = read_body(bytes);
    return TokenError::none;
}

TokenError verify(std::string_view text, const KeyRing& ring, EventType type, Millis now,
                  const TokenLives& lives, Token& token) noexcept {
    if (const auto error = open_token(text, ring, token); error != TokenError::none) {
        return error;
    }
    if (token.type != type) {
        return TokenError::wrong_type;
    }
    if (token.issued > now + kTokenSkew) {
        return TokenError::future;
    }
    if (now - token.issued > lives.of(type)) {
        return TokenError::expired;
    }
    return TokenError::none;
}

}  // namespace ads
