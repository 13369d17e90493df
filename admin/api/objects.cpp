// Advertisers, campaigns, ad groups, creatives, placements, experiments.
#include <fmt/format.h>

#include <algorithm>

#include "api/ownership.hpp"
#include "api/route.hpp"
#include "lib/base/text.hpp"
#include "lib/catalog/catalog_list.hpp"
#include "lib/catalog/changes_json.hpp"
#include "lib/experiment/experiments.hpp"
#include "lib/manage/history.hpp"
#include "lib/manage/manage.hpp"
#include "lib/manage/read.hpp"

namespace ads::api {

using admin::Edit;
using admin::Edited;
using admin::EditOptions;
using admin::Kind;
using admin::number_json;
using admin::text_json;

namespace {

constexpr uint64_t kUsualRows = 1000;
constexpr uint64_t kMostRows = 10'000;

constexpr Parameter kDryRun = {"dry_run", R"({"type":"string","enum":["1"]})",
                               "Print the changes without writing them"};
constexpr Parameter kStrict = {"strict", R"({"type":"string","enum":["1"]})",
                               "Treat warnings as errors"};

constexpr auto kNames = std::to_array<const char*>(
    {"Advertiser", "Campaign", "AdGroup", "Creative", "Placement", "Experiment"});

std::string collection(Kind kind) {
    return fmt::format("/{}s", admin::words_of(kind).command);
}

std::string etag(const std::string& version) {
    return fmt::format("\"{}\"", version);
}

// ---- reading ----

Response list(Call& call, Kind kind) {
    admin::ListQuery query{.kind = kind};
    query.status = call.get("status");
    query.advertiser = call.get("advertiser");
    query.campaign = call.get("campaign");
    query.ad_group = call.get("ad_group");
    query.placement = call.get("placement");
    query.type = call.get("type");
    query.search = call.get("search");
    query.archived = call.flag("archived");
    query.limit = call.number("limit", kUsualRows, kMostRows);
    if (call.who.role == Role::advertiser) {
        query.advertiser = call.who.advertiser;
    }
    return {200, admin::list_objects(call.connections.reading(), query)};
}

Response get(Call& call, Kind kind) {
    auto& database = call.connections.reading();
    need_own(call, kind);
    if (call.who.role == Role::advertiser) {  // which edits nothing, and has no audit log
        return {200, admin::read_object(database, kind, call.id)};
    }
    // The version first: what is edited meanwhile is then newer than it says.
    const std::string version = admin::version_of(database, kind, call.id);
    return {200, admin::read_object(database, kind, call.id), {{"ETag", etag(version)}}};
}

Response history(Call& call, Kind kind) {
    const auto edits = admin::read_history(
        call.connections.reading(),
        {kind, call.id, call.flag("all"), call.number("limit", kUsualRows, kMostRows)});
    return {200, Json(admin::history_json(edits))};
}

// ---- editing ----

Response edited_response(Call& call, Kind kind, int status, const Edited& edited) {
    const bool dry_run = call.flag("dry_run");
    Json root(json_object());
    const std::string& id = edited.ids.front();
    json_object_set_new(root.get(), "id",
                        admin::has_text_id(kind) ? text_json(id) : admin::value_json(id));
    json_object_set_new(root.get(), "dry_run", json_boolean(dry_run));
    json_object_set_new(root.get(), "changed", json_boolean(!edited.changes.empty()));
    json_object_set_new(root.get(), "changes", admin::changes_json(edited.changes));
    json_object_set_new(root.get(), "removed", admin::removed_json(edited.removed));
    json_t* warnings = json_array();
    for (const auto& warning : edited.warnings) {
        json_array_append_new(warnings, text_json(warning));
    }
    json_object_set_new(root.get(), "warnings", warnings);
    Response response{dry_run ? 200 : status, std::move(root)};
    if (!dry_run) {
        response.headers.emplace_back(
            "ETag", etag(admin::version_of(call.connections.writing(), kind, id)));
    }
    return response;
}

EditOptions options_of(const Call& call) {
    return {call.who.user, call.flag("dry_run"), call.flag("strict")};
}

using Do = Edited (*)(Database&, const EditOptions&, const Edit&);

Response create(Call& call, Kind kind) {
    Edit edit{.kind = kind};
    edit.patch = [&](json_t* object) { json_object_update(object, call.body.get()); };
    return edited_response(call, kind, 201,
                           admin::create(call.connections.writing(), options_of(call), edit));
}

// An operator pauses, and moves budgets within a limit.
void check_operator(const Call& call, const json_t* object) {
    const json_t* budget = json_object_get(call.body.get(), "budget");
    const json_t* wanted = json_object_get(budget, "amount_cents");
    const json_t* old = json_object_get(json_object_get(object, "budget"), "amount_cents");
    const bool only_budget = json_object_size(call.body.get()) == 1 &&
                             json_object_size(budget) == 1 && json_is_number(wanted);
    if (!only_budget || !json_is_number(old)) {
        throw Refusal{403, "forbidden", "an operator may change only the amount of a budget"};
    }
    const double most = json_number_value(old) * (1 + call.config.operator_percent / 100.0);
    if (json_number_value(wanted) > most) {
        throw Refusal{403, "forbidden",
                      fmt::format("an operator may raise a budget by at most {} %",
                                  call.config.operator_percent)};
    }
}

Response change(Call& call, Kind kind) {
    if (call.who.role == Role::operator_ && kind != Kind::campaign) {
        throw Refusal{403, "forbidden", "an operator may change only the budgets of campaigns"};
    }
    json_object_del(call.body.get(), admin::kDelivery);
    Edit edit{.kind = kind, .ids = {call.id}, .version = call.if_match};
    edit.patch = [&](json_t* object) {
        if (call.who.role == Role::operator_) {
            check_operator(call, object);
        }
        admin::merge(object, call.body.get());
    };
    return edited_response(call, kind, 200,
                           admin::update(call.connections.writing(), options_of(call), edit));
}

// A body that is not an object of the catalog.
void need_members(const Call& call,
                  std::initializer_list<std::pair<const char*, json_type>> known) {
    const char* name = nullptr;
    json_t* value = nullptr;
    json_object_foreach(call.body.get(), name, value) {
        const auto found = std::find_if(known.begin(), known.end(), [&](const auto& member) {
            return std::string_view(member.first) == name;
        });
        if (found == known.end()) {
            throw Refusal{422, "invalid",
                          fmt::format("unknown member \"{}\"", admin::printable(name))};
        }
        if (!json_is_null(value) && json_typeof(value) != found->second) {
            throw Refusal{422, "invalid",
                          fmt::format("{} must be {}", name,
                                      found->second == JSON_STRING ? "a text" : "a number")};
        }
    }
}

Response act(Call& call, Kind kind, Do action) {
    need_members(call, {});
    Edit edit{.kind = kind, .ids = {call.id}, .version = call.if_match};
    return edited_response(call, kind, 200,
                           action(call.connections.writing(), options_of(call), edit));
}

Response clone(Call& call, Kind kind) {
    need_members(call, {{"name", JSON_STRING}, {"parent", JSON_INTEGER}});
    Edit edit{.kind = kind, .ids = {call.id}};
    edit.name = admin::text_at(call.body.get(), "name");
    const json_t* parent = json_object_get(call.body.get(), "parent");
    edit.parent = json_is_integer(parent) ? admin::dumped(parent) : std::string();
    if (edit.name.empty() && admin::has_text_id(kind)) {
        throw Refusal{422, "invalid", "name must be the name of the new object"};
    }
    return edited_response(call, kind, 201,
                           admin::clone(call.connections.writing(), options_of(call), edit));
}

Response revert(Call& call, Kind kind) {
    need_members(call, {{"to", JSON_INTEGER}, {"before", JSON_INTEGER}});
    const json_t* to = json_object_get(call.body.get(), "to");
    const json_t* before = json_object_get(call.body.get(), "before");
    const json_t* version = json_is_integer(to) ? to : before;
    if (json_is_integer(to) == json_is_integer(before) || json_integer_value(version) < 0) {
        throw Refusal{422, "invalid", "either to or before must be a version of the history"};
    }
    Edit edit{.kind = kind, .ids = {call.id}, .version = call.if_match};
    return edited_response(call, kind, 200,
                           admin::revert(call.connections.writing(), options_of(call), edit,
                                         {admin::dumped(version), version == before}));
}

Response stop(Call& call) {
    need_members(call, {{"winner", JSON_INTEGER}});
    Edit edit{.kind = Kind::experiment, .ids = {call.id}, .version = call.if_match};
    const json_t* winner = json_object_get(call.body.get(), "winner");
    edit.winner = json_is_integer(winner) ? admin::dumped(winner) : std::string();
    return edited_response(call, Kind::experiment, 200,
                           admin::stop(call.connections.writing(), options_of(call), edit));
}

Response analysis(Call& call) {
    need_own(call, Kind::experiment);
    return {
        200,
        Json(admin::analysis_json(admin::read_experiment(call.connections.reading(), call.id)))};
}

// ---- the table ----

std::vector<Parameter> filters(Kind kind) {
    constexpr const char* kText = R"({"type":"string"})";
    std::vector<Parameter> list;
    const bool dated = kind == Kind::campaign || kind == Kind::ad_group || kind == Kind::creative;
    const bool grouped = kind == Kind::creative || kind == Kind::experiment;
    if (kind != Kind::advertiser) {
        list.push_back({"status", kText, "List those with this status, such as active,paused"});
    }
    if (dated) {
        list.push_back({"advertiser", kText, "Filter by name"});
        list.push_back(
            {"archived", R"({"type":"string","enum":["1"]})", "Include archived objects"});
    }
    if (kind == Kind::ad_group || grouped) {
        list.push_back({"campaign", kText, "Filter by id or name"});
    }
    if (grouped) {
        list.push_back({"ad_group", kText, "Filter by id or name"});
    }
    if (kind == Kind::ad_group || kind == Kind::creative) {
        list.push_back({"placement", kText, "List those that may be served there"});
    }
    if (kind == Kind::creative) {
        list.push_back(
            {"type", R"({"type":"string","enum":["image","html","native"]})", "Only of this type"});
    }
    list.push_back(
        {"search", kText, "List those with this text in id, name, advertiser or click URL"});
    list.push_back({"limit", R"({"type":"integer","minimum":1,"maximum":10000})",
                    "Maximum number of rows (1000)"});
    return list;
}

class Adder {
public:
    Adder(std::vector<Route>& table, Kind kind)
        : table_(table),
          kind_(kind),
          name_(kNames[static_cast<size_t>(kind)]),
          all_(collection(kind)),
          one_(all_ + "/{id}") {}

