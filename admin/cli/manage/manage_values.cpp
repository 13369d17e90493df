#include "cli/manage/manage_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cli/common/output.hpp"
#include "cli/common/table.hpp"
#include "core/base/types.hpp"
#include "lib/base/json.hpp"

namespace ads::cli {

namespace {

constexpr std::string_view kNoValue = "none";

[[noreturn]] void wrong(const char* flag, const char* right, const std::string& text) {
    throw Failure(Exit::usage,
                  fmt::format("{} must be {}, not \"{}\".", flag, right, printable(text)));
}

// Takes the text up to the separator, or all of it.
std::string_view take(std::string_view& text, char separator) {
    const size_t end = std::min(text.find(separator), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
}

constexpr const char* kCap = "a cap such as 3/day, 10/7d, 1/lifetime or 3/day/campaign";

json_t* cap_json(const std::string& text) {
    std::string_view rest = text;
    const std::string count(take(rest, '/'));
    const std::string per(take(rest, '/'));
    std::string level(rest);
    std::replace(level.begin(), level.end(), '-', '_');
    if (per.empty() || (!level.empty() && !named<CapLevel>(level))) {
        wrong("--cap", kCap, text);
    }
    json_t* cap = json_object();
    json_object_set_new(cap, "count", number_or_text(count));
    json_object_set_new(cap, "per", text_json(per));
    if (!level.empty()) {
        json_object_set_new(cap, "level", text_json(level));
    }
    return cap;
}

constexpr const char* kHours = "hours such as mon-fri:9-17, sat,sun:10:30-24 or 22-6";

// "9", "09" or "9:30" as "09:30"; empty if invalid.
std::string clock_text(std::string_view text) {
    const std::string_view hour = take(text, ':');
    const auto number = [](std::string_view digits, unsigned most) {
        unsigned value = 0;
        const char* end = digits.data() + digits.size();
        const auto read = std::from_chars(digits.data(), end, value);
        const bool good = digits.size() <= 2 && read.ec == std::errc() && read.ptr == end;
        return good && value <= most ? std::optional(value) : std::nullopt;
    };
    const auto hours = number(hour, 24);
    const auto minutes = text.empty() ? std::optional(0u) : number(text, 59);
    return hours && minutes ? fmt::format("{:02}:{:02}", *hours, *minutes) : std::string();
}

// "mon-fri" and "sat,sun"; false if a day is invalid.
bool add_days(json_t* days, std::string_view text) {
    while (!text.empty()) {
        std::string_view range = take(text, ',');
        const auto first = named<Weekday>(take(range, '-'));
        const auto last = range.empty() ? first : named<Weekday>(range);
        if (!first || !last) {
            return false;
        }
        for (auto day = static_cast<size_t>(*first);; day = (day + 1) % kCount<Weekday>) {
            json_array_append_new(days, text_json(name_of(static_cast<Weekday>(day))));
            if (day == static_cast<size_t>(*last)) {
                break;
            }
        }
    }
    return true;
}

json_t* hour_json(const std::string& text) {
    std::string_view rest = text;
    Json part(json_object());
    if (!rest.empty() && (rest[0] < '0' || rest[0] > '9')) {
        json_t* days = json_array();
        json_object_set_new(part.get(), "days", days);
        if (!add_days(days, take(rest, ':'))) {
            wrong("--hours", kHours, text);
        }
    }
    const std::string from = clock_text(take(rest, '-'));
    const std::string to = clock_text(rest);
    if (from.empty() || to.empty()) {
        wrong("--hours", kHours, text);
    }
    json_object_set_new(part.get(), "from", text_json(from));
    json_object_set_new(part.get(), "to", text_json(to));
    return part.release();
}

template <class F>
json_t* each_json(const std::vector<std::string>& texts, F f) {
    Json list(json_array());
    for (const auto& text : texts) {
        if (text != kNoValue && !text.empty()) {
            json_array_append_new(list.get(), f(text));
        }
    }
    return list.release();
}

}  // namespace

uint64_t money_of(const char* flag, const std::string& text) {
    const auto cents = parse_money(text);
    if (!cents) {
        throw Failure(Exit::usage, fmt::format("{} {}.", flag, money_fault(printable(text))));
    }
    return *cents;
}

json_t* money_json(const char* flag, const std::string& text) {
    return text == kNoValue ? json_null() : number_json(money_of(flag, text));
}

std::optional<BudgetText> budget_of(const std::string& text) {
    if (text == kNoValue) {
        return std::nullopt;
    }
    const auto budget = parse_budget(text);
    if (!budget) {
        throw Failure(Exit::usage, fmt::format("--budget {}.", budget_fault(printable(text))));
    }
    return budget;
}

json_t* caps_json(const std::vector<std::string>& texts) {
    return each_json(texts, cap_json);
}

json_t* hours_json(const std::vector<std::string>& texts) {
    return each_json(texts, hour_json);
}

json_t* goal_json(const std::string& text) {
    if (text == kNoValue) {
        return json_null();
    }
    std::string_view rest = text;
    const std::string count(take(rest, '/'));
    const std::string of(rest.empty() ? "impressions" : rest);
    if (of != "impressions" && of != "clicks") {
        wrong("--goal", "a number of impressions such as 500000, or of clicks such as 2000/clicks",
              text);
    }
    json_t* goal = json_object();
    json_object_set_new(goal, of.c_str(), number_or_text(count));
    return goal;
}

void set_keys(json_t* keys, const std::vector<std::string>& texts) {
    for (const auto& text : texts) {
        if (text == kNoValue) {
            json_object_clear(keys);
            continue;
        }
        std::string_view values = text;
        const std::string name(take(values, '='));
        if (name.empty() || text.find('=') == text.npos) {
            wrong("--kv", "a key-value such as section=sports,politics", text);
        }
        if (values.empty()) {
            json_object_del(keys, name.c_str());
        } else {
            json_object_set_new(keys, name.c_str(), list_json(values));
        }
    }
}

json_t* list_json(std::string_view text) {
    json_t* list = json_array();
    while (!text.empty()) {
        std::string_view item = take(text, ',');
        item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
        json_array_append_new(list, text_json(item));
    }
    return list;
}

json_t* number_or_text(const std::string& text) {
    if (text == kNoValue) {
        return json_null();
    }
    Json value(json_loadb(text.data(), text.size(), JSON_DECODE_ANY, nullptr));
    return json_is_number(value.get()) ? value.release() : text_json(text);
}

}  // namespace ads::cli
