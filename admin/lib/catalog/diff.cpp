#include "lib/catalog/diff.hpp"

#include <fmt/format.h>
#include <jansson.h>

#include <cstdlib>
#include <new>
#include <unordered_map>

#include "lib/base/json.hpp"
#include "lib/base/json_text.hpp"

namespace ads::admin {

namespace {

constexpr const char* kCampaign = "campaign";
constexpr const char* kAdGroup = "ad group";
constexpr const char* kCreative = "creative";

// What changes by itself.
bool counted_by_server(std::string_view field) {
    return field == "updated_at" || field == "budget.spent_cents";
}

void compare(const std::string& path, json_t* before, json_t* after,
             std::vector<FieldChange>& changes);

void compare_members(const std::string& path, json_t* before, json_t* after,
                     std::vector<FieldChange>& changes) {
    const auto name = [&](const char* key) { return path.empty() ? key : path + '.' + key; };
    const char* key = nullptr;
    json_t* value = nullptr;
    json_object_foreach(before, key, value) {
        compare(name(key), value, json_object_get(after, key), changes);
    }
    json_object_foreach(after, key, value) {
        if (json_object_get(before, key) == nullptr) {
            compare(name(key), nullptr, value, changes);
        }
    }
}

void compare(const std::string& path, json_t* before, json_t* after,
             std::vector<FieldChange>& changes) {
    if (json_is_object(before) && json_is_object(after)) {
        compare_members(path, before, after, changes);
    } else if (!counted_by_server(path) && json_equal(before, after) == 0) {
        changes.push_back({path, dumped(before), dumped(after)});
    }
}

Json parsed(std::string_view text) {
    return Json(json_loadb(text.data(), text.size(), 0, nullptr));
}

// An object of the document: its text, and what it stands in.
struct Object {
    std::string_view text;
    const char* within = nullptr;  // "campaign" or "ad_group"
    std::string_view within_id;
    const char* children = nullptr;  // members that are objects of their own
    std::string_view zone;           // of its campaign, as JSON
};
using Objects = std::unordered_map<std::string_view, Object>;  // by id, as it is written

std::string text_of(const json_t* object, const char* key) {
    const char* text = json_string_value(json_object_get(object, key));
    return text == nullptr ? std::string() : text;
}

// Without the objects below it, but with what it stands in.
Json bare(const Object& object) {
    Json json = parsed(object.text);
    if (object.children != nullptr) {
        json_object_del(json.get(), object.children);
    }
    if (object.within != nullptr) {
        const std::string id(object.within_id);
        json_object_set_new(json.get(), object.within, json_integer(std::atoll(id.c_str())));
    }
    return json;
}

// A name of a time zone needs no escapes.
std::string zone_of(const Object& object) {
    const std::string_view json =
        object.zone.empty() ? member_of(object.text, "timezone") : object.zone;
    return json.size() < 2 ? std::string() : std::string(json.substr(1, json.size() - 2));
}

class Difference {
public:
    Difference(std::string_view before, std::string_view after) : before_(before), after_(after) {}

    std::vector<Change> run() {
        currency();
        plain("placement", "placements");
        campaigns();
        plain("experiment", "experiments");
        return std::move(changes_);
    }

private:
    static std::vector<Object> items(std::string_view json, const char* key,
                                     const char* children = nullptr, const char* within = nullptr,
                                     std::string_view within_id = {}) {
        std::vector<Object> list;
        for (const auto& [name, text] : parts_of(member_of(json, key))) {
            list.push_back({text, within, within_id, children});
        }
        return list;
    }

    static Objects by_id(const std::vector<Object>& list) {
        Objects objects;
        for (const auto& object : list) {
            objects.emplace(member_of(object.text, "id"), object);
        }
        return objects;
    }

    void see(ChangeKind kind, const char* what, const json_t* json,
             std::vector<FieldChange> fields) {
        std::string id = text_of(json, "id");
        if (id.empty()) {
            id = dumped(json_object_get(json, "id"));
        }
        changes_.push_back({kind, what, id, text_of(json, "name"), std::move(fields), 0, 0});
    }

    // Two versions of one object; without `before` it is new, without `after` gone.
    void see(const char* what, const Object* before, const Object* after) {
        if (before == nullptr || after == nullptr) {
            const Json json = bare(before == nullptr ? *after : *before);
            see(before == nullptr ? ChangeKind::added : ChangeKind::archived, what, json.get(), {});
            return;
        }
        if (before->text == after->text && before->within_id == after->within_id) {
            return;
        }
        const Json old = bare(*before);
        const Json now = bare(*after);
        std::vector<FieldChange> fields;
        compare("", old.get(), now.get(), fields);
        if (fields.empty()) {
            return;
        }
        const bool archived = text_of(now.get(), "status") == "archived" &&
                              text_of(old.get(), "status") != "archived";
        see(archived ? ChangeKind::archived : ChangeKind::changed, what, now.get(),
            std::move(fields));
        changes_.back().zone_before = zone_of(*before);
        changes_.back().zone = zone_of(*after);
    }

