// SipHash-2-4 (Aumasson, Bernstein): the keyed hash for user agents, sessions
// and users. OpenSSL has it only behind a fetch that costs more than the hash.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "core/base/bytes.hpp"

namespace ads {

struct SipKey {
    uint64_t k0 = 0;
    uint64_t k1 = 0;
};

inline uint64_t siphash(const SipKey& key, std::string_view text) noexcept {
    uint64_t v0 = key.k0 ^ 0x736f6d6570736575;
    uint64_t v1 = key.k1 ^ 0x646f72616e646f6d;
    uint64_t v2 = key.k0 ^ 0x6c7967656e657261;
    uint64_t v3 = key.k1 ^ 0x7465646279746573;
    const auto round = [&]() noexcept {
        v0 += v1;
        v1 = std::rotl(v1, 13) ^ v0;
        v0 = std::rotl(v0, 32);
        v2 += v3;
        v3 = std::rotl(v3, 16) ^ v2;
        v0 += v3;
        v3 = std::rotl(v3, 21) ^ v0;
        v2 += v1;
        v1 = std::rotl(v1, 17) ^ v2;
        v2 = std::rotl(v2, 32);
    };
    const auto absorb = [&](uint64_t m) noexcept {
        v3 ^= m;
        round();
        round();
        v0 ^= m;
    };
    const char* at = text.data();
    size_t left = text.size();
    for (; left >= 8; at += 8, left -= 8) {
        absorb(load<uint64_t>(at));
    }
    uint64_t last = static_cast<uint64_t>(text.size()) << 56;
    for (size_t i = 0; i < left; i++) {
        last |= static_cast<uint64_t>(static_cast<unsigned char>(at[i])) << (8 * i);
    }
    absorb(last);
    v2 ^= 0xff;
    for (int i = 0; i < 4; i++) {
        round();
    }
    return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace ads
