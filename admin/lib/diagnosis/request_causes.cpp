// What becomes of the requests that an ad group is aimed at. The engine is asked with
// many of them, drawn from the values that the catalog names, and one that it does not.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "core/decide/explain.hpp"
#include "ledger/ledger.hpp"
#include "lib/diagnosis/diagnosis.hpp"
#include "lib/diagnosis/wording.hpp"

namespace ads::diagnosis {

namespace {

constexpr uint32_t kProbes = 128;
constexpr uint64_t kSeed = 20'260'101;
constexpr size_t kKeysOfOne = 6;
constexpr uint32_t kFewOf = 10;             // drawn for fewer than one of so many requests
constexpr const char* kOther = "zz-other";  // a value that nobody targets

// A request that keeps its own texts.
struct Probe {
    std::string geo;
    std::string language;
    std::vector<std::pair<std::string, std::string>> texts;
    std::vector<KeyValue> keys;
    Request request;
};

class Prober {
public:
    Prober(HeapNode& node, const Vocabulary& vocabulary, const catalog::AdGroup& group,
           const Facts& facts, bool quick, std::vector<Cause>& causes)
        : node_(node),
          image_(node.image()),
          group_(group),
          facts_(facts),
          quick_(quick),
          causes_(causes),
          index_(image_.find_group(group.id)),
          vocabulary_(vocabulary),
          rng_(kSeed) {}

    void find() {
        const auto positions = image_.get(image_.groups()[index_].positions);
        std::vector<Outcome> outcomes;
        for (const GroupPosition& at : positions) {
            outcomes.push_back(ask(at));
        }
        if (!outcomes.empty() && !add_impossible(outcomes) && !add_unseen(positions)) {
            add_rivals(outcomes);
        }
    }

private:
    struct Outcome {
        uint32_t placement = 0;
        uint32_t asked = 0;  // that it could be served for, or could but for the page
        uint32_t won = 0;
        uint32_t higher = 0;                 // went to a higher tier
        uint32_t same = 0;                   // to another one of its tier
        std::map<uint32_t, uint32_t> by;     // and to whom
        std::map<Reason, uint32_t> refused;  // by targeting
    };

    const std::string& any(const std::vector<std::string>& list) {
        return list[rng_.below(list.size())];
    }

    std::string any_geo() {
        const auto& wanted = group_.targeting.geos;
        if (wanted.empty()) {
            const uint64_t draw = rng_.below(4);
            return draw == 0                               ? ""
                   : draw == 1 || vocabulary_.geos.empty() ? "ZZ"
                                                           : any(vocabulary_.geos);
        }
        std::string geo = any(wanted);
        // A part of it: US for US-CA.
        if (rng_.below(2) == 0 && geo.size() == 2) {
            std::vector<std::string> parts;
            for (const auto& other : vocabulary_.geos) {
                if (other.starts_with(geo + "-")) {
                    parts.push_back(other);
                }
            }
            if (!parts.empty()) {
                geo = any(parts);
            }
        }
        return geo;
    }

    std::string any_language() {
        const auto& wanted = group_.targeting.languages;
        if (!wanted.empty()) {
            return any(wanted);
        }
        return rng_.below(2) == 0 || vocabulary_.languages.empty() ? ""
                                                                   : any(vocabulary_.languages);
    }

    void add_keys(Probe& probe) {
        for (const auto& [name, values] : group_.targeting.keys) {
            probe.texts.emplace_back(name, any(values));
        }
        for (size_t i = 0; i < kKeysOfOne && !vocabulary_.keys.empty(); i++) {
            const auto& [name, value] = vocabulary_.keys[rng_.below(vocabulary_.keys.size())];
            const bool known =
                std::any_of(probe.texts.begin(), probe.texts.end(),
                            [&wanted = name](const auto& text) { return text.first == wanted; });
            if (!known && rng_.below(2) == 0) {
                probe.texts.emplace_back(name, rng_.below(2) == 0 ? value : kOther);
            }
        }
        for (const auto& [name, value] : probe.texts) {
            probe.keys.push_back({name, value});
        }
    }

