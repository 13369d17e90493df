// create, update, pause, resume, archive, clone; start and stop of an experiment.
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "changes.hpp"
#include "core/catalog/formats.hpp"
#include "manage_edit.hpp"
#include "manage_experiment.hpp"
#include "manage_fields.hpp"
#include "manage_flat.hpp"
#include "table.hpp"

namespace ads::cli {

namespace {

// ---- what is printed ----

json_t* removed_json(const std::vector<Removed>& removed) {
    json_t* list = json_array();
    for (const auto& one : removed) {
        json_t* what = json_array();
        for (const auto& text : one.what) {
            json_array_append_new(what, text_json(text));
        }
        json_t* item = json_object();
        json_object_set_new(item, "creative", number_json(one.creative));
        json_object_set_new(item, "what", what);
        json_array_append_new(list, item);
    }
    return list;
}

bool has_text_id(Kind kind) {
    return kind == Kind::advertiser || kind == Kind::placement;
}

void report(const Edit& edit, const char* action, const std::string& id, const Edits& edits) {
    if (edit.access.json) {
        const Json root(json_object());
        json_object_set_new(root.get(), "action", text_json(action));
        json_object_set_new(root.get(), "object", text_json(words_of(edit.kind).name));
        json_object_set_new(root.get(), "id",
                            has_text_id(edit.kind) ? text_json(id) : value_json(id));
        json_object_set_new(root.get(), "dry_run", json_boolean(edit.access.dry_run));
        json_object_set_new(root.get(), "changed", json_boolean(!edits.changes.empty()));
        json_object_set_new(root.get(), "changes", changes_json(edits.changes));
        json_object_set_new(root.get(), "removed", removed_json(edits.removed));
        print_json(root);
        return;
    }
    show_changes(edits.changes);
    if (edits.changes.empty()) {
        out().put("no changes\n");
    } else if (edit.access.dry_run) {
        out().put("nothing was written: this was a dry run\n");
    }
    tell_removed(edits.removed);
}

// The transaction, what is done in it, and what is printed of it. `f` returns
// the id of what was edited.
template <class F>
Exit in_transaction(const Edit& edit, const char* action, F f) {
    try {
        Edits edits(edit.access);
        const std::string id = f(edits);
        edits.finish();
        report(edit, action, id, edits);
        return Exit::ok;
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

Json given_object(const Edit& edit) {
    Json object(json_object());
    apply(edit, object.get());
    return object;
}

// That of what is over for good.
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
                      fmt::format("{} exists already.", called(kind, std::to_string(id))));
    }
}

void need_open(Kind kind, const json_t* object, const std::string& id) {
    const std::string last = last_status(kind);
    if (text_at(object, "status") == last) {
        throw Failure(Exit::bad_input, fmt::format("{} is {} and stays so: clone it to begin anew.",
                                                   called(kind, id), last));
    }
}

json_t* need_campaign(const CampaignEdit& campaign, uint64_t id) {
    if (campaign.campaign() == nullptr) {
        throw Failure(Exit::bad_input,
                      fmt::format("there is no {}.", called(Kind::campaign, std::to_string(id))));
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

bool says_nothing(const Edit& edit) {
    return edit.file.empty() && edit.values.empty() && edit.sets.empty();
}

std::string create_campaign(Edits& edits, json_t* given) {
    json_t* object = given;
    if (json_object_get(object, "status") == nullptr) {
        json_object_set_new(object, "status", text_json("draft"));
    }
    const uint64_t id = number(edits, Kind::campaign, object);
    number_below(edits, object, "ad_groups", Kind::ad_group);
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

std::string parent_of(const Edit& edit, json_t* object) {
    const std::string written = taken_parent(edit.kind, object);
    const std::string& parent = edit.parent.empty() ? written : edit.parent;
    if (parent.empty()) {
        throw Failure(
            Exit::usage,
            fmt::format("{} create needs --{}, or \"{}\" in its file.", words_of(edit.kind).command,
                        edit.kind == Kind::ad_group ? "campaign" : "ad-group",
                        words_of(edit.kind).parent));
    }
    return parent;
}

std::string update_within(Edits& edits, const Edit& edit) {
    Found found = find(edits, edit.kind, edit.id);
    need_open(edit.kind, found.object, edit.id);
    apply(edit, found.object);
    const std::string parent = taken_parent(edit.kind, found.object);
    if (!parent.empty() && parent != std::to_string(found.parent())) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} cannot be moved: clone it into another place.",
                                  called(edit.kind, edit.id)));
    }
    if (dumped(json_object_get(found.object, "id")) != edit.id) {
        throw Failure(Exit::bad_input,
                      fmt::format("the id of {} cannot be changed.", called(edit.kind, edit.id)));
    }
    if (edit.kind == Kind::campaign) {
        number_below(edits, found.object, "ad_groups", Kind::ad_group);
    } else if (edit.kind == Kind::ad_group) {
        number_below(edits, found.object, "creatives", Kind::creative);
    } else if (edit.kind == Kind::experiment) {
        json_object_set_new(found.object, words_of(edit.kind).parent, number_json(found.parent()));
    }
    found.save();
    return edit.id;
}

// ---- statuses ----

