// The low-level SHA-256 calls are deprecated in OpenSSL 3 in favour of ones
// that look the algorithm up on each use: fifteen times the cost of the hash.
#define OPENSSL_SUPPRESS_DEPRECATED 1

#include "core/token/keyring.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ads {

namespace {

// One whole block, so that its hash state is precomputed with the key's. It
// names the format's version: the token's first byte is checked against it
// before the MAC, and needs no place in the hashed bytes.
constexpr char kDomain[64] = "nginx-ads token v1";

constexpr std::string_view kExamples[] = {
    // Published keys: anyone could sign with them.
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
    "deadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
};

// The first words of the state, as SHA-256 writes them.
template <size_t kWords>
void put_digest(const uint32_t* state, uint8_t* out) noexcept {
#pragma GCC unroll 8
    for (size_t i = 0; i < kWords; i++) {
        store(out + 4 * i, __builtin_bswap32(state[i]));
    }
}

// The last block of HMAC's inner hash: the body with the padding.
void put_inner(const uint8_t* body, uint8_t* block) noexcept {
    constexpr uint64_t kBits = 8 * (64 + sizeof kDomain + Key::kBodyBytes);
    static_assert(Key::kBodyBytes + 1 + 8 == 64);
    std::memcpy(block, body, Key::kBodyBytes);
    block[Key::kBodyBytes] = 0x80;
    store(block + 56, __builtin_bswap64(kBits));
}

// And of the outer one: the inner one's digest with the padding.
void put_outer(const uint32_t* inner, uint8_t* block) noexcept {
    constexpr uint64_t kBits = 8 * (64 + SHA256_DIGEST_LENGTH);
    put_digest<8>(inner, block);
    block[SHA256_DIGEST_LENGTH] = 0x80;
    std::memset(block + SHA256_DIGEST_LENGTH + 1, 0, 56 - SHA256_DIGEST_LENGTH - 1);
    store(block + 56, __builtin_bswap64(kBits));
}

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

std::string_view next_word(std::string_view& line) noexcept {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) {
        line = {};
        return {};
    }
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(end);
    return word;
}

// Why `hex` cannot be a key, or the bytes in `secret`.
const char* read_secret(std::string_view hex, std::vector<uint8_t>& secret) {
    if (hex.size() < 64) {
        return "a key must have at least 64 hex digits";
    }
    if (hex.size() > 256 || hex.size() % 2 != 0) {
        return "a key must have an even number of hex digits, at most 256";
    }
    std::string lower(hex);
    for (size_t i = 0; i < hex.size(); i += 2) {
        const int high = hex_digit(hex[i]);
        const int low = hex_digit(hex[i + 1]);
        if (high < 0 || low < 0) {
            return "a key must consist of hex digits";
        }
        secret.push_back(static_cast<uint8_t>(high << 4 | low));
        lower[i] = static_cast<char>(std::tolower(static_cast<unsigned char>(hex[i])));
        lower[i + 1] = static_cast<char>(std::tolower(static_cast<unsigned char>(hex[i + 1])));
    }
    if (std::all_of(secret.begin(), secret.end(), [&](uint8_t b) { return b == secret[0]; })) {
        return "the key is a single repeated byte: create one with \"nginx-ads key "
               "generate\"";
    }
    for (const auto example : kExamples) {
        if (lower.starts_with(example)) {
            return "the key is an example from the documentation: create one with \"nginx-ads key "
                   "generate\"";
        }
    }
    return nullptr;
}

}  // namespace

