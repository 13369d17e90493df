#include "manage_flat.hpp"

#include <fmt/format.h>

#include "manage_fields.hpp"
#include "table.hpp"

namespace ads::cli {

namespace {

constexpr const char* kHighestFloor = "10000000000000000";  // micro-cents: of ads.money

void check_advertiser(const std::string& name) {
    constexpr size_t kMost = 100;
    if (name.empty() || name.size() > kMost) {
        throw Failure(Exit::bad_input,
                      fmt::format("an advertiser's name must be 1 to {} bytes.", kMost));
    }
}

bool advertiser_exists(Database& database, const std::string& name) {
    return !database.run("SELECT FROM ads.advertisers WHERE name = $1", {name}).empty();
}

Json placements(Database& database) {
    const std::string text = database.value("SELECT ads.campaign_document(0)");
    return Json(json_loadb(text.data(), text.size(), 0, nullptr));
}

json_t* placement_in(const json_t* document, const std::string& id) {
    size_t i = 0;
    json_t* item = nullptr;
    json_array_foreach(json_object_get(document, "placements"), i, item) {
        if (text_at(item, "id") == id) {
            return item;
        }
    }
    return nullptr;
}

json_t* need_placement(const json_t* document, const std::string& id) {
    json_t* placement = placement_in(document, id);
    if (placement == nullptr) {
        throw Failure(Exit::bad_input, fmt::format("there is no {}.", called(Kind::placement, id)));
    }
    return placement;
}

void note_placements(Edits& edits, const json_t* before) {
    for (auto& change : difference(dumped(before), dumped(placements(edits.database()).get()))) {
        edits.changes.push_back(std::move(change));
    }
}

void put_placement(Edits& edits, const json_t* before, const json_t* document,
                   const json_t* placement) {
    check_catalog(dumped(document), document);
    edits.write(
        [&] { edits.database().run("SELECT ads.put_placement($1::jsonb)", {dumped(placement)}); });
    note_placements(edits, before);
}

bool is_paused(Database& database, const std::string& id) {
    return !database
                .run("SELECT FROM ads.placements WHERE id = $1 AND paused_floor_micro IS NOT NULL",
                     {id})
                .empty();
}

std::string move_floor(Edits& edits, const std::string& id, const std::string& sql) {
    const Json before = placements(edits.database());
    need_placement(before.get(), id);
    edits.write([&] { edits.database().run(sql, {id}); });
    note_placements(edits, before.get());
    return id;
}

}  // namespace

void need_advertiser(Database& database, const std::string& name, bool there) {
    if (advertiser_exists(database, name) != there) {
        throw Failure(Exit::bad_input,
                      there ? fmt::format("there is no {}.", called(Kind::advertiser, name))
                            : fmt::format("{} exists already.", called(Kind::advertiser, name)));
    }
}

std::string create_advertiser(Edits& edits, const std::string& name) {
    check_advertiser(name);
    need_advertiser(edits.database(), name, false);
    edits.write(
        [&] { edits.database().run("INSERT INTO ads.advertisers (name) VALUES ($1)", {name}); });
    edits.changes.push_back({ChangeKind::added, "advertiser", name, "", {}, 0, 0});
    return name;
}

std::string update_advertiser(Edits& edits, const Edit& edit) {
    need_advertiser(edits.database(), edit.id, true);
    const Json object(json_pack("{s:s}", "name", edit.id.c_str()));
    apply(edit, object.get());
    const std::string name = text_at(object.get(), "name");
    if (json_object_size(object.get()) != 1) {
        throw Failure(Exit::bad_input, "an advertiser has nothing but a name.");
    }
    if (name == edit.id) {
        return name;
    }
    check_advertiser(name);
    need_advertiser(edits.database(), name, false);
    edits.write([&] {
        edits.database().run("UPDATE ads.advertisers SET name = $2 WHERE name = $1",
                             {edit.id, name});
    });
    const Json before(text_json(edit.id));
    const Json after(text_json(name));
    edits.changes.push_back({ChangeKind::changed,
                             "advertiser",
                             name,
                             "",
                             {{"name", dumped(before.get()), dumped(after.get())}},
                             0,
                             0});
    return name;
}

std::vector<std::string> campaigns_of(Database& database, const std::string& advertiser,
                                      const char* statuses) {
    const Rows rows = database.run(
        "SELECT id FROM ads.campaigns WHERE advertiser = $1 AND status = ANY ($2::ads.status[]) "
        "ORDER BY id",
        {advertiser, statuses});
    std::vector<std::string> ids;
    for (size_t i = 0; i < rows.size(); i++) {
        ids.emplace_back(rows.at(i, 0));
    }
    return ids;
}

std::string add_placement(Edits& edits, json_t* taken) {
    Json placement(taken);
    const Json before = placements(edits.database());
    const std::string id = text_at(placement.get(), "id");
    if (placement_in(before.get(), id) != nullptr) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} exists already.", called(Kind::placement, id)));
    }
    const Json document(json_deep_copy(before.get()));
    json_array_append(json_object_get(document.get(), "placements"), placement.get());
    put_placement(edits, before.get(), document.get(), placement.get());
    return id;
}

