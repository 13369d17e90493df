// Hashes whose values leave the process: tokens carry them, experiments assign
// by them. They must never change, so they are written out here.
#pragma once

#include <cstdint>
#include <string_view>

namespace ads {

constexpr uint32_t fnv1a32(std::string_view text) noexcept {
    uint32_t hash = 0x811c9dc5u;
    for (const char c : text) {
        hash ^= static_cast<uint8_t>(c);
        hash *= 0x01000193u;
    }
    return hash;
}

inline constexpr uint64_t kFnv1a64Basis = 0xcbf29ce484222325u;

// `hash` continues an earlier call: the hash of "ab" is that of "b" after "a".
constexpr uint64_t fnv1a64(std::string_view text, uint64_t hash = kFnv1a64Basis) noexcept {
    for (const char c : text) {
        hash ^= static_cast<uint8_t>(c);
        hash *= 0x00000100000001b3u;
    }
    return hash;
}

// Stafford's variant 13. FNV-1a alone leaves its high bits uneven and makes the
// low bits of two experiments depend on each other.
constexpr uint64_t mix13(uint64_t x) noexcept {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    x ^= x >> 31;
    return x;
}

// Maps an evenly spread hash onto 0 … n-1: the high half of hash × n.
constexpr uint64_t bucket(uint64_t hash, uint64_t n) noexcept {
    __extension__ using uint128 = unsigned __int128;
    return static_cast<uint64_t>((static_cast<uint128>(hash) * n) >> 64);
}

}  // namespace ads
