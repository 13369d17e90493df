// The ledger of a decision: the limits and counters of the state, the frequency
// caps of the visitor, and the reasons for what was refused.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/rng.hpp"
#include "core/decide/estimate.hpp"
#include "core/decide/explain.hpp"
#include "core/decide/request.hpp"
#include "ledger/billing.hpp"
#include "ledger/traffic.hpp"
#include "ledger/visitor/frequency.hpp"

namespace ads {

// The serves of capped ads that the fleet has noted for one decision: no other capped ad may be
// taken.
struct FleetGrants {
    struct Grant {
        uint32_t group;
        uint32_t creative;
        bool used;
    };
    FixedVector<Grant, kMaxPage> list;

    bool has(const Pick& pick) const noexcept {
        return std::ranges::any_of(list, [&](const Grant& grant) {
            return !grant.used && grant.group == pick.group && grant.creative == pick.creative;
        });
    }
    void use(const Pick& pick, bool used) noexcept {
        for (Grant& grant : list) {
            if (grant.group == pick.group && grant.creative == pick.creative &&
                grant.used != used) {
                grant.used = used;
                return;
            }
        }
    }
};

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
    // session together. With `trace`, refusals are also appended there. The request outlives the
    // ledger.
    Ledger(const Source& source, const Request& request, uint64_t anonymous_cap,
           std::vector<Refusal>* trace) noexcept;
    Ledger(const Source&, Request&&, uint64_t, std::vector<Refusal>*) = delete;

    // With these, capped ads are taken only as granted; they outlive the ledger.
    void use_grants(FleetGrants& grants) noexcept { grants_ = &grants; }

    bool toss(uint32_t group) noexcept {
        count_toss(group);
        return coin(group);
    }
    bool allows(uint32_t group, uint32_t creative) noexcept;
    Reason take(Pick& pick) noexcept;
    void give_back(const Pick& pick) noexcept;
    MicroCents ecpm(uint32_t group) noexcept;
    MicroCents floor_ecpm(uint32_t group) noexcept;
    void refused(uint32_t placement, uint32_t group, Reason reason) noexcept;

    // Why a placement got no ad.
    Unfilled unfilled(uint32_t placement) const noexcept;

    // The two parts of toss(): what pacing sees of it, and the coin.
    void count_toss(uint32_t group) noexcept;
    bool coin(uint32_t group) noexcept;

    // Nothing is left for today, as the last coin has found.
    bool exhausted() const noexcept { return exhausted_; }

    // Whether the visitor's serves of the group are counted.
    bool capped(uint32_t group) const noexcept { return capped(image_.groups()[group]); }

    // Whether a take of frequency would succeed on this node.
    bool admits(const Pick& pick) noexcept;

    // Calls f(subject) for each capped object of the ad, with its caps at this moment.
    template <class F>
    void each_subject(const Pick& pick, F f) const noexcept {
        Subjects subjects;
        gather(pick.group, pick.creative, false, subjects);
        for (const FrequencySubject& subject : subjects.list) {
            f(subject);
        }
    }

private:
    // The caps of an ad at this moment, by subject.
    struct Subjects {
        FixedVector<FrequencyLimit, kMaxCaps> limits;
        FixedVector<FrequencySubject, kCount<CapLevel>> list;
    };

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
    FleetGrants* grants_ = nullptr;
    std::vector<Refusal>* trace_;
    FixedVector<Refusal, kMaxPage> last_;  // of each placement
    bool exhausted_ = false;               // of the last tossed coin: nothing is left for today
};

}  // namespace ads
