#include "lib/catalog/catalog_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "lib/base/text.hpp"
#include "lib/manage/edits.hpp"

namespace ads::admin {

namespace {

// Each is told $1 status, $2 advertiser, $3 campaign, $4 ad group, $5 placement, $6 type,
// $7 what to search, $8 whether archived ones are wanted, $9 the only id.

std::string searched(std::initializer_list<const char*> columns) {
    std::string text = "($7 = ''";
    for (const char* column : columns) {
        text += fmt::format(" OR strpos(lower(coalesce({}, '')), lower($7)) > 0", column);
    }
    return text + ")";
}

// What is in an archived campaign or ad group is archived with it.
constexpr const char* kCampaignStatus = "c.status::text";
constexpr const char* kGroupStatus =
    "CASE WHEN c.status = 'archived' THEN 'archived' ELSE g.status::text END";
constexpr const char* kCreativeStatus =
    "CASE WHEN 'archived' IN (c.status, g.status) THEN 'archived' ELSE k.status::text END";

// Of a thing with a status.
std::string live(const char* status) {
    return fmt::format(
        "($1 = '' OR ({0}) = ANY (string_to_array($1, ','))) AND ($8::boolean OR ({0}) <> "
        "'archived' OR 'archived' = ANY (string_to_array($1, ',')))",
        status);
}

constexpr const char* kOfAdvertiser = "($2 = '' OR c.advertiser = $2)";
constexpr const char* kOfCampaign = "($3 = '' OR c.id::text = $3 OR c.name = $3)";
constexpr const char* kOfGroup = "($4 = '' OR g.id::text = $4 OR g.name = $4)";
// A group without placements is for all of them.
constexpr const char* kAtPlacement =
    "($5 = '' OR NOT EXISTS (SELECT FROM ads.ad_group_placements t WHERE t.ad_group_id = g.id) "
    "OR EXISTS (SELECT FROM ads.ad_group_placements t JOIN ads.placements p ON p.id = "
    "t.placement_id WHERE t.ad_group_id = g.id AND (p.id = $5 OR p.name = $5)))";

std::string advertisers() {
    return fmt::format(
        "SELECT a.name, count(c.id), count(c.id) FILTER (WHERE c.status = 'active') "
        "FROM ads.advertisers a LEFT JOIN ads.campaigns c ON c.advertiser = a.name "
        "WHERE ($9 = '' OR a.name = $9) AND {} GROUP BY a.name ORDER BY a.name",
        searched({"a.name"}));
}

std::string campaigns() {
    return fmt::format(
        "SELECT c.id, c.name, coalesce(c.advertiser, ''), c.status, "
        "to_char(c.starts_at AT TIME ZONE c.timezone, 'YYYY-MM-DD'), "
        "to_char((c.ends_at - interval '1 second') AT TIME ZONE c.timezone, 'YYYY-MM-DD'), "
        "c.budget_type, ads.cents(c.budget_micro), (SELECT count(*) FROM ads.ad_groups g WHERE "
        "g.campaign_id = c.id AND g.status <> 'archived'), d.\"of\", d.spent_cents, "
        "d.budget_cents, d.delivered, d.aim, c.id AS campaign, (SELECT count(*) FROM ads.ad_groups "
        "g WHERE g.campaign_id = c.id AND g.status = 'active') AS active "
        "FROM ads.campaigns c JOIN ads.campaign_delivery() d ON d.campaign_id = c.id "
        "WHERE ($9 = '' OR c.id = nullif($9, '')::bigint) AND {} AND {} AND {} AND {} ORDER BY "
        "c.id",
        live(kCampaignStatus), kOfAdvertiser, kOfCampaign,
        searched({"c.id::text", "c.name", "c.advertiser"}));
}

std::string ad_groups() {
    return fmt::format(
        "SELECT g.id, g.campaign_id, g.name, {}, g.priority, g.weight, g.price_model, "
        "ads.cents(g.price_micro), (SELECT count(*) FROM ads.creatives k WHERE k.ad_group_id = "
        "g.id AND k.status <> 'archived'), d.\"of\", d.unit, d.done, d.target, d.delivered, d.aim "
        "FROM ads.ad_groups g JOIN ads.campaigns c ON c.id = "
        "g.campaign_id JOIN ads.ad_group_delivery() d ON d.ad_group_id = g.id "
        "WHERE ($9 = '' OR g.id = nullif($9, '')::bigint) AND {} AND {} AND {} AND {} AND {} "
        "ORDER BY g.id",
        kGroupStatus, live(kGroupStatus), kOfAdvertiser, kOfCampaign, kAtPlacement,
        searched({"g.id::text", "g.name"}));
}

std::string creatives() {
    return fmt::format(
        "SELECT k.id, k.ad_group_id, k.name, k.type, {6}, k.weight, k.width, k.height, "
        "k.policy, k.click_url, coalesce(d.impressions, 0), coalesce(d.clicks, 0), "
        "round(d.clicks::numeric / nullif(d.impressions, 0), 6), g.campaign_id AS campaign "
        "FROM ads.creatives k JOIN ads.ad_groups g ON g.id = k.ad_group_id "
        "JOIN ads.campaigns c ON c.id = g.campaign_id LEFT JOIN ("
        "SELECT h.creative_id, sum(h.events) FILTER (WHERE h.type = 'impression') AS impressions, "
        "sum(h.events) FILTER (WHERE h.type = 'click') AS clicks FROM ads.campaigns c "
        "JOIN ads.event_hours h ON h.campaign_id = c.id AND h.hour > ads.now() - interval '7 days' "
        "WHERE h.invalid = '' AND {1} AND {2} GROUP BY 1) d ON d.creative_id = k.id "
        "WHERE ($9 = '' OR k.id = nullif($9, '')::bigint) AND ($6 = '' OR k.type::text = $6) "
        "AND {0} AND {1} AND {2} AND {3} AND {4} AND {5} ORDER BY k.id",
        live(kCreativeStatus), kOfAdvertiser, kOfCampaign, kOfGroup, kAtPlacement,
        searched({"k.id::text", "k.name", "k.click_url"}), kCreativeStatus);
}

std::string placements() {
    return fmt::format(
        "SELECT p.id, p.name, p.status, p.width, p.height, array_to_string(p.types, ', '), "
        "p.\"select\", ads.cents(p.floor_micro), "
        "coalesce(r.requests, 0), coalesce(r.unfilled, 0), "
        "round((r.requests - r.unfilled)::numeric / nullif(r.requests, 0), 6) "
        "FROM ads.placements p LEFT JOIN (SELECT h.placement, sum(h.requests) AS requests, "
        "coalesce(sum(h.requests) FILTER (WHERE h.outcome <> ''), 0) AS unfilled "
        "FROM ads.placement_hours h WHERE h.hour > ads.now() - interval '24 hours' GROUP BY 1) r "
        "ON r.placement = p.id WHERE ($9 = '' OR p.id = $9) "
        "AND ($1 = '' OR p.status::text = ANY (string_to_array($1, ','))) AND {} ORDER BY p.id",
        searched({"p.id", "p.name"}));
}

std::string experiments() {
    return fmt::format(
        "SELECT e.id, e.ad_group_id, e.name, e.status, e.metric, "
        "(SELECT count(*) FROM ads.variants v WHERE v.experiment_id = e.id), "
        "(SELECT count(*) FROM ads.experiment_trials t WHERE t.experiment_id = e.id "
        "AND t.first_impression IS NOT NULL), e.winner, g.campaign_id AS campaign "
        "FROM ads.experiments e JOIN ads.ad_groups g ON g.id = e.ad_group_id "
        "JOIN ads.campaigns c ON c.id = g.campaign_id "
        "WHERE ($9 = '' OR e.id = nullif($9, '')::bigint) "
        "AND ($1 = '' OR e.status::text = ANY (string_to_array($1, ','))) "
        "AND {} AND {} AND {} ORDER BY e.id",
        kOfCampaign, kOfGroup, searched({"e.id::text", "e.name"}));
}

std::string sql_of(Kind kind) {
    switch (kind) {
        case Kind::advertiser:
            return advertisers();
        case Kind::campaign:
            return campaigns();
        case Kind::ad_group:
            return ad_groups();
        case Kind::creative:
            return creatives();
        case Kind::placement:
            return placements();
        case Kind::experiment:
            return experiments();
    }
    return {};
}

Rows select(Database& database, const ListQuery& query, std::string_view id) {
    // Every parameter needs a type, whether the statement uses it or not.
    const std::string sql = fmt::format(
        "SELECT list.* FROM (SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, "
        "$7::text, $8::boolean, $9::text) AS told, LATERAL ({}) AS list{}",
        sql_of(query.kind), query.limit == 0 ? "" : fmt::format(" LIMIT {}", query.limit));
    return database.run(
        sql, {query.status, query.advertiser, query.campaign, query.ad_group, query.placement,
              query.type, query.search, query.archived ? "t" : "f", id});
}

// ---- objects ----

template <class Column>
class Row {
public:
    Row(const Rows& rows, size_t row) : rows_(rows), row_(row) {}

