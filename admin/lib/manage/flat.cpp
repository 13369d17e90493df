#include "lib/manage/flat.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/edit_distance.hpp"
#include "lib/base/text.hpp"

namespace ads::admin {

namespace {

void check_advertiser(const std::string& name) {
    constexpr size_t kMost = 100;
    if (name.empty() || name.size() > kMost) {
        throw Failure(Exit::bad_input,
                      fmt::format("an advertiser's name must be 1 to {} bytes.", kMost));
    }
    check_name(Kind::advertiser, name);
}

std::string folded(std::string_view name) {
    std::string text(name);
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

// One letter of four, two of eight. "Client 1" and "Client 2" are two on purpose.
bool looks_alike(const std::string& a, const std::string& b) {
    const auto letters = [](std::string text) {
        std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
        return text;
    };
    constexpr size_t kLettersOfSlip = 4;
    const size_t slips = std::min<size_t>(2, std::min(a.size(), b.size()) / kLettersOfSlip);
    return edit_distance(a, b) <= slips && letters(a) != letters(b);
}

// The advertiser that differs from a new one in case only; else, if wanted, in a letter or two.
std::string similar_advertiser(Database& database, const std::string& name, bool slips) {
    const Rows rows = database.run("SELECT name FROM ads.advertisers ORDER BY name");
    std::string similar;
    for (size_t i = 0; i < rows.size(); i++) {
        const std::string other(rows.at(i, 0));
        if (other != name && folded(other) == folded(name)) {
            return other;
        }
        if (slips && similar.empty() && looks_alike(folded(other), folded(name))) {
            similar = other;
        }
    }
    return similar;
}

void check_case(Database& database, const std::string& name, const std::string& but = "") {
    const std::string other = similar_advertiser(database, name, false);
    if (!other.empty() && other != but) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} already exists: \"{}\" differs in case only.",
                                  called(Kind::advertiser, other), printable(name)));
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
        throw NotFound(fmt::format("there is no {}.", called(Kind::placement, id)));
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

// Of a placement that changed its size or its types: creatives that are aimed at it, and fitted.
void warn_of_unfit(Edits& edits, const json_t* before, const json_t* after) {
    const Rows rows = edits.database().run(
        "WITH p AS (SELECT (o ->> 'width')::int AS width, (o ->> 'height')::int AS height, "
        "ads.texts(o -> 'types') AS types, fresh "
        "FROM (VALUES ($1::jsonb, false), ($2::jsonb, true)) AS v (o, fresh)), "
        "fit AS (SELECT k.id, g.id AS ad_group, p.fresh FROM p CROSS JOIN ads.ad_group_placements "
        "t "
        "JOIN ads.ad_groups g ON g.id = t.ad_group_id JOIN ads.campaigns c ON c.id = g.campaign_id "
        "JOIN ads.creatives k ON k.ad_group_id = g.id "
        "WHERE t.placement_id = $3 AND c.status NOT IN ('completed', 'archived') "
        "AND g.status NOT IN ('completed', 'archived') AND k.status NOT IN ('completed', "
        "'archived') "
        "AND (coalesce(p.width, 0) = 0 OR k.width = 0 OR (k.width = p.width AND k.height = "
        "p.height)) "
        "AND (p.types = '{}' OR k.type::text = ANY (p.types))), "
        "lost AS (SELECT o.id, o.ad_group FROM fit o WHERE NOT o.fresh "
        "AND NOT EXISTS (SELECT FROM fit n WHERE n.fresh AND n.id = o.id)) "
        "SELECT count(*), count(DISTINCT ad_group), min(ad_group) FROM lost",
        {dumped(before), dumped(after), text_at(after, "id")});
    if (rows.number(0, 0) == 0) {
        return;
    }
    const auto groups = static_cast<uint64_t>(rows.number(0, 1));
    edits.warn_of(fmt::format(
        "{} no longer fits {} of {}", called(Kind::placement, text_at(after, "id")),
        counted(static_cast<uint64_t>(rows.number(0, 0)), "creative"),
        groups == 1 ? fmt::format("ad group {}", rows.number(0, 2))
                    : fmt::format("{} ad groups, among them {}", groups, rows.number(0, 2))));
}

}  // namespace

void need_advertiser(Database& database, const std::string& name, bool there) {
    if (advertiser_exists(database, name) == there) {
        return;
    }
    if (there) {
        throw no_such(database, Kind::advertiser, name);
    }
    throw Failure(Exit::bad_input,
                  fmt::format("{} already exists.", called(Kind::advertiser, name)));
}

void open_account(Edits& edits, const std::string& name) {
    if (name.empty() || advertiser_exists(edits.database(), name)) {
        return;
    }
    check_advertiser(name);
    const std::string other = similar_advertiser(edits.database(), name, true);
    if (!other.empty()) {
        throw Failure(Exit::bad_input,
                      fmt::format("there is no advertiser \"{0}\": did you mean \"{1}\"? If it is "
                                  "a different one, create it first: nginx-ads advertiser create "
                                  "\"{0}\"",
                                  printable(name), printable(other)));
    }
    create_advertiser(edits, name);
}

