// The decision: which ad for this placement, now. Pure: the catalog, the
// request, the random numbers and the ledger all come in as arguments.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/image.hpp"
#include "core/rng.hpp"
#include "core/view.hpp"

namespace ads {

// At most so many placements in one request.
inline constexpr size_t kMaxPage = 64;

// What is known of the one who asks.
struct Request {
    Millis now = 0;
    bool invalid = false;  // gets a normal decision that takes nothing
};

struct Pick {
    uint32_t placement = kNone;
    uint32_t group = kNone;
    uint32_t creative = kNone;
    Id experiment = 0;
};

// The ads of a page so far. No creative stands twice on it.
class Page {
public:
    void add(const Pick& pick) noexcept {
        if (count_ < picks_.size()) {
            picks_[count_++] = pick;
        }
    }
    bool has_creative(uint32_t creative) const noexcept {
        for (const auto& pick : picks()) {
            if (pick.creative == creative) {
                return true;
            }
        }
        return false;
    }
    std::span<const Pick> picks() const noexcept { return {picks_.data(), count_}; }

private:
    std::array<Pick, kMaxPage> picks_;
    size_t count_ = 0;
};

// Who gives out what may be served. A take is one atomic step; false means
// that there is nothing left.
template <class L>
concept Ledger = requires(L ledger, uint32_t group, const Request& request) {
    { ledger.take(group, request) } -> std::same_as<bool>;
};

// A creative of the group for the placement, by weight; kNone if none is left.
uint32_t pick_creative(const Image& image, const PlacementRecord& placement,
                       const GroupRecord& group, const Page& page, Rng& rng) noexcept;

// The bit of one survivor in [begin, end), drawn by weight; kNone if there is none.
uint32_t draw(std::span<const uint64_t> survivors, uint32_t begin, uint32_t end,
              std::span<const uint32_t> weights, Rng& rng) noexcept;

// Tier by tier: draw a group, find its creative, take; what fails is removed
// and the draw repeated. Only the group that is served is taken.
template <Ledger L>
bool decide(View& view, const Request& request, uint32_t placement_index, Page& page, Rng& rng,
            L& ledger) noexcept {
    const Image& image = view.image();
    const PlacementRecord& placement = image.placements()[placement_index];
    const auto groups = image.get(placement.groups);
    const auto weights = image.get(placement.weights);
    const auto survivors = view.scratch(placement);
    std::ranges::copy(view.open(placement), survivors.begin());

    uint32_t begin = 0;
    for (const uint32_t end : placement.tier_end) {
        for (;;) {
            const uint32_t position = draw(survivors, begin, end, weights, rng);
            if (position == kNone) {
                break;
            }
            const uint32_t group = groups[position];
            const uint32_t creative =
                pick_creative(image, placement, image.groups()[group], page, rng);
            if (creative != kNone && ledger.take(group, request)) {
                page.add({placement_index, group, creative, 0});
                return true;
            }
            survivors[position / 64] &= ~(uint64_t{1} << (position % 64));
        }
        begin = end;
    }
    return false;
}

}  // namespace ads
