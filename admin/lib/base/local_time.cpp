#include "lib/base/local_time.hpp"

// The library is built for the system's own database; its classes have another
// layout without this.
#define USE_OS_TZDB 1
#include <date/tz.h>
#include <fmt/format.h>

#include <charconv>
#include <chrono>

#include "core/catalog/formats.hpp"

namespace ads::admin {

namespace {

using date::local_seconds;

// UTC needs no database.
const date::time_zone* zone_of(const std::string& name) {
    return name == "UTC" || name == "Etc/UTC" ? nullptr : date::locate_zone(name);
}

// The first moment at which the local clock shows it, or something later.
Seconds first_moment(local_seconds local, const date::time_zone* zone) {
    const Seconds plain = local.time_since_epoch().count();
    if (zone == nullptr) {
        return plain;
    }
    const date::local_info info = zone->get_info(local);
    return info.result == date::local_info::nonexistent
               ? Seconds{info.first.end.time_since_epoch().count()}
               : plain - info.first.offset.count();
}

local_seconds local_of(Seconds when, const date::time_zone* zone) {
    const date::sys_seconds at{std::chrono::seconds{when}};
    return zone == nullptr ? local_seconds{at.time_since_epoch()} : zone->to_local(at);
}

std::string clock_text(local_seconds local) {
    const auto day = date::floor<date::days>(local);
    const date::year_month_day ymd{day};
    const auto clock = date::hh_mm_ss<std::chrono::seconds>{local - day};
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", static_cast<int>(ymd.year()),
                       static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()),
                       clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

constexpr size_t kDate = 10;    // 2026-11-18
constexpr size_t kMinute = 16;  // 2026-11-18 18:30

// Digits where the pattern has a 0, its own characters elsewhere; "T" and " " are one.
bool looks_like(std::string_view text, std::string_view pattern) {
    for (size_t i = 0; i < text.size(); i++) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        const char wanted = pattern[i];
        const bool right = wanted == '0'   ? digit
                           : wanted == ' ' ? text[i] == ' ' || text[i] == 'T' || text[i] == 't'
                                           : text[i] == wanted;
        if (!right) {
            return false;
        }
    }
    return true;
}

// A local date, or a date and a time of day.
struct Written {
    date::local_days day;
    std::optional<std::chrono::seconds> time;
};

std::optional<Written> parse_written(std::string_view text) {
    constexpr std::string_view kPattern = "0000-00-00 00:00:00";
    if ((text.size() != kDate && text.size() != kMinute && text.size() != kPattern.size()) ||
        !looks_like(text, kPattern)) {
        return std::nullopt;
    }
    const auto number = [&](size_t at, size_t digits) {
        int value = 0;
        if (at < text.size()) {
            std::from_chars(text.data() + at, text.data() + at + digits, value);
        }
        return value;
    };
    const date::year_month_day ymd{date::year{number(0, 4)},
                                   date::month{static_cast<unsigned>(number(5, 2))},
                                   date::day{static_cast<unsigned>(number(8, 2))}};
    const int hour = number(11, 2);
    const int minute = number(14, 2);
    const int second = number(17, 2);
    if (!ymd.ok() || hour > 23 || minute > 59 || second > 59) {
        return std::nullopt;
    }
    Written written{date::local_days{ymd}, std::nullopt};
    if (text.size() > kDate) {
        written.time =
            std::chrono::hours{hour} + std::chrono::minutes{minute} + std::chrono::seconds{second};
    }
    return written;
}

}  // namespace

std::optional<Seconds> parse_local(std::string_view text, const std::string& zone, Edge edge) {
    if (const auto moment = catalog::parse_date(text)) {
        return moment;
    }
    auto written = parse_written(text);
    if (!written) {
        return std::nullopt;
    }
    if (!written->time && edge == Edge::end) {
        written->day += date::days{1};
    }
    const local_seconds local = written->day + written->time.value_or(std::chrono::seconds{0});
    const Seconds when = first_moment(local, zone_of(zone));
    // Of the years that the catalog knows.
    const bool known = when >= 0 && catalog::parse_date(catalog::date_text(when)) == when;
    return known ? std::optional(when) : std::nullopt;
}

std::string local_text(Seconds when, const std::string& zone_name, Edge edge) {
    const auto* zone = zone_of(zone_name);
    const local_seconds local = local_of(when, zone);
    const auto day = date::floor<date::days>(local);
    if (first_moment(day, zone) == when) {
        return clock_text(edge == Edge::end ? day - date::days{1} : day).substr(0, kDate);
    }
    std::string text = clock_text(local);
    if (first_moment(local, zone) != when) {  // the second time that this hour comes
        const Seconds offset = local.time_since_epoch().count() - when;
        const Seconds minutes = std::abs(offset) / 60;
        text[kDate] = 'T';
        return fmt::format("{}{}{:02}:{:02}", text, offset < 0 ? '-' : '+', minutes / 60,
                           minutes % 60);
    }
    return text.ends_with(":00") ? text.substr(0, kMinute) : text;
}

Seconds moved(Seconds when, const std::string& from, const std::string& to) {
    const auto* old_zone = zone_of(from);
    const auto* new_zone = zone_of(to);
    const local_seconds local = local_of(when, old_zone);
    const auto day = date::floor<date::days>(local);
    return first_moment(first_moment(day, old_zone) == when ? local_seconds{day} : local, new_zone);
}

}  // namespace ads::admin