    bool null(Column column) const { return rows_.null(row_, static_cast<int>(column)); }
    std::string_view text(Column column) const { return rows_.at(row_, static_cast<int>(column)); }
    uint64_t number(Column column) const {
        return static_cast<uint64_t>(rows_.number(row_, static_cast<int>(column)));
    }
    double real(Column column) const { return rows_.real(row_, static_cast<int>(column)); }

    json_t* text_json_of(Column column) const { return text_json(text(column)); }
    json_t* number_json_of(Column column) const {
        return null(column) ? json_null() : number_json(number(column));
    }
    json_t* real_json_of(Column column) const {
        return null(column) ? json_null() : json_real(real(column));
    }

private:
    const Rows& rows_;
    size_t row_;
};

json_t* campaign_delivery(const Row<CampaignColumn>& row) {
    return json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o}", "of",
        row.null(CampaignColumn::of) ? json_null() : row.text_json_of(CampaignColumn::of),
        "spent_cents", row.real_json_of(CampaignColumn::spent), "budget_cents",
        row.real_json_of(CampaignColumn::budget), "delivered",
        row.real_json_of(CampaignColumn::delivered), "aim", row.real_json_of(CampaignColumn::aim),
        "active_ad_groups", row.number_json_of(CampaignColumn::active));
}

