#include "lib/diagnosis/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/diagnosis/node_status.hpp"

namespace ads::admin {

using diagnosis::Change;
using diagnosis::Counts;
using diagnosis::Facts;
using diagnosis::ObjectKind;

namespace {

uint64_t whole(const Rows& rows, size_t row, int column) {
    return static_cast<uint64_t>(std::max<int64_t>(0, rows.number(row, column)));
}

const char* table_of(ObjectKind kind) {
    return kind == ObjectKind::campaign   ? "campaigns"
           : kind == ObjectKind::ad_group ? "ad_groups"
                                          : "creatives";
}

std::optional<Change> change_of(Database& database, ObjectKind kind, Id id, Status status) {
    const std::string number = std::to_string(id);
    const std::string name(name_of(status));
    try {
        const Rows rows = database.run(
            "SELECT extract(epoch FROM l.at)::bigint, l.actor, "
            "$1 = 'campaigns' AND EXISTS (SELECT FROM ads.budget_pauses b WHERE b.campaign_id = "
            "$2::text::bigint), "
            "CASE WHEN $1 = 'campaigns' THEN (SELECT c.advertiser FROM ads.campaigns c "
            "JOIN ads.advertiser_pauses a ON a.campaign_id = c.id WHERE c.id = $2::text::bigint) "
            "END "
            "FROM ads.audit_log l WHERE l.table_name = $1 AND l.row_id = $2::text "
            "AND l.after ->> 'status' = $3 AND l.before ->> 'status' IS DISTINCT FROM $3 "
            "ORDER BY l.id DESC LIMIT 1",
            {table_of(kind), number, name});
        if (rows.empty()) {
            return std::nullopt;
        }
        return Change{rows.number(0, 0), std::string(rows.at(0, 1)),
                      rows.flag(0, 2) ? "its budget was spent" : "", std::string(rows.at(0, 3))};
    } catch (const SqlError& e) {
        if (e.is("42501")) {
            return std::nullopt;  // may not read it
        }
        throw explained(e);
    }
}

bool is_sampled(const json_t* group, std::string_view reason) {
    const json_t* sampled = json_object_get(group, "sampled");
    for (size_t i = 0; i < json_array_size(sampled); i++) {
        const char* name = json_string_value(json_array_get(sampled, i));
        if (name != nullptr && name == reason) {
            return true;
        }
    }
    return false;
}

// Of the limit that is furthest behind.
std::optional<double> delivery_of(const json_t* group) {
    std::optional<double> least;
    const json_t* limits = json_object_get(group, "limits");
    for (size_t i = 0; i < json_array_size(limits); i++) {
        const json_t* limit = json_array_get(limits, i);
        const double ideal = real_of(limit, "ideal");
        if (ideal >= 1) {
            const double part = (real_of(limit, "used") + real_of(limit, "in_flight")) / ideal;
            least = std::min(least.value_or(part), part);
        }
    }
    return least;
}

Counts counts_of(const json_t* group) {
    Counts counts;
    counts.day = text_of(group, "day");
    counts.stopped = text_of(group, "stopped");
    counts.serves = number_of(group, "serves");
    counts.anonymous = number_of(group, "anonymous");
    counts.impressions = number_of(group, "impressions");
    counts.viewables = number_of(group, "viewables");
    counts.clicks = number_of(group, "clicks");
    counts.conversions = number_of(group, "conversions");
    counts.spend_cents = real_of(group, "spend_cents");
    counts.delivery = delivery_of(group);
    const char* name = nullptr;
    json_t* count = nullptr;
    json_t* refused = json_object_get(group, "refused");
    json_object_foreach(refused, name, count) {
        counts.refused.push_back(
            {name, named<Reason>(name), number_of(refused, name), is_sampled(group, name)});
    }
    std::stable_sort(counts.refused.begin(), counts.refused.end(),
                     [](const auto& a, const auto& b) { return a.count > b.count; });
    return counts;
}

MicroCents micro(double cents) {
    return static_cast<MicroCents>(std::llround(cents * static_cast<double>(kMicroPerCent)));
}

void add_budgets(const json_t* status, Facts& facts, catalog::Document& document) {
    std::map<uint64_t, const json_t*> budgets;
    const json_t* list = json_object_get(status, "campaigns");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t* campaign = json_array_get(list, i);
        budgets.emplace(number_of(campaign, "id"), json_object_get(campaign, "budget"));
    }
    for (auto& campaign : document.campaigns) {
        const auto found = budgets.find(campaign.id);
        if (campaign.budget && found != budgets.end() && json_is_object(found->second)) {
            const bool daily = campaign.budget->type == BudgetType::daily;
            const double cents = real_of(found->second, daily ? "used" : "whole_cents") +
                                 (daily ? real_of(found->second, "in_flight") : 0);
            campaign.budget->spent = std::max(campaign.budget->spent, micro(cents));
            const double ideal = real_of(found->second, "ideal");
            if (ideal >= 1) {
                facts.budget_delivery[campaign.id] =
                    (real_of(found->second, "used") + real_of(found->second, "in_flight")) / ideal;
            }
        }
    }
}

// A creative of type tag is served to nobody unless the node's configuration names its advertiser.
void withhold_tags(const json_t* status, Facts& facts, catalog::Document& document) {
    const json_t* tags = json_object_get(status, "tags");
    if (tags == nullptr) {
        return;  // an older node does not say
    }
    facts.tags.any_shown = json_is_object(tags);
    std::set<std::string> shown;
    const json_t* names = json_object_get(tags, "advertisers");
    for (size_t i = 0; i < json_array_size(names); i++) {
        shown.insert(json_string_value(json_array_get(names, i)));
    }
    for (auto& campaign : document.campaigns) {
        if (shown.contains(campaign.advertiser)) {
            continue;
        }
        for (auto& group : campaign.ad_groups) {
            for (auto& creative : group.creatives) {
                if (creative.type == CreativeType::tag && creative.status == Status::active) {
                    creative.status = Status::paused;
                    facts.tags.creatives.insert(creative.id);
                }
            }
        }
    }
}

}  // namespace

