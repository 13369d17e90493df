// Characters as the tokenizer of HTML sees them, and where the next one is.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ads::html {

using Byte = unsigned char;

constexpr bool is_space(Byte c) noexcept {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

constexpr bool is_letter(Byte c) noexcept {
    return static_cast<Byte>((c | 32) - 'a') < 26;
}

constexpr Byte lower(Byte c) noexcept {
    return c >= 'A' && c <= 'Z' ? c | 32 : c;
}

// What ends the name of a tag is 0, other bytes are in lower case. A NUL in a name becomes
// another character, so that no name with one is known.
inline constexpr auto kNameByte = [] {
    std::array<Byte, 256> table{};
    for (size_t i = 0; i < table.size(); i++) {
        const auto c = static_cast<Byte>(i);
        table[i] = is_space(c) || c == '/' || c == '>' ? 0 : c == 0 ? 0xff : lower(c);
    }
    return table;
}();

// What ends the name of an attribute.
inline constexpr auto kEndsAttribute = [] {
    std::array<bool, 256> table{};
    for (size_t i = 0; i < table.size(); i++) {
        const auto c = static_cast<Byte>(i);
        table[i] = is_space(c) || c == '/' || c == '>' || c == '=';
    }
    return table;
}();

// Where `wanted` is; `end` if it is not there.
inline const unsigned char* find_byte(const unsigned char* p, const unsigned char* end,
                                      unsigned char wanted) noexcept {
#if defined(__SSE2__)
    const __m128i pattern = _mm_set1_epi8(static_cast<char>(wanted));
    while (end - p >= 16) {
        const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        const int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(block, pattern));
        if (mask != 0) {
            return p + __builtin_ctz(static_cast<unsigned>(mask));
        }
        p += 16;
    }
    while (p < end && *p != wanted) {
        p++;
    }
    return p;
#else
    const void* at = p == end ? nullptr : std::memchr(p, wanted, static_cast<size_t>(end - p));
    return at == nullptr ? end : static_cast<const unsigned char*>(at);
#endif
}

}  // namespace ads::html
