#include <cstdlib>

#include "lib/base/json.hpp"
#include "lib/manage/edits.hpp"
#include "lib/report/report.hpp"

namespace ads::admin {

namespace {

bool has_ids(const std::string& dimension) {
    return dimension == "campaign" || dimension == "ad-group" || dimension == "creative";
}

template <class T>
json_t* number_or_null(const std::optional<T>& number) {
    if (!number) {
        return json_null();
    }
    if constexpr (std::is_integral_v<T>) {
        return number_json(*number);
    } else {
        return json_real(*number);
    }
}

json_t* figures_json(const Figures& f, json_t* object) {
    const auto set = [&](const char* name, json_t* value) {
        json_object_set_new(object, name, value);
    };
    set("requests", number_or_null(f.requests));
    set("unfilled", number_or_null(f.unfilled));
    set("fill_rate", number_or_null(f.fill_rate));
    set("serves", number_json(f.serves));
    set("impressions", number_json(f.impressions));
    set("viewables", number_json(f.viewables));
    set("viewable_rate", number_or_null(f.viewable_rate));
    set("clicks", number_json(f.clicks));
    set("ctr", number_or_null(f.click_rate));
    set("conversions", number_json(f.conversions));
    set("invalid", number_json(f.invalid));
    set("spend_cents", json_real(f.spend_cents));
    set("ecpm_cents", number_or_null(f.ecpm_cents));
    set("viewable_share", number_or_null(f.viewable_share));
    set("viewable_seconds", number_or_null(f.viewable_seconds));
    return object;
}

json_t* row_json(const ReportRow& row, const std::vector<std::string>& dimensions, bool previous) {
    json_t* object = json_object();
    for (size_t i = 0; i < row.keys.size(); i++) {
        const auto& [key, name] = row.keys[i];
        json_object_set_new(object, i == 0 ? "key" : "key2",
                            has_ids(dimensions[i])
                                ? json_integer(std::strtoll(key.c_str(), nullptr, 10))
                                : text_json(key));
        json_object_set_new(object, i == 0 ? "name" : "name2", text_json(name));
    }
    figures_json(row.now, object);
    if (previous) {
        json_object_set_new(object, "previous", figures_json(row.before, json_object()));
    }
    return object;
}

// A placement that has left the catalog still has figures.
std::string placement_of(Database& database, const std::string& text) {
    const bool counted =
        database.value("SELECT EXISTS (SELECT FROM ads.event_hours WHERE placement = $1)",
                       {text}) == "t";
    return counted ? text : found_id(database, Kind::placement, text);
}

}  // namespace

void find_named(Database& database, ReportQuery& query) {
    if (!query.campaign.empty()) {
        query.campaign = found_id(database, Kind::campaign, query.campaign);
    }
    if (!query.placement.empty()) {
        query.placement = placement_of(database, query.placement);
    }
}

json_t* report_json(const ReportQuery& query, const Report& report) {
    const bool previous = query.previous;
    const auto dimensions = report_dimensions(query.by);
    Json root(json_object());
    const auto set = [&](json_t* object, const char* name, const std::string& text) {
        json_object_set_new(object, name, text_json(text));
    };
    set(root.get(), "by", query.by);
    set(root.get(), "from", report.period.from);
    set(root.get(), "to", report.period.to);
    json_object_set_new(root.get(), "currency",
                        report.currency.empty() ? json_null() : text_json(report.currency));
    if (previous) {
        json_t* before = json_object();
        set(before, "from", report.before.from);
        set(before, "to", report.before.to);
        json_object_set_new(root.get(), "previous", before);
    }
    json_t* list = json_array();
    for (const auto& row : report.rows) {
        json_array_append_new(list, row_json(row, dimensions, previous));
    }
    json_object_set_new(root.get(), "rows", list);
    json_object_set_new(root.get(), "total", row_json(report.total, {}, previous));
    return root.release();
}

}  // namespace ads::admin
