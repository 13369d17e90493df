// The books behind a decision: the counters of the state, the frequency caps
// of the visitor, and the reasons for what was refused.
#pragma once

#include <vector>

#include "core/decide.hpp"
#include "core/explain.hpp"
#include "ngx/worker.hpp"

namespace ads::ngx {

class WorkerLedger {
public:
    // With `trace` the refusals are also put there, for debug=1.
    WorkerLedger(Worker& worker, const Request& request, std::vector<Refusal>* trace) noexcept;

    bool toss(uint32_t group) noexcept;
    bool allows(uint32_t group, uint32_t creative) noexcept;
    Reason take(Pick& pick) noexcept;
    void give_back(const Pick& pick) noexcept;
    MicroCents ecpm(uint32_t group) noexcept;
    void refused(uint32_t placement, uint32_t group, Reason reason) noexcept;

private:
    struct Subjects;

    Day today(const GroupRecord& group) noexcept;
    uint32_t second() const noexcept { return static_cast<uint32_t>(now_); }
    Id id_of(CapLevel level, uint32_t group, uint32_t creative) const noexcept;
    void gather(uint32_t group, uint32_t creative, bool creative_only,
                Subjects& subjects) const noexcept;
    static bool paced(const Image& image, const GroupRecord& group) noexcept {
        return group.limits(EventType::impression) || group.limits(EventType::click) ||
               image.campaign_of(group).has_budget;
    }
    // No look-up is made for visitors without a session.
    bool capped(const GroupRecord& group) const noexcept {
        return group.caps.count > 0 && !request_.session.empty() && !request_.invalid;
    }

    Worker& worker_;
    const Image& image_;
    const Request& request_;
    const Seconds now_;
    uint64_t session_ = 0;  // keyed hash
    std::vector<Refusal>* trace_;
    bool exhausted_ = false;  // the coin tossed last: nothing is left for today
};

}  // namespace ads::ngx
