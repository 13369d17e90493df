#include "core/catalog/formats.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <new>

#include "core/catalog/limits.hpp"
#include "core/catalog/reader.hpp"

namespace ads::catalog {
namespace {

// The macros of a click URL.
constexpr auto kMacros = std::to_array<std::string_view>(
    {"click_id", "campaign", "ad_group", "creative", "placement", "timestamp", "cachebuster"});

constexpr bool digit(char c) {
    return c >= '0' && c <= '9';
}
constexpr bool letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr char upper(char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
}
constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// Takes exactly `count` digits off the front.
std::optional<int> take_number(std::string_view& text, size_t count) {
    if (text.size() < count || !std::all_of(text.begin(), text.begin() + count, digit)) {
        return std::nullopt;
    }
    int value = 0;
    for (const char c : text.substr(0, count)) {
        value = value * 10 + (c - '0');
    }
    text.remove_prefix(count);
    return value;
}

// Takes one of the characters off the front; 0 if another one is there.
char take_one(std::string_view& text, std::string_view of) {
    if (text.empty() || of.find(text.front()) == of.npos) {
        return 0;
    }
    const char c = text.front();
    text.remove_prefix(1);
    return c;
}

// "HH:MM", nothing beyond 23:59 but (on request) 24:00.
std::optional<int> take_minutes(std::string_view& text, bool midnight_after) {
    const auto hours = take_number(text, 2);
    if (!hours || !take_one(text, ":")) {
        return std::nullopt;
    }
    const auto minutes = take_number(text, 2);
    if (!minutes || *minutes > 59) {
        return std::nullopt;
    }
    const int all = *hours * 60 + *minutes;
    return all < 1440 || (midnight_after && all == 1440) ? std::optional(all) : std::nullopt;
}

// The seconds to subtract for "Z", "+02:00" or "-05:30"; takes all of the text.
std::optional<Seconds> parse_offset(std::string_view text) {
    const char sign = take_one(text, "Zz+-");
    if (sign == 'Z' || sign == 'z') {
        return text.empty() ? std::optional<Seconds>(0) : std::nullopt;
    }
    const auto minutes = take_minutes(text, false);
    if (sign == 0 || !minutes || !text.empty()) {
        return std::nullopt;
    }
    return Seconds{*minutes} * (sign == '+' ? 60 : -60);
}

// Days since 1970-01-01 of a date between 1970 and 2100.
std::optional<int64_t> take_day(std::string_view& text) {
    const auto y = take_number(text, 4);
    const auto m = y && take_one(text, "-") ? take_number(text, 2) : std::nullopt;
    const auto d = m && take_one(text, "-") ? take_number(text, 2) : std::nullopt;
    if (!d || *y < 1970 || *y > 2100) {
        return std::nullopt;
    }
    namespace chrono = std::chrono;
    const chrono::year_month_day date{chrono::year{*y}, chrono::month(unsigned(*m)),
                                      chrono::day(unsigned(*d))};
    if (!date.ok()) {
        return std::nullopt;
    }
    return chrono::sys_days{date}.time_since_epoch().count();
}

// Splits off the authority: host, port and user information.
std::string_view take_authority(std::string_view& rest) {
    const std::string_view authority =
        rest.substr(0, std::min(rest.find_first_of("/?#"), rest.size()));
    rest.remove_prefix(authority.size());
    return authority;
}

Fault authority_fault(std::string_view authority) {
    if (authority.find('@') != authority.npos) {
        return "must not contain a user name or password";
    }
    std::string_view host = authority;
    std::string_view port;
    const size_t colon = authority.rfind(':');
    if (colon != authority.npos && authority.find(']', colon) == authority.npos) {
        host = authority.substr(0, colon);
        port = authority.substr(colon + 1);
        unsigned number = 0;
        const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
        if (error != std::errc() || end != port.data() + port.size() || number < 1 ||
            number > 65535) {
            return "must have a port from 1 to 65535, not " + quoted(port);
        }
    }
    const bool literal = host.size() > 2 && host.front() == '[' && host.back() == ']';
    const std::string_view name = literal ? host.substr(1, host.size() - 2) : host;
    const bool fits = std::all_of(name.begin(), name.end(), [literal](char c) {
        return digit(c) || letter(c) || c == '.' || (literal ? c == ':' : c == '-' || c == '_') ||
               static_cast<uint8_t>(c) >= 0x80;
    });
    if (name.empty() || name.front() == '.' || !fits) {
        return "must name a host, not " + quoted(host);
    }
    return std::nullopt;
}

Fault characters_fault(std::string_view url) {
    if (url.size() > kMaxUrl) {
        return "must be at most " + std::to_string(kMaxUrl) + " bytes, not " +
               std::to_string(url.size());
    }
    for (const char c : url) {
        if (static_cast<uint8_t>(c) <= 0x20 || c == 0x7f || c == '\\') {
            return "must not contain spaces, control characters or backslashes: " + quoted(url);
        }
    }
    return std::nullopt;
}

Fault macros_fault(std::string_view text) {
    while (true) {
        const size_t open = text.find_first_of("{}");
        if (open == text.npos) {
            return std::nullopt;
        }
        const size_t close = text.find('}', open);
        if (text[open] == '}' || close == text.npos) {
            return "must close each { with } (write literal braces as %7B and %7D)";
        }
        const std::string_view name = text.substr(open + 1, close - open - 1);
        if (std::find(kMacros.begin(), kMacros.end(), name) == kMacros.end()) {
            std::string names;
            for (const std::string_view macro : kMacros) {
                names.append(names.empty() ? "{" : ", {").append(macro).append("}");
            }
            return "must use only the macros " + names + ", not " +
                   quoted(text.substr(open, close + 1 - open));
        }
        text.remove_prefix(close + 1);
    }
}

// `url` begins with one of the schemes, and a host follows. Leaves the rest.
Fault take_origin(std::string_view& url, bool http) {
    if (url.starts_with("https://")) {
        url.remove_prefix(8);
    } else if (http && url.starts_with("http://")) {
        url.remove_prefix(7);
    } else {
        return std::string("must start with https://") + (http ? " or http://" : "") + ", not " +
               quoted(url);
    }
    return authority_fault(take_authority(url));
}

Fault target_fault(std::string_view url, bool http) {
    if (Fault fault = characters_fault(url)) {
        return fault;
    }
    // Macros are allowed after the host only: none may choose the server.
    if (Fault fault = take_origin(url, http)) {
        return fault;
    }
    return macros_fault(url);
}

struct CodeFree {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};

}  // namespace

std::optional<Seconds> parse_date(std::string_view text) {
    const auto day = take_day(text);
    const auto minutes = day && take_one(text, "Tt") ? take_minutes(text, false) : std::nullopt;
    const auto seconds = minutes && take_one(text, ":") ? take_number(text, 2) : std::nullopt;
    if (!seconds || *seconds > 59) {
        return std::nullopt;
    }
    if (take_one(text, ".")) {
        const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
        if (end == 0) {
            return std::nullopt;
        }
        text.remove_prefix(end);
    }
    const auto offset = parse_offset(text);
    if (!offset) {
        return std::nullopt;
    }
    const Seconds when = *day * 86400 + *minutes * 60 + *seconds - *offset;
    return when >= 0 ? std::optional(when) : std::nullopt;
}

std::string date_text(Seconds when) {
    namespace chrono = std::chrono;
    const chrono::sys_seconds time{chrono::seconds{when}};
    const auto day = chrono::floor<chrono::days>(time);
    const chrono::year_month_day date{day};
    const chrono::hh_mm_ss clock{time - day};
    char text[40];
    std::snprintf(text, sizeof(text), "%04d-%02u-%02uT%02d:%02d:%02dZ", int(date.year()),
                  unsigned(date.month()), unsigned(date.day()), int(clock.hours().count()),
                  int(clock.minutes().count()), int(clock.seconds().count()));
    return text;
}

bool parse_period(std::string_view text, FrequencyCap& cap) {
    cap.seconds = 0;
    if (text == "day" || text == "lifetime") {
        cap.unit = text == "day" ? CapUnit::day : CapUnit::lifetime;
        return true;
    }
    uint32_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end + 1 != text.data() + text.size()) {
        return false;
    }
    const uint32_t unit = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : 86400;
    const uint64_t seconds = uint64_t{count} * unit;
    if (std::string_view("smhd").find(*end) == std::string_view::npos || seconds < 1 ||
        seconds > 400 * 86400) {
        return false;
    }
    cap.unit = CapUnit::rolling;
    cap.seconds = static_cast<uint32_t>(seconds);
    return true;
}

