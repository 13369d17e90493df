// Targeting: which groups of a placement match this request. A few ANDs over rows of bits, then
// individual checks of the remaining groups.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/decide/request.hpp"
#include "core/image/reason.hpp"
#include "core/image/view.hpp"

namespace ads {

// A set of positions: one bit each, and the indexes of the words that are not
// zero.
struct Bits {
    std::span<uint64_t> words;
    std::span<const uint32_t> filled;  // ascending; some may have been cleared since

    bool has(uint32_t at) const noexcept { return (words[at / 64] >> (at % 64) & 1) != 0; }
    void clear(uint32_t at) const noexcept { words[at / 64] &= ~(uint64_t{1} << (at % 64)); }
};

// The indexes of the words that are not zero, in `to`.
std::span<const uint32_t> filled_words(std::span<const uint64_t> words,
                                       std::span<uint32_t> to) noexcept;

// Calls f(index, word) for each word with a bit in [begin, end), and only those
// bits, until it returns false.
template <class F>
void each_word(const Bits& bits, uint32_t begin, uint32_t end, F f) noexcept {
    for (const uint32_t w : bits.filled) {
        const uint32_t first = w * 64;
        if (first >= end) {
            return;
        }
        uint64_t word = bits.words[w];
        if (first < begin) {
            word &= begin - first < 64 ? ~uint64_t{0} << (begin - first) : 0;
        }
        if (end - first < 64) {
            word &= (uint64_t{1} << (end - first)) - 1;
        }
        if (word != 0 && !f(w, word)) {
            return;
        }
    }
}

// Calls f(position) for each bit in [begin, end), until it returns false.
template <class F>
void each_bit(const Bits& bits, uint32_t begin, uint32_t end, F f) noexcept {
    each_word(bits, begin, end, [&](uint32_t w, uint64_t word) {
        for (; word != 0; word &= word - 1) {
            if (!f(w * 64 + static_cast<uint32_t>(std::countr_zero(word)))) {
                return false;
            }
        }
        return true;
    });
}

// The groups that are open and match the request, a bit per position, in the view's scratch memory.
// Call view.patterns().start(url) once per request before.
Bits eligible(View& view, const Request& request, const PlacementRecord& placement) noexcept;

// The first targeting rule that excludes the group at `position`, from the same rows; Reason::none
// if it is eligible.
Reason why_not(View& view, const Request& request, const PlacementRecord& placement,
               uint32_t position) noexcept;

}  // namespace ads
