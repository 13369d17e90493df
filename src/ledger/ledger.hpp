// The ledger of a decision: the limits and counters of the state, the frequency
// caps of the visitor, and the reasons for what was refused.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/rng.hpp"
#include "core/decide/estimate.hpp"
#include "core/decide/explain.hpp"
#include "core/decide/request.hpp"
#include "ledger/billing.hpp"
#include "ledger/frequency.hpp"
#include "ledger/traffic.hpp"

namespace ads {

class Ledger {
public:
    // The shared memory of the decisions of one process; it must outlive the ledger.
    struct Source {
        const Image& image;
        const Slots& slots;
        State& state;
        Frequency& frequency;
        Rng& rng;
        uint64_t& serves;  // counts up
        Seconds reservation = 0;
        Traffic* traffic = nullptr;  // counts refusals; nullptr: not needed
    };

    // `anonymous_cap`: serves of a capped group a day to all visitors without a
    // session together. With `trace`, refusals are also appended there.
    Ledger(const Source& source, const Request& request, uint64_t anonymous_cap,
           std::vector<Refusal>* trace) noexcept;

    bool toss(uint32_t group) noexcept;
    bool allows(uint32_t group, uint32_t creative) noexcept;
    Reason take(Pick& pick) noexcept;
    void give_back(const Pick& pick) noexcept;
    MicroCents ecpm(uint32_t group) noexcept;
    MicroCents floor_ecpm(uint32_t group) noexcept;
    void refused(uint32_t placement, uint32_t group, Reason reason) noexcept;

    // Why a placement got no ad.
    Unfilled unfilled(uint32_t placement) const noexcept;

private:
    struct Subjects;

    Day today(const GroupRecord& group) noexcept;
    uint32_t second() const noexcept { return static_cast<uint32_t>(now_); }
    uint32_t slot_of(uint32_t group) const noexcept { return slots_.groups[group].counters; }
    Id id_of(CapLevel level, uint32_t group, uint32_t creative) const noexcept;
    void gather(uint32_t group, uint32_t creative, bool creative_only,
                Subjects& subjects) const noexcept;
    static bool paced(const Image& image, const GroupRecord& group) noexcept {
        return group.limits(EventType::impression) || group.limits(EventType::click) ||
               image.campaign_of(group).has_budget;
    }
    // Without a session there is nothing to look up.
    bool capped(const GroupRecord& group) const noexcept {
        return group.caps.count > 0 && !request_.session.empty() && !request_.invalid;
    }

    // One cap for all visitors without a session, if the operator has set one.
    bool capped_together(const GroupRecord& group) const noexcept {
        return group.caps.count > 0 && request_.session.empty() && !request_.invalid &&
               anonymous_cap_ != kNoAnonymousCap;
    }
    Evidence evidence(uint32_t index) noexcept;
    pacing::Threshold first_today(uint32_t index) noexcept;
    bool take_frequency(const Pick& pick) noexcept;

    const Image& image_;
    const Slots& slots_;
    State& state_;
    Frequency& frequency_;
    Rng& rng_;
    uint64_t& serves_;
    Traffic* traffic_;
    Billing billing_;
    const Request& request_;
    const Seconds now_;
    const uint64_t anonymous_cap_;
    uint64_t session_ = 0;  // keyed hash
    std::vector<Refusal>* trace_;
    FixedVector<Refusal, kMaxPage> last_;  // of each placement
    bool exhausted_ = false;               // of the last tossed coin: nothing is left for today
};

}  // namespace ads
