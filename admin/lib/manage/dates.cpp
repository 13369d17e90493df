#include "lib/manage/dates.hpp"

#include <fmt/format.h>

#include "core/catalog/calendar.hpp"
#include "core/catalog/formats.hpp"
#include "lib/base/json.hpp"
#include "lib/base/local_time.hpp"
#include "lib/manage/edits.hpp"

namespace ads::admin {

namespace {

constexpr auto kEdges =
    std::to_array<std::pair<const char*, Edge>>({{"start", Edge::start}, {"end", Edge::end}});

void keep_local(json_t* now, const json_t* before, const std::string& from, const std::string& to) {
    for (const auto& [key, edge] : kEdges) {
        const auto when = catalog::parse_date(text_at(now, key));
        if (when && json_equal(json_object_get(now, key), json_object_get(before, key)) != 0) {
            json_object_set_new(now, key, text_json(catalog::date_text(moved(*when, from, to))));
        }
    }
}

}  // namespace

std::string zone_of(const json_t* campaign) {
    const std::string zone = text_at(campaign, "timezone");
    return zone.empty() || !catalog::timezone_exists(zone) ? "UTC" : zone;
}

void resolve_dates(json_t* object, const std::string& zone) {
    for (const auto& [key, edge] : kEdges) {
        const std::string said = text_at(json_object_get(object, key), kLocal);
        if (const auto when = said.empty() ? std::nullopt : parse_local(said, zone, edge)) {
            json_object_set_new(object, key, text_json(catalog::date_text(*when)));
        }
    }
}

void keep_local_dates(json_t* campaign, const json_t* before) {
    const std::string from = zone_of(before);
    const std::string to = zone_of(campaign);
    if (from == to) {
        return;
    }
    keep_local(campaign, before, from, to);
    size_t i = 0;
    json_t* group = nullptr;
    json_array_foreach(json_object_get(campaign, "ad_groups"), i, group) {
        keep_local(group, with_id(json_object_get(before, "ad_groups"), number_at(group, "id")),
                   from, to);
    }
}

std::string with_local_dates(const std::string& message, const std::string& zone) {
    constexpr size_t kLength = std::string_view("2026-11-18T10:00:00Z").size();
    constexpr std::string_view kEnd = "end, ";
    std::string text;
    for (size_t i = 0; i < message.size();) {
        const auto when = i + kLength <= message.size()
                              ? catalog::parse_date(message.substr(i, kLength))
                              : std::nullopt;
        if (when) {
            text += fmt::format(
                "{} ({})", local_text(*when, zone, text.ends_with(kEnd) ? Edge::end : Edge::start),
                zone);
            i += kLength;
        } else {
            text += message[i++];
        }
    }
    return text;
}

std::string shown_date(const json_t* object, const char* key, const std::string& zone) {
    for (const auto& [edge_key, edge] : kEdges) {
        const auto when = catalog::parse_date(text_at(object, key));
        if (when && std::string_view(key) == edge_key) {
            return fmt::format("{} ({})", local_text(*when, zone, edge), zone);
        }
    }
    return {};
}

}  // namespace ads::admin