json_t* group_delivery(const Row<AdGroupColumn>& row) {
    if (row.null(AdGroupColumn::of)) {
        return json_null();
    }
    return json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o}", "of", row.text_json_of(AdGroupColumn::of), "unit",
        row.text_json_of(AdGroupColumn::unit), "done", row.number_json_of(AdGroupColumn::done),
        "target", row.number_json_of(AdGroupColumn::target), "delivered",
        row.real_json_of(AdGroupColumn::delivered), "aim", row.real_json_of(AdGroupColumn::aim));
}

json_t* creative_delivery(const Row<CreativeColumn>& row) {
    return json_pack("{s:s,s:o,s:o,s:o}", "of", "7 days", "impressions",
                     row.number_json_of(CreativeColumn::impressions), "clicks",
                     row.number_json_of(CreativeColumn::clicks), "ctr",
                     row.real_json_of(CreativeColumn::click_rate));
}

json_t* placement_delivery(const Row<PlacementColumn>& row) {
    return json_pack("{s:s,s:o,s:o,s:o}", "of", "24 hours", "requests",
                     row.number_json_of(PlacementColumn::requests), "unfilled",
                     row.number_json_of(PlacementColumn::unfilled), "fill_rate",
                     row.real_json_of(PlacementColumn::fill_rate));
}

json_t* experiment_delivery(const Row<ExperimentColumn>& row) {
    return json_pack("{s:o}", "trials", row.number_json_of(ExperimentColumn::trials));
}

json_t* delivery(Kind kind, const Rows& rows, size_t row) {
    switch (kind) {
        case Kind::campaign:
            return campaign_delivery(Row<CampaignColumn>(rows, row));
        case Kind::ad_group:
            return group_delivery(Row<AdGroupColumn>(rows, row));
        case Kind::creative:
            return creative_delivery(Row<CreativeColumn>(rows, row));
        case Kind::placement:
            return placement_delivery(Row<PlacementColumn>(rows, row));
        case Kind::experiment:
            return experiment_delivery(Row<ExperimentColumn>(rows, row));
        case Kind::advertiser:
            break;
    }
    return nullptr;
}

// ---- as show has them ----

Json parsed(std::string_view text) {
    return Json(json_loadb(text.data(), text.size(), 0, nullptr));
}

// Without the list of what is below it.
json_t* found_in(const json_t* document, Kind kind, uint64_t id) {
    json_t* campaign = json_array_get(json_object_get(document, "campaigns"), 0);
    if (kind == Kind::campaign) {
        json_object_del(campaign, "ad_groups");
        return campaign;
    }
    if (kind == Kind::experiment) {
        return with_id(json_object_get(document, "experiments"), id);
    }
    json_t* groups = json_object_get(campaign, "ad_groups");
    if (kind == Kind::ad_group) {
        json_t* group = with_id(groups, id);
        json_object_del(group, "creatives");
        json_object_set_new(group, "campaign", json_incref(json_object_get(campaign, "id")));
        return group;
    }
    size_t i = 0;
    json_t* group = nullptr;
    json_array_foreach(groups, i, group) {
        if (json_t* creative = with_id(json_object_get(group, "creatives"), id)) {
            json_object_set_new(creative, "ad_group", json_incref(json_object_get(group, "id")));
            return creative;
        }
    }
    return nullptr;
}

int campaign_column(Kind kind) {
    switch (kind) {
        case Kind::ad_group:
            return static_cast<int>(AdGroupColumn::campaign);
        case Kind::creative:
            return static_cast<int>(CreativeColumn::campaign);
        case Kind::experiment:
            return static_cast<int>(ExperimentColumn::campaign);
        default:
            return static_cast<int>(CampaignColumn::campaign);
    }
}