// A campaign whose start lies ahead waits for it.
std::string running_status(Kind kind, const json_t* object) {
    if (kind == Kind::experiment) {
        return "running";
    }
    const auto start = catalog::parse_date(text_at(object, "start"));
    const bool ahead = kind == Kind::campaign && start && *start > std::time(nullptr);
    return ahead ? "scheduled" : "active";
}

void set_status(Edits& edits, Kind kind, const std::string& id, const std::string& wanted) {
    Found found = find(edits, kind, id);
    const std::string status = wanted.empty() ? running_status(kind, found.object) : wanted;
    check_transition(kind, id, text_at(found.object, "status"), status);
    json_object_set_new(found.object, "status", text_json(status));
    found.save();
}

Exit to_status(const Edit& edit, const char* action, const std::string& status,
               const char* of_campaigns) {
    return in_transaction(edit, action, [&](Edits& edits) {
        if (edit.kind != Kind::advertiser) {
            set_status(edits, edit.kind, edit.id, status);
            return edit.id;
        }
        need_advertiser(edits.database(), edit.id, true);
        for (const auto& id : campaigns_of(edits.database(), edit.id, of_campaigns)) {
            set_status(edits, Kind::campaign, id, status);
        }
        return edit.id;
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

std::string clone_one(Edits& edits, const Edit& edit, Kind kind, const std::string& id,
                      const std::string& advertiser) {
    const Found found = find(edits, kind, id);
    const Json copy = copied(found.object);
    const std::string old_name = text_at(copy.get(), "name");
    if (!edit.name.empty() && advertiser.empty()) {
        json_object_set_new(copy.get(), "name", text_json(edit.name));
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
    return create_within(edits, kind,
                         edit.parent.empty() ? std::to_string(found.parent()) : edit.parent,
                         copy.get());
}

std::string clone_advertiser(Edits& edits, const Edit& edit) {
    need_advertiser(edits.database(), edit.id, true);
    create_advertiser(edits, edit.name);
    for (const auto& id :
         campaigns_of(edits.database(), edit.id, "{draft,scheduled,active,paused,completed}")) {
        clone_one(edits, edit, Kind::campaign, id, edit.name);
    }
    return edit.name;
}

}  // namespace

Exit create(const Edit& edit) {
    const Json object = given_object(edit);
    if (edit.kind == Kind::campaign && text_at(object.get(), "name").empty()) {
        if (!says_nothing(edit) || isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
            throw Failure(Exit::usage,
                          "campaign create needs --name, or a name in its --file; on a terminal "
                          "and without any option it asks.");
        }
        ask_for_campaign(object.get());
    }
    return in_transaction(edit, "create", [&](Edits& edits) {
        switch (edit.kind) {
            case Kind::advertiser:
                return create_advertiser(edits,
                                         edit.id.empty() ? text_at(object.get(), "name") : edit.id);
            case Kind::placement:
                if (!edit.id.empty()) {
                    json_object_set_new(object.get(), "id", text_json(edit.id));
                }
                return add_placement(edits, json_incref(object.get()));
            case Kind::campaign:
                return create_campaign(edits, object.get());
            default:
                const std::string parent = parent_of(edit, object.get());
                return create_within(edits, edit.kind, parent, object.get());
        }
    });
}

Exit update(const Edit& edit) {
    if (says_nothing(edit)) {
        throw Failure(Exit::usage,
                      fmt::format("{} update needs something to change: a flag, --set or --file.",
                                  words_of(edit.kind).command));
    }
    return in_transaction(edit, "update", [&](Edits& edits) {
        return edit.kind == Kind::advertiser  ? update_advertiser(edits, edit)
               : edit.kind == Kind::placement ? update_placement(edits, edit)
                                              : update_within(edits, edit);
    });
}

Exit pause(const Edit& edit) {
    if (edit.kind == Kind::placement) {
        return in_transaction(edit, "pause",
                              [&](Edits& edits) { return pause_placement(edits, edit.id); });
    }
    return to_status(edit, "pause", edit.kind == Kind::experiment ? "draft" : "paused",
                     "{scheduled,active}");
}

Exit resume(const Edit& edit) {
    if (edit.kind == Kind::placement) {
        return in_transaction(edit, "resume",
                              [&](Edits& edits) { return resume_placement(edits, edit.id); });
    }
    return to_status(edit, "resume", "", "{paused}");
}

Exit archive(const Edit& edit) {
    if (edit.kind == Kind::placement) {
        return in_transaction(edit, "archive",
                              [&](Edits& edits) { return remove_placement(edits, edit.id); });
    }
    return to_status(edit, "archive", last_status(edit.kind),
                     "{draft,scheduled,active,paused,completed}");
}

Exit clone(const Edit& edit) {
    return in_transaction(edit, "clone", [&](Edits& edits) {
        return edit.kind == Kind::advertiser  ? clone_advertiser(edits, edit)
               : edit.kind == Kind::placement ? clone_placement(edits, edit)
                                              : clone_one(edits, edit, edit.kind, edit.id, "");
    });
}

Exit start(const Edit& edit) {
    return in_transaction(edit, "start",
                          [&](Edits& edits) { return start_experiment(edits, edit.id); });
}

Exit stop(const Edit& edit) {
    return in_transaction(
        edit, "stop", [&](Edits& edits) { return stop_experiment(edits, edit.id, edit.winner); });
}

}  // namespace ads::cli
