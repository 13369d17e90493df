#include "cli/catalog/changes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/common/output.hpp"
#include "cli/common/table.hpp"
#include "core/catalog/formats.hpp"
#include "lib/base/json.hpp"
#include "lib/base/local_time.hpp"
#include "lib/base/money_fields.hpp"

namespace ads::cli {

namespace {

std::string shown_value(const std::string& json) {
    return json.empty() || json == "null" ? "none" : printable(json);
}

// A start or an end in the campaign's time zone.
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

}  // namespace

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