void remove_advertiser_without_campaigns(Edits& edits, const std::string& name) {
    const Rows gone = edits.database().run(
        "DELETE FROM ads.advertisers a WHERE name = $1 AND NOT EXISTS (SELECT FROM ads.campaigns c "
        "WHERE c.advertiser = a.name) RETURNING name",
        {name});
    if (!gone.empty()) {
        edits.changes.push_back({ChangeKind::archived, "advertiser", name, "", {}, 0, 0});
    }
}

std::string create_advertiser(Edits& edits, const std::string& name) {
    check_advertiser(name);
    need_advertiser(edits.database(), name, false);
    check_case(edits.database(), name);
    edits.write(
        [&] { edits.database().run("INSERT INTO ads.advertisers (name) VALUES ($1)", {name}); });
    edits.changes.push_back({ChangeKind::added, "advertiser", name, "", {}, 0, 0});
    return name;
}

std::string update_advertiser(Edits& edits, const std::string& id, const Patch& patch) {
    need_advertiser(edits.database(), id, true);
    const Json object(json_pack("{s:s}", "name", id.c_str()));
    patch(object.get());
    const std::string name = text_at(object.get(), "name");
    if (json_object_size(object.get()) != 1) {
        throw Failure(Exit::bad_input, "only the name of an advertiser can be set.");
    }
    if (name == id) {
        return name;
    }
    check_advertiser(name);
    need_advertiser(edits.database(), name, false);
    check_case(edits.database(), name, id);
    edits.write([&] {
        edits.database().run("UPDATE ads.advertisers SET name = $2 WHERE name = $1", {id, name});
    });
    const Json before(text_json(id));
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
                      fmt::format("{} already exists.", called(Kind::placement, id)));
    }
    const Json document(json_deep_copy(before.get()));
    json_array_append(json_object_get(document.get(), "placements"), placement.get());
    put_placement(edits, before.get(), document.get(), placement.get());
    return id;
}

std::string update_placement(Edits& edits, const std::string& id, const Patch& patch) {
    const Json before = placements(edits.database());
    const Json document(json_deep_copy(before.get()));
    json_t* placement = need_placement(document.get(), id);
    patch(placement);
    if (text_at(placement, "id") != id) {
        throw Failure(Exit::bad_input,
                      fmt::format("the id of {} cannot be changed.", called(Kind::placement, id)));
    }
    put_placement(edits, before.get(), document.get(), placement);
    warn_of_unfit(edits, need_placement(before.get(), id), placement);
    return id;
}

// It goes: nothing of the past needs it, and what is to come must not.
std::string remove_placement(Edits& edits, const std::string& id) {
    const Json before = placements(edits.database());
    need_placement(before.get(), id);
    const Rows rows = edits.database().run(
        "SELECT min(g.id) FILTER (WHERE NOT over), count(*) FILTER (WHERE NOT over), min(g.id), "
        "count(*) FROM ads.ad_group_placements t JOIN ads.ad_groups g ON g.id = t.ad_group_id "
        "JOIN ads.campaigns c ON c.id = g.campaign_id, "
        "LATERAL (SELECT 'archived' IN (g.status, c.status) AS over) o WHERE t.placement_id = $1",
        {id});
    if (rows.number(0, 1) == 0 && rows.number(0, 3) > 0) {
        throw Failure(
            Exit::bad_input,
            fmt::format("{} is a target of {} that is archived, and may be cloned, one is {}: "
                        "pause it instead.",
                        called(Kind::placement, id),
                        counted(static_cast<uint64_t>(rows.number(0, 3)), "ad group"),
                        rows.number(0, 2)));
    }
    if (rows.number(0, 1) > 0) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} is a target of {}, among them {}: remove it there first.",
                                  called(Kind::placement, id),
                                  counted(static_cast<uint64_t>(rows.number(0, 1)), "ad group"),
                                  rows.number(0, 0)));
    }
    edits.write([&] { edits.database().run("DELETE FROM ads.placements WHERE id = $1", {id}); });
    note_placements(edits, before.get());
    return id;
}

std::string set_placement_status(Edits& edits, const std::string& id, PlacementStatus status) {
    const Json before = placements(edits.database());
    const Json document(json_deep_copy(before.get()));
    json_t* placement = need_placement(document.get(), id);
    json_object_set_new(placement, "status", text_json(name_of(status)));
    put_placement(edits, before.get(), document.get(), placement);
    return id;
}

std::string clone_placement(Edits& edits, const std::string& id, const std::string& name) {
    const Json document = placements(edits.database());
    json_t* copy = json_deep_copy(need_placement(document.get(), id));
    json_object_set_new(copy, "id", text_json(name));
    json_object_del(copy, "status");
    return add_placement(edits, copy);
}

}  // namespace ads::admin
