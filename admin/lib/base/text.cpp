#include "lib/base/text.hpp"

#include <simdjson.h>

#include <algorithm>

namespace ads::admin {

namespace {

// The length of the character that begins the text; 0 if it is invalid.
size_t character(std::string_view text) noexcept {
    for (size_t size = 1; size <= std::min<size_t>(4, text.size()); size++) {
        if (simdjson::validate_utf8(text.data(), size)) {
            return size;
        }
    }
    return 0;
}

}  // namespace

bool valid_utf8(std::string_view text) noexcept {
    return simdjson::validate_utf8(text.data(), text.size());
}

std::string repaired_utf8(std::string_view text) {
    if (valid_utf8(text)) {
        return std::string(text);
    }
    std::string repaired;
    while (!text.empty()) {
        const size_t size = character(text);
        repaired += size == 0 ? "\xef\xbf\xbd" : text.substr(0, size);
        text.remove_prefix(std::max<size_t>(1, size));
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
