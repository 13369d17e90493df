// Budgets, caps and goals that are used up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/catalog/terms.hpp"
#include "core/decide/estimate.hpp"
#include "ledger/ledger.hpp"
#include "lib/diagnosis/diagnosis.hpp"
#include "lib/diagnosis/wording.hpp"

namespace ads::diagnosis {

namespace {

constexpr uint64_t kSeed = 1;

bool limited(const catalog::Campaign& campaign, const catalog::AdGroup& group) {
    const auto& pacing = group.pacing;
    return campaign.budget || pacing.daily_impression_cap || pacing.daily_click_cap ||
           pacing.goal || group.price.model == PriceModel::cpc ||
           group.price.model == PriceModel::cpa;
}

// Hundredths of a cent say nothing of an expectation.
MicroCents whole_cents(MicroCents amount) {
    return amount / kMicroPerCent * kMicroPerCent;
}

// Sums over the campaign: its budget is one for all of its ad groups.
MicroCents spent_today(const catalog::Campaign& campaign, const Facts& facts) {
    MicroCents sum = 0;
    for (const auto& group : campaign.ad_groups) {
        if (const auto found = facts.delivered.find(group.id); found != facts.delivered.end()) {
            sum += found->second.spend;
        }
    }
    return sum;
}

MicroCents budget_left(const catalog::Campaign& campaign, const Facts& facts) {
    const auto& budget = *campaign.budget;
    const MicroCents spent = budget.type == BudgetType::daily
                                 ? std::max(spent_today(campaign, facts), budget.spent)
                                 : budget.spent;
    return std::max<MicroCents>(0, budget.amount - spent);
}

Delivered delivered_by(Id group, const Facts& facts) {
    const auto found = facts.delivered.find(group);
    return found == facts.delivered.end() ? Delivered{} : found->second;
}

// Why an ad group that is alone in its placements is not drawn.
Reason refusal(const catalog::Document& part, const Delivered& delivered, Seconds now) {
    HeapNode node(part, kSeed);
    node.publish_delivered({{part.campaigns[0].ad_groups[0].id, delivered}}, now);
    const Request request{.now = now * 1000};
    std::vector<Refusal> refusals;
    for (uint32_t placement = 0; placement < part.placements.size(); placement++) {
        Ledger ledger(node.ledger_source(), request, kNoAnonymousCap, &refusals);
        Page page;
        decide(node.view(), request, {&placement, 1}, page, node.rng(), ledger);
        if (page.picks()[0].filled()) {
            ledger.give_back(page.picks()[0]);
            return Reason::none;
        }
    }
    return refusals.empty() ? Reason::none : refusals[0].reason;
}

// Whether the whole catalog's node gives the ad group an ad: quicker than a node of its own. No
// event has a price of its own, so no floor is involved; and nothing else is in its way, so that it
// has its walls there.
bool has_room(HeapNode& node, const catalog::Campaign& campaign, const catalog::AdGroup& group,
              const Facts& facts) {
    const uint32_t index = node.image().find_group(group.id);
    if (index == kNone || group.price.model == PriceModel::cpc ||
        group.price.model == PriceModel::cpa) {
        return false;
    }
    // The node may have spent more than the ad groups' counts say.
    if (campaign.budget &&
        budget_left(campaign, facts) < std::max<MicroCents>(1, catalog::unit_price(group.price))) {
        return false;
    }
    const Request request{.now = facts.now * 1000};
    Ledger ledger(node.ledger_source(), request, kNoAnonymousCap, nullptr);
    Pick pick{.group = index};
    if (ledger.take(pick) != Reason::none) {
        return false;
    }
    ledger.give_back(pick);
    return true;
}

// The one with the lowest floor, and what a price must be to reach it.
void add_floor(const catalog::Document& part, const catalog::AdGroup& group,
               const Delivered& delivered, const Facts& facts, std::vector<Cause>& causes) {
    const auto& lowest =
        *std::min_element(part.placements.begin(), part.placements.end(),
                          [](const auto& a, const auto& b) { return a.floor < b.floor; });
    const bool clicks = group.price.model == PriceModel::cpc;
    const Evidence seen{delivered.impressions, clicks ? delivered.clicks : delivered.conversions};
    const MicroCents most = floor_ecpm(group.price.amount, seen);
    const MicroCents of_one = std::max<MicroCents>(1, floor_ecpm(kMicroPerCent, seen));
    // In cents, so that nothing overflows.
    const double price = static_cast<double>(lowest.floor) / static_cast<double>(of_one);
    std::vector<std::string> placements;
    for (const auto& placement : part.placements) {
        placements.push_back(placement.id);
    }
    const std::string hint =
        facts.managed
            ? fmt::format(
                  ": nginx-ads ad-group update {} {}, or nginx-ads placement update {} "
                  "--floor {}",
                  group.id,
                  price_flag(group.price.model, static_cast<MicroCents>(std::ceil(
                                                    price * static_cast<double>(kMicroPerCent)))),
                  lowest.id, flag_amount(whole_cents(most)))
            : std::string();
    causes.push_back(
        {Kind::floor, Extent::all, object_of(lowest),
         fmt::format("the expected eCPM of {} is {}, {} at best, after {} impressions and {} {} "
                     "today; the floor of {} is {}",
                     named(object_of(group)),
                     money(whole_cents(expected_ecpm(group.price.amount, seen)), facts.currency),
                     money(whole_cents(most), facts.currency), seen.impressions, seen.events,
                     clicks ? "clicks" : "conversions", named(object_of(lowest)),
                     money(lowest.floor, facts.currency)),
         fmt::format("raise the price, or lower the floor{}; it begins anew tomorrow", hint),
         std::move(placements)});
}

class LimitCauses {
public:
    LimitCauses(const catalog::Campaign& campaign, const catalog::AdGroup& group,
                const Facts& facts, std::vector<Cause>& causes)
        : campaign_(campaign), group_(group), facts_(facts), causes_(causes) {}

