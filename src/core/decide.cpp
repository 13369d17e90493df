#include "core/decide.hpp"

namespace ads {

namespace {

// Calls f(position) for each bit in [begin, end), until it returns false.
template <class F>
void each_bit(std::span<const uint64_t> words, uint32_t begin, uint32_t end, F f) noexcept {
    for (uint32_t w = begin / 64; w * 64 < end; w++) {
        uint64_t word = words[w];
        if (w == begin / 64) {
            word &= ~uint64_t{0} << (begin % 64);
        }
        if (end - w * 64 < 64) {
            word &= (uint64_t{1} << (end - w * 64)) - 1;
        }
        for (; word != 0; word &= word - 1) {
            if (!f(w * 64 + static_cast<uint32_t>(std::countr_zero(word)))) {
                return;
            }
        }
    }
}

}  // namespace

uint32_t draw(std::span<const uint64_t> survivors, uint32_t begin, uint32_t end,
              std::span<const uint32_t> weights, Rng& rng) noexcept {
    uint64_t total = 0;
    uint32_t last = kNone;
    uint32_t count = 0;
    each_bit(survivors, begin, end, [&](uint32_t at) {
        total += weights[at];
        last = at;
        count++;
        return true;
    });
    if (count <= 1) {
        return last;
    }
    uint64_t ticket = rng.below(total);
    each_bit(survivors, begin, end, [&](uint32_t at) {
        if (ticket < weights[at]) {
            last = at;
            return false;
        }
        ticket -= weights[at];
        return true;
    });
    return last;
}

uint32_t pick_creative(const Image& image, const PlacementRecord& placement,
                       const GroupRecord& group, const Page& page, Rng& rng) noexcept {
    const auto creatives = image.creatives().subspan(group.first_creative, group.creatives);
    const auto weight = [&](uint32_t i) noexcept -> uint64_t {
        const auto& c = creatives[i];
        return c.status == Status::active && placement.accepts(c) &&
                       !page.has_creative(group.first_creative + i)
                   ? c.weight
                   : 0;
    };
    uint64_t total = 0;
    for (uint32_t i = 0; i < group.creatives; i++) {
        total += weight(i);
    }
    if (total == 0) {
        return kNone;
    }
    uint64_t ticket = rng.below(total);
    for (uint32_t i = 0;; i++) {
        const uint64_t w = weight(i);
        if (ticket < w) {
            return group.first_creative + i;
        }
        ticket -= w;
    }
}

}  // namespace ads
