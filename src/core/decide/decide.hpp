// The decision: which ads to serve for these placements now. Pure: the catalog, the request, the
// random numbers and the ledger are arguments.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>

#include "core/base/rng.hpp"
#include "core/decide/match.hpp"
#include "core/decide/page.hpp"
#include "core/decide/plan.hpp"
#include "core/image/view.hpp"

namespace ads {

// Grants serves and counts them.
template <class L>
concept DecisionLedger = requires(L ledger, uint32_t placement, uint32_t group, Pick& pick,
                                  Reason reason) {
    // The pacing coin: whether this group may be served at this moment.
    { ledger.toss(group) } -> std::same_as<bool>;
    // Whether the frequency caps allow this creative for the visitor.
    { ledger.allows(group, pick.creative) } -> std::same_as<bool>;
    // Takes budget, caps and frequency atomically, or returns the reason.
    { ledger.take(pick) } -> std::same_as<Reason>;
    // Undoes take(), because the ad's set could not be completed.
    {ledger.give_back(pick)};
    // The eCPM of this group, from its delivery.
    { ledger.ecpm(group) } -> std::convertible_to<MicroCents>;
    // The value that is compared with a floor: an optimistic eCPM while there is little evidence.
    { ledger.floor_ecpm(group) } -> std::convertible_to<MicroCents>;
    // A group that was not served although eligible, and the reason.
    {ledger.refused(placement, group, reason)};
};

// Draws survivors in [begin, end) by weight. Weights are summed per word that
// has any, so that a further draw walks few words, and not the survivors.
class Lottery {
public:
    // `sums` and `places` are scratch, with room for every word.
    Lottery(const Bits& survivors, uint32_t begin, uint32_t end, std::span<const uint32_t> weights,
            std::span<uint64_t> sums, std::span<uint32_t> places) noexcept;

    // A position; kNone if none is left.
    uint32_t draw(Rng& rng) noexcept;

    // Removes the last draw from the survivors.
    void remove_drawn() noexcept;

private:
    Bits survivors_;
    std::span<const uint32_t> weights_;
    std::span<uint64_t> sums_;    // of the words that follow
    std::span<uint32_t> places_;  // of those words
    uint32_t begin_;
    uint32_t end_;
    uint32_t count_ = 0;
    uint32_t entry_ = 0;  // drawn last
    uint32_t drawn_ = kNone;
    uint64_t total_ = 0;
};

// The variant of the group's experiment for this request, if one runs and all
// its variants fit the placement; kNone otherwise.
uint32_t pick_variant(const Image& image, const PlacementRecord& placement,
                      const GroupRecord& group, std::string_view session, Rng& rng,
                      Pick& pick) noexcept;

// A creative of the group for the placement, by weight, not one that is on the page.
// `allows(creative)` may refuse one. kNone if none is left.
template <class Allows>
uint32_t pick_creative(const Image& image, const PlacementRecord& placement,
                       const GroupRecord& group, const Page& page, Rng& rng,
                       Allows allows) noexcept {
    const auto creatives = image.creatives().subspan(group.first_creative, group.creatives);
    const auto weight = [&](uint32_t i) noexcept -> uint64_t {
        const auto& c = creatives[i];
        const uint32_t index = group.first_creative + i;
        return c.status == Status::active && placement.accepts(c) && !page.has_creative(index) &&
                       allows(index)
                   ? c.weight
                   : 0;
    };
    if (group.creatives == 1) {
        return weight(0) > 0 ? group.first_creative : kNone;
    }
    uint64_t total = 0;
    for (uint32_t i = 0; i < group.creatives; i++) {
        total += weight(i);
    }
    if (total == 0) {
        return kNone;
    }
    uint64_t ticket = rng.below(total);
    for (uint32_t i = 0; i < group.creatives; i++) {
        const uint64_t w = weight(i);
        if (ticket < w) {
            return group.first_creative + i;
        }
        ticket -= w;
    }
    return kNone;
}

// Fills a page. Per placement and tier: draw among the eligible groups, check pacing, take;
// a group that fails is removed and the draw repeated. Only served ads are taken.
template <DecisionLedger L>
class Decision {
public:
    Decision(View& view, const Request& request, Page& page, Rng& rng, L& ledger) noexcept
        : view_(view),
          image_(view.image()),
          request_(request),
          page_(page),
          rng_(rng),
          ledger_(ledger) {}