    // One that its own targeting lets through, as far as it can.
    void draw(Probe& probe) {
        probe.geo = any_geo();
        probe.language = any_language();
        add_keys(probe);
        const auto& devices = group_.targeting.devices;
        const auto device = devices.empty() ? static_cast<Device>(rng_.below(kCount<Device>))
                                            : devices[rng_.below(devices.size())];
        probe.request = {.now = facts_.now * 1000,
                         .device = static_cast<uint8_t>(device),
                         .geo = probe.geo,
                         .language = probe.language,
                         .keys = probe.keys};
    }

    Reason targeting(const Probe& probe, const GroupPosition& at) {
        node_.view().patterns().start(probe.request.url);
        return why_not(node_.view(), probe.request, image_.placements()[at.placement], at.position);
    }

    Outcome ask(const GroupPosition& at) {
        Outcome outcome{.placement = at.placement};
        const Priority mine = image_.groups()[index_].priority;
        for (uint32_t i = 0; i < kProbes && !(quick_ && can_win(outcome)); i++) {
            Probe probe;
            draw(probe);
            const Reason reason = targeting(probe, at);
            // A page that a pattern matches cannot be made up: it counts as one.
            if (reason != Reason::none && reason != Reason::url) {
                outcome.refused[reason]++;
                continue;
            }
            Ledger ledger(node_.ledger_source(), probe.request, kNoAnonymousCap, nullptr);
            Page page;
            decide(node_.view(), probe.request, {&at.placement, 1}, page, rng_, ledger);
            const Pick& pick = page.picks()[0];
            outcome.asked++;
            if (!pick.filled()) {
                continue;
            }
            ledger.give_back(pick);
            if (pick.group == index_) {
                outcome.won++;
                continue;
            }
            const Priority other = image_.groups()[pick.group].priority;
            (other < mine ? outcome.higher : outcome.same)++;
            outcome.by[pick.group]++;
        }
        return outcome;
    }

    // ---- targeting ----

    // "targeting.geos"
    static std::string member_of(Reason reason) {
        return fmt::format("targeting.{}s", name_of(reason));
    }

    std::string wanted(Reason reason) const {
        const auto& targeting = group_.targeting;
        std::vector<std::string> list;
        if (reason == Reason::geo) {
            list = targeting.geos;
            for (const auto& geo : targeting.excluded_geos) {
                list.push_back("!" + geo);
            }
        } else if (reason == Reason::device) {
            for (const Device device : targeting.devices) {
                list.emplace_back(name_of(device));
            }
        } else if (reason == Reason::language) {
            list = targeting.languages;
        } else if (reason == Reason::key) {
            for (const auto& [name, values] : targeting.keys) {
                list.push_back(fmt::format("{}={}", name, fmt::join(values, "|")));
            }
        }
        return listed(list, 6);
    }

    // Takes away what refuses: "--geos none".
    std::string edit(Reason reason) const {
        const char* flag = reason == Reason::geo        ? "--geos"
                           : reason == Reason::device   ? "--devices"
                           : reason == Reason::language ? "--languages"
                           : reason == Reason::key      ? "--kv"
                                                        : "--include-url";
        return by_command(facts_, fmt::format("ad-group update {} {} none", group_.id, flag));
    }

    bool add_impossible(const std::vector<Outcome>& outcomes) {
        std::map<Reason, uint32_t> refused;
        for (const auto& outcome : outcomes) {
            if (outcome.asked > 0) {
                return false;
            }
            for (const auto& [reason, count] : outcome.refused) {
                refused[reason] += count;
            }
        }
        const auto most = std::max_element(refused.begin(), refused.end(),
                                           [](auto& a, auto& b) { return a.second < b.second; });
        if (most == refused.end() || !is_targeting(most->first)) {
            return false;
        }
        const Object o = object_of(group_);
        causes_.push_back({Kind::targeting,
                           Extent::all,
                           o,
                           fmt::format("no request can match {} of {}: {}", member_of(most->first),
                                       named(o), wanted(most->first)),
                           fmt::format("remove the contradiction{}", edit(most->first)),
                           {}});
        return true;
    }

