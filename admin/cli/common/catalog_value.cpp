#include "cli/common/catalog_value.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/types.hpp"
#include "lib/base/json.hpp"
#include "lib/base/money_fields.hpp"
#include "lib/base/text.hpp"

namespace ads::cli {

using namespace admin;

namespace {

constexpr std::string_view kNothing = "none";

std::string scalar(const json_t* value) {
    return printable(json_is_string(value) ? json_string_value(value) : dumped(value));
}

template <class F>
std::string joined(const json_t* list, const char* separator, F f) {
    std::string text;
    size_t i = 0;
    json_t* item = nullptr;
    json_array_foreach(const_cast<json_t*>(list), i, item) {
        text += (i == 0 ? "" : separator) + f(item);
    }
    return text.empty() ? std::string(kNothing) : text;
}

std::string amount(const json_t* object, const std::string& currency) {
    return money_text(micro_of(json_object_get(object, "amount_cents")), currency);
}

// "50.00 EUR/day, hard cap 1.2"
std::string budget(const json_t* value, const std::string& currency) {
    const json_t* cap = json_object_get(value, "hard_cap");
    const bool daily = text_at(value, "type") == name_of(BudgetType::daily);
    return fmt::format(
        "{}{}{}", amount(value, currency), daily ? "/day" : "/total",
        daily && json_is_number(cap) ? fmt::format(", hard cap {}", scalar(cap)) : std::string());
}

// "3/day", "10/7d/campaign"
std::string cap(const json_t* value) {
    const std::string level = text_at(value, "level");
    return fmt::format("{}/{}{}{}", scalar(json_object_get(value, "count")), text_at(value, "per"),
                       level.empty() || level == name_of(CapLevel::ad_group) ? "" : "/",
                       level == name_of(CapLevel::ad_group) ? "" : level);
}

// "mon-fri": days that follow each other are a range.
std::string days(const json_t* list) {
    std::string text;
    const size_t all = json_array_size(list);
    const auto day = [&](size_t i) {
        return named<Weekday>(std::string(json_string_value(json_array_get(list, i))));
    };
    for (size_t first = 0; first < all;) {
        size_t last = first;
        while (last + 1 < all && day(last) && day(last + 1) &&
               static_cast<size_t>(*day(last + 1)) == static_cast<size_t>(*day(last)) + 1) {
            last++;
        }
        text += fmt::format("{}{}", text.empty() ? "" : ",", scalar(json_array_get(list, first)));
        text += last == first ? "" : fmt::format("-{}", scalar(json_array_get(list, last)));
        first = last + 1;
    }
    return text;
}

std::string hours(const json_t* value) {
    const std::string on = days(json_object_get(value, "days"));
    const std::string from = text_at(value, "from");
    const std::string to = text_at(value, "to");
    const std::string time =
        from.empty() && to.empty()
            ? "0-24"
            : fmt::format("{}-{}", from.empty() ? "0" : from, to.empty() ? "24" : to);
    return on.empty() ? time : fmt::format("{}:{}", on, time);
}

// "500000/impressions", "section=sports,politics"
std::string members(const json_t* object, const std::string& currency) {
    std::string text;
    const char* key = nullptr;
    json_t* value = nullptr;
    json_object_foreach(const_cast<json_t*>(object), key, value) {
        const bool money = is_money(key);
        text += fmt::format("{}{}={}", text.empty() ? "" : "; ",
                            money ? money_name(key) : printable(key),
                            shown_value(key, value, currency));
    }
    return text.empty() ? std::string(kNothing) : text;
}

std::string item(std::string_view key, const json_t* value, const std::string& currency) {
    return !json_is_object(value)    ? scalar(value)
           : key == "frequency_caps" ? cap(value)
           : key == "schedule"       ? hours(value)
           : key == "campaigns"
               ? fmt::format("{} \"{}\" ({})", scalar(json_object_get(value, "id")),
                             printable(text_at(value, "name")), text_at(value, "status"))
               : fmt::format("({})", members(value, currency));
}

}  // namespace

std::string shown_value(std::string_view path, const json_t* value, const std::string& currency) {
    const std::string_view key = path.substr(path.rfind('.') + 1);
    if (value == nullptr || json_is_null(value)) {
        return std::string(kNothing);
    }
    if (is_money(path) && json_is_number(value)) {
        return money_text(micro_of(value), currency);
    }
    if (json_is_real(value) && path.starts_with("delivery.") && !path.ends_with("cents")) {
        return fmt::format("{:.1f}%", 100 * json_real_value(value));
    }
    if (json_is_array(value)) {
        return joined(value, key == "schedule" || key == "campaigns" ? "; " : ", ",
                      [&](const json_t* one) { return item(key, one, currency); });
    }
    if (!json_is_object(value)) {
        return scalar(value);
    }
    return key == "budget"  ? budget(value, currency)
           : key == "price" ? fmt::format("{} {}", amount(value, currency), text_at(value, "model"))
                            : members(value, currency);
}

}  // namespace ads::cli
