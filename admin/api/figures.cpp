// Reports, forecasts, and why an ad group is not served.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>

#include "api/ownership.hpp"
#include "api/route.hpp"
#include "lib/decide/tried_request.hpp"
#include "lib/manage/edits.hpp"
#include "lib/report/forecast.hpp"
#include "lib/report/report.hpp"

namespace ads::api {

using admin::Kind;

namespace {

constexpr uint64_t kUsualRows = 1000;
constexpr uint64_t kMostRows = 10'000;
constexpr const char* kText = R"({"type":"string"})";

void need(bool holds, const std::string& message) {
    if (!holds) {
        throw Refusal{422, "invalid", message};
    }
}

Response report(Call& call) {
    auto& database = call.connections.reading();
    admin::ReportQuery query;
    const auto text = [&](const char* name, std::string& value) {
        if (const std::string given = call.get(name); !given.empty()) {
            value = given;
        }
    };
    text("by", query.by);
    text("from", query.from);
    text("to", query.to);
    text("timezone", query.zone);
    text("campaign", query.campaign);
    text("advertiser", query.advertiser);
    text("placement", query.placement);
    query.limit = call.number("limit", kUsualRows, kMostRows);
    query.previous = call.flag("previous");
    need(!admin::report_dimensions(query.by).empty(),
         fmt::format("by must be one or two of {}",
                     fmt::join(admin::all_report_dimensions(), ", ")));
    for (const std::string* bound : {&query.from, &query.to}) {
        need(bound->empty() || admin::is_period_bound(*bound),
             "from and to must be a day like 2026-11-18, today or yesterday, or a time");
    }
    if (call.who.role == Role::advertiser) {
        query.advertiser = call.who.advertiser;
    }
    admin::find_named(database, query);
    const admin::Report found = admin::read_report(database, query);
    return {200, Json(admin::report_json(query, found))};
}

Response forecast(Call& call) {
    need_id(call, Kind::campaign);
    need_own(call, Kind::campaign);
    const auto id = static_cast<Id>(admin::id_of(Kind::campaign, call.id));
    return {200, Json(admin::forecast_json(admin::read_forecast(call.connections.reading(), id)))};
}

// ---- why ----

// The catalog of PostgreSQL, with what was delivered of it as far as PostgreSQL and the node know.
struct Known {
    admin::CatalogSource source;
    diagnosis::Facts facts;
    std::vector<std::string> warnings;
};

Known known(Call& call, Id campaign, Id ad_group) {
    auto& database = call.connections.reading();
    Known k{admin::catalog_of(database), {}, {}};
    k.facts.now = std::time(nullptr);
    k.facts.managed = true;
    admin::add_database_facts(database, k.facts);
    const admin::NodeQuery node{
        .url = call.config.status_url, .ad_group = ad_group, .campaign = campaign};
    k.warnings = admin::add_node_counts(node, k.facts, k.source.document).warnings;
    return k;
}

Json diagnoses_json(const std::vector<diagnosis::Diagnosis>& list,
                    const std::vector<std::string>& warnings) {
    Json root(json_object());
    json_t* items = json_array();
    for (const auto& one : list) {
        json_array_append_new(items, admin::diagnosis_json(one));
    }
    json_object_set_new(root.get(), "ad_groups", items);
    json_t* texts = json_array();
    for (const auto& warning : warnings) {
        json_array_append_new(texts, admin::text_json(warning));
    }
    json_object_set_new(root.get(), "warnings", texts);
    return root;
}

Response why(Call& call, Kind kind) {
    if (!call.id.empty()) {
        need_id(call, kind);
    }
    const Id id = call.id.empty() ? 0 : static_cast<Id>(admin::id_of(kind, call.id));
    Known k = known(call, kind == Kind::campaign ? id : 0, kind == Kind::ad_group ? id : 0);
    diagnosis::Diagnoser diagnoser(std::move(k.source.document), std::move(k.facts));
    if (id == 0) {
        return {200, diagnoses_json(diagnoser.under_delivering(), k.warnings)};
    }
    std::vector<diagnosis::Diagnosis> list;
    bool found = false;
    for (const auto& campaign : diagnoser.document().campaigns) {
        found = found || (kind == Kind::campaign && campaign.id == id);
        for (const auto& group : campaign.ad_groups) {
            if ((kind == Kind::campaign ? campaign.id : group.id) == id) {
                list.push_back(diagnoser.diagnose(campaign, group));
                found = true;
            }
        }
    }
    if (!found) {
        throw admin::NotFound(fmt::format("there is no {}.", admin::called(kind, call.id)));
    }
    diagnosis::sort_worst_first(list);
    return {200, diagnoses_json(list, k.warnings)};
}

// Counts nothing.
Response decide(Call& call) {
    admin::Question question{
        .request = admin::parse_request(admin::dumped(call.body.get()), "body"),
        .request_name = "",
        .now = std::time(nullptr),
        .seed = admin::random_seed(),
        .repeat = call.number("repeat", 1, 10'000)};
    Known k = known(call, 0, 0);
    const admin::TriedRequest tried(std::move(k.source), k.facts.delivered, std::move(question));
    return {200, Json(tried.json())};
}

}  // namespace

void add_figure_routes(std::vector<Route>& table) {
    table.push_back(
        {"GET",
         "/report",
         "report",
         "Figures by campaign, creative, day and more",
         kReadsOwn,
         {{"by", kText, "One dimension or two: campaign,day (campaign)"},
          {"from", kText, "The first day, or a time (30 days ago)"},
          {"to", kText, "The last day, included, or a time (now)"},
          {"timezone", kText, "Time zone of the days, such as Europe/Berlin (UTC)"},
          {"campaign", kText, "Filter by id or name"},
          {"advertiser", kText, "Only this one"},
          {"placement", kText, "Filter by id or name"},
          {"previous", R"({"type":"string","enum":["1"]})", "Include the preceding period"},
          {"limit", R"({"type":"integer","minimum":1,"maximum":10000})",
           "Maximum number of rows (1000)"}},
         nullptr,
         "Report"});
    table.back().run = report;
    table.push_back({"GET",
                     "/campaigns/{id}/forecast",
                     "forecastCampaign",
                     "The expected delivery of its budget or goal",
                     kReadsOwn,
                     {},
                     nullptr,
                     "Forecast"});
    table.back().run = forecast;
    table.push_back({"GET",
                     "/why",
                     "why",
                     "Why ad groups deliver too little",
                     kViews,
                     {},
                     nullptr,
                     "Diagnoses"});
    table.back().run = [](Call& call) { return why(call, Kind::campaign); };
    table.push_back({"GET",
                     "/campaigns/{id}/why",
                     "whyCampaign",
                     "Why its ad groups are not served",
                     kViews,
                     {},
                     nullptr,
                     "Diagnoses"});
    table.back().run = [](Call& call) { return why(call, Kind::campaign); };
    table.push_back({"GET",
                     "/ad-groups/{id}/why",
                     "whyAdGroup",
                     "Why it is not served",
                     kViews,
                     {},
                     nullptr,
                     "Diagnoses"});
    table.back().run = [](Call& call) { return why(call, Kind::ad_group); };
    table.push_back(
        {"POST",
         "/decide",
         "decide",
         "The ads that would be served for a request, and the reasons for all others; counts "
         "nothing",
         kViews,
         {{"repeat", R"({"type":"integer","minimum":1,"maximum":10000})", "Draw so often (1)"}},
         "Request",
         "Decision"});
    table.back().run = decide;
}

}  // namespace ads::api