    void run(std::span<const uint32_t> placements) noexcept {
        view_.patterns().start(request_.url);
        const size_t first = page_.picks().size();
        for (const uint32_t placement : placements) {
            page_.add(placement);
        }
        left_ = placements.size();
        for (Pick& pick : page_.picks().subspan(first)) {
            fill(pick);
            left_--;
            if constexpr (kPlans) {
                ledger_.planned(pick);
            }
        }
        while (!kPlans && uses_sets() && give_back_unfilled()) {
        }
    }

    // Takes what a plan for the same placements has found, with a ledger that knows what is
    // granted. The page's own rules are applied again: it may have become another than planned.
    void carry_out(std::span<const uint32_t> placements, const Plan& plan) noexcept {
        const size_t first = page_.picks().size();
        for (const uint32_t placement : placements) {
            page_.add(placement);
        }
        left_ = placements.size();
        size_t begin = 0;
        for (size_t i = 0; i < placements.size(); i++) {
            const size_t end = plan.ends[i];
            take_first(std::span(plan.tries).subspan(begin, end - begin), page_.picks()[first + i]);
            begin = end;
            left_--;
        }
        view_.patterns().start(request_.url);
        // Where not all was granted, the page is another than the one that was planned for.
        again_ = true;
        for (Pick& pick : page_.picks().subspan(first)) {
            if (!pick.filled() && plan.asks > 0 && placements.size() > 1) {
                fill(pick);
            }
        }
        again_ = false;
        while (uses_sets() && give_back_unfilled()) {
        }
    }

private:
    // A ledger that makes a plan: `planned(pick)` ends a placement's, and says in `pick` what its
    // ad is most likely to be.
    static constexpr bool kPlans = requires(L ledger, Pick& pick) { ledger.planned(pick); };

    void take_first(std::span<const PlannedTry> tries, Pick& pick) noexcept {
        for (const PlannedTry& one : tries) {
            if (one.tossed) {
                ledger_.count_toss(one.pick.group);
            }
            Reason reason = one.reason;
            if (reason == Reason::none) {
                Pick candidate = one.pick;
                reason = rule_of_page(candidate.group);
                if (reason == Reason::none) {
                    reason = page_.has_creative(candidate.creative) ? Reason::page
                                                                    : ledger_.take(candidate);
                }
                if (reason == Reason::none) {
                    pick = candidate;
                    return;
                }
            }
            refused(pick.placement, one.pick.group, reason);
        }
    }

    // A placement that is filled again refuses the same groups: they are reported once.
    void refused(uint32_t placement, uint32_t group, Reason reason) noexcept {
        if (!again_) {
            ledger_.refused(placement, group, reason);
        }
    }

    bool uses_sets() const noexcept { return image_.head().together.count > 0; }

    bool fill(Pick& pick) noexcept {
        const PlacementRecord& placement = image_.placements()[pick.placement];
        const auto survivors = eligible(view_, request_, placement);
        if (placement.floor > 0) {
            apply_floor(pick.placement, survivors);
        }
        if (uses_sets() && fill_set_member(placement, survivors, pick)) {
            return true;
        }
        uint32_t begin = 0;
        for (const uint32_t end : placement.tier_end) {
            if (begin < end && fill_from(placement, survivors, begin, end, pick)) {
                return true;
            }
            begin = end;
        }
        return false;
    }

