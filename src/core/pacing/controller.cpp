#include "core/pacing/controller.hpp"

#include <limits>
#include <type_traits>

namespace ads::pacing {

static_assert(std::is_trivially_copyable_v<State>);
static_assert(std::is_trivially_copyable_v<Curve>);
static_assert(sizeof(State) <= 192);

namespace {

// A share is learned from at least this part of a day.
constexpr double kLeastLearned = 0.25;

// What can be used today, of a cap per day and a goal for the whole flight.
// asap does not wait for tomorrow.
DayPlan counted(const Terms& terms, uint64_t cap, bool has_goal, double unit, double before,
                double part) noexcept {
    DayPlan plan{.strategy = terms.strategy,
                 .limited = cap > 0 || has_goal,
                 .billed = terms.billed(),
                 .unit = unit};
    plan.amount = static_cast<double>(cap > 0 ? cap : kUnlimited);
    if (has_goal) {
        part = terms.strategy == Strategy::asap ? 1 : part;
        plan.amount = std::min(plan.amount,
                               todays_share(static_cast<double>(terms.goal), before, part, unit));
    }
    plan.stop = plan.amount;
    return plan;
}

double finish(const DayPlan& plan, double total) noexcept {
    return std::min(plan.billed ? kFinishBilled : kFinish, total / kFinishPart);
}

// G: the traffic that is over, squeezed so that all is done before the end.
double target(const DayPlan& plan, const Supply& supply, double elapsed) noexcept {
    const double total = supply.day().total();
    if (total <= 0) {
        return 0;
    }
    const double x = std::min(1.0, elapsed / (total - finish(plan, total)));
    if (plan.follow_traffic <= 0 || supply.whole() <= 0) {
        return x;
    }
    const double traffic = supply.mass(supply.day().moment(x * total)) / supply.whole();
    return plan.follow_traffic * traffic + (1 - plan.follow_traffic) * x;
}

void learn_share(State& state) noexcept {
    const double mass = state.mass_last - state.mass_first;
    if (!state.learning || mass < kLeastLearned * state.whole || mass <= 0) {
        return;
    }
    const double share = static_cast<double>(state.tosses_last - state.tosses_first) / mass;
    state.share = state.share > 0 ? (1 - kNewShare) * state.share + kNewShare * share : share;
}

}  // namespace

DayPlan impressions_plan(const Terms& terms, double before, double part) noexcept {
    const bool has_goal = terms.goal > 0 && terms.goal_on == EventType::impression;
    return counted(terms, terms.impression_cap, has_goal, 1, before, part);
}

DayPlan clicks_plan(const Terms& terms, double rate, double before, double part) noexcept {
    const bool has_goal = terms.goal > 0 && terms.goal_on == EventType::click;
    DayPlan plan = counted(terms, terms.click_cap, has_goal, 1, before, part);
    plan.unit = rate;
    plan.billed = false;  // a click needs no confirmation
    return plan;
}

DayPlan budget_plan(BudgetType type, MicroCents amount, double hard_cap, Strategy strategy,
                    double unit, double before, double part) noexcept {
    DayPlan plan{.strategy = strategy, .limited = true, .billed = true, .unit = unit};
    plan.amount = static_cast<double>(amount);
    if (type == BudgetType::lifetime) {
        part = strategy == Strategy::asap ? 1 : part;
        plan.amount = todays_share(plan.amount, before, part, unit);
    }
    // A lifetime's share is paced as if it were a day's budget.
    const auto daily = static_cast<MicroCents>(plan.amount);
    plan.stop = static_cast<double>(budget_walls(BudgetType::daily, daily, hard_cap, strategy).day);
    return plan;
}

Supply::Supply(const ActiveDay& day, std::span<const CurveSums* const> curves) noexcept
    : day_(day) {
    for (const CurveSums* curve : curves) {
        if (count_ == kMaxCurves || !curve->warm()) {
            count_ = 0;
            break;
        }
        curves_[count_++] = curve;
    }
    whole_ = mass(static_cast<double>(day.end()));
}

double Supply::mass(double until) const noexcept {
    if (count_ == 0) {
        return day_.elapsed(until);
    }
    return day_.sum(until, [&](double from, double to) {
        double sum = 0;
        for (size_t i = 0; i < count_; i++) {
            sum += curves_[i]->mass(from, to);
        }
        return sum;
    });
}

void observe(State& state, const Reading& reading) noexcept {
    const bool first = state.last == 0;
    const bool new_day = first || reading.day != state.day;
    if (new_day) {
        if (!first) {
            learn_share(state);
        }
        state.day = reading.day;
        state.before = reading.before;
        state.learning = false;
        state.pid = {};
        state.pid_last = 0;
    }
    const uint64_t known = new_day ? 0 : state.tosses;
    const uint64_t more = reading.tosses > known ? reading.tosses - known : 0;
    if (first || more > 0 || reading.now < state.tossed) {
        if (!first) {
            state.rate.tick(static_cast<double>(more), reading.now - state.tossed, reading.period);
        }
        state.tossed = reading.now;
    }
    state.tosses = reading.tosses;
    state.last = reading.now;
}

Outlook outlook(const State& state, const DayPlan& plan, const Supply& supply,
                double now) noexcept {
    Outlook o;
    o.elapsed = supply.day().elapsed(now);
    o.total = supply.day().total();
    o.passed = supply.whole() > 0 ? supply.mass(now) / supply.whole() : 0;
    // Without having observed the traffic it cannot be called low.
    o.missed = !state.learning      ? o.passed
               : supply.whole() > 0 ? std::min(o.passed, state.mass_first / supply.whole())
                                    : 0;
    o.target = target(plan, supply, o.elapsed);
    o.target_soon = target(plan, supply, o.elapsed + kAhead);
    const double supplied =
        state.share > 0 ? supply.whole() * state.share : kColdSupply * plan.amount / plan.unit;
    o.supply = std::max(1.0, supplied);
    return o;
}

Pace pace(State& state, const DayPlan& plan, const Supply& supply,
          const Reading& reading) noexcept {
    Pace result;
    if (!plan.limited) {
        return result;
    }
    if (state.warm != supply.warm()) {
        // The same tosses of a day, in the units of the other.
        state.share = supply.whole() > 0 ? state.share * state.whole / supply.whole() : 0;
        state.warm = supply.warm();
        state.learning = false;
    }
    state.whole = supply.whole();
    const double confirm = plan.billed ? confirm_rate(reading.confirmed, reading.resolved) : 1;
    const Outlook day = outlook(state, plan, supply, reading.now);
    const double linear = even_limit(plan.amount, day.elapsed, day.total);
    result.used = reading.used + confirm * reading.in_flight;
    result.ideal = plan.strategy == Strategy::adaptive ? plan.amount * day.target : linear;
    result.utilization = utilization(result.used, result.ideal, plan.unit);
    result.status = pace_status(result.utilization);
    result.exhausted = plan.amount - result.used < plan.unit || plan.amount <= 0;
    if (plan.amount <= 0) {
        result.probability = 0;
        result.allowed = 0;
        // The lifetime's budget or goal was used up before today; or it is closed all day.
        const bool used_up = day.total > 0;
        result.utilization = used_up ? std::numeric_limits<double>::infinity() : 1;
        result.status = used_up ? PaceStatus::over_pace : PaceStatus::on_pace;
        return result;
    }

    switch (plan.strategy) {
        case Strategy::probabilistic:
            result.probability = probabilistic(result.used, result.utilization, plan.stop);
            result.exhausted = result.used >= plan.stop;
            result.status = result.exhausted ? PaceStatus::over_pace : result.status;
            break;
        case Strategy::asap:
            result.probability = asap(result.used, plan.amount);
            break;
        case Strategy::even:
            result.allowed = linear;
            break;
        case Strategy::pid:
            result.probability = state.pid.step(result.used, linear, reading.now - state.pid_last);
            state.pid_last = reading.now;
            break;
        case Strategy::adaptive: {
            const Delivery delivery{
                plan.amount,
                plan.unit,
                result.used,
                state.rate.value(),
                static_cast<double>(state.learning && reading.tosses > state.tosses_first
                                        ? reading.tosses - state.tosses_first
                                        : 0),
                confirm};
            const double previous = state.has_probability
                                        ? state.probability
                                        : std::min(1.0, plan.amount / (plan.unit * day.supply));
            result.probability = adaptive(day, delivery, previous);
            break;
        }
    }
    if (result.exhausted) {
        return result;
    }
    if (plan.strategy == Strategy::adaptive) {
        state.probability = result.probability;
        state.has_probability = true;
    }
    // An exhausted limit is no longer tossed, which must not count as an observation.
    if (!state.learning) {
        state.mass_first = supply.mass(reading.now);
        state.tosses_first = reading.tosses;
        state.learning = true;
    }
    state.mass_last = supply.mass(reading.now);
    state.tosses_last = reading.tosses;
    return result;
}

}  // namespace ads::pacing