    void find() {
        const size_t before = causes_.size();
        add_budget();
        const Delivered done = delivered_by(group_.id, facts_);
        const auto& pacing = group_.pacing;
        const bool pixels = pacing.cap_on == CapOn::impression;
        if (pacing.daily_impression_cap) {
            add_cap("daily cap", pixels ? done.impressions : done.serves,
                    *pacing.daily_impression_cap, pixels ? "impressions" : "ads",
                    "--daily-impressions");
        }
        if (pacing.daily_click_cap) {
            add_cap("daily cap", done.clicks, *pacing.daily_click_cap, "clicks", "--daily-clicks");
        }
        if (pacing.goal) {
            const bool clicks = pacing.goal->on == EventType::click;
            add_goal(clicks   ? done.all_clicks
                     : pixels ? done.all_impressions
                              : done.all_serves,
                     pacing.goal->count, clicks ? "clicks" : "impressions");
        }
        if (causes_.size() == before) {
            causes_.push_back({Kind::cap,
                               Extent::all,
                               object_of(group_),
                               fmt::format("a limit of {} or of its campaign is exhausted",
                                           named(object_of(group_))),
                               "raise its budget, its caps or its goal",
                               {}});
        }
    }

private:
    void add_budget() {
        if (!campaign_.budget) {
            return;
        }
        const auto& budget = *campaign_.budget;
        const bool daily = budget.type == BudgetType::daily;
        const MicroCents left = budget_left(campaign_, facts_);
        const MicroCents unit = std::max<MicroCents>(1, catalog::unit_price(group_.price));
        if (left >= unit && left > 0) {
            return;
        }
        const Object o = object_of(campaign_);
        std::string what = fmt::format(
            "{} of {} is exhausted: {} of {} left", daily ? "daily budget" : "budget", named(o),
            money(left, facts_.currency), money(budget.amount, facts_.currency));
        if (daily) {
            what += " today";
        } else if (left > 0) {
            what += ", less than the price of one ad";
        }
        causes_.push_back(
            {Kind::budget,
             Extent::all,
             o,
             std::move(what),
             fmt::format("{}raise the budget{}",
                         daily && budget.amount > 0 ? "wait for the next day, or " : "",
                         by_command(facts_, raised_budget(campaign_))),
             {}});
    }

    void add_cap(std::string_view name, uint64_t used, uint64_t cap, std::string_view what,
                 const char* flag) {
        if (used >= cap) {
            const Object o = object_of(group_);
            causes_.push_back(
                {Kind::cap,
                 Extent::all,
                 o,
                 fmt::format("{} of {} is reached: {} of {} {} today", name, named(o), used, cap,
                             what),
                 fmt::format("wait for the next day, or raise the cap{}",
                             by_command(facts_, fmt::format("ad-group update {} {} {}", o.id, flag,
                                                            2 * std::max<uint64_t>(1, cap)))),
                 {}});
        }
    }

    void add_goal(uint64_t used, uint64_t goal, std::string_view what) {
        if (used >= goal) {
            const Object o = object_of(group_);
            causes_.push_back(
                {Kind::goal,
                 Extent::all,
                 o,
                 fmt::format("goal of {} is reached: {} of {} {}", named(o), used, goal, what),
                 fmt::format("raise the goal to continue{}",
                             by_command(facts_, fmt::format("ad-group update {} --goal {}/{}", o.id,
                                                            2 * std::max(used, goal), what))),
                 {}});
        }
    }

    const catalog::Campaign& campaign_;
    const catalog::AdGroup& group_;
    const Facts& facts_;
    std::vector<Cause>& causes_;
};

}  // namespace

void add_limit_causes(HeapNode& node, const catalog::Document& part,
                      const catalog::Campaign& campaign, const catalog::AdGroup& group,
                      const Facts& facts, std::vector<Cause>& causes) {
    if (part.placements.empty() || !limited(campaign, group)) {
        return;
    }
    const bool can_run = std::none_of(causes.begin(), causes.end(), [](const Cause& cause) {
        return cause.extent == Extent::all;
    });
    if (can_run && has_room(node, campaign, group, facts)) {
        return;
    }
    // What the others of the campaign spent is gone as well.
    Delivered delivered = delivered_by(group.id, facts);
    delivered.spend = spent_today(campaign, facts);
    if (campaign.budget && campaign.budget->type == BudgetType::daily) {
        delivered.spend = std::max(delivered.spend, campaign.budget->spent);
    }
    const Reason reason = refusal(part, delivered, facts.now);
    if (reason == Reason::cap) {
        LimitCauses(campaign, group, facts, causes).find();
    } else if (reason == Reason::floor) {
        add_floor(part, group, delivered, facts, causes);
    }
}

}  // namespace ads::diagnosis
