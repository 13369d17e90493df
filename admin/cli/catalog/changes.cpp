#include "cli/catalog/changes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/common/catalog_value.hpp"
#include "cli/common/output.hpp"
#include "cli/common/table.hpp"
#include "core/catalog/formats.hpp"
#include "lib/base/json.hpp"
#include "lib/base/local_time.hpp"
#include "lib/base/money_fields.hpp"

namespace ads::cli {

namespace {

// A text has its quotes: it may be empty.
std::string shown_json(const FieldChange& field, const std::string& json,
                       const std::string& currency) {
    const Json value(json.empty() ? nullptr : value_json(json));
    return json_is_string(value.get()) ? printable(json)
                                       : shown_value(field.field, value.get(), currency);
}

// A start or an end in the campaign's time zone.
std::string shown_date(const FieldChange& field, const std::string& json, const std::string& zone,
                       const std::string& currency) {
    const Json value(value_json(json));
    const auto when = json_is_string(value.get())
                          ? catalog::parse_date(json_string_value(value.get()))
                          : std::nullopt;
    return when ? fmt::format(
                      "{} ({})",
                      local_text(*when, zone, field.field == "end" ? Edge::end : Edge::start), zone)
                : shown_json(field, json, currency);
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

}  // namespace

std::string shown_field(const Change& change, const FieldChange& field,
                        const std::string& currency) {
    if ((field.field == "start" || field.field == "end") && !change.zone.empty()) {
        return fmt::format("{}: {} -> {}", field.field,
                           shown_date(field, field.before, change.zone_before, currency),
                           shown_date(field, field.after, change.zone, currency));
    }
    return fmt::format(
        "{}: {} -> {}", is_money(field.field) ? money_name(field.field) : printable(field.field),
        shown_json(field, field.before, currency), shown_json(field, field.after, currency));
}

void show_changes(const std::vector<Change>& changes, const std::string& currency) {
    for (const auto& change : changes) {
        show(change, currency);
    }
}

void tell_removed(const std::vector<Removed>& removed) {
    for (const auto& one : removed) {
        for (const auto& what : one.what) {
            error_line(fmt::format("creative {}: removed: {}", one.creative, printable(what)));
        }
    }
}

}  // namespace ads::cli
