#include "lib/base/moment.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cmath>

#include "core/catalog/formats.hpp"

namespace ads::admin {

namespace {

constexpr double kLastSecond = 253'402'300'799;  // of the year 9999
constexpr double kLastMilli = (uint64_t{1} << 48) - 1;

std::optional<Millis> of_number(double number) {
    const double millis = number > kLastSecond ? number : number * 1000;
    if (!(millis >= 0 && millis <= kLastMilli)) {
        return std::nullopt;
    }
    return static_cast<Millis>(std::llround(millis));
}

}  // namespace

std::optional<Millis> parse_moment(std::string_view text) {
    if (const auto seconds = catalog::parse_date(text)) {
        Millis millis = *seconds * 1000;
        const size_t dot = text.find('.');
        int64_t place = 100;
        for (size_t i = dot; i != text.npos && ++i < text.size() && place > 0; place /= 10) {
            if (text[i] < '0' || text[i] > '9') {
                break;
            }
            millis += (text[i] - '0') * place;
        }
        return millis;
    }
    double number = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    return parsed.ec == std::errc() && parsed.ptr == end ? of_number(number) : std::nullopt;
}

std::optional<Millis> moment_of(const json_t* json) {
    if (json_is_string(json)) {
        return parse_moment({json_string_value(json), json_string_length(json)});
    }
    return json_is_number(json) ? of_number(json_number_value(json)) : std::nullopt;
}

Millis moment_or_now(const std::string& text) {
    namespace chrono = std::chrono;
    const auto now = chrono::system_clock::now().time_since_epoch();
    return text.empty() ? chrono::duration_cast<chrono::milliseconds>(now).count()
                        : parse_moment(text).value();
}

std::string moment_text(Millis when) {
    std::string text = catalog::date_text(when / 1000);
    text.pop_back();
    text += fmt::format(".{:03}Z", when % 1000);
    return parse_moment(text) == when ? text : std::to_string(when);
}

}  // namespace ads::admin