Key::Key(uint8_t id, std::span<const uint8_t> secret) noexcept : id_(id) {
    uint8_t block[64] = {};
    if (secret.size() > sizeof block) {
        SHA256(secret.data(), secret.size(), block);
    } else {
        std::memcpy(block, secret.data(), secret.size());
    }
    uint8_t pad[64];
    const auto start = [&](SHA256_CTX& ctx, uint8_t with) noexcept {
        for (size_t i = 0; i < sizeof pad; i++) {
            pad[i] = block[i] ^ with;
        }
        SHA256_Init(&ctx);
        SHA256_Update(&ctx, pad, sizeof pad);
    };
    start(inner_, 0x36);
    start(outer_, 0x5c);

    const auto derive = [&](const char* purpose) noexcept {
        uint8_t digest[SHA256_DIGEST_LENGTH];
        SHA256_CTX ctx = inner_;
        SHA256_Update(&ctx, purpose, std::strlen(purpose));
        SHA256_Final(digest, &ctx);
        ctx = outer_;
        SHA256_Update(&ctx, digest, sizeof digest);
        SHA256_Final(digest, &ctx);
        return SipKey{load<uint64_t>(digest), load<uint64_t>(digest + 8)};
    };
    agent_ = derive("nginx-ads user agent");
    user_ = derive("nginx-ads user");

    SHA256_Update(&inner_, kDomain, sizeof kDomain);
}

// The blocks are put together here: the calls that collect them cost as much
// as the hash.
void Key::mac(std::span<const uint8_t, kBodyBytes> body, uint8_t* out) const noexcept {
    uint8_t block[64];
    SHA256_CTX ctx;
    std::memcpy(ctx.h, inner_.h, sizeof ctx.h);
    put_inner(body.data(), block);
    SHA256_Transform(&ctx, block);

    put_outer(ctx.h, block);
    std::memcpy(ctx.h, outer_.h, sizeof ctx.h);
    SHA256_Transform(&ctx, block);
    put_digest<kMacBytes / 4>(ctx.h, out);
}

void Key::macs(std::span<uint8_t* const, kShaLanes> bodies) const noexcept {
    ShaLane lanes[kShaLanes];
    for (size_t i = 0; i < kShaLanes; i++) {
        std::memcpy(lanes[i].state, inner_.h, sizeof lanes[i].state);
        put_inner(bodies[i], lanes[i].block);
    }
    sha256_blocks(lanes);
    for (size_t i = 0; i < kShaLanes; i++) {
        put_outer(lanes[i].state, lanes[i].block);
        std::memcpy(lanes[i].state, outer_.h, sizeof lanes[i].state);
    }
    sha256_blocks(lanes);
    for (size_t i = 0; i < kShaLanes; i++) {
        put_digest<kMacBytes / 4>(lanes[i].state, bodies[i] + kBodyBytes);
    }
}

std::optional<KeyRing> KeyRing::parse(std::string_view text, std::string& error) {
    KeyRing ring;
    size_t number = 0;
    const auto fail = [&](std::string_view what) {
        error = "line " + std::to_string(number) + ": " + std::string(what);
        return std::nullopt;
    };
    while (!text.empty()) {
        number++;
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        line = line.substr(0, std::min(line.find('#'), line.size()));
        const std::string_view id_text = next_word(line);
        if (id_text.empty()) {
            continue;
        }
        unsigned id = 0;
        const auto parsed = std::from_chars(id_text.data(), id_text.data() + id_text.size(), id);
        if (parsed.ec != std::errc() || parsed.ptr != id_text.data() + id_text.size() || id < 1 ||
            id > 255) {
            return fail("a key id must be a number from 1 to 255");
        }
        const std::string_view hex = next_word(line);
        if (!next_word(line).empty()) {
            return fail("must be \"ID HEX\", with nothing after it");
        }
        std::vector<uint8_t> secret;
        if (const char* why = read_secret(hex, secret)) {
            return fail(why);
        }
        if (ring.index_[id] != 0) {
            return fail("duplicate key id " + std::to_string(id));
        }
        if (ring.count_ == kMaxKeys) {
            return fail("must have at most " + std::to_string(kMaxKeys) + " keys");
        }
        ring.keys_[ring.count_++] = Key(static_cast<uint8_t>(id), secret);
        ring.index_[id] = static_cast<uint8_t>(ring.count_);
    }
    if (ring.count_ == 0) {
        error = "no key found: create one with \"nginx-ads key generate\"";
        return std::nullopt;
    }
    return ring;
}

}  // namespace ads
