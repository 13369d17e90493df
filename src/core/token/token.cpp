#include "core/token/token.hpp"

#include <openssl/crypto.h>
#if defined(__x86_64__)
#include <tmmintrin.h>
#endif

#include <array>
#include <cstring>

namespace ads {

namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr auto kValues = [] {
    std::array<int8_t, 256> table{};
    table.fill(-1);
    for (int i = 0; i < 64; i++) {
        table[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
    }
    return table;
}();

void encode_plain(const uint8_t* from, char* to) noexcept {
    for (size_t i = 0; i < kTokenBytes; i += 3, to += 4) {
        const uint32_t bits = static_cast<uint32_t>(from[i]) << 16 |
                              static_cast<uint32_t>(from[i + 1]) << 8 | from[i + 2];
        to[0] = kAlphabet[bits >> 18];
        to[1] = kAlphabet[bits >> 12 & 63];
        to[2] = kAlphabet[bits >> 6 & 63];
        to[3] = kAlphabet[bits & 63];
    }
}

#if defined(__x86_64__)
// Twelve bytes at a time. Three tokens in every answer make this worth it.
__attribute__((target("ssse3"))) void encode_ssse3(const uint8_t* from, char* to) noexcept {
    // Each group of three bytes to a lane of four, which the products then
    // shift apart into six bits each.
    const __m128i spread = _mm_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
    // What leads from a value to its letter, for 26-51, each digit, 62, 63 and 0-25.
    const auto digit = static_cast<char>('0' - 52);
    const __m128i letters = _mm_setr_epi8('a' - 26, digit, digit, digit, digit, digit, digit, digit,
                                          digit, digit, digit, '-' - 62, '_' - 63, 'A', 0, 0);
    for (size_t i = 0; i < kTokenBytes; i += 12, to += 16) {
        const __m128i bytes =
            _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)), spread);
        const __m128i high = _mm_mulhi_epu16(_mm_and_si128(bytes, _mm_set1_epi32(0x0fc0'fc00)),
                                             _mm_set1_epi32(0x0400'0040));
        const __m128i low = _mm_mullo_epi16(_mm_and_si128(bytes, _mm_set1_epi32(0x003f'03f0)),
                                            _mm_set1_epi32(0x0100'0010));
        const __m128i values = _mm_or_si128(high, low);
        const __m128i capital = _mm_cmpgt_epi8(_mm_set1_epi8(26), values);
        const __m128i range = _mm_or_si128(_mm_subs_epu8(values, _mm_set1_epi8(51)),
                                           _mm_and_si128(capital, _mm_set1_epi8(13)));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                         _mm_add_epi8(values, _mm_shuffle_epi8(letters, range)));
    }
}
#endif

// `from` has kPadding bytes more, which do not matter.
constexpr size_t kPadding = 4;

void encode(const uint8_t* from, char* to) noexcept {
#if defined(__x86_64__)
    static const bool ssse3 = __builtin_cpu_supports("ssse3") != 0;
    if (ssse3) {
        encode_ssse3(from, to);
        return;
    }
#endif
    encode_plain(from, to);
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
    uint8_t bytes[kTokenBytes + kPadding] = {};
    write_body(token, key.id(), bytes);
    key.mac(signed_part(bytes), bytes + kTokenBody);
    encode(bytes, out);
}

void mint_all(std::span<const Token, kShaLanes> tokens, const Key& key,
              std::span<char* const, kShaLanes> out) noexcept {
    uint8_t bytes[kShaLanes][kTokenBytes + kPadding] = {};
    std::array<uint8_t*, kShaLanes> bodies;
    for (size_t i = 0; i < kShaLanes; i++) {
        write_body(tokens[i], key.id(), bytes[i]);
        bodies[i] = bytes[i] + 1;
    }
    key.macs(bodies);
    for (size_t i = 0; i < kShaLanes; i++) {
        encode(bytes[i], out[i]);
    }
}

TokenError read_token(std::string_view text, Token& token) noexcept {
    uint8_t bytes[kTokenBytes];
    if (text.size() != kTokenChars || !decode(text.data(), bytes)) {
        return TokenError::malformed;
    }
    if (bytes[0] != kTokenVersion) {
        return TokenError::bad_version;
    }
    if (bytes[1] >= kCount<EventType>) {
        return TokenError::malformed;
    }
    token = read_body(bytes);
    return TokenError::none;
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
    if (bytes[1] >= kCount<EventType> || bytes[3] > kTokenFlags) {
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