std::string update_placement(Edits& edits, const Edit& edit) {
    const Json before = placements(edits.database());
    const Json document(json_deep_copy(before.get()));
    json_t* placement = need_placement(document.get(), edit.id);
    apply(edit, placement);
    if (text_at(placement, "id") != edit.id) {
        throw Failure(Exit::bad_input, fmt::format("the id of {} cannot be changed.",
                                                   called(Kind::placement, edit.id)));
    }
    const json_t* floor = json_object_get(placement, "floor_cents");
    if (is_paused(edits.database(), edit.id) &&
        json_equal(floor, json_object_get(need_placement(before.get(), edit.id), "floor_cents")) ==
            0) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} is paused: resume it before its floor is changed.",
                                  called(Kind::placement, edit.id)));
    }
    put_placement(edits, before.get(), document.get(), placement);
    return edit.id;
}

// It goes: nothing of the past needs it, and what is to come must not.
std::string remove_placement(Edits& edits, const std::string& id) {
    const Json before = placements(edits.database());
    need_placement(before.get(), id);
    const Rows rows = edits.database().run(
        "SELECT min(ad_group_id), count(*) FROM ads.ad_group_placements WHERE placement_id = $1",
        {id});
    if (rows.number(0, 1) > 0) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} is a target of {}, one is {}: take it out of there first.",
                                  called(Kind::placement, id),
                                  counted(static_cast<uint64_t>(rows.number(0, 1)), "ad group"),
                                  rows.number(0, 0)));
    }
    edits.write([&] { edits.database().run("DELETE FROM ads.placements WHERE id = $1", {id}); });
    note_placements(edits, before.get());
    return id;
}

std::string pause_placement(Edits& edits, const std::string& id) {
    return move_floor(edits, id,
                      fmt::format("UPDATE ads.placements SET paused_floor_micro = floor_micro, "
                                  "floor_micro = {} WHERE id = $1 AND paused_floor_micro IS NULL",
                                  kHighestFloor));
}

std::string resume_placement(Edits& edits, const std::string& id) {
    return move_floor(edits, id,
                      "UPDATE ads.placements SET floor_micro = paused_floor_micro, "
                      "paused_floor_micro = NULL WHERE id = $1 AND paused_floor_micro IS NOT NULL");
}

std::string clone_placement(Edits& edits, const Edit& edit) {
    const Json document = placements(edits.database());
    const bool paused = is_paused(edits.database(), edit.id);
    json_t* copy = json_deep_copy(need_placement(document.get(), edit.id));
    json_object_set_new(copy, "id", text_json(edit.name));
    if (paused) {
        json_object_del(copy, "floor_cents");
    }
    return add_placement(edits, copy);
}

}  // namespace ads::cli
