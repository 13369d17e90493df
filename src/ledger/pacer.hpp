// The pacing tick: once a second it reads the counters of tossed limits and recomputes
// the serve probability of each. The active keeper runs it, in short steps that block
// nobody.
#pragma once

#include <vector>

#include "core/base/fixed_vector.hpp"
#include "core/image/image.hpp"
#include "ledger/fleet/rights.hpp"
#include "ledger/local_day.hpp"
#include "ledger/slots.hpp"
#include "ledger/state.hpp"

namespace ads {

pacing::Terms terms_of(const GroupRecord& group) noexcept;

class Pacer {
public:
    Pacer(State state, Seconds reservation) : state_(state), reservation_(reservation) {}

    // Binds a catalog: all of it is due in the next round. The spans must outlive the
    // binding.
    void bind(const Image& image, Slots slots);

    // Begins a round: due are limits with tosses, some of the others, and the rest of the previous
    // round.
    void begin(Millis now);

    // Paces at most `count` due limits; false: the round is done. Some hundred
    // take less than a millisecond.
    bool step(uint32_t most);

private:
    static constexpr Seconds kAll = 60;             // each is visited within this
    static constexpr Seconds kMidnight = 2 * kAll;  // a day seen so soon was seen from its start

    bool collect();
    void due_at(size_t slot);
    void tick_curves();
    void due(uint32_t group);
    void pace_group(uint32_t index);
    void pace_campaign(uint32_t index);
    // When a group or a campaign is open, and where its traffic comes from.
    struct Times {
        LocalDay day;
        Seconds day_end = 0;
        std::span<const Interval> open;
        uint32_t flight = kNone;
        FixedVector<uint32_t, pacing::kMaxCurves> curves;
    };
    template <class Placements>
    Times times(const CampaignRecord& campaign, std::span<const Interval> open, uint32_t flight,
                const Placements& placements) const noexcept;
    pacing::Supply supply(const Times& times, Seconds from) const noexcept;
    // Takes in a reading. Of a limit for longer than a day, today's part is fixed by the
    // first one. Returns what there is to be had of the day that counts.
    pacing::Supply observe(PaceSlot& pace, const pacing::Reading& reading, const Times& times,
                           bool whole_flight) const noexcept;
    double part(const Times& times, const FlightRecord& flight, Seconds from) const noexcept;
    void pace_impressions(uint32_t index, const Times& times);
    void pace_clicks(uint32_t index, const Times& times);
    void free_expired(WallSlot& wall, const pacing::BucketTimes& times) noexcept;
    // A node of a fleet paces its part of a limit.
    pacing::DayPlan in_fleet(pacing::DayPlan plan, const FleetWall& of, uint32_t slot,
                             uint64_t limit, double used) const noexcept;
    uint64_t tosses(uint32_t group, Day day) const noexcept;
    // More is used than the limit: it was lowered, or a fault.
    void watch(uint32_t pace_slot, bool passed) noexcept;

    State state_;
    const Seconds reservation_;
    Image image_;
    Slots slots_;
    Millis now_ = 0;
    Seconds last_round_ = 0;
    uint32_t word_ = 0;                         // of the tossed, the next to look at
    size_t sweep_ = 0;                          // the last visited slot
    size_t sweep_left_ = 0;                     // the remaining slots
    std::vector<uint32_t> group_at_;            // slot of its counters → paced group
    std::vector<uint32_t> curve_;               // placement → curve
    std::vector<pacing::CurveSums> sums_;       // of the curves
    std::vector<pacing::WeekSums> weeks_;       // the same
    std::vector<uint32_t> groups_, campaigns_;  // due
    std::vector<bool> group_due_, campaign_due_;
    std::vector<uint32_t> passed_;  // slots of limits
};

}  // namespace ads
