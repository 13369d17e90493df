#include "lib/base/text.hpp"

#include <cstdint>

namespace ads::admin {

namespace {

// The length of the character that begins the text; 0 if none does.
size_t character(std::string_view text) noexcept {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    const uint8_t first = byte(0);
    if (first < 0x80) {
        return 1;
    }
    const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < size) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((byte(i) & 0xc0) != 0x80) {
            return 0;
        }
    }
    // Neither overlong forms, nor surrogates, nor beyond U+10FFFF.
    const uint8_t second = byte(1);
    const bool outside = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                         (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
    return outside ? 0 : size;
}

}  // namespace

bool valid_utf8(std::string_view text) noexcept {
    while (!text.empty()) {
        const size_t size = character(text);
        if (size == 0) {
            return false;
        }
        text.remove_prefix(size);
    }
    return true;
}

std::string repaired_utf8(std::string_view text) {
    std::string repaired;
    while (!text.empty()) {
        const size_t size = character(text);
        if (size == 0) {
            repaired += "\xef\xbf\xbd";
            text.remove_prefix(1);
        } else {
            repaired += text.substr(0, size);
            text.remove_prefix(size);
        }
    }
    return repaired;
}

std::string printable(std::string_view text) {
    std::string shown = repaired_utf8(text);
    for (size_t i = 0; i < shown.size(); i++) {
        const auto c = static_cast<unsigned char>(shown[i]);
        const bool high = c == 0xc2 && i + 1 < shown.size() &&
                          static_cast<unsigned char>(shown[i + 1]) < 0xa0;  // U+0080 … U+009F
        if (c < 0x20 || c == 0x7f) {
            shown[i] = '?';
        } else if (high) {
            shown.replace(i, 2, "?");
        }
    }
    return shown;
}

std::string grouped(uint64_t number) {
    std::string text = std::to_string(number);
    for (size_t at = text.size(); at > 3;) {
        at -= 3;
        text.insert(at, 1, ',');
    }
    return text;
}

std::string counted(uint64_t number, std::string_view what) {
    return std::to_string(number) + ' ' + std::string(what) + (number == 1 ? "" : "s");
}

}  // namespace ads::admin