void add_database_facts(Database& database, Facts& facts) {
    const Rows stored = database.run(
        "SELECT s.ad_group_id, sum(s.serves) FILTER (WHERE t.today), "
        "sum(s.impressions) FILTER (WHERE t.today), sum(s.clicks) FILTER (WHERE t.today), "
        "sum(s.spend_micro) FILTER (WHERE t.today)::bigint, sum(s.serves), sum(s.impressions), "
        "sum(s.clicks), sum(s.conversions) FILTER (WHERE t.today) FROM ads.daily_spend s "
        "JOIN ads.campaigns c ON c.id = s.campaign_id, "
        "LATERAL (SELECT s.day = (ads.now() AT TIME ZONE c.timezone)::date AS today) t GROUP BY 1");
    for (size_t i = 0; i < stored.size(); i++) {
        auto& delivered = facts.delivered[static_cast<Id>(whole(stored, i, 0))];
        delivered = {.serves = whole(stored, i, 1),
                     .impressions = whole(stored, i, 2),
                     .clicks = whole(stored, i, 3),
                     .conversions = whole(stored, i, 8),
                     .spend = static_cast<MicroCents>(whole(stored, i, 4)),
                     .all_serves = whole(stored, i, 5),
                     .all_impressions = whole(stored, i, 6),
                     .all_clicks = whole(stored, i, 7)};
    }
    const Rows seen = database.run(
        "SELECT placement, country, device, sum(events)::bigint FROM ads.event_hours "
        "WHERE type = 'serve' AND invalid = '' AND hour > ads.now() - interval '7 days' "
        "GROUP BY 1, 2, 3");
    for (size_t i = 0; i < seen.size(); i++) {
        facts.seen.push_back({std::string(seen.at(i, 0)), std::string(seen.at(i, 1)),
                              std::string(seen.at(i, 2)), whole(seen, i, 3)});
    }
    facts.history = [&database](ObjectKind kind, Id id, Status status) {
        return change_of(database, kind, id, status);
    };
}

void add_node_facts(const json_t* status, Facts& facts, catalog::Document& document) {
    const json_t* groups = json_object_get(status, "ad_groups");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t* group = json_array_get(groups, i);
        const auto id = static_cast<Id>(number_of(group, "id"));
        const Counts counts = counts_of(group);
        auto& delivered = facts.delivered[id];
        delivered.serves = std::max(delivered.serves, counts.serves);
        delivered.impressions = std::max(delivered.impressions, counts.impressions);
        delivered.clicks = std::max(delivered.clicks, counts.clicks);
        delivered.conversions = std::max(delivered.conversions, counts.conversions);
        delivered.spend = std::max(delivered.spend, micro(counts.spend_cents));
        delivered.all_serves = std::max(delivered.all_serves, delivered.serves);
        delivered.all_impressions = std::max(delivered.all_impressions, delivered.impressions);
        delivered.all_clicks = std::max(delivered.all_clicks, delivered.clicks);
        facts.counts[id] = counts;
    }
    add_budgets(status, facts, document);
    withhold_tags(status, facts, document);
}

std::vector<std::string> node_warnings(const json_t* status) {
    std::vector<std::string> warnings;
    const json_t* catalog = json_object_get(status, "catalog");
    if (const std::string error = text_of(catalog, "error"); !error.empty()) {
        warnings.push_back(
            fmt::format("the node serves an older catalog: its last edit was refused: {}", error));
    }
    if (const std::string error = text_of(catalog, "unreadable"); !error.empty()) {
        warnings.push_back(
            fmt::format("the node serves the last catalog: its source cannot be read: {}", error));
    }
    return warnings;
}

NodeQuery node_of(const std::string& option, const CatalogOptions& catalog) {
    const bool other_catalog = option.empty() && !catalog.file.empty();
    return {.url = other_catalog ? "" : status_url(option), .required = !option.empty()};
}

NodeAnswer add_node_counts(const NodeQuery& query, Facts& facts, catalog::Document& document) {
    constexpr size_t kPageRows = 1000;
    NodeAnswer answer;
    if (query.url.empty()) {
        return answer;
    }
    const auto page = [&](uint64_t after) {
        return query.ad_group != 0
                   ? fmt::format("ad_group={}", query.ad_group)
                   : fmt::format("{}limit={}&after={}",
                                 query.campaign == 0 ? std::string()
                                                     : fmt::format("campaign={}&", query.campaign),
                                 kPageRows, after);
    };
    try {
        for (uint64_t after = 0;;) {
            const Json status = node_status(query.url, page(after), query.timeout);
            if (after == 0) {
                answer.warnings = node_warnings(status.get());
            }
            add_node_facts(status.get(), facts, document);
            const json_t* groups = json_object_get(status.get(), "ad_groups");
            const size_t rows = json_array_size(groups);
            const uint64_t last = rows == 0 ? 0 : number_of(json_array_get(groups, rows - 1), "id");
            if (query.ad_group != 0 || rows < kPageRows || last <= after) {
                answer.answered = true;
                return answer;
            }
            after = last;
        }
    } catch (const Failure& e) {
        if (query.required) {
            throw;
        }
        answer.warnings.push_back(fmt::format("the node was not queried: {}", e.what()));
        return answer;
    }
}

}  // namespace ads::admin
