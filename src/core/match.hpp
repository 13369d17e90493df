// Targeting: which groups of a placement this request may see. A few ANDs over
// rows of bits, then the checks that have no row, for those that are left.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/reason.hpp"
#include "core/request.hpp"
#include "core/view.hpp"

namespace ads {

// Calls f(index, word) for each word with a bit in [begin, end), and only those
// bits, until it returns false. Most words are empty: four at a time are skipped.
template <class F>
void each_word(std::span<const uint64_t> words, uint32_t begin, uint32_t end, F f) noexcept {
    const uint32_t first = begin / 64;
    const uint32_t stop = (end + 63) / 64;
    for (uint32_t w = first; w < stop; w++) {
        while (w + 4 <= stop && (words[w] | words[w + 1] | words[w + 2] | words[w + 3]) == 0) {
            w += 4;
        }
        if (w == stop) {
            return;
        }
        uint64_t word = words[w];
        if (w == first) {
            word &= ~uint64_t{0} << (begin % 64);
        }
        if (w + 1 == stop && end % 64 != 0) {
            word &= (uint64_t{1} << (end % 64)) - 1;
        }
        if (word != 0 && !f(w, word)) {
            return;
        }
    }
}

// Calls f(position) for each bit in [begin, end), until it returns false.
template <class F>
void each_bit(std::span<const uint64_t> words, uint32_t begin, uint32_t end, F f) noexcept {
    each_word(words, begin, end, [&](uint32_t w, uint64_t word) {
        for (; word != 0; word &= word - 1) {
            if (!f(w * 64 + static_cast<uint32_t>(std::countr_zero(word)))) {
                return false;
            }
        }
        return true;
    });
}

inline void clear_bit(std::span<uint64_t> words, uint32_t at) noexcept {
    words[at / 64] &= ~(uint64_t{1} << (at % 64));
}

// The groups that are open and targeted at the request, a bit per position, in
// the view's scratch. Call view.patterns().start(url) once per request before.
std::span<uint64_t> eligible(View& view, const Request& request,
                             const PlacementRecord& placement) noexcept;

// The first targeting rule that keeps the group at `position` from the
// request, from the same rows; Reason::none if it is eligible.
Reason why_not(View& view, const Request& request, const PlacementRecord& placement,
               uint32_t position) noexcept;

}  // namespace ads
