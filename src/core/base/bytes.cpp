#include "core/base/bytes.hpp"

#include <array>

namespace ads {

namespace {

constexpr char kHex[] = "0123456789abcdef";

// The two digits of each byte.
constexpr auto kHexPairs = [] {
    std::array<char, 512> pairs{};
    for (size_t i = 0; i < 256; i++) {
        pairs[2 * i] = kHex[i >> 4];
        pairs[2 * i + 1] = kHex[i & 15];
    }
    return pairs;
}();

}  // namespace

void Out::millionths(int64_t value) noexcept {
    uint64_t rest = static_cast<uint64_t>(value);
    if (value < 0) {
        put('-');
        rest = 0 - rest;
    }
    number(rest / 1'000'000);
    rest %= 1'000'000;
    put('.');
    uint64_t place = 100'000;
    do {
        put(static_cast<char>('0' + rest / place));
        rest %= place;
        place /= 10;
    } while (rest > 0);
}

void Out::hex64(uint64_t value) noexcept {
    char* to = claim(16);
    if (to == nullptr) {
        return;
    }
    for (int i = 0; i < 8; i++) {
        std::memcpy(to + 2 * i, &kHexPairs[2 * (value >> (56 - 8 * i) & 255)], 2);
    }
}

// Civil from days, after Howard Hinnant's algorithm; day 1 is 2026-01-01.
void Out::day(Day value) noexcept {
    constexpr int64_t kFirst = 20'454 + 719'468;  // from 0000-03-01
    const int64_t z = kFirst + value - 1;
    const int64_t era = z / 146'097;
    const int64_t doe = z - era * 146'097;
    const int64_t yoe = (doe - doe / 1460 + doe / 36'524 - doe / 146'096) / 365;
    const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    const int64_t mp = (5 * doy + 2) / 153;
    const int64_t month = mp < 10 ? mp + 3 : mp - 9;
    const auto two = [&](int64_t n) {
        put(static_cast<char>('0' + n / 10));
        put(static_cast<char>('0' + n % 10));
    };
    number(yoe + era * 400 + (month <= 2 ? 1 : 0));
    put('-');
    two(month);
    put('-');
    two(doy - (153 * mp + 2) / 5 + 1);
}

void Out::json(std::string_view text) noexcept {
    for (size_t i = 0; i < text.size(); i++) {
        const auto c = static_cast<unsigned char>(text[i]);
        // U+2028 and U+2029 end a line in JavaScript: E2 80 A8, E2 80 A9.
        if (c == 0xe2 && i + 2 < text.size() && static_cast<unsigned char>(text[i + 1]) == 0x80 &&
            (static_cast<unsigned char>(text[i + 2]) | 1) == 0xa9) {
            put(static_cast<unsigned char>(text[i + 2]) == 0xa8 ? "\\u2028" : "\\u2029");
            i += 2;
        } else if (const size_t known = std::string_view("\"\\\n\r\t").find(text[i]);
                   known != std::string_view::npos) {
            put('\\');
            put("\"\\nrt"[known]);
        } else if (c < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x7f) {
            const char escape[] = {'\\', 'u', '0', '0', kHex[c >> 4], kHex[c & 15]};
            put(std::string_view(escape, sizeof escape));
        } else {
            put(static_cast<char>(c));
        }
    }
}

void Out::html(std::string_view text) noexcept {
    for (const char c : text) {
        switch (c) {
            case '&':
                put("&amp;");
                break;
            case '<':
                put("&lt;");
                break;
            case '>':
                put("&gt;");
                break;
            case '"':
                put("&quot;");
                break;
            case '\'':
                put("&#39;");
                break;
            default:
                put(c);
        }
    }
}

}  // namespace ads
