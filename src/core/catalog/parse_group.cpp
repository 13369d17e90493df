// Ad groups: price, pacing, caps and targeting.
#include <algorithm>

#include "core/catalog/parser.hpp"

namespace ads::catalog {
namespace {

void read_price(const Node& node, Price& price) {
    Object object(node);
    set(price.model, read_enum<PriceModel>(object.get("model")));
    set(price.amount, read_money(object.get("amount_cents")));
    object.done();
}

void read_goal(const Node& node, std::optional<Goal>& out) {
    if (!node.present()) {
        return;
    }
    Object object(node);
    const Node impressions = object.get("impressions");
    const Node clicks = object.get("clicks");
    object.done();
    if (object.valid() && impressions.present() == clicks.present()) {
        node.fail("must have exactly one of impressions, clicks");
        return;
    }
    if (const auto count = read_integer(impressions, 1, kMaxCount)) {
        out = Goal{EventType::impression, static_cast<uint64_t>(*count)};
    }
    if (const auto count = read_integer(clicks, 1, kMaxCount)) {
        out = Goal{EventType::click, static_cast<uint64_t>(*count)};
    }
}

void read_pacing(const Node& node, Pacing& pacing) {
    Object object(node);
    set(pacing.strategy, read_enum<Strategy>(object.get("strategy")));
    const auto cap_on = read_enum<CapOn>(object.get("cap_on"));
    if (const auto cap = read_integer(object.get("daily_impression_cap"), 1, kMaxCount)) {
        pacing.daily_impression_cap = static_cast<uint64_t>(*cap);
    }
    if (const auto cap = read_integer(object.get("daily_click_cap"), 1, kMaxCount)) {
        pacing.daily_click_cap = static_cast<uint64_t>(*cap);
    }
    read_goal(object.get("goal"), pacing.goal);
    // A goal counts impressions that were seen.
    const bool sells_impressions = pacing.goal && pacing.goal->on == EventType::impression;
    pacing.cap_on = cap_on.value_or(sells_impressions ? CapOn::impression : CapOn::serve);
    object.done();
}

void read_cap(const Node& node, FrequencyCap& cap) {
    Object object(node);
    set(cap.count, read_integer(object.need("count"), 1, kMaxCapCount));
    const Node per = object.get("per");
    if (const auto text = read_text(per); text && !parse_period(*text, cap)) {
        per.expected(R"("day", "lifetime" or a time from "1s" to "400d" in s, m, h or d)");
    }
    set(cap.level, read_enum<CapLevel>(object.get("level")));
    object.done();
}

void read_caps(const Node& node, std::vector<FrequencyCap>& caps) {
    const Array items(node);
    if (items.size() > kMaxFrequencyCaps) {
        node.fail("must have at most " + std::to_string(kMaxFrequencyCaps) + " caps, not " +
                  std::to_string(items.size()));
    }
    for (const Node item : items) {
        read_cap(item, caps.emplace_back());
    }
}

void read_geos(const Node& node, Targeting& targeting) {
    each_text(Array(node), [&](const Node& item, std::string_view text) {
        const bool excluded = text.starts_with('!');
        if (auto geo = parse_geo(text.substr(excluded ? 1 : 0))) {
            (excluded ? targeting.excluded_geos : targeting.geos).push_back(std::move(*geo));
        } else {
            item.expected(
                "a country such as US or a region such as US-CA, with a leading ! to exclude it");
        }
    });
    drop_repeats(targeting.geos);
    drop_repeats(targeting.excluded_geos);
}

void read_clock(const Node& node, uint16_t& minutes, uint16_t latest) {
    const auto text = read_text(node);
    if (!text) {
        return;
    }
    const auto time = parse_clock(*text);
    if (time && *time <= latest) {
        minutes = *time;
    } else {
        node.expected(latest == 1440 ? "a time from 00:00 to 24:00" : "a time from 00:00 to 23:59");
    }
}

void read_schedule(const Node& node, Schedule& schedule) {
    Object object(node);
    uint8_t mask = 0;
    for (const Node item : Array(object.get("days"))) {
        if (const auto day = read_enum<Weekday>(item)) {
            mask |= static_cast<uint8_t>(1u << static_cast<unsigned>(*day));
        }
    }
    if (mask != 0) {
        schedule.days = mask;
    }
    read_clock(object.get("from"), schedule.from, 1439);
    read_clock(object.get("to"), schedule.to, 1440);
    // Until 00:00 is until the end of the day, whichever day it is written on.
    if (schedule.to == 0) {
        schedule.to = 1440;
    }
    object.done();
}

void read_patterns(const Array& items, Context& context, std::vector<std::string>& patterns) {
    each_text(items, [&](const Node& item, std::string_view text) {
        if (text.empty() || text.size() > kMaxPattern) {
            item.fail("must be a pattern of 1 to " + std::to_string(kMaxPattern) + " bytes, not " +
                      std::to_string(text.size()));
            return;
        }
        const auto [known, fresh] = context.patterns.emplace(text, std::nullopt);
        if (fresh) {
            known->second = pattern_fault(text);
        }
        if (known->second) {
            item.fail(*known->second);
        } else {
            patterns.emplace_back(text);
        }
    });
    drop_repeats(patterns);
}

void read_urls(const Node& node, Context& context, Targeting& targeting) {
    Object object(node);
    const Array include(object.get("include"));
    const Array exclude(object.get("exclude"));
    object.done();
    const size_t count = include.size() + exclude.size();
    if (count > kMaxPatterns) {
        node.fail("must have at most " + std::to_string(kMaxPatterns) + " patterns, not " +
                  std::to_string(count));
        return;
    }
    read_patterns(include, context, targeting.include_urls);
    read_patterns(exclude, context, targeting.exclude_urls);
}

void read_key(const Node& node, std::string_view name, Targeting& targeting) {
    if (!valid_key_name(name)) {
        node.fail("must have a name of 1 to 64 of A-Z a-z 0-9 _ . -, not " + quoted(name));
    }
    const Array items(node);
    if (items.valid() && items.size() == 0) {
        node.fail("must have at least one value");
    }
    std::vector<std::string> values;
    each_text(items, [&](const Node& item, std::string_view text) {
        if (text.empty() || text.size() > kMaxValue) {
            item.fail("must be 1 to " + std::to_string(kMaxValue) + " bytes, not " +
                      std::to_string(text.size()));
        } else {
            values.emplace_back(text);
        }
    });
    drop_repeats(values);
    targeting.keys.emplace_back(name, std::move(values));
}

void read_keys(const Node& node, Targeting& targeting) {
    Object(node).each(
        [&](std::string_view name, const Node& values) { read_key(values, name, targeting); });
}

void read_targeting(const Node& node, Context& context, Targeting& targeting) {
    Object object(node);
    each_text(Array(object.get("placements")), [&](const Node& item, std::string_view text) {
        if (context.placements.contains(text)) {
            targeting.placements.emplace_back(text);
        } else {
            item.expected("the id of a placement of this document");
        }
    });
    drop_repeats(targeting.placements);
    for (const Node item : Array(object.get("devices"))) {
        if (const auto device = read_enum<Device>(item)) {
            targeting.devices.push_back(*device);
        }
    }
    drop_repeats(targeting.devices);
    read_geos(object.get("geos"), targeting);
    for (const Node item : Array(object.get("schedule"))) {
        read_schedule(item, targeting.schedule.emplace_back());
    }
    read_urls(object.get("urls"), context, targeting);
    read_keys(object.get("keys"), targeting);
    each_text(Array(object.get("languages")), [&](const Node& item, std::string_view text) {
        if (auto language = parse_language(text)) {
            targeting.languages.push_back(std::move(*language));
        } else {
            item.expected("a language tag such as en or pt-BR");
        }
    });
    drop_repeats(targeting.languages);
    object.done();
}

// The group's flight is within the campaign's, which is its default.
void read_flight(Object& object, const Campaign& campaign, AdGroup& group) {
    const Node start = object.get("start");
    const Node end = object.get("end");
    group.start = read_date(start);
    group.end = read_date(end);
    check_order(end, group.start, group.end);
    if (group.start && campaign.start && *group.start < *campaign.start) {
        start.fail("must not be before the campaign's start, " + date_text(*campaign.start));
    }
    if (group.start && campaign.end && *group.start >= *campaign.end) {
        start.fail("must be before the campaign's end, " + date_text(*campaign.end));
    }
    if (group.end && campaign.end && *group.end > *campaign.end) {
        end.fail("must not be after the campaign's end, " + date_text(*campaign.end));
    }
    if (group.end && campaign.start && *group.end <= *campaign.start) {
        end.fail("must be after the campaign's start, " + date_text(*campaign.start));
    }
}

void read_company(Object& object, const Campaign& campaign, AdGroup& group) {
    read_label(object.get("category"), kMaxLabel, group.category);
    read_label(object.get("together"), kMaxLabel, group.together);
    const Node exclusive = object.get("exclusive");
    set(group.exclusive, read_enum<Exclusive>(exclusive));
    if (group.exclusive == Exclusive::category && group.category.empty()) {
        exclusive.fail("requires a category");
    }
    if (group.exclusive == Exclusive::advertiser && campaign.advertiser.empty()) {
        exclusive.fail("requires an advertiser in the campaign");
    }
}

}  // namespace

void read_ad_group(const Node& node, Context& context, const Campaign& campaign, Place place,
                   AdGroup& group) {
    Object object(node);
    const Node id = object.need("id");
    group.id = read_id(id);
    if (group.id != 0) {
        if (const Place* first = context.ad_groups.put(group.id, place)) {
            already_used(id, group.id,
                         "$.campaigns[" + std::to_string(first->campaign) + "].ad_groups[" +
                             std::to_string(first->group) + "]");
        }
    }
    read_label(object.get("name"), kMaxName, group.name);
    set(group.status, read_enum<Status>(object.get("status")));
    read_flight(object, campaign, group);
    set(group.priority, read_enum<Priority>(object.get("priority")));
    set(group.weight, read_integer(object.get("weight"), 0, kMaxWeight));
    read_price(object.get("price"), group.price);
    read_pacing(object.get("pacing"), group.pacing);
    read_caps(object.get("frequency_caps"), group.frequency_caps);
    read_targeting(object.get("targeting"), context, group.targeting);
    read_company(object, campaign, group);
    for (const Node item : Array(object.get("creatives"))) {
        place.creative = static_cast<uint32_t>(item.path.index);
        read_creative(item, context, place, group.creatives.emplace_back());
    }
    object.done();
}

}  // namespace ads::catalog
