// What the catalog alone says: statuses, flights, schedules, weights, sizes and floors.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/catalog/calendar.hpp"
#include "core/catalog/compile.hpp"
#include "core/catalog/terms.hpp"
#include "core/image/view.hpp"
#include "lib/diagnosis/diagnosis.hpp"
#include "lib/diagnosis/wording.hpp"

namespace ads::diagnosis {

namespace {

using catalog::can_run;

bool runs(const catalog::Creative& creative) {
    return creative.status == Status::active && creative.weight > 0;
}

bool size_fits(const catalog::Placement& placement, const catalog::Creative& creative) {
    return placement.width == 0 || creative.width == 0 ||
           (placement.width == creative.width && placement.height == creative.height);
}

bool type_fits(const catalog::Placement& placement, const catalog::Creative& creative) {
    return placement.types.empty() || std::find(placement.types.begin(), placement.types.end(),
                                                creative.type) != placement.types.end();
}

std::string command_of(const Object& object) {
    std::string command(name_of(object.kind));
    std::replace(command.begin(), command.end(), '_', '-');
    return command;
}

class CatalogCauses {
public:
    CatalogCauses(const catalog::Document& document, const catalog::Campaign& campaign,
                  const catalog::AdGroup& group, const Facts& facts, std::vector<Cause>& causes,
                  catalog::Document& part)
        : facts_(facts),
          causes_(causes),
          part_(part),
          document_(document),
          explicit_(!group.targeting.placements.empty()) {
        part_ = {};
        for (const auto& placement : document.placements) {
            const auto& wanted = group.targeting.placements;
            if (!explicit_ ||
                std::find(wanted.begin(), wanted.end(), placement.id) != wanted.end()) {
                part_.placements.push_back(placement);
            }
        }
        auto& mine = part_.campaigns.emplace_back();
        mine.id = campaign.id;
        mine.name = campaign.name;
        mine.advertiser = campaign.advertiser;
        mine.status = campaign.status;
        mine.timezone = campaign.timezone;
        mine.start = campaign.start;
        mine.end = campaign.end;
        mine.budget = campaign.budget;
        mine.ad_groups.push_back(group);
        mine.ad_groups[0].together.clear();
    }

    void find() {
        for (auto& placement : part_.placements) {
            if (placement.status != PlacementStatus::active) {
                paused_.insert(placement.id);
                placement.status = PlacementStatus::active;
            }
        }
        if (part_.placements.empty()) {
            causes_.push_back({Kind::placement,
                               Extent::all,
                               object_of(group()),
                               "the catalog has no placement",
                               remedy(facts_, "create one: nginx-ads placement create home-top",
                                      "add one to \"placements\""),
                               {}});
            return;
        }
        find_withheld_tags();
        // Each round mends one reason for good: there are fewer of them than rounds.
        for (size_t round = 0; round < kCount<Reason> && mend(everywhere()); round++) {
        }
        find_misfits();
        part_.campaigns[0].ad_groups[0].targeting = {};
        for (const auto& placement : part_.placements) {
            part_.campaigns[0].ad_groups[0].targeting.placements.push_back(placement.id);
        }
    }

private:
    catalog::Campaign& campaign() { return part_.campaigns[0]; }
    catalog::AdGroup& group() { return part_.campaigns[0].ad_groups[0]; }

    // What the engine says of each placement, in the order of the document.
    std::vector<Reason> reasons() const {
        const std::vector<char> bytes = catalog::lay_out(part_, 0, facts_.now);
        View view;
        view.bind(Image(bytes.data()));
        view.advance(facts_.now);
        std::vector<Reason> list;
        for (const auto& placement : view.image().placements()) {
            const auto absent = view.image().get(placement.absent);
            if (!absent.empty()) {
                list.push_back(absent[0].reason);
            } else if ((view.open(placement)[0] & 1) == 0) {
                list.push_back(view.why_closed(view.image().groups()[0], facts_.now));
            } else {
                list.push_back(Reason::none);
            }
        }
        return list;
    }

    // The first reason that does not depend on the placement.
    Reason everywhere() const {
        for (const Reason reason : reasons()) {
            if (reason == Reason::status || reason == Reason::flight ||
                reason == Reason::schedule || reason == Reason::weight) {
                return reason;
            }
        }
        return Reason::none;
    }

