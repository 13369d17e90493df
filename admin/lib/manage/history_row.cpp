#include "lib/manage/history_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/json.hpp"

namespace ads::admin {

namespace {

enum class Form : uint8_t { same, money, moment };

struct Column {
    std::string_view table;
    std::string_view column;
    std::string_view field;
    Form form = Form::same;
};

// Columns that the catalog calls by another name. Empty: not a part of it.
constexpr auto kColumns = std::to_array<Column>({
    {"", "updated_at", ""},
    {"", "archived_at", ""},
    {"", "campaign_id", "campaign"},
    {"", "ad_group_id", "ad_group"},
    {"", "starts_at", "start", Form::moment},
    {"", "ends_at", "end", Form::moment},
    {"campaigns", "budget_type", "budget.type"},
    {"campaigns", "budget_micro", "budget.amount_cents", Form::money},
    {"campaigns", "budget_spent_micro", "budget.spent_cents", Form::money},
    {"campaigns", "hard_cap", "budget.hard_cap"},
    {"ad_groups", "price_model", "price.model"},
    {"ad_groups", "price_micro", "price.amount_cents", Form::money},
    {"ad_groups", "strategy", "pacing.strategy"},
    {"ad_groups", "cap_on", "pacing.cap_on"},
    {"ad_groups", "daily_impression_cap", "pacing.daily_impression_cap"},
    {"ad_groups", "daily_click_cap", "pacing.daily_click_cap"},
    {"ad_groups", "goal_on", "pacing.goal.of"},
    {"ad_groups", "goal_count", "pacing.goal.count"},
    {"ad_groups", "devices", "targeting.devices"},
    {"ad_groups", "geos", "targeting.geos"},
    {"ad_groups", "schedule", "targeting.schedule"},
    {"ad_groups", "include_urls", "targeting.urls.include"},
    {"ad_groups", "exclude_urls", "targeting.urls.exclude"},
    {"ad_groups", "keys", "targeting.keys"},
    {"ad_groups", "languages", "targeting.languages"},
    {"creatives", "policy", ""},
    {"placements", "floor_micro", "floor_cents", Form::money},
    {"placements", "viewable_share", "viewable.share"},
    {"placements", "viewable_seconds", "viewable.seconds"},
});

struct Table {
    std::string_view table;
    const char* object;
};
constexpr auto kTables = std::to_array<Table>({
    {"advertisers", "advertiser"},
    {"campaigns", "campaign"},
    {"ad_groups", "ad group"},
    {"ad_group_placements", "ad group"},
    {"creatives", "creative"},
    {"placements", "placement"},
    {"experiments", "experiment"},
    {"variants", "experiment"},
    {"settings", "setting"},
});

Column column_of(std::string_view table, const char* name) {
    const auto* found = std::find_if(kColumns.begin(), kColumns.end(), [&](const Column& known) {
        return known.column == name && (known.table.empty() || known.table == table);
    });
    return found == kColumns.end() ? Column{table, name, name} : *found;
}

Json parsed(std::string_view text) {
    Json json(text.empty() ? nullptr : json_loadb(text.data(), text.size(), 0, nullptr));
    return json ? std::move(json) : Json(json_object());
}

// PostgreSQL's "2026-11-01T00:00:00+00:00", as the catalog writes it. Other zones stay.
std::string moment_field(const json_t* value) {
    std::string text = json_string_value(value);
    constexpr std::string_view kUtc = "+00:00";
    if (text.ends_with(kUtc)) {
        text.replace(text.size() - kUtc.size(), kUtc.size(), "Z");
    }
    return dumped(Json(text_json(text)).get());
}

std::string value_of(const json_t* value, Form form) {
    if (value == nullptr || json_is_null(value)) {
        return "null";
    }
    if (form == Form::money && json_is_integer(value)) {
        constexpr json_int_t kMicro = 1'000'000;
        const json_int_t micro = json_integer_value(value);
        return micro % kMicro == 0 ? std::to_string(micro / kMicro)
                                   : fmt::format("{}", static_cast<double>(micro) / kMicro);
    }
    return form == Form::moment && json_is_string(value) ? moment_field(value) : dumped(value);
}

// The content of a creative member by member, all else as a whole.
void compare(const std::string& field, const json_t* before, const json_t* after, Form form,
             std::vector<FieldChange>& fields) {
    if (field == "content" && json_is_object(before) && json_is_object(after)) {
        const Json both(json_copy(const_cast<json_t*>(before)));
        json_object_update(both.get(), const_cast<json_t*>(after));
        const char* key = nullptr;
        json_t* value = nullptr;
        json_object_foreach(both.get(), key, value) {
            compare("content." + std::string(key), json_object_get(before, key),
                    json_object_get(after, key), form, fields);
        }
        return;
    }
    std::string old = value_of(before, form);
    std::string now = value_of(after, form);
    if (old != now) {
        fields.push_back({field, std::move(old), std::move(now)});
    }
}

std::vector<FieldChange> fields_of(const LogEntry& entry, const json_t* before,
                                   const json_t* after) {
    std::vector<FieldChange> fields;
    const char* name = nullptr;
    json_t* value = nullptr;
    json_object_foreach(const_cast<json_t*>(after), name, value) {
        const Column column = column_of(entry.table, name);
        if (!column.field.empty()) {
            compare(std::string(column.field), json_object_get(before, name), value, column.form,
                    fields);
        }
    }
    return fields;
}

// "12/home-top" is a part of ad group 12, "3/31" one of experiment 3.
FieldChange part_of(const LogEntry& entry, std::string_view part, const json_t* before,
                    const json_t* after) {
    if (entry.table == "variants") {
        const auto share = [](const json_t* row) {
            const json_t* value = json_object_get(row, "share");
            return value == nullptr ? std::string("null") : dumped(value);
        };
        return {fmt::format("variants.{}.share", part), share(before), share(after)};
    }
    const std::string quoted = dumped(Json(text_json(part)).get());
    return {"targeting.placements", entry.before.empty() ? "null" : quoted,
            entry.after.empty() ? "null" : quoted};
}

Change change_of(const LogEntry& entry) {
    const Json before = parsed(entry.before);
    const Json after = parsed(entry.after);
    const auto* table = std::find_if(kTables.begin(), kTables.end(), [&](const Table& known) {
        return known.table == entry.table;
    });
    Change change;
    change.what = table == kTables.end() ? std::string(entry.table) : table->object;
    change.id = entry.id;
    if (entry.table == "ad_group_placements" || entry.table == "variants") {
        const size_t slash = entry.id.find('/');
        change.id = entry.id.substr(0, slash);
        change.fields.push_back(
            part_of(entry, entry.id.substr(slash + 1), before.get(), after.get()));
        return change;
    }
    if (entry.table == "settings") {
        change.id = "currency";
    }
    change.name = text_at(entry.after.empty() ? before.get() : after.get(), "name");
    if (entry.action == "insert") {
        change.kind = ChangeKind::added;
    } else if (entry.action == "delete") {
        change.kind = ChangeKind::archived;  // what is gone counts as that
    } else if (entry.action == "verdict") {
        change.fields.push_back(
            {"verdict", "null", dumped(Json(text_json(text_at(after.get(), "why"))).get())});
    } else {
        change.kind = text_at(after.get(), "status") == "archived" &&
                              text_at(before.get(), "status") != "archived"
                          ? ChangeKind::archived
                          : ChangeKind::changed;
        change.fields = fields_of(entry, before.get(), after.get());
    }
    return change;
}

}  // namespace

void add_entry(const LogEntry& entry, std::vector<Change>& changes) {
    Change change = change_of(entry);
    const auto same = std::find_if(changes.begin(), changes.end(), [&](const Change& known) {
        return known.what == change.what && known.id == change.id;
    });
    if (same == changes.end()) {
        changes.push_back(std::move(change));
        return;
    }
    same->name = same->name.empty() ? change.name : same->name;
    same->kind = change.kind == ChangeKind::changed ? same->kind : change.kind;
    same->fields.insert(same->fields.begin(), change.fields.begin(), change.fields.end());
}

void settle(std::vector<Change>& changes) {
    std::reverse(changes.begin(), changes.end());
    for (auto& change : changes) {
        if (change.kind == ChangeKind::added) {
            change.fields.clear();
        }
    }
    std::erase_if(changes, [](const Change& change) {
        return change.kind == ChangeKind::changed && change.fields.empty();
    });
}

}  // namespace ads::admin