// The documents of the campaigns that the rows are in.
std::unordered_map<uint64_t, Json> documents_of(Database& database, Kind kind, const Rows& rows) {
    std::unordered_map<uint64_t, Json> documents;
    std::string ids;
    for (size_t i = 0; i < rows.size(); i++) {
        const auto campaign = static_cast<uint64_t>(rows.number(i, campaign_column(kind)));
        if (documents.emplace(campaign, nullptr).second) {
            ids += fmt::format("{}{}", ids.empty() ? "{" : ",", campaign);
        }
    }
    if (ids.empty()) {
        return documents;
    }
    ids += "}";
    const Rows texts = database.run(
        "SELECT c, ads.campaign_document(c, false, $2) FROM unnest($1::bigint[]) AS t (c)",
        {ids, kind == Kind::campaign ? "false" : "true"});
    for (size_t i = 0; i < texts.size(); i++) {
        documents[static_cast<uint64_t>(texts.number(i, 0))] = parsed(texts.at(i, 1));
    }
    return documents;
}

Json advertiser_objects(Database& database, const Rows& rows) {
    Json list(json_array());
    for (size_t i = 0; i < rows.size(); i++) {
        json_array_append_new(list.get(),
                              advertiser_object(database, std::string(rows.at(i, 0))).release());
    }
    return list;
}

Json placement_objects(Database& database, const Rows& rows) {
    const Json document = parsed(database.value("SELECT ads.campaign_document(0)"));
    const json_t* placements = json_object_get(document.get(), "placements");
    std::unordered_map<std::string_view, json_t*> by_id;
    size_t i = 0;
    json_t* item = nullptr;
    json_array_foreach(const_cast<json_t*>(placements), i, item) {
        by_id[json_string_value(json_object_get(item, "id"))] = item;
    }
    Json list(json_array());
    for (size_t row = 0; row < rows.size(); row++) {
        if (const auto found = by_id.find(rows.at(row, 0)); found != by_id.end()) {
            json_object_set_new(found->second, kDelivery, delivery(Kind::placement, rows, row));
            json_array_append(list.get(), found->second);
        }
    }
    return list;
}

// A filter that names nothing is a slip, and not an answer.
void check_filters(Database& database, const ListQuery& query) {
    const struct {
        const std::string& name;
        Kind kind;
        const char* sql;
    } filters[] = {
        {query.advertiser, Kind::advertiser, "SELECT FROM ads.advertisers WHERE name = $1"},
        {query.campaign, Kind::campaign,
         "SELECT FROM ads.campaigns WHERE id::text = $1 OR name = $1"},
        {query.ad_group, Kind::ad_group,
         "SELECT FROM ads.ad_groups WHERE id::text = $1 OR name = $1"},
        {query.placement, Kind::placement, "SELECT FROM ads.placements WHERE id = $1 OR name = $1"},
    };
    for (const auto& [name, kind, sql] : filters) {
        if (!name.empty() && database.run(fmt::format("{} LIMIT 1", sql), {name}).empty()) {
            throw query.suggests ? no_such(database, kind, name)
                                 : NotFound(fmt::format("there is no {} \"{}\".",
                                                        words_of(kind).name, printable(name)));
        }
    }
}

}  // namespace

Json advertiser_object(Database& database, const std::string& name) {
    return parsed(database.value(
        "SELECT json_build_object('name', a.name, 'campaigns', coalesce((SELECT json_agg("
        "json_build_object('id', c.id, 'name', c.name, 'status', c.status) ORDER BY c.id) "
        "FROM ads.campaigns c WHERE c.advertiser = a.name), '[]')) "
        "FROM ads.advertisers a WHERE a.name = $1",
        {name}));
}

Json list_objects(Database& database, const ListQuery& query) {
    const Rows rows = list_rows(database, query);
    if (query.kind == Kind::advertiser) {
        return advertiser_objects(database, rows);
    }
    if (query.kind == Kind::placement) {
        return placement_objects(database, rows);
    }
    const auto documents = documents_of(database, query.kind, rows);
    Json list(json_array());
    for (size_t i = 0; i < rows.size(); i++) {
        const auto campaign = static_cast<uint64_t>(rows.number(i, campaign_column(query.kind)));
        json_t* object = found_in(documents.at(campaign).get(), query.kind,
                                  static_cast<uint64_t>(rows.number(i, 0)));
        if (object == nullptr) {
            continue;  // removed just now
        }
        if (json_t* delivered = delivery(query.kind, rows, i)) {
            json_object_set_new(object, kDelivery, delivered);
        }
        json_array_append(list.get(), object);
    }
    return list;
}

Rows list_rows(Database& database, const ListQuery& query) {
    Rows rows = select(database, query, "");
    if (rows.empty()) {
        check_filters(database, query);
    }
    return rows;
}

Json delivery_of(Database& database, Kind kind, const std::string& id) {
    ListQuery query{.kind = kind};
    query.archived = true;
    const Rows rows = select(database, query, id);
    return Json(rows.empty() ? nullptr : delivery(kind, rows, 0));
}

}  // namespace ads::admin
