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
    // `anonymous_cap` is of serves of a capped group a day, to all who have no session.
    // With `trace` the refusals are also put there, for debug=1.
    WorkerLedger(Worker& worker, const Request& request, ngx_int_t anonymous_cap,
                 std::vector<Refusal>* trace) noexcept;

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

    // They are held to a cap all together, if the operator has set one.
    bool capped_together(const GroupRecord& group) const noexcept {
        return group.caps.count > 0 && request_.session.empty() && !request_.invalid &&
               anonymous_cap_ != kNoCap;
    }
    bool take_frequency(const Pick& pick) noexcept;

    Worker& worker_;
    const Image& image_;
    const Request& request_;
    const Seconds now_;
    const ngx_int_t anonymous_cap_;
    uint64_t session_ = 0;  // keyed hash
    std::vector<Refusal>* trace_;
    bool exhausted_ = false;  // the coin tossed last: nothing is left for today
};

}  // namespace ads::ngx