    // Traffic of late, all of it to people that it is not aimed at.
    bool add_unseen(std::span<const GroupPosition> positions) {
        uint64_t ads = 0;
        std::map<Reason, uint64_t> refused;
        std::map<std::string, uint64_t> countries;
        std::map<std::string, uint64_t> devices;
        for (const Seen& seen : facts_.seen) {
            const auto position =
                std::find_if(positions.begin(), positions.end(), [&](const GroupPosition& s) {
                    return image_.text(image_.placements()[s.placement].slug) == seen.placement;
                });
            if (position == positions.end()) {
                continue;
            }
            ads += seen.ads;
            countries[seen.country.empty() ? "an unknown country" : seen.country] += seen.ads;
            devices[seen.device] += seen.ads;
            const Reason reason = targeting_of(seen, *position);
            if (reason == Reason::none || reason == Reason::url) {
                return false;
            }
            refused[reason] += seen.ads;
        }
        if (refused.empty()) {
            return false;
        }
        const auto most = std::max_element(refused.begin(), refused.end(),
                                           [](auto& a, auto& b) { return a.second < b.second; });
        const Object o = object_of(group_);
        causes_.push_back(
            {Kind::targeting,
             Extent::all,
             o,
             fmt::format(
                 "{} of {} is {}; the {} ads of the last 7 days in its placements went to {}",
                 member_of(most->first), named(o), wanted(most->first), ads,
                 shares(most->first == Reason::device ? devices : countries, ads)),
             fmt::format("widen it{}; if the values are right, check {}", edit(most->first),
                         most->first == Reason::device ? "ads_device" : "ads_geo"),
             {}});
        return true;
    }

    // All but country and device are as it wants them.
    Reason targeting_of(const Seen& seen, const GroupPosition& at) {
        Probe probe;
        draw(probe);
        probe.request.geo = probe.geo = seen.country;
        for (const auto& geo : group_.targeting.geos) {
            if (geo.starts_with(seen.country + "-")) {
                probe.request.geo = probe.geo = geo;  // regions are not recorded
            }
        }
        const auto device = ads::named<Device>(seen.device);
        probe.request.device = device ? static_cast<uint8_t>(*device) : kUnknownDevice;
        return targeting(probe, at);
    }

    static std::string shares(const std::map<std::string, uint64_t>& counts, uint64_t all) {
        std::vector<std::pair<uint64_t, std::string>> sorted;
        for (const auto& [name, count] : counts) {
            sorted.emplace_back(count, name);
        }
        std::sort(sorted.rbegin(), sorted.rend());
        std::vector<std::string> texts;
        for (const auto& [count, name] : sorted) {
            const double percent = 100.0 * static_cast<double>(count) / static_cast<double>(all);
            texts.push_back(percent < 0.5 ? fmt::format("{} (<1%)", name)
                                          : fmt::format("{} ({:.0f}%)", name, percent));
        }
        return listed(texts);
    }

    // ---- the others ----

    bool aimed() const {
        const auto& targeting = group_.targeting;
        return !targeting.devices.empty() || !targeting.geos.empty() ||
               !targeting.excluded_geos.empty() || !targeting.languages.empty() ||
               !targeting.keys.empty() || !targeting.include_urls.empty();
    }

    static bool has_limits(const Image& image, uint32_t index) {
        const GroupRecord& group = image.groups()[index];
        return group.impression_cap > 0 || group.click_cap > 0 || group.goal > 0 ||
               group.caps.count > 0 || image.campaign_of(group).has_budget;
    }

    Object object(uint32_t index) const {
        const GroupRecord& group = image_.groups()[index];
        return {ObjectKind::ad_group, std::to_string(group.id),
                std::string(image_.text(group.name))};
    }

    // Placements in which the same thing happens to its requests.
    struct Places {
        std::vector<const Outcome*> outcomes;
        std::vector<uint32_t> takers;  // of the requests, the one with the most first

        uint32_t sum(uint32_t Outcome::*count) const {
            uint32_t all = 0;
            for (const Outcome* outcome : outcomes) {
                all += outcome->*count;
            }
            return all;
        }
    };

