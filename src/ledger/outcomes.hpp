// The requests of each placement and their outcomes, until a summary is in the spool. For one
// worker.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/image/image.hpp"
#include "ledger/traffic.hpp"

namespace ads {

class Outcomes {
public:
    // Sets the placements to count. Call gather() before a change of the image.
    void bind(size_t placements) { now_.assign(placements, {}); }

    void filled(uint32_t placement) noexcept { now_[placement][0]++; }
    void unfilled(uint32_t placement, Unfilled why) noexcept {
        now_[placement][1 + static_cast<size_t>(why)]++;
    }

    // From the placements of the image to their names, which outlive it.
    void gather(const Image& image);

    bool empty() const noexcept { return gathered_.empty(); }
    // {"home-top": {"": 12, "pacing": 3}}: of as many placements as fit, told in `placements`.
    std::string text(size_t& placements) const;
    // The first ones were reported before.
    void forget(size_t placements);

private:
    using Counts = std::array<uint32_t, 1 + kCount<Unfilled>>;  // the first: with an ad

    std::vector<Counts> now_;
    std::map<std::string, Counts, std::less<>> gathered_;
};

}  // namespace ads