    bool mend(Reason reason) {
        switch (reason) {
            case Reason::status:
                return mend_status();
            case Reason::flight:
                return mend_flight();
            case Reason::schedule:
                return mend_schedule();
            case Reason::weight:
                add(Kind::weight, group(), "has weight 0, so it is never drawn",
                    "set a weight of 1 or more" +
                        by_command(facts_,
                                   fmt::format("ad-group update {} --weight 1", group().id)));
                group().weight = 1;
                return true;
            default:
                return false;
        }
    }

    template <class T>
    void add(Kind kind, const T& object, const std::string& what, const std::string& todo) {
        const Object o = object_of(object);
        causes_.push_back({kind, Extent::all, o, fmt::format("{} {}", named(o), what), todo, {}});
    }

    // "creative 31 is a tag, which the node does not show: …"
    void add_withheld(const catalog::Creative& creative, Extent extent) {
        const std::string& advertiser = campaign().advertiser;
        const std::string named_one =
            advertiser.empty() ? "its campaign has no advertiser"
            : facts_.tags.any_shown
                ? fmt::format("its ads_frame_origin does not name advertiser \"{}\"", advertiser)
                : "it has no ads_frame_origin";
        const std::string parameter = fmt::format("\"advertiser={}\"", advertiser);
        add(Kind::creative, creative,
            fmt::format("is a tag, which the node does not show: {}", named_one),
            advertiser.empty() ? "give the campaign an advertiser that ads_frame_origin names"
            : facts_.tags.any_shown
                ? fmt::format("add {} to ads_frame_origin in nginx.conf", parameter)
                : fmt::format("add ads_frame_origin to nginx.conf: an origin of its own, and {}",
                              parameter));
        causes_.back().extent = extent;
    }

    bool is_withheld(const catalog::Creative& creative) const {
        return facts_.tags.creatives.contains(creative.id);
    }

    // Beside others that are shown; of those alone, see mend_status().
    void find_withheld_tags() {
        const auto& creatives = group().creatives;
        if (std::none_of(creatives.begin(), creatives.end(), runs)) {
            return;
        }
        for (const auto& creative : creatives) {
            if (is_withheld(creative)) {
                add_withheld(creative, Extent::some);
            }
        }
    }

    // "ad group 12 is paused since 2026-11-18T10:00:00Z by alice"
    template <class T>
    void add_status(const T& object) {
        const Object o = object_of(object);
        std::string what = object.status == Status::draft
                               ? "is a draft"
                               : fmt::format("is {}", name_of(object.status));
        const auto change =
            facts_.history ? facts_.history(o.kind, object.id, object.status) : std::nullopt;
        if (change) {
            what += fmt::format(" since {}", local_time(change->at, campaign().timezone));
            what += change->by.empty() ? "" : fmt::format(" by {}", change->by);
            what += change->why.empty() ? "" : fmt::format(": {}", change->why);
        }
        if (change && !change->advertiser.empty()) {
            const Object advertiser{ObjectKind::advertiser, change->advertiser, {}};
            causes_.push_back(
                {Kind::status,
                 Extent::all,
                 advertiser,
                 fmt::format("{} {}, and {} with it", named(advertiser), what, named(o)),
                 fmt::format("resume it: nginx-ads advertiser resume \"{}\"", advertiser.id),
                 {}});
            return;
        }
        const bool spent =
            change && !change->why.empty() && o.kind == ObjectKind::campaign && campaign().budget;
        const std::string command =
            spent ? "raise its budget, and the scheduler resumes it: nginx-ads " +
                        raised_budget(campaign())
            : object.status == Status::paused
                ? fmt::format("resume it: nginx-ads {} resume {}", command_of(o), o.id)
            : object.status == Status::draft
                ? fmt::format("start it: nginx-ads {} update {} --status active", command_of(o),
                              o.id)
                : fmt::format("it stays {}: clone it, nginx-ads {} clone {}",
                              name_of(object.status), command_of(o), o.id);
        add(Kind::status, object, what,
            remedy(facts_, command, "set its \"status\" to \"active\""));
    }