std::optional<uint16_t> parse_clock(std::string_view text) {
    const auto minutes = take_minutes(text, true);
    if (!minutes || !text.empty()) {
        return std::nullopt;
    }
    return static_cast<uint16_t>(*minutes);
}

bool valid_slug(std::string_view text) {
    return !text.empty() && text.size() <= 64 && (digit(text[0]) || letter(text[0])) &&
           std::all_of(text.begin(), text.end(),
                       [](char c) { return digit(c) || letter(c) || c == '_' || c == '-'; });
}

bool valid_key_name(std::string_view text) {
    return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
        return digit(c) || letter(c) || c == '_' || c == '.' || c == '-';
    });
}

std::optional<std::string> parse_geo(std::string_view text) {
    const bool region = text.size() >= 4 && text.size() <= 6 && text[2] == '-';
    if ((text.size() != 2 && !region) || !letter(text[0]) || !letter(text[1])) {
        return std::nullopt;
    }
    for (size_t i = 3; i < text.size(); i++) {
        if (!letter(text[i]) && !digit(text[i])) {
            return std::nullopt;
        }
    }
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), upper);
    return out;
}

std::optional<std::string> parse_language(std::string_view text) {
    if (text.size() > 35) {
        return std::nullopt;
    }
    size_t part = 0;  // length so far
    bool primary = true;
    for (size_t i = 0; i <= text.size(); i++) {
        if (i == text.size() || text[i] == '-') {
            if (part < (primary ? 2u : 1u) || part > 8) {
                return std::nullopt;
            }
            part = 0;
            primary = false;
        } else if (letter(text[i]) || (digit(text[i]) && !primary)) {
            part++;
        } else {
            return std::nullopt;
        }
    }
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

Fault click_url_fault(std::string_view url) {
    return target_fault(url, true);
}

Fault impression_url_fault(std::string_view url) {
    return target_fault(url, false);
}

Fault image_src_fault(std::string_view url) {
    if (Fault fault = characters_fault(url)) {
        return fault;
    }
    // "//host/" would be another server, by the scheme of the page.
    if (url.starts_with("/") && !url.starts_with("//")) {
        return std::nullopt;
    }
    if (!url.starts_with("https://") && !url.starts_with("http://")) {
        return "must start with https://, http:// or a single /, not " + quoted(url);
    }
    return take_origin(url, true);
}

Fault pattern_fault(std::string_view pattern) {
    int code = 0;
    size_t offset = 0;
    const std::unique_ptr<pcre2_code, CodeFree> compiled(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                      PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &offset, nullptr));
    if (compiled != nullptr) {
        return std::nullopt;
    }
    if (code == PCRE2_ERROR_HEAP_FAILED) {
        throw std::bad_alloc();
    }
    char text[256] = "";
    pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof(text));
    return "must be a PCRE2 pattern: " + std::string(text) + " at offset " +
           std::to_string(offset) + " of " + quoted(pattern);
}

}  // namespace ads::catalog
