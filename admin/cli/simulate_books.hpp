// The counters, walls and reservations of a simulation: what a worker has in
// shared memory, in the memory of one process.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/catalog/model.hpp"
#include "core/decide.hpp"
#include "core/pacing/controller.hpp"
#include "core/pacing/reservations.hpp"
#include "shm/counters.hpp"

namespace ads::cli {

inline constexpr Seconds kReservation = 120;

// The local days that are simulated.
struct LocalDays {
    Day first = 0;
    std::vector<Seconds> starts;

    // Sets the day and when it begins and ends.
    void at(Seconds now, Day& day, Seconds& begin, Seconds& end) const;
};

// Something that is paced.
struct Limit {
    pacing::State state;
    pacing::Aim aim;
    pacing::Pace pace;
};

// A day of a wall: what is in it, and what of that is in flight.
struct Wall {
    DayCounter used;
    DayCounter lifetime;  // day 0
    pacing::Reservations reservations;
    DayCounter confirmed;  // units of which a pixel came
    DayCounter expired;    // and those of which none did

    uint64_t in_flight(const pacing::BucketTimes& times) const {
        return reservations.in_flight(times);
    }

    // All or nothing.
    bool take(Day day, uint64_t n, uint64_t limit, uint64_t lifetime_limit) noexcept;
    void give_back(Day day, uint64_t n) noexcept;
    // Puts n into flight.
    void reserve(const pacing::BucketTimes& times, Millis now, uint64_t n) noexcept;
    void expire(const pacing::BucketTimes& times, Millis now) noexcept;
    // A pixel: what was reserved is confirmed, what was not has to be taken.
    bool confirm(const pacing::BucketTimes& served, Millis at, uint64_t n, uint64_t limit,
                 uint64_t lifetime_limit) noexcept;
    // What was reserved is free again.
    void release(const pacing::BucketTimes& served, Millis at, uint64_t n) noexcept;
};

struct SimCampaign {
    uint32_t index = 0;
    LocalDays days;
    Day day = 0;  // today
    Seconds day_begin = 0;
    Seconds day_end = 0;
    pacing::BucketTimes times;
    std::vector<Interval> open;  // when any of its groups is
    std::vector<uint32_t> groups;
    std::vector<uint32_t> curves;  // placements; the last one is of the site
    Wall wall;                     // of money
    std::array<Limit, kCount<Strategy>> budget;
    std::array<pacing::Threshold, kCount<Strategy>> thresholds{};
    bool tossed = false;
};

struct SimGroup {
    uint32_t index = 0;
    uint32_t campaign = 0;
    pacing::Terms terms;
    std::vector<Interval> open;
    std::vector<uint32_t> curves;
    Wall wall;    // of impressions
    Wall clicks;  // of a goal
    Limit impressions_limit;
    Limit clicks_limit;
    pacing::Threshold threshold = pacing::kAlways;
    bool tossed = false;
};

// What comes after a serve.
struct Pixel {
    EventType type = EventType::impression;
    uint32_t group = 0;
    Millis served = 0;
    uint64_t reserved = 0;  // money
};

class Books {
public:
    Books(const catalog::Document& document, std::optional<Strategy> strategy, Rng& rng)
        : document_(document), strategy_(strategy), rng_(rng) {}

    // The groups and campaigns of the image, for the time from `begin` to `end`.
    void open(const Image& image, Seconds begin, Seconds end);
    // The same catalog, compiled for another day.
    void bind(const Image& image) { image_ = image; }

    // At the beginning of each second, before anything else.
    void set_time(Seconds now);
    Millis now = 0;

    std::vector<SimGroup>& groups() { return groups_; }
    std::vector<SimCampaign>& campaigns() { return campaigns_; }
    GroupSlot& slot(uint32_t group) { return slots_[group]; }
    SimCampaign& campaign_of(const SimGroup& group) { return campaigns_[group.campaign]; }
    const GroupRecord& record(uint32_t group) const { return image_.groups()[group]; }
    const CampaignRecord& campaign_record(uint32_t campaign) const {
        return image_.campaigns()[campaign];
    }

    uint64_t tosses(uint32_t group, Day day) const;
    double expected_price(uint32_t group) const;

    // One pixel, in its time. True if it was counted.
    bool track(const Pixel& pixel);

    // Tossed in all.
    uint64_t coins = 0;

    // Of the serve that was taken last.
    uint64_t last_reserved = 0;

    // ---- as the decision wants its ledger ----
    bool toss(uint32_t group) noexcept;
    bool allows(uint32_t, uint32_t) noexcept { return true; }
    Reason take(const Pick& pick) noexcept;
    void give_back(const Pick& pick) noexcept;
    MicroCents ecpm(uint32_t group) noexcept;
    void refused(uint32_t placement, uint32_t group, Reason reason) noexcept;

private:
    void open_campaign(const catalog::Campaign& campaign, Seconds begin, Seconds end);
    uint64_t events(uint32_t group, Day day) const;
    pacing::Walls walls(const SimGroup& group) const;
    uint64_t impression_wall(const SimGroup& group) const noexcept;
    static uint64_t allowed_today(const Limit& limit) noexcept;
    bool bill(SimGroup& group, const Pixel& pixel, uint64_t price, bool reserved) noexcept;

    const catalog::Document& document_;
    const std::optional<Strategy> strategy_;
    Rng& rng_;
    Image image_;
    std::vector<SimGroup> groups_;  // by the image's index
    std::vector<SimCampaign> campaigns_;
    std::unique_ptr<GroupSlot[]> slots_;
};

}  // namespace ads::cli
