#include "lib/decide/tried_request.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>

#include "core/catalog/formats.hpp"
#include "core/decide/decide.hpp"
#include "lib/base/json.hpp"
#include "lib/base/nearest.hpp"
#include "lib/base/text.hpp"

namespace ads::admin {

TriedRequest::TriedRequest(CatalogSource source, const std::map<Id, Delivered>& delivered,
                           Question question)
    : question_(std::move(question)), node_(std::move(source.document), question_.seed) {
    const RequestFile& asked = question_.request;
    node_.publish_delivered(delivered, question_.now);
    node_.view().stop(source.stops.apply(image()).groups);
    find_placements(source.name);
    for (const auto& [name, value] : asked.keys) {
        keys_.push_back({name, value});
    }
    request_ = {.now = question_.now * 1000,
                .device = static_cast<uint8_t>(asked.device),
                .geo = asked.geo,
                .language = asked.language,
                .url = asked.url,
                .keys = keys_,
                .session = asked.session};
    draw();
}

void TriedRequest::find_placements(const std::string& catalog) {
    std::vector<std::string> known;
    for (const auto& placement : image().placements()) {
        known.emplace_back(image().text(placement.slug));
    }
    for (const auto& slug : question_.request.placements) {
        const uint32_t index = image().find_placement(slug);
        if (index != kNone) {
            placements_.push_back(index);
            continue;
        }
        const std::string best = nearest(slug, known);
        throw Failure(
            Exit::bad_input,
            fmt::format(
                "{}there is no placement \"{}\" in {}{}",
                question_.request_name.empty() ? "" : question_.request_name + ": ",
                printable(slug), catalog,
                best.empty() ? std::string(".") : fmt::format(": did you mean \"{}\"?", best)));
    }
}

// Every page begins with nothing served: the ads of the one before are given back.
void TriedRequest::draw() {
    std::map<std::pair<uint32_t, uint32_t>, Reason> refused;  // by placement and group
    std::vector<std::map<Drawn, uint64_t>> tallies(placements_.size());
    std::vector<Refusal> refusals;
    Ledger ledger(node_.ledger_source(), request_, kNoAnonymousCap, &refusals);
    Page page;
    for (uint64_t i = 0; i < question_.repeat; i++) {
        page = {};
        refusals.clear();
        decide(node_.view(), request_, placements_, page, node_.rng(), ledger);
        for (size_t p = 0; p < placements_.size(); p++) {
            const Pick& pick = page.picks()[p];
            tallies[p][{pick.group, pick.creative, pick.experiment}]++;
            if (pick.filled()) {
                ledger.give_back(pick);
            }
        }
        for (const auto& refusal : refusals) {
            refused[{refusal.placement, refusal.group}] = refusal.reason;
        }
    }
    refusals.clear();
    for (const auto& [where, reason] : refused) {
        refusals.push_back({where.first, where.second, reason});
    }
    for (size_t p = 0; p < placements_.size(); p++) {
        outcomes_.push_back(outcome(page.picks()[p], tallies[p], refusals));
    }
}

PlacementOutcome TriedRequest::outcome(const Pick& pick, const std::map<Drawn, uint64_t>& tally,
                                       std::span<const Refusal> refusals) {
    PlacementOutcome o{.placement = pick.placement};
    std::vector<bool> was_served(image().groups().size());
    for (const auto& [drawn, count] : tally) {
        if (drawn.group == kNone) {
            o.unfilled = count;
            continue;
        }
        o.served.emplace_back(drawn, count);
        was_served[drawn.group] = true;
    }
    std::stable_sort(o.served.begin(), o.served.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& one : explain(node_.view(), request_, pick, refusals)) {
        if (!was_served[one.group]) {
            o.others.push_back(one);
        }
    }
    std::stable_sort(o.others.begin(), o.others.end(), [&](const auto& a, const auto& b) {
        return a.reason != b.reason ? a.reason < b.reason : group(a.group).id < group(b.group).id;
    });
    return o;
}

json_t* TriedRequest::group_json(uint32_t index) const {
    json_t* object = json_object();
    json_object_set_new(object, "campaign", number_json(image().campaign_of(group(index)).id));
    json_object_set_new(object, "ad_group", number_json(group(index).id));
    return object;
}

json_t* TriedRequest::outcome_json(const PlacementOutcome& o) const {
    json_t* served = json_array();
    for (const auto& [ad, count] : o.served) {
        json_t* object = group_json(ad.group);
        json_object_set_new(object, "creative", number_json(image().creatives()[ad.creative].id));
        json_object_set_new(object, "experiment",
                            ad.experiment == 0 ? json_null() : number_json(ad.experiment));
        json_object_set_new(object, "count", number_json(count));
        json_object_set_new(
            object, "share",
            json_real(static_cast<double>(count) / static_cast<double>(question_.repeat)));
        json_array_append_new(served, object);
    }
    json_t* others = json_array();
    for (const auto& one : o.others) {
        json_t* object = group_json(one.group);
        json_object_set_new(object, "reason", text_json(name_of(one.reason)));
        json_array_append_new(others, object);
    }
    json_t* object = json_object();
    json_object_set_new(object, "placement",
                        text_json(image().text(image().placements()[o.placement].slug)));
    json_object_set_new(object, "served", served);
    json_object_set_new(object, "unfilled", number_json(o.unfilled));
    json_object_set_new(object, "not_served", others);
    return object;
}

json_t* TriedRequest::json() const {
    Json root(json_object());
    json_object_set_new(root.get(), "at", text_json(catalog::date_text(question_.now)));
    json_object_set_new(root.get(), "seed", number_json(question_.seed));
    json_object_set_new(root.get(), "repeat", number_json(question_.repeat));
    json_object_set_new(root.get(), "device", text_json(name_of(question_.request.device)));
    json_t* list = json_array();
    for (const auto& outcome : outcomes_) {
        json_array_append_new(list, outcome_json(outcome));
    }
    json_object_set_new(root.get(), "placements", list);
    return root.release();
}

uint64_t random_seed() {
    uint32_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        throw Failure(Exit::failed, "cannot get random bytes: set --seed.");
    }
    return seed;
}

}  // namespace ads::admin
