// create, update, pause, resume, archive, clone; start and stop of an experiment.
#include <fmt/format.h>

#include <ctime>

#include "core/catalog/formats.hpp"
#include "lib/base/text.hpp"
#include "lib/manage/dates.hpp"
#include "lib/manage/edits.hpp"
#include "lib/manage/experiment.hpp"
#include "lib/manage/flat.hpp"
#include "lib/manage/history.hpp"

namespace ads::admin {

namespace {

// One object of an edit.
struct One {
    const Edit& edit;
    std::string id;  // empty: of a new one that gets a number
    std::string parent;
    std::string winner;
};

enum class Named { new_one, old };

// Nobody else edits meanwhile.
void check_version(Database& database, Kind kind, const std::string& id,
                   const std::string& expected) {
    if (std::string now = version_of(database, kind, id); now != expected) {
        throw Conflict(fmt::format("{} was changed by somebody else since.", called(kind, id)),
                       std::move(now));
    }
}

// The transaction, and what is done in it for each that is named. `f` returns the id of what was
// edited.
template <class F>
Edited in_transaction(Database& database, const EditOptions& options, const Edit& edit, Named named,
                      F f) {
    try {
        Edits edits(database, options);
        One one{edit, {}, edit.parent, {}};
        if (!edit.parent.empty() && edit.kind != Kind::campaign) {
            one.parent = found_id(database, parent_kind(edit.kind), edit.parent);
        }
        if (!edit.winner.empty()) {
            one.winner = found_id(database, Kind::creative, edit.winner);
        }
        Edited edited;
        const auto run = [&](const std::string& id) {
            one.id = named == Named::new_one ? id : found_id(database, edit.kind, id);
            if (edit.version) {
                check_version(database, edit.kind, one.id, *edit.version);
            }
            edited.ids.push_back(f(edits, one));
        };
        if (edit.ids.empty() && named == Named::new_one) {
            run("");
        }
        for (const auto& id : edit.ids) {
            run(id);
        }
        edits.check_warnings();
        edits.finish();
        edited.currency = edits.currency();
        edited.changes = std::move(edits.changes);
        edited.removed = std::move(edits.removed);
        edited.warnings = std::move(edits.warnings);
        return edited;
    } catch (const SqlError& e) {
        throw explained(e);
    }
}

// ---- objects ----

// An id that the file or --set gives; else a new one.
uint64_t number(Edits& edits, Kind kind, json_t* object) {
    const json_t* id = json_object_get(object, "id");
    if (id == nullptr || json_is_null(id)) {
        const uint64_t fresh = edits.new_id(kind);
        json_object_set_new(object, "id", number_json(fresh));
        return fresh;
    }
    if (!json_is_integer(id)) {
        id_of(kind, dumped(id));  // tells what is right
    }
    const auto given = id_of(kind, std::to_string(json_integer_value(id)));
    edits.taken(kind, given);
    return given;
}

void number_below(Edits& edits, json_t* object, const char* key, Kind kind) {
    json_t* list = json_object_get(object, key);
    size_t i = 0;
    json_t* item = nullptr;
    // Those that are given first, so that new ones are none of them.
    for (const bool given : {true, false}) {
        json_array_foreach(list, i, item) {
            if (json_is_object(item) && (json_object_get(item, "id") != nullptr) == given) {
                number(edits, kind, item);
            }
        }
    }
    json_array_foreach(list, i, item) {
        if (kind == Kind::ad_group) {
            number_below(edits, item, "creatives", Kind::creative);
        }
    }
}

// What the file says that it stands in; taken out of the object.
std::string taken_parent(Kind kind, json_t* object) {
    const char* key = words_of(kind).parent;
    if (key == nullptr || json_object_get(object, key) == nullptr) {
        return {};
    }
    const json_t* value = json_object_get(object, key);
    std::string parent = json_is_string(value) ? text_at(object, key) : dumped(value);
    json_object_del(object, key);
    return parent;
}

// The status that no other follows.
const char* last_status(Kind kind) {
    return kind == Kind::experiment ? "completed" : "archived";
}

json_t* list_in(json_t* object, const char* key) {
    json_t* list = json_object_get(object, key);
    if (!json_is_array(list)) {
        list = json_array();
        json_object_set_new(object, key, list);
    }
    return list;
}

void need_absent(const json_t* object, Kind kind, uint64_t id) {
    if (object != nullptr) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} already exists.", called(kind, std::to_string(id))));
    }
}