    void currency() {
        const std::string_view old = member_of(before_, "currency");
        const std::string_view now = member_of(after_, "currency");
        if (old != now) {
            changes_.push_back({ChangeKind::changed,
                                "setting",
                                "currency",
                                "",
                                {{"value", std::string(old), std::string(now)}},
                                0,
                                0});
        }
    }

    void plain(const char* what, const char* key) {
        const auto old = items(before_, key);
        const auto now = items(after_, key);
        all(what, old, now);
    }

    void all(const char* what, const std::vector<Object>& old, const std::vector<Object>& now) {
        Objects left = by_id(old);
        for (const auto& object : now) {
            const auto found = left.find(member_of(object.text, "id"));
            see(what, found == left.end() ? nullptr : &found->second, &object);
            if (found != left.end()) {
                left.erase(found);
            }
        }
        for (const auto& object : old) {
            if (left.contains(member_of(object.text, "id"))) {
                see(what, &object, nullptr);
            }
        }
    }

    // What stands below campaigns is looked at only where a campaign's text
    // differs: few do, and the document may be large. An ad group or a creative
    // may have moved, so all of them are compared together.
    void campaigns() {
        Objects left = by_id(items(before_, "campaigns", "ad_groups"));
        std::vector<Object> old;
        std::vector<Object> now;
        std::vector<Object> fresh;
        for (const auto& campaign : items(after_, "campaigns", "ad_groups")) {
            const auto found = left.find(member_of(campaign.text, "id"));
            if (found == left.end()) {
                fresh.push_back(campaign);
                continue;
            }
            if (found->second.text != campaign.text) {
                old.push_back(found->second);
                now.push_back(campaign);
            }
            left.erase(found);
        }
        for (const auto& [id, campaign] : left) {
            old.push_back(campaign);
        }
        all(kCampaign, old, now);
        below(old, now, fresh);
    }

    static std::vector<Object> groups_of(const std::vector<Object>& campaigns) {
        std::vector<Object> list;
        for (const auto& campaign : campaigns) {
            auto more = items(campaign.text, "ad_groups", "creatives", "campaign",
                              member_of(campaign.text, "id"));
            for (auto& group : more) {
                group.zone = member_of(campaign.text, "timezone");
            }
            list.insert(list.end(), more.begin(), more.end());
        }
        return list;
    }

    static std::vector<Object> creatives_of(const std::vector<Object>& groups) {
        std::vector<Object> list;
        for (const auto& group : groups) {
            const auto more =
                items(group.text, "creatives", nullptr, "ad_group", member_of(group.text, "id"));
            list.insert(list.end(), more.begin(), more.end());
        }
        return list;
    }

    void below(const std::vector<Object>& old, std::vector<Object> now,
               const std::vector<Object>& fresh) {
        const auto old_groups = groups_of(old);
        const auto old_creatives = creatives_of(old_groups);
        const Objects known_groups = by_id(old_groups);
        const Objects known_creatives = by_id(old_creatives);
        auto groups = groups_of(now);
        auto creatives = creatives_of(groups);
        for (const auto& campaign : fresh) {
            added(campaign, known_groups, known_creatives, groups, creatives);
        }
        all(kAdGroup, old_groups, groups);
        all(kCreative, old_creatives, creatives);
    }

    // A new campaign is one change with all that is new in it. What was
    // elsewhere before goes into the lists of those to compare.
    void added(const Object& campaign, const Objects& known_groups, const Objects& known_creatives,
               std::vector<Object>& groups, std::vector<Object>& creatives) {
        see(kCampaign, nullptr, &campaign);
        Change& change = changes_.back();
        const auto its_groups = groups_of({campaign});
        for (const auto& group : its_groups) {
            const bool known = known_groups.contains(member_of(group.text, "id"));
            known ? groups.push_back(group) : static_cast<void>(change.ad_groups++);
        }
        for (const auto& creative : creatives_of(its_groups)) {
            const bool known = known_creatives.contains(member_of(creative.text, "id"));
            known ? creatives.push_back(creative) : static_cast<void>(change.creatives++);
        }
    }

    const std::string_view before_;
    const std::string_view after_;
    std::vector<Change> changes_;
};

}  // namespace

std::vector<Change> difference(std::string_view before, std::string_view after) {
    return Difference(before, after).run();
}

}  // namespace ads::admin
