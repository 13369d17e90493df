// The ads of one page, in the order of the requested placements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/base/fixed_vector.hpp"
#include "core/image/image.hpp"

namespace ads {

// Maximum number of placements of a request.
inline constexpr size_t kMaxPage = 64;

struct Pick {
    uint32_t placement = kNone;
    uint32_t group = kNone;  // kNone: nothing was found
    uint32_t creative = kNone;
    Id experiment = 0;
    bool by_session = false;  // the variant is the session's, not this request's
    MicroCents reserved = 0;  // of the campaign's budget, set by the ledger

    bool filled() const noexcept { return group != kNone; }
};

class Page {
public:
    // Appends an empty pick; at most kMaxPage.
    void add(uint32_t placement) noexcept { picks_.push_back({.placement = placement}); }

    // A creative that the page shows already, from an earlier request.
    void add_shown(const Image& image, Id id) noexcept {
        const uint32_t creative = image.find_creative(id);
        if (creative != kNone) {
            shown_.push_back({.group = image.creatives()[creative].group, .creative = creative});
        }
    }

    std::span<Pick> picks() noexcept { return {picks_.data(), picks_.size()}; }
    std::span<const Pick> picks() const noexcept { return picks_; }

    size_t filled() const noexcept {
        size_t n = 0;
        for (const auto& pick : picks()) {
            n += pick.filled() ? 1 : 0;
        }
        return n;
    }

    bool has_creative(uint32_t creative) const noexcept {
        return any([&](const Pick& pick) { return pick.filled() && pick.creative == creative; });
    }

    bool has_group(uint32_t group) const noexcept {
        return any([&](const Pick& pick) { return pick.group == group; });
    }

    // Whether an ad on the page and this group exclude each other: one is exclusive in its
    // advertiser or category, and the other has the same.
    bool excludes(const Image& image, const GroupRecord& group) const noexcept {
        return !(picks_.empty() && shown_.empty()) && some_pick_excludes(image, group);
    }

private:
    // Whether an ad of this request, or shown before, does.
    template <class Test>
    bool any(Test test) const noexcept {
        return std::any_of(picks_.begin(), picks_.end(), test) ||
               std::any_of(shown_.begin(), shown_.end(), test);
    }

    bool some_pick_excludes(const Image& image, const GroupRecord& group) const noexcept;

    FixedVector<Pick, kMaxPage> picks_;
    FixedVector<Pick, kMaxPage> shown_;
};

}  // namespace ads