void need_open(Kind kind, const json_t* object, const std::string& id) {
    const std::string last = last_status(kind);
    if (text_at(object, "status") == last) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} is {} and cannot be changed: clone it instead.",
                                  called(kind, id), last));
    }
}

json_t* need_campaign(const CampaignEdit& campaign, uint64_t id) {
    if (campaign.campaign() == nullptr) {
        throw NotFound(fmt::format("there is no {}.", called(Kind::campaign, std::to_string(id))));
    }
    return campaign.campaign();
}

// The object that an edit is about, in its campaign.
struct Found {
    CampaignEdit campaign;
    Place place;
    Kind kind;
    json_t* object;

    void save() {
        kind == Kind::experiment ? campaign.save_experiment(number_at(object, "id"))
                                 : campaign.save();
    }
    uint64_t parent() const {
        return kind == Kind::campaign ? 0 : kind == Kind::ad_group ? place.campaign : place.group;
    }
};

Found find(Edits& edits, Kind kind, const std::string& text) {
    const uint64_t id = id_of(kind, text);
    const Place place =
        kind == Kind::campaign ? Place{id, 0} : place_of(edits.database(), kind, id);
    Found found{CampaignEdit(edits, place.campaign), place, kind, nullptr};
    found.object = kind == Kind::campaign     ? need_campaign(found.campaign, id)
                   : kind == Kind::ad_group   ? found.campaign.group(id)
                   : kind == Kind::experiment ? found.campaign.experiment(id)
                                              : found.campaign.creative(place, id);
    return found;
}

// ---- campaigns and what is in them ----

std::string create_campaign(Edits& edits, json_t* given) {
    json_t* object = given;
    if (json_object_get(object, "status") == nullptr) {
        json_object_set_new(object, "status", text_json("draft"));
    }
    resolve_dates(object, zone_of(object));
    const uint64_t id = number(edits, Kind::campaign, object);
    number_below(edits, object, "ad_groups", Kind::ad_group);
    open_account(edits, text_at(object, "advertiser"));
    CampaignEdit campaign(edits, id);
    need_absent(campaign.campaign(), Kind::campaign, id);
    campaign.add(json_incref(object));
    campaign.save();
    return std::to_string(id);
}

// Into a campaign or an ad group.
std::string create_within(Edits& edits, Kind kind, const std::string& parent, json_t* object) {
    const bool group = kind == Kind::ad_group;
    Found found = find(edits, group ? Kind::campaign : Kind::ad_group, parent);
    need_open(group ? Kind::campaign : Kind::ad_group, found.object, parent);
    resolve_dates(object, zone_of(found.campaign.campaign()));
    const uint64_t id = number(edits, kind, object);
    if (group) {
        number_below(edits, object, "creatives", Kind::creative);
    }
    const Rows rows =
        edits.database().run(fmt::format("SELECT FROM ads.{} WHERE id = $1", words_of(kind).table),
                             {std::to_string(id)});
    need_absent(rows.empty() ? nullptr : object, kind, id);
    if (kind == Kind::experiment) {
        json_object_set_new(object, words_of(kind).parent, number_json(found.place.group));
        found.campaign.add_experiment(json_incref(object));
        found.campaign.save_experiment(id);
        return std::to_string(id);
    }
    json_array_append(list_in(found.object, group ? "ad_groups" : "creatives"), object);
    found.campaign.save();
    return std::to_string(id);
}

std::string parent_of(const One& one, json_t* object) {
    const Kind kind = one.edit.kind;
    const std::string written = taken_parent(kind, object);
    const std::string& parent = one.parent.empty() ? written : one.parent;
    if (parent.empty()) {
        throw Failure(
            Exit::usage,
            fmt::format("{} create requires --{}, or \"{}\" in its file.", words_of(kind).command,
                        kind == Kind::ad_group ? "campaign" : "ad-group", words_of(kind).parent));
    }
    return parent;
}