    Places merged(std::vector<const Outcome*> outcomes) const {
        std::map<uint32_t, uint32_t> by;
        for (const Outcome* outcome : outcomes) {
            for (const auto& [group, count] : outcome->by) {
                by[group] += count;
            }
        }
        std::vector<uint32_t> list;
        for (const auto& [group, count] : by) {
            list.push_back(group);
        }
        std::stable_sort(list.begin(), list.end(),
                         [&](uint32_t a, uint32_t b) { return by.at(a) > by.at(b); });
        return {std::move(outcomes), std::move(list)};
    }

    std::vector<std::string> slugs(const Places& places) const {
        std::vector<std::string> list;
        for (const Outcome* outcome : places.outcomes) {
            list.emplace_back(image_.text(image_.placements()[outcome->placement].slug));
        }
        return list;
    }

    // "placement home-top", "placements home-top and side"
    static std::string in_words(const std::vector<std::string>& slugs) {
        return fmt::format("placement{} {}", slugs.size() == 1 ? "" : "s", listed(slugs));
    }

    bool limited(const Outcome& outcome) const {
        return std::any_of(outcome.by.begin(), outcome.by.end(),
                           [&](const auto& one) { return has_limits(image_, one.first); });
    }

    // What more requests cannot change: neither a tier nor a price keeps them all from it.
    bool can_win(const Outcome& outcome) const {
        return outcome.won > 0 ||
               (outcome.same > 0 && image_.placements()[outcome.placement].select != Select::price);
    }

    // Whether some of the requests can be its own.
    bool shared(const Outcome& outcome) const {
        const bool outbid = outcome.won == 0 && outcome.same > 0 &&
                            image_.placements()[outcome.placement].select == Select::price;
        return outcome.higher < outcome.asked && !outbid;
    }

    // One cause for all placements in which the same ad group, or the same tier, is in the way.
    void add_rivals(const std::vector<Outcome>& outcomes) {
        const bool everywhere =
            std::all_of(outcomes.begin(), outcomes.end(), [&](const Outcome& outcome) {
                return outcome.asked > 0 && !shared(outcome) && !limited(outcome);
            });
        using Rival = std::tuple<Kind, bool, uint32_t>;  // kind, limited, tier or ad group
        std::map<Rival, std::vector<const Outcome*>> rivals;
        for (const auto& outcome : outcomes) {
            if (outcome.asked == 0) {
                continue;
            }
            const auto add = [&](Kind kind, uint32_t which) {
                rivals[{kind, limited(outcome), which}].push_back(&outcome);
            };
            if (outcome.higher == outcome.asked) {
                const uint32_t first = merged({&outcome}).takers[0];
                add(Kind::tier, static_cast<uint32_t>(image_.groups()[first].priority));
            } else if (!group_.targeting.include_urls.empty()) {
                continue;  // no page of its own was asked for
            } else if (!shared(outcome)) {
                add(Kind::price, merged({&outcome}).takers[0]);
            } else if (!quick_ && outcome.won * kFewOf < outcome.asked && outcome.same > 0) {
                rivals[{Kind::share, true, 0}].push_back(&outcome);
            }
        }
        for (const auto& [rival, list] : rivals) {
            const Kind kind = std::get<Kind>(rival);
            // It is what house ads are for.
            const bool filler = kind == Kind::tier && group_.priority == Priority::house;
            const Extent extent = std::get<bool>(rival) || filler ? Extent::maybe
                                  : everywhere                    ? Extent::all
                                                                  : Extent::some;
            const Places places = merged(list);
            causes_.push_back(kind == Kind::tier    ? tier(places, extent)
                              : kind == Kind::price ? price(places, extent)
                                                    : share(places));
        }
    }

