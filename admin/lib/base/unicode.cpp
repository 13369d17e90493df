#include "lib/base/unicode.hpp"

#include <algorithm>
#include <iterator>

namespace ads {

namespace {

struct Range {
    uint32_t first;
    uint32_t last;
};

constexpr Range kUnprintable[] = {
    {0x0000, 0x0020},    // controls and the space
    {0x007f, 0x00a0},    // DEL, C1, no-break space
    {0x00ad, 0x00ad},    // soft hyphen
    {0x034f, 0x034f},    // combining grapheme joiner
    {0x061c, 0x061c},    // Arabic letter mark
    {0x115f, 0x1160},    // Hangul fillers
    {0x1680, 0x1680},    // Ogham space
    {0x17b4, 0x17b5},    // Khmer inherent vowels
    {0x180b, 0x180f},    // Mongolian separators
    {0x2000, 0x200f},    // spaces, zero width, left-to-right and right-to-left marks
    {0x2028, 0x202f},    // separators, bidi embeddings and overrides
    {0x205f, 0x206f},    // invisible operators, bidi isolates
    {0x3000, 0x3000},    // ideographic space
    {0x3164, 0x3164},    // Hangul filler
    {0xd800, 0xdfff},    // surrogates
    {0xfdd0, 0xfdef},    // no characters
    {0xfe00, 0xfe0f},    // variation selectors
    {0xfeff, 0xfeff},    // byte order mark
    {0xffa0, 0xffa0},    // Hangul filler
    {0xfff0, 0xffff},    // specials, the replacement character
    {0xe0000, 0xe0fff},  // tags
};

// Takes one character off text that is valid UTF-8.
uint32_t take(std::string_view& text) noexcept {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    const uint8_t first = byte(0);
    const size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t code = size == 1 ? first : first & (0x7f >> size);
    for (size_t i = 1; i < std::min(size, text.size()); i++) {
        code = code << 6 | (byte(i) & 0x3f);
    }
    text.remove_prefix(std::min(size, text.size()));
    return code;
}

bool unprintable(uint32_t code) noexcept {
    const Range* at = std::lower_bound(std::begin(kUnprintable), std::end(kUnprintable), code,
                                       [](const Range& r, uint32_t c) { return r.last < c; });
    return at != std::end(kUnprintable) && at->first <= code;
}

}  // namespace

bool has_unprintable(std::string_view text) noexcept {
    while (!text.empty()) {
        if (unprintable(take(text))) {
            return true;
        }
    }
    return false;
}

}  // namespace ads
