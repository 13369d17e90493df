// What is particular about experiments: when one may run, what of it may change
// once it has, and how it ends.
#include "lib/manage/experiment.hpp"

#include <fmt/format.h>

#include "lib/base/text.hpp"
#include "lib/manage/lifecycle.hpp"

namespace ads::admin {

namespace {

constexpr size_t kAllDigits = 17;  // shares like 1/3 come back as they were

std::string status_of(const json_t* experiment) {
    const std::string status = text_at(experiment, "status");
    return status.empty() ? "draft" : status;
}

// Whether visitors may have seen it: trials come in late, the log knows at once.
bool has_run(Database& database, const std::string& id) {
    return !database
                .run(
                    "SELECT FROM ads.experiment_trials WHERE experiment_id = $1 "
                    "UNION ALL SELECT FROM ads.audit_log WHERE table_name = 'experiments' "
                    "AND row_id = $1::bigint::text AND after ->> 'status' = 'running' LIMIT 1",
                    {id})
                .empty();
}

// The same but for its name and its status.
bool same_plan(const json_t* now, const json_t* old) {
    const auto plan = [](const json_t* experiment) {
        Json copy(json_copy(const_cast<json_t*>(experiment)));
        json_object_del(copy.get(), "name");
        json_object_del(copy.get(), "status");
        return copy;
    };
    return json_equal(plan(now).get(), plan(old).get()) != 0;
}

}  // namespace

void CampaignEdit::check_may_run(const json_t* experiment) const {
    const std::string it = called(Kind::experiment, std::to_string(number_at(experiment, "id")));
    const uint64_t group_id = number_at(experiment, "ad_group");
    const json_t* its_group = group(group_id);
    size_t i = 0;
    json_t* item = nullptr;
    json_array_foreach(json_object_get(document_.get(), "experiments"), i, item) {
        if (item != experiment && number_at(item, "ad_group") == group_id &&
            status_of(item) == "running") {
            throw Failure(
                Exit::bad_input,
                fmt::format("experiment {} is already running in ad group {}: stop it first.",
                            number_at(item, "id"), group_id));
        }
    }
    if (text_at(campaign(), "status") == "archived" || text_at(its_group, "status") == "archived") {
        throw Failure(Exit::bad_input,
                      fmt::format("{} cannot run: its ad group or campaign is archived.", it));
    }
    json_array_foreach(json_object_get(experiment, "variants"), i, item) {
        const uint64_t id = number_at(item, "creative");
        const json_t* creative = with_id(json_object_get(its_group, "creatives"), id);
        const std::string status = text_at(creative, "status");
        if (creative != nullptr && !status.empty() && status != "active") {
            throw Failure(Exit::bad_input,
                          fmt::format("{} cannot run: creative {} is {}, and all variants must be "
                                      "active.",
                                      it, id, status));
        }
    }
}

// Of what is not over, no two in an ad group have one name.
void CampaignEdit::check_experiment_name(const json_t* now, const json_t* old) const {
    const std::string name = text_at(now, "name");
    if (name.empty() || text_at(old, "name") == name) {
        return;
    }
    size_t i = 0;
    json_t* other = nullptr;
    json_array_foreach(json_object_get(document_.get(), "experiments"), i, other) {
        if (other != now && text_at(other, "name") == name &&
            number_at(other, "ad_group") == number_at(now, "ad_group") &&
            status_of(other) != "completed") {
            throw Failure(Exit::bad_input,
                          fmt::format("the name \"{}\" is already used by experiment {}.",
                                      printable(name), number_at(other, "id")));
        }
    }
}

void CampaignEdit::check_experiment(json_t* now, const json_t* old) const {
    const std::string id = std::to_string(number_at(now, "id"));
    const json_t* given = json_object_get(now, "status");
    if (given == nullptr || json_is_null(given)) {  // what a file does not say stays as it is
        json_object_set_new(now, "status", text_json(status_of(old)));
    }
    const std::string to = status_of(now);
    const auto status = named<ExperimentStatus>(to);
    if (old != nullptr) {
        check_transition(Kind::experiment, id, status_of(old), to);
    } else if (status && !may_begin(*status)) {
        throw Failure(Exit::bad_input, fmt::format("a new experiment cannot be {}.", to));
    }
    const json_t* winner = json_object_get(now, "winner");
    if (winner != nullptr && !json_is_null(winner)) {
        throw Failure(Exit::bad_input,
                      "the winner is set when an experiment ends: use experiment stop --winner.");
    }
    if (old != nullptr && !same_plan(now, old) && has_run(edits_.database(), id)) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} has run, so only its name can be changed: clone it to "
                                  "change more.",
                                  called(Kind::experiment, id)));
    }
    check_experiment_name(now, old);
    if (to == "running" && (old == nullptr || status_of(old) != to)) {
        check_may_run(now);
    }
}

void CampaignEdit::save_experiment(uint64_t id) {
    json_t* now = experiment(id);
    check_experiment(now, with_id(json_object_get(before_.get(), "experiments"), id));
    check_catalog(dumped(document_.get(), kAllDigits), document_.get());
    write_experiment([&](Database& database) {
        database.run("SELECT ads.put_experiment($1::jsonb)", {dumped(now, kAllDigits)});
    });
}

std::string start_experiment(Edits& edits, const std::string& text) {
    const uint64_t id = id_of(Kind::experiment, text);
    CampaignEdit campaign(edits, place_of(edits.database(), Kind::experiment, id).campaign);
    const json_t* experiment = campaign.experiment(id);
    if (const std::string status = status_of(experiment); status != "draft") {
        throw Failure(Exit::bad_input,
                      fmt::format("{} is {}, and only a draft can be started.",
                                  called(Kind::experiment, std::to_string(id)), status));
    }
    campaign.check_may_run(experiment);
    campaign.write_experiment([&](Database& database) {
        database.run("SELECT ads.start_experiment($1)", {std::to_string(id)});
    });
    return std::to_string(id);
}

std::string stop_experiment(Edits& edits, const std::string& text, const std::string& chosen) {
    const uint64_t id = id_of(Kind::experiment, text);
    const uint64_t winner = chosen.empty() ? 0 : id_of(Kind::creative, chosen);
    CampaignEdit campaign(edits, place_of(edits.database(), Kind::experiment, id).campaign);
    const json_t* experiment = campaign.experiment(id);
    const std::string it = called(Kind::experiment, std::to_string(id));
    if (const std::string status = status_of(experiment); status != "running") {
        throw Failure(Exit::bad_input, fmt::format("{} is {}, not running.", it,
                                                   status == "draft" ? "a draft" : status));
    }
    bool known = winner == 0;
    size_t i = 0;
    json_t* variant = nullptr;
    json_array_foreach(json_object_get(experiment, "variants"), i, variant) {
        known = known || number_at(variant, "creative") == winner;
    }
    if (!known) {
        throw Failure(Exit::bad_input,
                      fmt::format("creative {} is not a variant of {}.", winner, it));
    }
    campaign.write_experiment([&](Database& database) {
        const std::string name = std::to_string(winner);
        database.run(
            "SELECT ads.end_experiment($1, $2, jsonb_build_object('verdict', 'stopped', 'winner', "
            "$2::bigint, 'why', 'stopped by hand'))",
            {std::to_string(id), winner == 0 ? Param() : Param(std::string_view(name))});
    });
    return std::to_string(id);
}

}  // namespace ads::admin
