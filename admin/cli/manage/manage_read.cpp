// show, history.
#include <fmt/format.h>
#include <unistd.h>

#include "cli/catalog/changes.hpp"
#include "cli/common/catalog_value.hpp"
#include "cli/common/grid.hpp"
#include "cli/common/table.hpp"
#include "cli/manage/manage.hpp"
#include "core/base/types.hpp"
#include "lib/base/money_fields.hpp"
#include "lib/base/settings.hpp"
#include "lib/catalog/catalog_list.hpp"
#include "lib/manage/dates.hpp"
#include "lib/manage/edits.hpp"
#include "lib/manage/history.hpp"
#include "lib/manage/read.hpp"

namespace ads::cli {

namespace {

// ---- one ----

// The context for showing an object.
struct Terms {
    std::string currency;
    std::string zone;  // of its campaign
};

std::string shown(const std::string& path, const json_t* object, const char* key,
                  const json_t* value, const Terms& terms) {
    if (const std::string date = shown_date(object, key, terms.zone); !date.empty()) {
        return date;
    }
    return shown_value(path, value, terms.currency);
}

// A line for each value that is not empty.
void flatten(const std::string& path, const json_t* object, const Terms& terms, Grid& grid) {
    const char* key = nullptr;
    json_t* value = nullptr;
    json_object_foreach(const_cast<json_t*>(object), key, value) {
        const std::string name = path.empty() ? key : path + '.' + key;
        if (json_is_object(value)) {
            flatten(name, value, terms, grid);
            continue;
        }
        const bool empty = json_is_null(value) ||
                           (json_is_string(value) && json_string_length(value) == 0) ||
                           (json_is_array(value) && json_array_size(value) == 0);
        if (!empty) {
            grid.add(
                {is_money(name) ? money_name(name) : name, shown(name, object, key, value, terms)});
        }
    }
}

json_t* null_or(const json_t* object, const char* key) {
    json_t* value = json_object_get(object, key);
    return value == nullptr ? json_null() : json_incref(value);
}

void print_below(const json_t* list, Kind kind, const Terms& terms) {
    if (json_array_size(list) == 0) {
        return;
    }
    const bool group = kind == Kind::ad_group;
    Grid grid(
        group ? std::vector<std::string>{"ID", "NAME", "STATUS", "PRIORITY", "WEIGHT", "MODEL",
                                         "PRICE", "CREATIVES"}
              : std::vector<std::string>{"ID", "NAME", "TYPE", "STATUS", "WEIGHT", "CLICK URL"});
    size_t i = 0;
    json_t* item = nullptr;
    json_array_foreach(const_cast<json_t*>(list), i, item) {
        const auto text = [&](const char* key) { return printable(text_at(item, key)); };
        const auto number = [&](const json_t* object, const char* key) {
            const Json value(null_or(object, key));
            return json_is_null(value.get()) ? std::string() : dumped(value.get());
        };
        const json_t* price = json_object_get(item, "price");
        if (group) {
            grid.add({number(item, "id"), text("name"), text("status"), text("priority"),
                      number(item, "weight"), text_at(price, "model"),
                      money_text(micro_of(json_object_get(price, "amount_cents")), terms.currency),
                      std::to_string(json_array_size(json_object_get(item, "creatives")))});
        } else {
            grid.add({number(item, "id"), text("name"), text("type"), text("status"),
                      number(item, "weight"), text("click_url")});
        }
    }
    out().put(fmt::format("\n{}\n", group ? "Ad groups" : "Creatives"));
    grid.print(2);
}

// Its variants with their figures, and how it ended.
void print_variants(Database& database, const json_t* experiment) {
    const std::string id = std::to_string(number_at(experiment, "id"));
    const Rows rows = database.run(
        "SELECT creative_id, name, share, trials, successes FROM ads.experiment_arms($1)", {id});
    Grid grid({"CREATIVE", "NAME", "SHARE", "TRIALS", "SUCCESSES", ""});
    for (size_t i = 0; i < rows.size(); i++) {
        const bool won =
            static_cast<uint64_t>(rows.number(i, 0)) == number_at(experiment, "winner");
        grid.add({std::string(rows.at(i, 0)), printable(rows.at(i, 1)),
                  fmt::format("{:.1f}%", 100 * rows.real(i, 2)), std::string(rows.at(i, 3)),
                  std::string(rows.at(i, 4)), won ? "won" : ""});
    }
    out().put("\nVariants\n");
    grid.print(2);
    const Rows ends = database.run(
        "SELECT ads.moment_text(at), actor, coalesce(after ->> 'why', '') FROM ads.audit_log "
        "WHERE table_name = 'experiments' AND row_id = $1 AND action = 'verdict' ORDER BY id",
        {id});
    for (size_t i = 0; i < ends.size(); i++) {
        out().put(fmt::format("\nended at {} by {}: {}\n", ends.at(i, 0), printable(ends.at(i, 1)),
                              printable(ends.at(i, 2))));
    }
}

// Dates of an ad group are those of its campaign's zone.
std::string zone_in(Database& database, const Look& look) {
    if (look.kind != Kind::campaign && look.kind != Kind::ad_group) {
        return "UTC";
    }
    const std::string sql =
        look.kind == Kind::campaign
            ? "SELECT timezone FROM ads.campaigns WHERE id = $1"
            : "SELECT c.timezone FROM ads.campaigns c JOIN ads.ad_groups g ON g.campaign_id = c.id "
              "WHERE g.id = $1";
    return database.value(sql, {look.id});
}

void print_object(Database& database, const Look& look, json_t* object) {
    const Terms terms{currency_of(database), zone_in(database, look)};
    const Json copy(json_copy(object));
    for (const char* key : {"ad_groups", "creatives", "variants"}) {
        json_object_del(copy.get(), key);
    }
    Grid grid({"FIELD", "VALUE"});
    flatten("", copy.get(), terms, grid);
    grid.print();
    if (look.kind == Kind::campaign) {
        print_below(json_object_get(object, "ad_groups"), Kind::ad_group, terms);
    } else if (look.kind == Kind::ad_group) {
        print_below(json_object_get(object, "creatives"), Kind::creative, terms);
    } else if (look.kind == Kind::experiment) {
        print_variants(database, object);
    }
}

// ---- history ----

std::string shown_change(const Change& change, const std::string& currency) {
    if (change.fields.empty()) {
        return fmt::format("{}{}", change.kind == ChangeKind::added ? "added" : "removed",
                           change.name.empty() ? "" : ": " + printable(change.name));
    }
    std::string text;
    for (const auto& field : change.fields) {
        text += (text.empty() ? "" : "; ") + shown_field(change, field, currency);
    }
    return text;
}

}  // namespace

Exit show(const Look& look) {
    Database database(look.access.database, "nginx-ads show");
    try {
        Look one = look;
        one.id = found_id(database, look.kind, look.id);
        const Json object = read_object(database, one.kind, one.id);
        look.access.json ? print_json(object) : print_object(database, one, object.get());
        return Exit::ok;
    } catch (const SqlError& e) {
        throw explained(e);
    }
}

Exit history(const Look& asked) {
    Database database(asked.access.database, "nginx-ads history");
    try {
        const HistoryQuery query{asked.kind, asked.id, asked.all, asked.limit};
        const auto edits = read_history(database, query);
        if (asked.access.json) {
            print_json(Json(history_json(edits)));
            return Exit::ok;
        }
        const std::string currency = currency_of(database);
        Grid grid({"VERSION", "WHEN", "WHO", "WHAT", "CHANGE"});
        for (const auto& one : edits) {
            for (const auto& change : one.changes) {
                grid.add({one.version, one.at, printable(one.actor),
                          fmt::format("{} {}", change.what, printable(change.id)),
                          shown_change(change, currency)});
            }
        }
        grid.empty() ? out().put("no history\n") : grid.print();
        return Exit::ok;
    } catch (const SqlError& e) {
        throw explained(e);
    }
}

}  // namespace ads::cli
