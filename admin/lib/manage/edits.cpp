#include "lib/manage/edits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <ctime>
#include <functional>

#include "core/catalog/formats.hpp"
#include "core/catalog/model.hpp"
#include "creative/sanitize.hpp"
#include "lib/base/local_time.hpp"
#include "lib/base/settings.hpp"
#include "lib/base/text.hpp"
#include "lib/manage/dates.hpp"
#include "lib/manage/lifecycle.hpp"

namespace ads::admin {

namespace {

Json parsed(std::string_view text) {
    Json json(json_loadb(text.data(), text.size(), 0, nullptr));
    if (json == nullptr) {
        throw Failure(Exit::failed, "PostgreSQL returned invalid JSON.");
    }
    return json;
}

const json_t* list_at(const json_t* object, const char* key) {
    return json_object_get(object, key);
}

// Each object of a campaign with the one of the same id before, if there was one.
using Visit = std::function<void(Kind kind, json_t* now, const json_t* before)>;

void visit_below(json_t* now, const json_t* before, const char* key, Kind kind,
                 const Visit& visit) {
    size_t i = 0;
    json_t* item = nullptr;
    json_array_foreach(json_object_get(now, key), i, item) {
        const json_t* old = with_id(list_at(before, key), number_at(item, "id"));
        visit(kind, item, old);
        if (kind == Kind::ad_group) {
            visit_below(item, old, "creatives", Kind::creative, visit);
        }
    }
}

void visit_all(json_t* now, const json_t* before, const Visit& visit) {
    visit(Kind::campaign, now, before);
    visit_below(now, before, "ad_groups", Kind::ad_group, visit);
}

std::string id_text(const json_t* object) {
    return std::to_string(number_at(object, "id"));
}

std::string status_at(const json_t* object) {
    const std::string status = text_at(object, "status");
    return status.empty() ? "active" : status;
}

}  // namespace

json_t* with_id(const json_t* list, uint64_t id) {
    size_t i = 0;
    json_t* item = nullptr;
    json_array_foreach(const_cast<json_t*>(list), i, item) {
        if (id != 0 && number_at(item, "id") == id) {
            return item;
        }
    }
    return nullptr;
}

bool is_refusal(const SqlError& error) {
    return error.state().starts_with("22") || error.state().starts_with("23") || error.is("P0001");
}

// ---- the transaction ----

Edits::Edits(Database& database, const EditOptions& options)
    : dry_run_(options.dry_run),
      strict_(options.strict),
      database_(database),
      transaction_(database_) {
    database_.run("SET LOCAL lock_timeout = '30s'");
    // Others may read meanwhile, but not edit: what is checked is what is written.
    database_.run(
        "LOCK TABLE ads.advertisers, ads.placements, ads.campaigns, ads.ad_groups, ads.creatives, "
        "ads.experiments IN SHARE ROW EXCLUSIVE MODE");
    database_.run(
        "SELECT set_config('ads.actor', $1, true), set_config('ads.creative_policy', $2, true)",
        {options.actor, std::to_string(creative::kPolicyVersion)});
    currency_ = currency_of(database_);
}

uint64_t Edits::new_id(Kind kind) {
    uint64_t& highest = highest_[static_cast<size_t>(kind)];
    const std::string sql =
        fmt::format("SELECT coalesce(max(id), 0) FROM ads.{}", words_of(kind).table);
    const Rows rows = database_.run(sql);
    highest = std::max(highest, static_cast<uint64_t>(rows.number(0, 0))) + 1;
    if (highest > kMaxId) {
        throw Failure(
            Exit::bad_input,
            fmt::format("no free id is left above the highest {} id: choose one with --set id=N.",
                        words_of(kind).name));
    }
    return highest;
}

void Edits::taken(Kind kind, uint64_t id) {
    uint64_t& highest = highest_[static_cast<size_t>(kind)];
    highest = std::max(highest, id);
}

void Edits::finish() {
    if (dry_run_) {
        transaction_.roll_back();
        return;
    }
    try {
        transaction_.commit();
    } catch (const SqlError& e) {
        if (!e.lost()) {
            throw;
        }
        throw Failure(
            Exit::failed,
            fmt::format("the connection was lost during the commit, so the change may have "
                        "been applied or not: check with \"show\". PostgreSQL: {}",
                        e.what()));
    }
}

Place place_of(Database& database, Kind kind, uint64_t id) {
    const std::string sql =
        kind == Kind::ad_group ? "SELECT campaign_id, id FROM ads.ad_groups WHERE id = $1"
                               : fmt::format(
                                     "SELECT g.campaign_id, g.id FROM ads.{} o "
                                     "JOIN ads.ad_groups g ON g.id = o.ad_group_id WHERE o.id = $1",
                                     words_of(kind).table);
    const Rows rows = database.run(sql, {std::to_string(id)});
    if (rows.empty()) {
        throw NotFound(fmt::format("there is no {}.", called(kind, std::to_string(id))));
    }
    return {static_cast<uint64_t>(rows.number(0, 0)), static_cast<uint64_t>(rows.number(0, 1))};
}

// ---- checks ----

void check_catalog(const std::string& text, const json_t* document) {
    const auto result = catalog::parse(text);
    if (result.errors.empty()) {
        return;
    }
    const auto& first = result.errors.front();
    const json_t* campaign = json_array_get(json_object_get(document, "campaigns"), 0);
    const size_t more = result.errors.size() - 1 + result.more_errors;
    std::vector<Fault> faults;
    for (const auto& error : result.errors) {
        faults.push_back(located(error.path, document));
        faults.back().message = with_local_dates(error.message, zone_of(campaign));
    }
    const std::string message =
        fmt::format("{}{} {}{}.", readable(first.path, document),
                    first.message.starts_with("must ") ? "" : ":", faults.front().message,
                    more == 0 ? "" : fmt::format(" (and {})", counted(more, "more error")));
    throw InvalidInput(message, std::move(faults));
}

namespace {

template <class S>
void check_transition_of(Kind kind, const std::string& id, const std::string& from,
                         const std::string& to) {
    const auto old_status = named<S>(from);
    const auto new_status = named<S>(to);
    if (!old_status || !new_status || may_become(*old_status, *new_status)) {
        return;  // a name that is none is told by the catalog's own check
    }
    std::vector<std::string_view> allowed;
    for (size_t i = 0; i < kCount<S>; i++) {
        const auto status = static_cast<S>(i);
        if (status != *old_status && may_become(*old_status, status)) {
            allowed.push_back(name_of(status));
        }
    }
    throw Failure(Exit::bad_input,
                  allowed.empty()
                      ? fmt::format("{} is {} and cannot be changed: clone it instead.",
                                    called(kind, id), from)
                      : fmt::format("{} is {} and cannot become {}, only {}.", called(kind, id),
                                    from, to, fmt::join(allowed, ", ")));
}

}  // namespace

void check_transition(Kind kind, const std::string& id, const std::string& from,
                      const std::string& to) {
    kind == Kind::experiment ? check_transition_of<ExperimentStatus>(kind, id, from, to)
                             : check_transition_of<Status>(kind, id, from, to);
}

// ---- a campaign ----

CampaignEdit::CampaignEdit(Edits& edits, uint64_t id)
    : edits_(edits),
      id_(id),
      before_text_(
          edits.database().value("SELECT ads.campaign_document($1)", {std::to_string(id)})),
      before_(parsed(before_text_)),
      document_(parsed(before_text_)) {}

// A number of more digits than a double keeps would be written back as another.
void CampaignEdit::check_numbers() const {
    const json_t* campaigns = json_object_get(before_.get(), "campaigns");
    const std::string text = dumped(campaigns);
    if (json_equal(parsed(text).get(), campaigns) == 0) {
        throw Failure(
            Exit::bad_input,
            fmt::format("campaign {} has a number of more than 15 digits, which only "
                        "\"nginx-ads export\" and \"import\" preserve: edit it with them.",
                        id_));
    }
}

json_t* CampaignEdit::before() const noexcept {
    return json_array_get(json_object_get(before_.get(), "campaigns"), 0);
}

json_t* CampaignEdit::campaign() const noexcept {
    return json_array_get(json_object_get(document_.get(), "campaigns"), 0);
}

json_t* CampaignEdit::group(uint64_t id) const {
    json_t* found = with_id(list_at(campaign(), "ad_groups"), id);
    if (found == nullptr) {
        throw NotFound(fmt::format("there is no {}.", called(Kind::ad_group, std::to_string(id))));
    }
    return found;
}

json_t* CampaignEdit::creative(Place place, uint64_t id) const {
    json_t* found = with_id(list_at(group(place.group), "creatives"), id);
    if (found == nullptr) {
        throw NotFound(fmt::format("there is no {}.", called(Kind::creative, std::to_string(id))));
    }
    return found;
}

json_t* CampaignEdit::experiment(uint64_t id) const {
    json_t* found = with_id(list_at(document_.get(), "experiments"), id);
    if (found == nullptr) {
        throw NotFound(
            fmt::format("there is no {}.", called(Kind::experiment, std::to_string(id))));
    }
    return found;
}

void CampaignEdit::add(json_t* campaign) {
    json_array_append_new(json_object_get(document_.get(), "campaigns"), campaign);
}

void CampaignEdit::add_experiment(json_t* experiment) {
    json_array_append_new(json_object_get(document_.get(), "experiments"), experiment);
}

// What a file does not say stays as it is.
void CampaignEdit::inherit_statuses() {
    visit_all(campaign(), before(), [](Kind, json_t* now, const json_t* old) {
        if (old != nullptr && text_at(now, "status").empty()) {
            json_object_set_new(now, "status", text_json(status_at(old)));
        }
    });
}

void CampaignEdit::check_statuses() const {
    visit_all(campaign(), before(), [](Kind kind, json_t* now, const json_t* old) {
        const std::string to = status_at(now);
        const std::string id = id_text(now);
        const auto status = named<Status>(to);
        if (old != nullptr) {
            check_transition(kind, id, status_at(old), to);
        } else if (status && !may_begin(*status)) {
            throw Failure(Exit::bad_input,
                          fmt::format("a new {} cannot be {}.", words_of(kind).name, to));
        }
        const bool changed = old == nullptr || status_at(old) != to;
        const bool starts = !text_at(now, "start").empty();
        const bool started = old != nullptr && !text_at(old, "start").empty();
        if (kind == Kind::campaign && to == "scheduled" && !starts && (changed || started)) {
            throw Failure(
                Exit::bad_input,
                fmt::format("campaign {} has no start, which is required for \"scheduled\".", id));
        }
        if (kind != Kind::campaign || !changed) {
            return;
        }
        const auto end = catalog::parse_date(text_at(now, "end"));
        if (end && *end <= std::time(nullptr) && (to == "active" || to == "scheduled")) {
            throw Failure(Exit::bad_input,
                          fmt::format("campaign {} ended {}: set a later end to make it {}.", id,
                                      shown_date(now, "end", zone_of(now)), to));
        }
    });
}

void CampaignEdit::clean() {
    visit_all(campaign(), before(), [this](Kind kind, json_t* now, const json_t* old) {
        if (kind != Kind::creative) {
            return;
        }
        const auto same = [&](const char* key) {
            const json_t* value = json_object_get(now, key);
            const json_t* was = json_object_get(old, key);
            return old != nullptr && (value == was || json_equal(value, was) != 0);
        };
        const uint64_t id = number_at(now, "id");
        if (const std::string url = text_at(now, "impression_url");
            !url.empty() && !same("impression_url")) {
            check_pixel(id, url);
        }
        json_t* content = json_object_get(now, "content");
        const bool html = text_at(now, "type") == "html";
        if (html && json_is_string(json_object_get(content, "markup")) &&
            !(same("type") && same("content"))) {
            const std::string markup = text_at(content, "markup");
            json_object_set_new(content, "markup",
                                text_json(clean_markup(id, markup, edits_.removed)));
        }
    });
}

// Of what is not archived, no two have one name: people tell them apart by it.
void CampaignEdit::check_names() const {
    const auto taken = [](Kind kind, const std::string& name, const std::string& id,
                          const std::string& within) {
        throw Failure(Exit::bad_input, fmt::format("the name \"{}\" is already used by {}{}.",
                                                   printable(name), called(kind, id), within));
    };
    const auto check_list = [&](const json_t* list, Kind kind, json_t* now) {
        size_t i = 0;
        json_t* other = nullptr;
        const std::string name = text_at(now, "name");
        json_array_foreach(const_cast<json_t*>(list), i, other) {
            if (other != now && text_at(other, "name") == name && status_at(other) != "archived") {
                taken(kind, name, id_text(other), "");
            }
        }
    };
    const json_t* within = nullptr;  // the group that was visited last
    visit_all(campaign(), before(), [&](Kind kind, json_t* now, const json_t* old) {
        within = kind == Kind::ad_group ? now : within;
        const std::string name = text_at(now, "name");
        const bool same_name = old != nullptr && text_at(old, "name") == name;
        if (name.empty() ||
            (same_name && text_at(old, "advertiser") == text_at(now, "advertiser"))) {
            return;
        }
        if (!same_name) {
            check_name(kind, name);
        }
        if (kind != Kind::campaign) {
            const bool group = kind == Kind::ad_group;
            check_list(list_at(group ? campaign() : within, group ? "ad_groups" : "creatives"),
                       kind, now);
            return;
        }
        const std::string client = text_at(now, "advertiser");
        const Rows rows = edits_.database().run(
            "SELECT id FROM ads.campaigns WHERE name = $1 AND coalesce(advertiser, '') = $2 "
            "AND status <> 'archived' AND id <> $3 LIMIT 1",
            {name, client, std::to_string(id_)});
        if (!rows.empty()) {
            taken(kind, name, std::string(rows.at(0, 0)),
                  client.empty() ? "" : fmt::format(" of {}", called(Kind::advertiser, client)));
        }
    });
}

void CampaignEdit::save() {
    check_numbers();
    inherit_statuses();
    // Without experiments: groups and creatives that a file leaves out are archived,
    // not gone, so that these are looked at when all is written.
    const Json plain(json_copy(document_.get()));
    json_object_del(plain.get(), "experiments");
    check_catalog(dumped(plain.get()), plain.get());
    check_statuses();
    check_names();
    clean();
    auto& database = edits_.database();
    edits_.write([&] {
        database.run("SELECT ads.put_campaign($1::jsonb)", {dumped(campaign())});
        database.run("SET CONSTRAINTS ALL IMMEDIATE");
    });
    note_changes();
}

void CampaignEdit::note_changes() {
    const std::string after =
        edits_.database().value("SELECT ads.campaign_document($1)", {std::to_string(id_)});
    if (catalog::parse(before_text_, 1).errors.empty()) {
        check_catalog(after, parsed(after).get());
        for (auto& warning : new_warnings(before_text_, after)) {
            edits_.warn_of(std::move(warning));
        }
    }
    for (auto& change : difference(before_text_, after)) {
        edits_.changes.push_back(std::move(change));
    }
}

}  // namespace ads::admin