    bool mend_status() {
        const size_t before = causes_.size();
        if (!can_run(campaign().status)) {
            add_status(campaign());
            campaign().status = Status::active;
        }
        if (!can_run(group().status)) {
            add_status(group());
            group().status = Status::active;
        }
        auto& creatives = group().creatives;
        if (creatives.empty()) {
            add(Kind::status, group(), "has no creative",
                remedy(facts_,
                       fmt::format("add one: nginx-ads creative create --ad-group {} --image FILE "
                                   "--click-url URL",
                                   group().id),
                       "add one to its \"creatives\""));
            // One that fits everywhere, to see what else there is.
            creatives.push_back({.id = 1,
                                 .type = part_.placements[0].types.empty()
                                             ? CreativeType::html
                                             : part_.placements[0].types[0],
                                 .content = "{}",
                                 .click_url = "https://example.com/"});
            return true;
        }
        if (std::none_of(creatives.begin(), creatives.end(), runs)) {
            for (auto& creative : creatives) {
                if (is_withheld(creative)) {
                    add_withheld(creative, Extent::all);
                } else if (creative.status != Status::active) {
                    if (creative.status != Status::archived || creatives.size() == 1) {
                        add_status(creative);
                    }
                } else {
                    add(Kind::weight, creative, "has weight 0, so it is never drawn",
                        "set a weight of 1 or more" +
                            by_command(facts_,
                                       fmt::format("creative update {} --weight 1", creative.id)));
                }
                creative.status = Status::active;
                creative.weight = std::max<uint32_t>(creative.weight, 1);
            }
            if (causes_.size() == before) {
                add(Kind::status, group(), "has only archived creatives",
                    remedy(
                        facts_,
                        fmt::format("add one: nginx-ads creative create --ad-group {} --image FILE "
                                    "--click-url URL",
                                    group().id),
                        "add one to its \"creatives\""));
            }
        }
        return causes_.size() > before;
    }

    template <class T>
    bool mend_dates(T& object) {
        const size_t before = causes_.size();
        const std::string& zone = campaign().timezone;
        constexpr int kMonth = 30;
        const auto edit = [&](const char* flag, const std::string& day) {
            return facts_.managed ? fmt::format("nginx-ads {} update {} {} {}",
                                                command_of(object_of(object)), object.id, flag, day)
                                  : std::string("edit it in the catalog");
        };
        if (object.start && *object.start > facts_.now) {
            add(Kind::flight, object,
                fmt::format("has not started: it begins {}",
                            local_edge(*object.start, zone, false)),
                fmt::format("wait, or set an earlier start: {}",
                            edit("--start", day_from(facts_.now, 0, zone))));
            object.start.reset();
        }
        if (object.end && *object.end <= facts_.now) {
            add(Kind::flight, object, fmt::format("ended {}", local_edge(*object.end, zone, true)),
                fmt::format("set a later end: {}",
                            edit("--end", day_from(facts_.now, kMonth, zone))));
            object.end.reset();
        }
        return causes_.size() > before;
    }

    bool mend_flight() {
        const bool of_campaign = mend_dates(campaign());
        return mend_dates(group()) || of_campaign;
    }

    bool mend_schedule() {
        const std::string& zone = campaign().timezone;
        const auto open = catalog::open_intervals(zone, group().targeting.schedule,
                                                  catalog::later(campaign().start, group().start),
                                                  catalog::sooner(campaign().end, group().end),
                                                  facts_.now, facts_.now + catalog::kHorizon);
        const auto next = std::find_if(open.begin(), open.end(), [&](const auto& interval) {
            return interval.first > facts_.now;
        });
        add(Kind::schedule, group(),
            fmt::format("is outside its schedule: it is {} in {}, and it {}",
                        local_hour(facts_.now, zone), zone,
                        next == open.end()
                            ? std::string("does not open again before its end")
                            : fmt::format("opens {}", local_time(next->first, zone))),
            "wait, or open targeting.schedule at this hour" +
                by_command(facts_, fmt::format("ad-group update {} --hours none", group().id)));
        const bool any = !group().targeting.schedule.empty();
        group().targeting.schedule.clear();
        return any;
    }

    // ---- placements in which it can never be ----

    void find_misfits() {
        const std::vector<Reason> found = reasons();
        std::vector<catalog::Placement> fitting;
        std::vector<const catalog::Placement*> creative;
        std::vector<const catalog::Placement*> floor;
        std::vector<const catalog::Placement*> paused;
        for (size_t p = 0; p < found.size(); p++) {
            if (paused_.contains(part_.placements[p].id)) {
                paused.push_back(&part_.placements[p]);
            } else if (found[p] == Reason::creative) {
                creative.push_back(&part_.placements[p]);
            } else if (found[p] == Reason::floor) {
                floor.push_back(&part_.placements[p]);
            } else {
                fitting.push_back(part_.placements[p]);
            }
        }
        // One that is aimed at no placement in particular need not fit them all.
        const Extent extent = fitting.empty() ? Extent::all : Extent::some;
        if (extent == Extent::all || explicit_) {
            add_creative_cause(creative, extent);
        }
        if (extent == Extent::all || explicit_) {
            add_paused_causes(paused, extent);
        }
        for (const auto* placement : floor) {
            add_floor_cause(*placement, extent);
        }
        part_.placements = std::move(fitting);
    }

