#include "core/explain.hpp"

#include <unordered_map>

namespace ads {

std::vector<Explained> explain(View& view, const Request& request, const Pick& pick,
                               std::span<const Refusal> refusals) {
    const Image& image = view.image();
    const auto& placement = image.placements()[pick.placement];
    std::unordered_map<uint32_t, Reason> refused;
    for (const auto& refusal : refusals) {
        if (refusal.placement == pick.placement) {
            refused[refusal.group] = refusal.reason;
        }
    }
    std::vector<Explained> all;
    const auto groups = image.get(placement.groups);
    for (uint32_t at = 0; at < groups.size(); at++) {
        Reason reason = why_not(view, request, placement, at);
        if (reason == Reason::none && groups[at] != pick.group) {
            const auto known = refused.find(groups[at]);
            reason = known == refused.end() ? Reason::lost : known->second;
        }
        all.push_back({groups[at], reason});
    }
    for (const auto& absent : image.get(placement.absent)) {
        all.push_back({absent.group, absent.reason});
    }
    return all;
}

}  // namespace ads
