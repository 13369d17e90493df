// Why each group of a placement was or was not served.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/decide/match.hpp"
#include "core/decide/page.hpp"

namespace ads {

struct Explained {
    uint32_t group = 0;
    Reason reason = Reason::none;  // none: served
};

// The groups that a decision refused after targeting, in order.
struct Refusal {
    uint32_t placement = 0;
    uint32_t group = 0;
    Reason reason = Reason::none;
};

// Every group that names the placement, or names none, with the reason that removed it. `refusals`
// and `pick` are from the decision. If there are more than `most` groups, the first ones and the
// served one are explained.
std::vector<Explained> explain(View& view, const Request& request, const Pick& pick,
                               std::span<const Refusal> refusals, size_t most = SIZE_MAX);

// The number of groups.
inline size_t candidates_of(const Image& image, const PlacementRecord& placement) noexcept {
    return image.get(placement.groups).size() + image.get(placement.absent).size();
}

// A sample for statistics: calls f(group, reason) for the targeting reasons of at most `most`
// groups, from position `from` on with wrap-around. Returns the number of groups that each one
// represents.
template <class F>
double sample_reasons(View& view, const Request& request, const PlacementRecord& placement,
                      uint32_t from, uint32_t most, F f) noexcept {
    const auto groups = view.image().get(placement.groups);
    const auto absent = view.image().get(placement.absent);
    const auto all = static_cast<uint32_t>(groups.size() + absent.size());
    const uint32_t count = std::min(all, most);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = (from % all + i) % all;
        if (at >= groups.size()) {
            f(absent[at - groups.size()].group, absent[at - groups.size()].reason);
        } else if (const Reason reason = why_not(view, request, placement, at);
                   reason != Reason::none) {
            f(groups[at], reason);
        }
    }
    return count == 0 ? 0 : static_cast<double>(all) / count;
}

}  // namespace ads
