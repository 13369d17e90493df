#include "cli/catalog/changes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/common/json.hpp"
#include "cli/common/local_time.hpp"
#include "cli/common/money_fields.hpp"
#include "cli/common/output.hpp"
#include "cli/common/table.hpp"
#include "core/catalog/formats.hpp"

namespace ads::cli {

namespace {

std::string shown_value(const std::string& json) {
    return json.empty() || json == "null" ? "none" : printable(json);
}

// A start or an end, as its campaign's people say it.
std::string shown_date(const std::string& field, const std::string& json, const std::string& zone) {
    const Json value(value_json(json));
    const auto when = json_is_string(value.get())
                          ? catalog::parse_date(json_string_value(value.get()))
                          : std::nullopt;
    return when ? fmt::format("{} ({})",
                              local_text(*when, zone, field == "end" ? Edge::end : Edge::start),
                              zone)
                : shown_value(json);
}

// "price.amount_cents: 250" is money: "price.amount: 2.50 EUR".
std::string shown_field(const Change& change, const FieldChange& field,
                        const std::string& currency) {
    if ((field.field == "start" || field.field == "end") && !change.zone.empty()) {
        return fmt::format("{}: {} -> {}", field.field,
                           shown_date(field.field, field.before, change.zone_before),
                           shown_date(field.field, field.after, change.zone));
    }
    if (!is_money(field.field)) {
        return fmt::format("{}: {} -> {}", printable(field.field), shown_value(field.before),
                           shown_value(field.after));
    }
    const auto value = [&](const std::string& json) {
        const Json cents(value_json(json));
        return json_is_number(cents.get()) ? money_text(micro_of(cents.get()), currency)
                                           : shown_value(json);
    };
    return fmt::format("{}: {} -> {}", money_name(field.field), value(field.before),
                       value(field.after));
}

void show(const Change& change, const std::string& currency) {
    constexpr auto kMarks = std::to_array<std::string_view>({"+", "~", "-"});
    constexpr auto kColours = std::to_array<Colour>({Colour::green, Colour::yellow, Colour::red});
    const auto kind = static_cast<size_t>(change.kind);
    const std::string name =
        change.name.empty() ? "" : fmt::format(" \"{}\"", printable(change.name));
    const std::string with =
        change.ad_groups + change.creatives == 0
            ? ""
            : fmt::format(" with {}, {}", counted(change.ad_groups, "ad group"),
                          counted(change.creatives, "creative"));
    out().put(fmt::format("{} {} {}{}{}\n", painted(STDOUT_FILENO, kColours[kind], kMarks[kind]),
                          change.what, printable(change.id), name, with));
    const size_t width = terminal_width();
    for (const auto& field : change.fields) {
        const std::string line = "    " + shown_field(change, field, currency);
        out().put((isatty(STDOUT_FILENO) == 1 ? fitted(line, width) : line) + '\n');
    }
}

json_t* change_json(const Change& change) {
    json_t* item = json_object();
    json_object_set_new(item, "change", text_json(kChangeKinds[static_cast<size_t>(change.kind)]));
    json_object_set_new(item, "object", text_json(change.what));
    json_t* id = value_json(change.id);
    if (!json_is_integer(id) || change.what == "placement") {
        json_decref(id);
        id = text_json(change.id);
    }
    json_object_set_new(item, "id", id);
    json_object_set_new(item, "name", text_json(change.name));
    if (change.ad_groups + change.creatives > 0) {
        json_object_set_new(item, "ad_groups", number_json(change.ad_groups));
        json_object_set_new(item, "creatives", number_json(change.creatives));
    }
    json_t* fields = json_array();
    for (const auto& field : change.fields) {
        json_t* one = json_object();
        json_object_set_new(one, "field", text_json(field.field));
        json_object_set_new(one, "before", value_json(field.before));
        json_object_set_new(one, "after", value_json(field.after));
        json_array_append_new(fields, one);
    }
    json_object_set_new(item, "fields", fields);
    return item;
}

}  // namespace

json_t* value_json(const std::string& text) {
    json_t* value =
        text.empty() ? nullptr : json_loadb(text.data(), text.size(), JSON_DECODE_ANY, nullptr);
    return value == nullptr ? json_null() : value;
}

void show_changes(const std::vector<Change>& changes, const std::string& currency) {
    for (const auto& change : changes) {
        show(change, currency);
    }
}

json_t* changes_json(const std::vector<Change>& changes) {
    json_t* list = json_array();
    for (const auto& change : changes) {
        json_array_append_new(list, change_json(change));
    }
    return list;
}

}  // namespace ads::cli