    // "creative 31 is 320×50, placement home-top is 728×90"
    std::string misfit(const catalog::Placement& placement) {
        std::vector<std::string> creatives;
        bool size_differs = false;
        bool type_differs = false;
        for (const auto& creative : group().creatives) {
            if (!runs(creative)) {
                continue;
            }
            const bool by_size = !size_fits(placement, creative);
            size_differs = size_differs || by_size;
            type_differs = type_differs || !by_size;
            creatives.push_back(fmt::format("{} is {}", named(object_of(creative)),
                                            by_size ? size(creative.width, creative.height)
                                                    : std::string(name_of(creative.type))));
        }
        std::string wanted;
        if (size_differs) {
            wanted = fmt::format("is {}", size(placement.width, placement.height));
        }
        if (type_differs) {
            wanted +=
                fmt::format("{}takes only {}", size_differs ? " and " : "", types(placement.types));
        }
        return fmt::format("{}, {} {}", listed(creatives), named(object_of(placement)), wanted);
    }

    void add_creative_cause(const std::vector<const catalog::Placement*>& placements,
                            Extent extent) {
        if (placements.empty()) {
            return;
        }
        const auto& first = *placements[0];
        Cause cause{Kind::creative, extent, {}, misfit(first), {}, {}};
        const auto shown = std::find_if(group().creatives.begin(), group().creatives.end(), runs);
        cause.object = object_of(*shown);
        for (const auto* placement : placements) {
            cause.placements.push_back(placement->id);
        }
        if (placements.size() > 1) {
            cause.what +=
                fmt::format(", and none fits {}",
                            listed({cause.placements.begin() + 1, cause.placements.end()}));
        }
        std::vector<std::string> others;
        for (const bool exact : {true, false}) {
            for (const auto& placement : document_.placements) {
                if (size_fits(placement, *shown) && type_fits(placement, *shown) &&
                    exact == (placement.width > 0 && placement.width == shown->width)) {
                    others.push_back(placement.id);
                }
            }
        }
        const std::string wanted =
            first.types.empty() ? std::string() : fmt::format(" ({})", types(first.types));
        cause.remedy = fmt::format(
            "add a creative of {}{} to ad group {}{}", size(first.width, first.height), wanted,
            group().id,
            others.empty() ? ""
                           : fmt::format(", or target {}, which it fits", listed(others, 3, "or")));
        causes_.push_back(std::move(cause));
    }

    void add_paused_causes(const std::vector<const catalog::Placement*>& placements,
                           Extent extent) {
        for (const auto* placement : placements) {
            const Object o = object_of(*placement);
            causes_.push_back(
                {Kind::placement,
                 extent,
                 o,
                 fmt::format("{} is paused", named(o)),
                 remedy(facts_, fmt::format("resume it: nginx-ads placement resume {}", o.id),
                        "set its \"status\" to \"active\""),
                 {placement->id}});
        }
    }

    void add_floor_cause(const catalog::Placement& placement, Extent extent) {
        const Object o = object_of(placement);
        Cause cause{Kind::floor, extent, o, {}, {}, {placement.id}};
        const MicroCents mine = catalog::ecpm(group().price);
        const PriceModel model = group().price.model;
        cause.what = fmt::format("the eCPM of {} is {}, the floor of {} is {}",
                                 named(object_of(group())), money(mine, facts_.currency), named(o),
                                 money(placement.floor, facts_.currency));
        cause.remedy = fmt::format(
            "raise the price to {} per thousand{}, or lower the floor{}",
            money(placement.floor, facts_.currency),
            by_command(facts_, fmt::format("ad-group update {} {}", group().id,
                                           price_flag(model, model == PriceModel::flat
                                                                 ? placement.floor / 1000
                                                                 : placement.floor))),
            by_command(facts_, fmt::format("placement update {} --floor {}", o.id,
                                           flag_amount(mine / kMicroPerCent * kMicroPerCent))));
        causes_.push_back(std::move(cause));
    }

    const Facts& facts_;
    std::vector<Cause>& causes_;
    catalog::Document& part_;
    const catalog::Document& document_;
    const bool explicit_;
    std::set<std::string> paused_;
};

}  // namespace

void add_catalog_causes(const catalog::Document& document, const catalog::Campaign& campaign,
                        const catalog::AdGroup& group, const Facts& facts,
                        std::vector<Cause>& causes, catalog::Document& part) {
    CatalogCauses(document, campaign, group, facts, causes, part).find();
}

}  // namespace ads::diagnosis