    bool fill_from(const PlacementRecord& placement, const Bits& survivors, uint32_t begin,
                   uint32_t end, Pick& pick) noexcept {
        const auto groups = image_.get(placement.groups);
        const auto try_all = [&](auto draw, auto remove) noexcept {
            for (uint32_t at = draw(); at != kNone; at = draw()) {
                const Reason reason = attempt(placement, groups[at], pick);
                if (reason == Reason::none) {
                    return true;
                }
                refused(pick.placement, groups[at], reason);
                remove(at);
            }
            return false;
        };
        if (placement.select == Select::price) {
            return try_all([&] { return draw_by_price(placement, survivors, begin, end); },
                           [&](uint32_t at) { survivors.clear(at); });
        }
        Lottery lottery(survivors, begin, end, image_.get(placement.weights), view_.sums(),
                        view_.list());
        return try_all([&] { return lottery.draw(rng_); },
                       [&](uint32_t) { lottery.remove_drawn(); });
    }

    // Why the ads on the page leave no room for the group.
    Reason rule_of_page(uint32_t index) noexcept {
        const GroupRecord& group = image_.groups()[index];
        if (page_.excludes(image_, group)) {
            return Reason::exclusive;
        }
        return group.together != kNone && !fits_set(group) ? Reason::together : Reason::none;
    }

    Reason attempt(const PlacementRecord& placement, uint32_t index, Pick& pick) noexcept {
        const GroupRecord& group = image_.groups()[index];
        if (const Reason reason = rule_of_page(index); reason != Reason::none) {
            return reason;
        }
        if (!ledger_.toss(index)) {
            return Reason::pacing;
        }
        Pick candidate{.placement = pick.placement, .group = index};
        const auto allows = [&](uint32_t creative) noexcept {
            return ledger_.allows(index, creative);
        };
        candidate.creative =
            pick_variant(image_, placement, group, request_.session, rng_, candidate);
        if (candidate.creative == kNone) {
            candidate.creative = pick_creative(image_, placement, group, page_, rng_, allows);
        } else if (page_.has_creative(candidate.creative)) {
            return Reason::page;
        } else if (!allows(candidate.creative)) {
            return Reason::frequency;
        }
        if (candidate.creative == kNone) {
            return why_no_creative(placement, group);
        }
        const Reason reason = ledger_.take(candidate);
        if (reason == Reason::none) {
            pick = candidate;
        }
        return reason;
    }

    // No creative: all are on the page already or at their frequency caps.
    Reason why_no_creative(const PlacementRecord& placement, const GroupRecord& group) noexcept {
        const uint32_t creative = pick_creative(image_, placement, group, page_, rng_,
                                                [](uint32_t) noexcept { return true; });
        return creative == kNone ? Reason::page : Reason::frequency;
    }

    // The group with the highest price; equal ones by weight.
    uint32_t draw_by_price(const PlacementRecord& placement, const Bits& survivors, uint32_t begin,
                           uint32_t end) noexcept {
        const auto groups = image_.get(placement.groups);
        const auto weights = image_.get(placement.weights);
        MicroCents best = -1;
        uint64_t total = 0;
        uint32_t chosen = kNone;
        each_bit(survivors, begin, end, [&](uint32_t at) {
            const MicroCents price = ecpm(groups[at]);
            if (price > best) {
                best = price;
                total = 0;
            }
            if (price == best) {
                // Reservoir sampling of one: each of the equals in proportion to its weight.
                total += weights[at];
                if (total == weights[at] || rng_.below(total) < weights[at]) {
                    chosen = at;
                }
            }
            return true;
        });
        return chosen;
    }

    MicroCents ecpm(uint32_t group) noexcept {
        const GroupRecord& record = image_.groups()[group];
        return record.estimated() ? ledger_.ecpm(group) : record.ecpm;
    }

