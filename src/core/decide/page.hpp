// The ads of one page, in the order in which its placements were asked for.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/fixed_vector.hpp"
#include "core/image/image.hpp"

namespace ads {

// At most so many placements in one request.
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
    // A new place at the end, still empty; no more than kMaxPage.
    void add(uint32_t placement) noexcept { picks_.push_back({.placement = placement}); }

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
        for (const auto& pick : picks()) {
            if (pick.filled() && pick.creative == creative) {
                return true;
            }
        }
        return false;
    }

    bool has_group(uint32_t group) const noexcept {
        for (const auto& pick : picks()) {
            if (pick.group == group) {
                return true;
            }
        }
        return false;
    }

    // Whether an ad on the page and this group exclude each other: one of them
    // wants to be the only one of its advertiser or category, and the other is
    // of the same.
    bool excludes(const Image& image, const GroupRecord& group) const noexcept {
        return !picks().empty() && some_pick_excludes(image, group);
    }

private:
    bool some_pick_excludes(const Image& image, const GroupRecord& group) const noexcept;

    FixedVector<Pick, kMaxPage> picks_;
};

}  // namespace ads
