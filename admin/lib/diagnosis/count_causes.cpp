// What the counts of a running node add to the catalog.
#include <fmt/format.h>

#include <algorithm>

#include "lib/diagnosis/diagnosis.hpp"
#include "lib/diagnosis/wording.hpp"

namespace ads::diagnosis {

namespace {

constexpr double kMost = 0.5;  // of what was counted: then a reason is named

// By whom it is asked for: what is sampled counts requests, the rest counts draws.
bool by_visitor(Reason reason) {
    return reason >= Reason::device && reason <= Reason::url;
}

std::string number(const Refused& refused) {
    return fmt::format("{}{}", refused.estimate ? "about " : "", refused.count);
}

std::string period(const catalog::FrequencyCap& cap) {
    switch (cap.unit) {
        case CapUnit::day:
            return "a day";
        case CapUnit::lifetime:
            return "in total";
        case CapUnit::rolling:
            break;
    }
    return cap.seconds % 86'400 == 0 ? fmt::format("in {} days", cap.seconds / 86'400)
           : cap.seconds % 3600 == 0 ? fmt::format("in {} hours", cap.seconds / 3600)
           : cap.seconds % 60 == 0   ? fmt::format("in {} minutes", cap.seconds / 60)
                                     : fmt::format("in {} seconds", cap.seconds);
}

std::string caps(const catalog::AdGroup& group) {
    std::vector<std::string> list;
    for (const auto& cap : group.frequency_caps) {
        list.push_back(fmt::format("{} {}", cap.count, period(cap)));
    }
    return list.empty() ? "that of its campaign" : listed(list);
}

// " --cap 6/day --cap 20/7d": twice as often.
std::string raised_caps(const catalog::AdGroup& group) {
    std::string flags;
    for (const auto& cap : group.frequency_caps) {
        flags +=
            fmt::format(" --cap {}/{}{}", uint64_t{2} * cap.count,
                        cap.unit == CapUnit::day        ? std::string("day")
                        : cap.unit == CapUnit::lifetime ? std::string("lifetime")
                                                        : fmt::format("{}s", cap.seconds),
                        cap.level == CapLevel::ad_group ? std::string()
                                                        : fmt::format("/{}", name_of(cap.level)));
    }
    return flags;
}

std::string member_of(Reason reason) {
    return fmt::format("targeting.{}s", name_of(reason));
}

// Whether it was the shared cap of visitors without consent that refused, rather than that of
// a visitor: most serves were theirs, or there were none, by which nobody can have seen it.
bool refused_anonymous(const catalog::AdGroup& group, const Counts& counts) {
    const bool daily = !group.frequency_caps.empty() &&
                       std::all_of(group.frequency_caps.begin(), group.frequency_caps.end(),
                                   [](const auto& cap) { return cap.unit == CapUnit::day; });
    return counts.serves == 0 ? daily : 2 * counts.anonymous >= counts.serves;
}

}  // namespace

void add_count_causes(const catalog::AdGroup& group, const Counts& counts, const Facts& facts,
                      bool behind, std::vector<Cause>& causes) {
    const Object o = object_of(group);
    uint64_t visitors = 0;
    uint64_t draws = counts.serves;
    for (const auto& refused : counts.refused) {
        if (refused.reason && by_visitor(*refused.reason)) {
            visitors += refused.count;
        } else if (refused.reason && !is_targeting(*refused.reason)) {
            draws += refused.count;
        }
    }
    const auto share = [&](uint64_t count) {
        return draws == 0 ? 0 : static_cast<double>(count) / static_cast<double>(draws);
    };
    for (const auto& refused : counts.refused) {
        if (!refused.reason) {
            continue;
        }
        const auto add = [&](Kind kind, Extent extent, std::string what, std::string remedy) {
            causes.push_back({kind, extent, o, std::move(what), std::move(remedy), {}});
        };
        if (by_visitor(*refused.reason) && draws == 0) {
            add(Kind::targeting, refused.count == visitors ? Extent::all : Extent::some,
                fmt::format(
                    "{} of {} excluded it from {} of today's requests, and it was never served",
                    member_of(*refused.reason), named(o), number(refused)),
                "widen it; if the values are right, check their source on the node: ads_geo, "
                "ads_device, ads_language, ads_key, or url=");
            if (*refused.reason == Reason::key) {
                add(Kind::consent, Extent::maybe,
                    fmt::format("{} of {} may require a key that is used only with consent",
                                member_of(Reason::key), named(o)),
                    "check which keys are \"personal\" in ads_key, and the consent of visitors: "
                    "nginx-ads "
                    "consent check");
            }
        } else if (*refused.reason == Reason::frequency && share(refused.count) >= kMost &&
                   refused_anonymous(group, counts)) {
            add(Kind::consent, Extent::some,
                fmt::format("{} has a frequency cap, so visitors without consent share "
                            "ads_anonymous_cap: it served {} of them today and refused {}",
                            named(o), counts.anonymous, number(refused)),
                "raise ads_anonymous_cap in nginx.conf; if visitors do consent, check ads_consent "
                "and ads_session_cookie: nginx-ads consent check");
        } else if (*refused.reason == Reason::frequency && share(refused.count) >= kMost) {
            add(Kind::frequency, Extent::some,
                fmt::format("the frequency cap of {}, {}, was reached for {:.0f}% of the requests "
                            "that it was drawn for today",
                            named(o), caps(group), 100 * share(refused.count)),
                fmt::format("raise the cap, unless these are few visitors with many requests{}",
                            group.frequency_caps.empty()
                                ? std::string()
                                : by_command(facts, fmt::format("ad-group update {}{}", group.id,
                                                                raised_caps(group)))));
        } else if ((*refused.reason == Reason::pacing ||
                    (*refused.reason == Reason::cap && facts.now > 0)) &&
                   share(refused.count) >= kMost) {
            // By the catalog no cap is reached: what it refuses is more than is due by now.
            add(Kind::pacing, behind ? Extent::some : Extent::maybe,
                fmt::format("the pacing of {} held it back for {:.0f}% of the requests that it was "
                            "drawn for today{}{}",
                            named(o), 100 * share(refused.count),
                            counts.delivery ? fmt::format(": it has delivered {:.0f}% of today's "
                                                          "plan by now",
                                                          100 * *counts.delivery)
                                            : std::string(),
                            behind ? ", though it is behind on its flight" : ""),
                fmt::format(
                    "that is how it lasts the whole day; or deliver as fast as possible{}",
                    facts.managed
                        ? fmt::format(": nginx-ads ad-group update {} --strategy asap", group.id)
                        : std::string(": set its \"pacing.strategy\" to \"asap\"")));
        } else if (*refused.reason == Reason::together && share(refused.count) >= kMost) {
            add(Kind::together, Extent::some,
                fmt::format(
                    "the set \"{}\" of {} could not be filled as a whole for {:.0f}% of the "
                    "pages that it was drawn for today",
                    group.together, named(o), 100 * share(refused.count)),
                "each ad group of the set requires its own placement on the page");
        }
    }
}

}  // namespace ads::diagnosis