    void add_all() {
        const auto& words = admin::words_of(kind_);
        const bool own = kind_ == Kind::campaign || kind_ == Kind::ad_group ||
                         kind_ == Kind::creative || kind_ == Kind::experiment;
        const Roles readers = own ? kReadsOwn : kViews;
        const Kind kind = kind_;
        add("GET", all_, "list" + name_ + "s", fmt::format("List {}", words.plural),
            kind == Kind::experiment ? kViews : readers, filters(kind), nullptr, name_ + "List",
            [kind](Call& call) { return list(call, kind); });
        add("POST", all_, "create" + name_, fmt::format("Make {} {}", words.article, words.name),
            kManages, {kDryRun, kStrict}, "New", "Edited",
            [kind](Call& call) { return create(call, kind); })
            .status = 201;
        add("GET", one_, "get" + name_, fmt::format("Show {} {}", words.article, words.name),
            readers, {}, nullptr, name_, [kind](Call& call) { return get(call, kind); });
        Route& patch = add("PATCH", one_, "update" + name_,
                           fmt::format("Change {} {}, as RFC 7396 says", words.article, words.name),
                           kOperates, {kDryRun, kStrict}, "Patch", "Edited",
                           [kind](Call& call) { return change(call, kind); });
        patch.conditional = true;
        add_action("pause", "Pause serving it", kOperates, admin::pause);
        add_action("resume", "Serve it again", kOperates, admin::resume);
        add_action("archive", "End it permanently", kManages, admin::archive);
        add("POST", one_ + "/clone", "clone" + name_, "Make a draft of the same", kManages,
            {kDryRun}, "Clone", "Edited", [kind](Call& call) { return clone(call, kind); })
            .status = 201;
        add("GET", one_ + "/history", "history" + name_,
            "Changes with author and time, newest first", kViews,
            {{"all", R"({"type":"string","enum":["1"]})", "Include its children"},
             {"limit", R"({"type":"integer","minimum":1,"maximum":10000})",
              "Maximum number of rows (1000)"}},
            nullptr, "History", [kind](Call& call) { return history(call, kind); });
        if (kind != Kind::advertiser) {  // which has only its name
            add("POST", one_ + "/revert", "revert" + name_, "Restore an earlier version", kManages,
                {kDryRun, kStrict}, "Revert", "Edited",
                [kind](Call& call) { return revert(call, kind); });
        }
        if (kind == Kind::experiment) {
            add_action("start", "Start a draft", kManages, admin::start);
            add("POST", one_ + "/stop", "stop" + name_, "End one that runs", kManages, {kDryRun},
                "Stop", "Edited", stop);
            add("GET", one_ + "/analysis", "analyze" + name_,
                "Its figures and its verdict, which is valid at any time", kReadsOwn, {}, nullptr,
                "Analysis", analysis);
        }
    }

private:
    Route& add(const char* method, std::string path, std::string operation, std::string summary,
               Roles roles, std::vector<Parameter> parameters, const char* body,
               std::string response, std::function<Response(Call&)> run) {
        table_.push_back({method, std::move(path), std::move(operation), std::move(summary), roles,
                          std::move(parameters), body, std::move(response)});
        const bool one = table_.back().path.find("{id}") != std::string::npos;
        table_.back().run = [kind = kind_, one, run = std::move(run)](Call& call) {
            if (one) {
                need_id(call, kind);
            }
            return run(call);
        };
        return table_.back();
    }

    void add_action(const char* verb, const char* summary, Roles roles, Do action) {
        add("POST", fmt::format("{}/{}", one_, verb), verb + name_, summary, roles, {kDryRun},
            "Nothing", "Edited",
            [kind = kind_, action](Call& call) { return act(call, kind, action); });
    }

    std::vector<Route>& table_;
    const Kind kind_;
    const std::string name_;
    const std::string all_;
    const std::string one_;
};

}  // namespace

void add_object_routes(std::vector<Route>& table) {
    for (const Kind kind : {Kind::advertiser, Kind::campaign, Kind::ad_group, Kind::creative,
                            Kind::placement, Kind::experiment}) {
        Adder(table, kind).add_all();
    }
}

}  // namespace ads::api