    // Groups with a fixed price below the floor have no position; the others are known only
    // now.
    void apply_floor(uint32_t index, const Bits& survivors) noexcept {
        const PlacementRecord& placement = image_.placements()[index];
        const auto groups = image_.get(placement.groups);
        each_bit(survivors, 0, placement.groups.count, [&](uint32_t at) {
            if (image_.groups()[groups[at]].estimated() &&
                ledger_.floor_ecpm(groups[at]) < placement.floor) {
                survivors.clear(at);
                refused(index, groups[at], Reason::floor);
            }
            return true;
        });
    }

    // ---- sets, served whole or not at all ----

    std::span<const uint32_t> members(uint32_t set) const noexcept {
        return image_.get(image_.get(image_.head().together)[set].groups);
    }

    size_t missing(uint32_t set) const noexcept {
        size_t n = 0;
        for (const uint32_t group : members(set)) {
            n += page_.has_group(group) ? 0 : 1;
        }
        return n;
    }

    bool banned(uint32_t set) const noexcept {
        return std::find(banned_.begin(), banned_.end(), set) != banned_.end();
    }

    // Whether the rest of the set can still be served, and the group is not on the page.
    bool fits_set(const GroupRecord& group) const noexcept {
        const auto index = static_cast<uint32_t>(&group - image_.groups().data());
        return !banned(group.together) && !page_.has_group(index) &&
               missing(group.together) <= left_;
    }

    bool begun(uint32_t set) const noexcept {
        const size_t open = missing(set);
        return open > 0 && open < members(set).size();
    }

    // Once one group of a set is on the page, the others are drawn first.
    bool fill_set_member(const PlacementRecord& placement, const Bits& survivors,
                         Pick& pick) noexcept {
        const auto groups = image_.get(placement.groups);
        const auto wanted = view_.spare(placement);
        bool any = false;
        std::ranges::fill(wanted, 0);
        each_bit(survivors, 0, placement.groups.count, [&](uint32_t at) {
            const uint32_t set = image_.groups()[groups[at]].together;
            if (set != kNone && !banned(set) && begun(set) && !page_.has_group(groups[at])) {
                wanted[at / 64] |= uint64_t{1} << (at % 64);
                survivors.clear(at);  // refused here, it is not drawn again below
                any = true;
            }
            return true;
        });
        return any &&
               fill_from(placement, {wanted, survivors.filled}, 0, placement.groups.count, pick);
    }

    // Removes incomplete sets and fills their placements without them. False if there were
    // none.
    bool give_back_unfilled() noexcept {
        uint32_t set = kNone;
        for (const auto& pick : page_.picks()) {
            if (pick.filled() && image_.groups()[pick.group].together != kNone &&
                begun(image_.groups()[pick.group].together)) {
                set = image_.groups()[pick.group].together;
                break;
            }
        }
        if (set == kNone || !banned_.push_back(set)) {
            return false;
        }
        // A placement may have remained empty because of the set.
        FixedVector<Pick*, kMaxPage> open;
        for (Pick& pick : page_.picks()) {
            if (pick.filled() && image_.groups()[pick.group].together == set) {
                ledger_.give_back(pick);
                refused(pick.placement, pick.group, Reason::together);
                pick = {.placement = pick.placement};
            }
            if (!pick.filled()) {
                open.push_back(&pick);
            }
        }
        left_ = open.size();
        again_ = true;
        for (Pick* pick : open) {
            fill(*pick);
            left_--;
        }
        again_ = false;
        return true;
    }

    View& view_;
    const Image& image_;
    const Request& request_;
    Page& page_;
    Rng& rng_;
    L& ledger_;
    bool again_ = false;                      // refilling removed placements
    size_t left_ = 0;                         // placements still to fill, this one included
    FixedVector<uint32_t, kMaxPage> banned_;  // sets that cannot be filled
};

template <DecisionLedger L>
void decide(View& view, const Request& request, std::span<const uint32_t> placements, Page& page,
            Rng& rng, L& ledger) noexcept {
    Decision<L>(view, request, page, rng, ledger).run(placements);
}

}  // namespace ads
