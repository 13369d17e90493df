#include "core/decide/explain.hpp"

#include <unordered_map>

namespace ads {

std::vector<Explained> explain(View& view, const Request& request, const Pick& pick,
                               std::span<const Refusal> refusals, size_t most) {
    const Image& image = view.image();
    const auto& placement = image.placements()[pick.placement];
    std::vector<Explained> all;
    std::unordered_map<uint32_t, size_t> eligible;  // group → index in `all`
    const auto groups = image.get(placement.groups);
    for (uint32_t at = 0; at < groups.size(); at++) {
        const bool served = groups[at] == pick.group;
        if (all.size() >= most && !served) {
            continue;
        }
        Reason reason = why_not(view, request, placement, at);
        if (reason == Reason::none && !served) {
            eligible.emplace(groups[at], all.size());
            reason = Reason::lost;
        }
        all.push_back({groups[at], reason});
    }
    for (const auto& absent : image.get(placement.absent)) {
        if (all.size() >= most) {
            break;
        }
        all.push_back({absent.group, absent.reason});
    }
    for (const auto& refusal : refusals) {
        const auto known = eligible.find(refusal.group);
        if (refusal.placement == pick.placement && known != eligible.end()) {
            all[known->second].reason = refusal.reason;
        }
    }
    return all;
}

}  // namespace ads