// A campaign whose start is in the future waits for it.
std::string running_status(Kind kind, const json_t* object) {
    if (kind == Kind::experiment) {
        return "running";
    }
    const auto start = catalog::parse_date(text_at(object, "start"));
    const bool ahead = kind == Kind::campaign && start && *start > std::time(nullptr);
    return ahead ? "scheduled" : "active";
}

bool has_ended(const json_t* campaign) {
    const auto end = catalog::parse_date(text_at(campaign, "end"));
    return end && *end <= std::time(nullptr);
}

// A completed campaign that gets a later end.
void run_again(json_t* campaign, const json_t* before) {
    const bool completed =
        text_at(before, "status") == "completed" && text_at(campaign, "status") == "completed";
    const bool moved =
        json_equal(json_object_get(campaign, "end"), json_object_get(before, "end")) == 0;
    if (completed && moved && !has_ended(campaign)) {
        json_object_set_new(campaign, "status",
                            text_json(running_status(Kind::campaign, campaign)));
    }
}

std::string update_within(Edits& edits, const One& one) {
    const Kind kind = one.edit.kind;
    Found found = find(edits, kind, one.id);
    need_open(kind, found.object, one.id);
    const Json before(json_deep_copy(found.object));
    one.edit.patch(found.object);
    resolve_dates(found.object, zone_of(found.campaign.campaign()));
    const std::string parent = taken_parent(kind, found.object);
    if (!parent.empty() && parent != std::to_string(found.parent())) {
        throw Failure(
            Exit::bad_input,
            fmt::format("{} cannot be moved: clone it with another parent.", called(kind, one.id)));
    }
    if (dumped(json_object_get(found.object, "id")) != one.id) {
        throw Failure(Exit::bad_input,
                      fmt::format("the id of {} cannot be changed.", called(kind, one.id)));
    }
    if (kind == Kind::campaign) {
        number_below(edits, found.object, "ad_groups", Kind::ad_group);
        if (text_at(found.object, "advertiser") != text_at(before.get(), "advertiser")) {
            open_account(edits, text_at(found.object, "advertiser"));
        }
        keep_local_dates(found.object, before.get());
        run_again(found.object, before.get());
    } else if (kind == Kind::ad_group) {
        number_below(edits, found.object, "creatives", Kind::creative);
    } else if (kind == Kind::experiment) {
        json_object_set_new(found.object, words_of(kind).parent, number_json(found.parent()));
    }
    found.save();
    return one.id;
}

// ---- statuses ----

void set_status(Edits& edits, Kind kind, const std::string& id, const std::string& wanted) {
    Found found = find(edits, kind, id);
    const std::string status = wanted.empty() ? running_status(kind, found.object) : wanted;
    check_transition(kind, id, text_at(found.object, "status"), status);
    json_object_set_new(found.object, "status", text_json(status));
    found.save();
}

// What was paused with the advertiser, so that it is resumed with it. A campaign that had spent
// its budget would be resumed by the scheduler as soon as it has another: not meanwhile.
void pause_advertiser(Edits& edits, const std::string& name) {
    for (const auto& id : campaigns_of(edits.database(), name, "{scheduled,active}")) {
        set_status(edits, Kind::campaign, id, "paused");
        edits.database().run("INSERT INTO ads.advertiser_pauses (campaign_id) VALUES ($1)", {id});
    }
    edits.database().run(
        "WITH over AS (DELETE FROM ads.budget_pauses p USING ads.campaigns c "
        "WHERE c.id = p.campaign_id AND c.advertiser = $1 RETURNING p.campaign_id) "
        "INSERT INTO ads.advertiser_pauses (campaign_id, over_budget) SELECT campaign_id, true "
        "FROM over ON CONFLICT DO NOTHING",
        {name});
}

