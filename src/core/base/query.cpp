#include "core/base/query.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "core/base/bytes.hpp"

namespace ads {

namespace {

int hex(char c) noexcept {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// Decodes into `to`; false at an invalid escape.
bool decode(std::string_view from, bool plus_is_space, char*& to, std::string_view& text) noexcept {
    if (is_plain(from)) {
        text = from;  // the usual case: nothing to decode, nothing to copy
        return true;
    }
    char* const begin = to;
    for (size_t i = 0; i < from.size(); i++) {
        char c = from[i];
        if (c == '+' && plus_is_space) {
            c = ' ';
        } else if (c == '%') {
            if (from.size() - i < 3 || hex(from[i + 1]) < 0 || hex(from[i + 2]) < 0) {
                return false;
            }
            c = static_cast<char>(hex(from[i + 1]) << 4 | hex(from[i + 2]));
            i += 2;
        }
        *to++ = c;
    }
    text = {begin, static_cast<size_t>(to - begin)};
    return true;
}

bool is_word(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

constexpr InputError kBadEncoding{"bad_encoding", "parameters must be in UTF-8"};
constexpr InputError kTooMany{"too_many_parameters", "a request must have at most 256 parameters"};

// Bit masks over 64 bytes: separators of a query, and bytes to decode.
struct Marks {
    static constexpr size_t kBytes = 64;
    uint64_t ands = 0;
    uint64_t equals = 0;
    uint64_t escapes = 0;  // '%' and '+'
    uint64_t high = 0;     // not ASCII

    // Covers the first `size` bytes, possibly more.
    Marks(const char* bytes, size_t size) noexcept {
        using Part [[gnu::vector_size(16)]] = char;
        for (size_t i = 0; i < size; i += sizeof(Part)) {
            Part part;
            std::memcpy(&part, bytes + i, sizeof part);
            ands |= bits(part == '&') << i;
            equals |= bits(part == '=') << i;
            escapes |= bits((part == '%') | (part == '+')) << i;
            high |= bits(part < 0) << i;
        }
    }

private:
    // The lanes are 0 or -1.
    template <class Lanes>
    static uint64_t bits(Lanes lanes) noexcept {
#if defined(__SSE2__)
        return static_cast<uint64_t>(_mm_movemask_epi8(reinterpret_cast<__m128i>(lanes)));
#else
        uint64_t bits = 0;
        for (size_t i = 0; i < sizeof lanes; i++) {
            bits |= static_cast<uint64_t>(lanes[i] & 1) << i;
        }
        return bits;
#endif
    }
};

InputError read_placements(std::string_view list, ServeQuery& serve) noexcept {
    while (!list.empty()) {
        const size_t end = std::min(list.find(','), list.size());
        const std::string_view slug = list.substr(0, end);
        list.remove_prefix(std::min(end + 1, list.size()));
        if (slug.empty()) {
            continue;
        }
        if (!serve.placements.push_back(slug)) {
            return {"too_many_placements", "a request must name at most 64 placements"};
        }
    }
    return {};
}

// Unknown creatives are not an error: they may have been removed from the catalog.
InputError read_shown(std::string_view list, ServeQuery& serve) noexcept {
    while (!list.empty()) {
        const size_t end = std::min(list.find(','), list.size());
        Id id = 0;
        const auto [stop, error] = std::from_chars(list.data(), list.data() + end, id);
        if (error != std::errc() || stop != list.data() + end) {
            return {"bad_shown", "shown must be a comma-separated list of creative ids"};
        }
        list.remove_prefix(std::min(end + 1, list.size()));
        if (!serve.shown.push_back(id)) {
            return {"too_many_shown", "shown must have at most 64 ids"};
        }
    }
    return {};
}

}  // namespace

bool valid_utf8(std::string_view text) noexcept {
    const auto* at = reinterpret_cast<const unsigned char*>(text.data());
    const auto* const end = at + text.size();
    while (end - at >= 8 && (load<uint64_t>(at) & 0x8080'8080'8080'8080) == 0) {
        at += 8;
    }
    while (at < end) {
        const unsigned c = *at++;
        if (c < 0x80) {
            continue;
        }
        const int more = c >= 0xc2 && c <= 0xdf   ? 1
                         : c >= 0xe0 && c <= 0xef ? 2
                         : c >= 0xf0 && c <= 0xf4 ? 3
                                                  : 0;
        if (more == 0 || end - at < more) {
            return false;
        }
        // Overlong forms, surrogates and what lies beyond U+10FFFF.
        const unsigned low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        const unsigned high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (*at < low || *at > high) {
            return false;
        }
        for (int i = 1; i < more; i++) {
            if ((at[i] & 0xc0) != 0x80) {
                return false;
            }
        }
        at += more;
    }
    return true;
}

bool valid_callback(std::string_view name) noexcept {
    if (name.empty() || name.size() > 64 || (name[0] >= '0' && name[0] <= '9') || name[0] == '.') {
        return false;
    }
    return std::all_of(name.begin(), name.end(),
                       [](char c) { return is_word(c) || c == '.' || c == '$'; });
}

bool is_plain(std::string_view raw) noexcept {
    constexpr uint64_t kOnes = 0x0101'0101'0101'0101;
    // A bit is set in each byte of the result that is zero in x (and perhaps above it).
    const auto zeros = [](uint64_t x) { return (x - kOnes) & ~x & (kOnes << 7); };
    while (raw.size() >= 8) {
        const auto word = load<uint64_t>(reinterpret_cast<const uint8_t*>(raw.data()));
        if ((zeros(word ^ kOnes * '%') | zeros(word ^ kOnes * '+')) != 0) {
            return false;
        }
        raw.remove_prefix(8);
    }
    return std::none_of(raw.begin(), raw.end(), [](char c) { return c == '%' || c == '+'; });
}

bool decode_component(std::string_view raw, std::span<char> buffer,
                      std::string_view& text) noexcept {
    char* to = buffer.data();
    return raw.size() <= buffer.size() && decode(raw, false, to, text);
}

InputError read_query(std::string_view raw, std::span<char> buffer, Query& query) noexcept {
    char* to = buffer.data();
    query.params.clear();
    while (!raw.empty()) {
        const size_t end = std::min(raw.find('&'), raw.size());
        const std::string_view pair = raw.substr(0, end);
        raw.remove_prefix(std::min(end + 1, raw.size()));
        if (pair.empty()) {
            continue;
        }
        if (query.params.full()) {
            return kTooMany;
        }
        const size_t equals = std::min(pair.find('='), pair.size());
        Param param{pair.substr(0, equals), pair.substr(std::min(equals + 1, pair.size()))};
        if (!decode(param.name, true, to, param.name) ||
            !decode(param.value, true, to, param.value)) {
            return {"bad_escape", "a percent sign must be followed by two hex digits"};
        }
        if (!valid_utf8(param.name) || !valid_utf8(param.value)) {
            return kBadEncoding;
        }
        query.params.push_back(param);
    }
    return {};
}

bool read_plain_query(std::string_view raw, Query& query, InputError& error) noexcept {
    query.params.clear();
    error = {};
    size_t begin = 0;
    size_t equals = std::string_view::npos;
    uint64_t high = 0;
    const auto add = [&](size_t end) {
        const std::string_view pair = raw.substr(begin, end - begin);
        const size_t name = std::min(equals - begin, pair.size());
        if (!pair.empty() &&
            !query.params.push_back(
                {pair.substr(0, name), pair.substr(std::min(name + 1, pair.size()))})) {
            error = kTooMany;
        }
        begin = end + 1;
        equals = std::string_view::npos;
    };
    for (size_t at = 0; at < raw.size(); at += Marks::kBytes) {
        char rest[Marks::kBytes];
        const size_t size = std::min(raw.size() - at, sizeof rest);
        const char* bytes = raw.data() + at;
        if (size < sizeof rest) {
            std::memset(rest, 0, sizeof rest);
            bytes = static_cast<const char*>(std::memcpy(rest, bytes, size));
        }
        const Marks marks(bytes, size);
        if (marks.escapes != 0) {
            return false;
        }
        high |= marks.high;
        for (uint64_t bits = marks.ands | marks.equals; bits != 0; bits &= bits - 1) {
            const auto bit = static_cast<size_t>(std::countr_zero(bits));
            if ((marks.ands >> bit & 1) != 0) {
                add(at + bit);
            } else if (equals == std::string_view::npos) {
                equals = at + bit;
            }
        }
    }
    add(raw.size());
    // The order of several errors does not matter.
    if (high != 0 && !valid_utf8(raw)) {
        error = kBadEncoding;
    }
    return true;
}

InputError read_serve(const Query& query, ServeQuery& serve) noexcept {
    for (const auto& [name, value] : query.params) {
        if (name == "placement") {
            if (const auto error = read_placements(value, serve)) {
                return error;
            }
        } else if (name == "format") {
            if (value == "json") {
                serve.format = Format::json;
            } else if (value == "html") {
                serve.format = Format::html;
            } else if (value == "js") {
                serve.format = Format::js;
            } else {
                return {"bad_format", "format must be json, html or js"};
            }
        } else if (name == "callback") {
            if (!valid_callback(value)) {
                return {"bad_callback",
                        "callback must be a JavaScript name of at most 64 characters: letters, "
                        "digits, _, $ and dots"};
            }
            serve.callback = value;
        } else if (name == "url") {
            serve.url = value;
        } else if (name.starts_with("kv.")) {
            if (!serve.keys.push_back({name.substr(3), value})) {
                return {"too_many_keys", "a request must have at most 64 key-values"};
            }
        } else if (name == "shown") {
            if (const auto error = read_shown(value, serve)) {
                return error;
            }
        } else if (name == "debug") {
            serve.debug = value == "1";
        } else if (name == "absolute") {
            serve.absolute = value == "1";
        }
    }
    if (serve.placements.empty()) {
        return {"missing_placement", "a placement is required: ?placement=ID"};
    }
    if (serve.format == Format::html && serve.placements.size() != 1) {
        return {"one_placement", "format=html requires exactly one placement"};
    }
    return {};
}

}  // namespace ads