    Cause tier(const Places& places, Extent extent) const {
        const auto& list = places.takers;
        const GroupRecord& first = image_.groups()[list[0]];
        std::vector<std::string> names;
        for (const uint32_t index : list) {
            names.push_back(ads::diagnosis::named(object(index)).substr(3));  // without "ad "
        }
        const auto where = slugs(places);
        const Object o = object(list[0]);
        const std::string what =
            extent == Extent::maybe
                ? fmt::format("{} {} {} before {} in {}: it gets what their limits leave",
                              name_of(first.priority), listed(names),
                              names.size() == 1 ? "goes" : "go",
                              ads::diagnosis::named(object_of(group_)), in_words(where))
                : fmt::format("{} {} {} every request of {}{}", name_of(first.priority),
                              listed(names), names.size() == 1 ? "takes" : "take", in_words(where),
                              aimed() ? " that it targets" : "");
        return {Kind::tier,
                extent,
                o,
                what,
                group_.priority == Priority::house
                    ? std::string("nothing: a house ad fills what the others leave")
                    : fmt::format(
                          "give ad group {} a budget, a cap, {}or a narrower targeting, or "
                          "ad group {} the priority {}{}",
                          o.id, first.end == 0 ? "an end " : "", group_.id, name_of(first.priority),
                          by_command(facts_, fmt::format("ad-group update {} --priority {}",
                                                         group_.id, name_of(first.priority)))),
                where};
    }

    Cause price(const Places& places, Extent extent) const {
        const uint32_t first = places.takers[0];
        const auto where = slugs(places);
        const Object o = object(first);
        return {
            Kind::price,
            extent,
            o,
            fmt::format("{} {} each request to the highest price: {} pays {} per thousand, {} {}",
                        in_words(where), where.size() == 1 ? "gives" : "give",
                        ads::diagnosis::named(o),
                        money(image_.groups()[first].ecpm, facts_.currency),
                        ads::diagnosis::named(object_of(group_)),
                        money(image_.groups()[index_].ecpm, facts_.currency)),
            fmt::format(
                "raise the price of ad group {}, or let the placement select by weight{}",
                group_.id,
                by_command(facts_, fmt::format("placement update {} --select weight", where[0]))),
            where};
    }

    // Others of its tier are drawn far more often.
    Cause share(const Places& places) const {
        const auto where = slugs(places);
        const Object o = object_of(group_);
        const size_t others = places.takers.size();
        return {Kind::share,
                Extent::maybe,
                o,
                fmt::format("{} other ad {} drawn in {} as well: {} has weight {}, and is drawn "
                            "for about {:.0f}% of the requests",
                            others, others == 1 ? "group is" : "groups are", in_words(where),
                            ads::diagnosis::named(o), group_.weight,
                            100.0 * places.sum(&Outcome::won) / places.sum(&Outcome::asked)),
                "raise its priority, or its weight" +
                    by_command(facts_, fmt::format("ad-group update {} --weight {}", group_.id,
                                                   std::min<uint64_t>(
                                                       10 * std::max(1u, group_.weight), 1000))),
                where};
    }

    HeapNode& node_;
    const Image& image_;
    const catalog::AdGroup& group_;
    const Facts& facts_;
    const bool quick_;
    std::vector<Cause>& causes_;
    const uint32_t index_;
    const Vocabulary& vocabulary_;
    Rng rng_;
};

}  // namespace

Vocabulary::Vocabulary(const catalog::Document& document) {
    std::set<std::string> geo;
    std::set<std::string> language;
    std::set<std::pair<std::string, std::string>> key;
    for (const auto& campaign : document.campaigns) {
        for (const auto& group : campaign.ad_groups) {
            const auto& targeting = group.targeting;
            geo.insert(targeting.geos.begin(), targeting.geos.end());
            geo.insert(targeting.excluded_geos.begin(), targeting.excluded_geos.end());
            language.insert(targeting.languages.begin(), targeting.languages.end());
            for (const auto& [name, values] : targeting.keys) {
                for (const auto& value : values) {
                    key.emplace(name, value);
                }
            }
        }
    }
    geos.assign(geo.begin(), geo.end());
    languages.assign(language.begin(), language.end());
    keys.assign(key.begin(), key.end());
}

void add_request_causes(HeapNode& node, const Vocabulary& vocabulary, const catalog::AdGroup& group,
                        const Facts& facts, bool quick, std::vector<Cause>& causes) {
    Prober(node, vocabulary, group, facts, quick, causes).find();
}

}  // namespace ads::diagnosis