void resume_advertiser(Edits& edits, const std::string& name) {
    edits.database().run(
        "WITH over AS (DELETE FROM ads.advertiser_pauses p USING ads.campaigns c "
        "WHERE c.id = p.campaign_id AND c.advertiser = $1 AND p.over_budget "
        "RETURNING p.campaign_id) "
        "INSERT INTO ads.budget_pauses (campaign_id, paused_at) SELECT campaign_id, ads.now() "
        "FROM over ON CONFLICT DO NOTHING",
        {name});
    const Rows rows = edits.database().run(
        "SELECT c.id FROM ads.advertiser_pauses p JOIN ads.campaigns c ON c.id = p.campaign_id "
        "WHERE c.advertiser = $1 AND c.status = 'paused' ORDER BY c.id",
        {name});
    for (size_t i = 0; i < rows.size(); i++) {
        const std::string id(rows.at(i, 0));
        const Found found = find(edits, Kind::campaign, id);
        set_status(edits, Kind::campaign, id, has_ended(found.object) ? "completed" : "");
    }
}

void archive_advertiser(Edits& edits, const std::string& name) {
    for (const auto& id :
         campaigns_of(edits.database(), name, "{draft,scheduled,active,paused,completed}")) {
        set_status(edits, Kind::campaign, id, "archived");
    }
    remove_advertiser_without_campaigns(edits, name);
}

using OfAdvertiser = void (*)(Edits& edits, const std::string& name);

Edited to_status(Database& database, const EditOptions& options, const Edit& edit,
                 const std::string& status, OfAdvertiser of_advertiser) {
    return in_transaction(database, options, edit, Named::old, [&](Edits& edits, const One& one) {
        if (edit.kind == Kind::advertiser) {
            need_advertiser(database, one.id, true);
            of_advertiser(edits, one.id);
        } else {
            set_status(edits, edit.kind, one.id, status);
        }
        return one.id;
    });
}

Edited placement_to(Database& database, const EditOptions& options, const Edit& edit,
                    PlacementStatus status) {
    return in_transaction(database, options, edit, Named::old, [&](Edits& edits, const One& one) {
        return set_placement_status(edits, one.id, status);
    });
}

// ---- clones ----

void drop_archived(json_t* list) {
    for (size_t i = json_array_size(list); i-- > 0;) {
        if (text_at(json_array_get(list, i), "status") == "archived") {
            json_array_remove(list, i);
        }
    }
}

// Without what belongs to the original alone.
Json copied(const json_t* object) {
    Json copy(json_deep_copy(object));
    for (const char* key : {"id", "updated_at", "winner"}) {
        json_object_del(copy.get(), key);
    }
    json_object_del(json_object_get(copy.get(), "budget"), "spent_cents");
    json_object_set_new(copy.get(), "status", text_json("draft"));
    json_t* groups = json_object_get(copy.get(), "ad_groups");
    drop_archived(groups);
    drop_archived(json_object_get(copy.get(), "creatives"));
    size_t i = 0;
    json_t* group = nullptr;
    json_array_foreach(groups, i, group) {
        json_object_del(group, "id");
        drop_archived(json_object_get(group, "creatives"));
    }
    const auto forget = [](json_t* creatives) {
        size_t k = 0;
        json_t* creative = nullptr;
        json_array_foreach(creatives, k, creative) {
            json_object_del(creative, "id");
            // What is over in the original is not over here.
            if (text_at(creative, "status") == "completed") {
                json_object_set_new(creative, "status", text_json("draft"));
            }
        }
    };
    json_array_foreach(groups, i, group) {
        if (text_at(group, "status") == "completed") {
            json_object_set_new(group, "status", text_json("draft"));
        }
        forget(json_object_get(group, "creatives"));
    }
    forget(json_object_get(copy.get(), "creatives"));
    return copy;
}

// "Autumn (copy)", or with the first number that is free.
std::string copy_name(Database& database, Kind kind, const std::string& name) {
    const std::string sql = fmt::format("SELECT FROM ads.{} WHERE name = $1 AND status <> '{}'",
                                        words_of(kind).table, last_status(kind));
    for (int i = 1;; i++) {
        std::string copy =
            i == 1 ? fmt::format("{} (copy)", name) : fmt::format("{} (copy {})", name, i);
        if (database.run(sql, {copy}).empty()) {
            return copy;
        }
    }
}

