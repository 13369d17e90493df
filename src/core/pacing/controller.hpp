// Pacing of limits. Pure: clock, counters and random numbers are arguments, and nothing is
// allocated.
//
// A limit is an amount that is to be used up by the end of the local day: the
// impressions or clicks of an ad group (caps, goals), the budget of a campaign.
// For each limit there is a State, in memory that outlives processes.
//
// The keeper ticks once a second:
//
//   1. For each placement: Curve::tick with its count of requests; if a bin was
//      closed, CurveSums anew (its memory). One more curve is of the site, for
//      groups in more than kMaxCurves placements.
//   2. For each group that was tossed since, or is at a boundary (opening, local
//      midnight, a new catalog), and
//      then for each campaign with a budget that has such a group:
//        Reservations::expire, what is freed goes back to the wall;
//        read the counters into a Reading; observe(), once;
//        a DayPlan for each limit; pace(), once for each limit and, of a campaign,
//        for each strategy that its groups use;
//        store threshold_of(the least probability) and `allowed`, relaxed.
//      Tosses are the serves and what the coin refused: counters that are there.
//
// A request: passes(rng.next(), combined(group's, campaign's[group.strategy])),
// then the walls are taken, the group's before the campaign's, each with the
// least of its wall (the image's: a live change needs no reset) and `allowed`.
#pragma once

#include <array>
#include <span>

#include "core/pacing/active_day.hpp"
#include "core/pacing/adaptive.hpp"
#include "core/pacing/coin.hpp"
#include "core/pacing/curve.hpp"
#include "core/pacing/limits.hpp"
#include "core/pacing/rate.hpp"
#include "core/pacing/strategies.hpp"

namespace ads::pacing {

inline constexpr size_t kMaxCurves = 4;

// The part of an ad group's `pacing` that the day's plan depends on.
struct Terms {
    Strategy strategy = Strategy::adaptive;
    CapOn cap_on = CapOn::serve;
    EventType goal_on = EventType::impression;
    uint64_t impression_cap = 0;  // a day; 0: none
    uint64_t click_cap = 0;
    uint64_t goal = 0;  // of the whole flight

    // Whether only confirmed impressions count.
    bool billed() const noexcept { return cap_on == CapOn::impression; }
};

// The plan for today.
struct DayPlan {
    Strategy strategy = Strategy::adaptive;
    bool limited = false;       // false: nothing to pace
    bool billed = false;        // only what pixels confirm is used
    double amount = 0;          // C
    double unit = 1;            // u: the expected value of one serve
    double stop = 0;            // where `probabilistic` ends
    double follow_traffic = 1;  // w; 0 is an even day
};

// `before` is the part of the goal or budget used before today (State::before), `part` is today's
// part of the rest (todays_part).
DayPlan impressions_plan(const Terms& terms, double before, double part) noexcept;
// `rate` is the clicks per serve.
DayPlan clicks_plan(const Terms& terms, double rate, double before, double part) noexcept;
DayPlan budget_plan(BudgetType type, MicroCents amount, double hard_cap, Strategy strategy,
                    double unit, double before, double part) noexcept;

// The expected traffic: today's active time, and the curves of the placements. Without a warm curve
// traffic is assumed to be constant.
class Supply {
public:
    Supply() noexcept = default;
    Supply(const ActiveDay& day, std::span<const CurveSums* const> curves) noexcept;

    const ActiveDay& day() const noexcept { return day_; }
    bool warm() const noexcept { return count_ > 0; }

    // Expected requests in the active time before a moment; seconds if nothing is
    // known.
    double mass(double until) const noexcept;
    double whole() const noexcept { return whole_; }

private:
    ActiveDay day_;
    std::array<const CurveSums*, kMaxCurves> curves_{};
    size_t count_ = 0;
    double whole_ = 0;
};

// The counters of a limit at one moment. All but `before` are of today.
struct Reading {
    double now = 0;     // Unix seconds
    double period = 1;  // seconds between ticks
    Day day = 0;
    uint64_t tosses = 0;
    double used = 0;       // served, or confirmed where `billed`
    double in_flight = 0;  // reserved
    double confirmed = 0;  // pixels that arrived
    double resolved = 0;   // those and expired reservations
    double before = 0;     // used of the goal or budget before today
};

// The stored state of a limit. Zeroed memory is the initial state.
struct State {
    double last = 0;    // the last reading's time
    double tossed = 0;  // of the last reading with tosses
    double before = 0;  // its value when the day began
    Rate rate;
    double probability = 0;  // the last one before exhaustion
    double share = 0;        // the unit of mass is that of the curves; 0: unknown
    double whole = 0;        // mass of the day
    double mass_first = 0;   // where learning that began and ended today
    double mass_last = 0;
    uint64_t tosses = 0;  // the last reading's
    uint64_t tosses_first = 0;
    uint64_t tosses_last = 0;
    Pid pid;
    double pid_last = 0;
    Day day = 0;
    bool has_probability = false;
    bool warm = false;      // the mass of `share` is from a curve, not in seconds
    bool learning = false;  // mass_first is today's
};

// The result of a tick.
struct Pace {
    double probability = 1;
    double allowed = static_cast<double>(kUnlimited);  // may be used by now, strategy `even`
    double ideal = 0;                                  // should have been used by now
    double used = 0;
    double utilization = 0;
    PaceStatus status = PaceStatus::on_pace;
    bool exhausted = false;  // nothing is left for today
};

// Processes a reading: the change of the day, the rate of tosses, what is learned.
void observe(State& state, const Reading& reading) noexcept;

// Decides, after observe() of the same reading.
Pace pace(State& state, const DayPlan& plan, const Supply& supply, const Reading& reading) noexcept;

// The expected course of the day, for adaptive.
Outlook outlook(const State& state, const DayPlan& plan, const Supply& supply, double now) noexcept;

}  // namespace ads::pacing