// Of a campaign of a cloned advertiser only that becomes another.
std::string clone_one(Edits& edits, const One& one, Kind kind, const std::string& id,
                      const std::string& advertiser) {
    const Found found = find(edits, kind, id);
    const Json copy = copied(found.object);
    const std::string old_name = text_at(copy.get(), "name");
    if (!one.edit.name.empty() && advertiser.empty()) {
        json_object_set_new(copy.get(), "name", text_json(one.edit.name));
    } else if (!old_name.empty() && advertiser.empty()) {
        json_object_set_new(copy.get(), "name",
                            text_json(copy_name(edits.database(), kind, old_name)));
    }
    if (kind == Kind::campaign) {
        if (!advertiser.empty()) {
            json_object_set_new(copy.get(), "advertiser", text_json(advertiser));
        }
        return create_campaign(edits, copy.get());
    }
    return create_within(
        edits, kind, one.parent.empty() ? std::to_string(found.parent()) : one.parent, copy.get());
}

std::string clone_advertiser(Edits& edits, const One& one) {
    need_advertiser(edits.database(), one.id, true);
    create_advertiser(edits, one.edit.name);
    for (const auto& id :
         campaigns_of(edits.database(), one.id, "{draft,scheduled,active,paused,completed}")) {
        clone_one(edits, one, Kind::campaign, id, one.edit.name);
    }
    return one.edit.name;
}

std::string create_one(Edits& edits, const One& one, json_t* object) {
    const Kind kind = one.edit.kind;
    switch (kind) {
        case Kind::advertiser:
            return create_advertiser(edits, one.id.empty() ? text_at(object, "name") : one.id);
        case Kind::placement:
            if (!one.id.empty()) {
                json_object_set_new(object, "id", text_json(one.id));
            }
            return add_placement(edits, json_incref(object));
        case Kind::campaign:
            return create_campaign(edits, object);
        default:
            return create_within(
                edits, kind, found_id(edits.database(), parent_kind(kind), parent_of(one, object)),
                object);
    }
}

}  // namespace

Edited create(Database& database, const EditOptions& options, const Edit& edit) {
    const Json object(json_object());
    if (edit.patch) {
        edit.patch(object.get());
    }
    return in_transaction(
        database, options, edit, Named::new_one,
        [&](Edits& edits, const One& one) { return create_one(edits, one, object.get()); });
}

Edited update(Database& database, const EditOptions& options, const Edit& edit) {
    return in_transaction(database, options, edit, Named::old, [&](Edits& edits, const One& one) {
        return edit.kind == Kind::advertiser  ? update_advertiser(edits, one.id, edit.patch)
               : edit.kind == Kind::placement ? update_placement(edits, one.id, edit.patch)
                                              : update_within(edits, one);
    });
}

Edited pause(Database& database, const EditOptions& options, const Edit& edit) {
    if (edit.kind == Kind::placement) {
        return placement_to(database, options, edit, PlacementStatus::paused);
    }
    return to_status(database, options, edit, edit.kind == Kind::experiment ? "draft" : "paused",
                     pause_advertiser);
}

Edited resume(Database& database, const EditOptions& options, const Edit& edit) {
    if (edit.kind == Kind::placement) {
        return placement_to(database, options, edit, PlacementStatus::active);
    }
    return to_status(database, options, edit, "", resume_advertiser);
}

Edited archive(Database& database, const EditOptions& options, const Edit& edit) {
    if (edit.kind == Kind::placement) {
        return in_transaction(
            database, options, edit, Named::old,
            [](Edits& edits, const One& one) { return remove_placement(edits, one.id); });
    }
    return to_status(database, options, edit, last_status(edit.kind), archive_advertiser);
}

Edited clone(Database& database, const EditOptions& options, const Edit& edit) {
    return in_transaction(database, options, edit, Named::old, [&](Edits& edits, const One& one) {
        return edit.kind == Kind::advertiser  ? clone_advertiser(edits, one)
               : edit.kind == Kind::placement ? clone_placement(edits, one.id, edit.name)
                                              : clone_one(edits, one, edit.kind, one.id, "");
    });
}

Edited start(Database& database, const EditOptions& options, const Edit& edit) {
    return in_transaction(database, options, edit, Named::old, [](Edits& edits, const One& one) {
        return start_experiment(edits, one.id);
    });
}

Edited stop(Database& database, const EditOptions& options, const Edit& edit) {
    return in_transaction(database, options, edit, Named::old, [](Edits& edits, const One& one) {
        return stop_experiment(edits, one.id, one.winner);
    });
}

}  // namespace ads::admin
