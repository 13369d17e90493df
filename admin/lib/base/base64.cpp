#include "lib/base/base64.hpp"

#include <array>
#include <cstdint>

namespace ads::admin {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr auto kValues = [] {
    std::array<int8_t, 256> values{};
    values.fill(-1);
    for (size_t i = 0; i < kAlphabet.size(); i++) {
        values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<int8_t>(i);
    }
    return values;
}();

}  // namespace

std::string base64(std::string_view bytes) {
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    const auto byte = [&](size_t i) {
        return i < bytes.size() ? static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) : 0;
    };
    for (size_t i = 0; i < bytes.size(); i += 3) {
        const uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
        out += kAlphabet[group >> 18];
        out += kAlphabet[group >> 12 & 63];
        out += i + 1 < bytes.size() ? kAlphabet[group >> 6 & 63] : '=';
        out += i + 2 < bytes.size() ? kAlphabet[group & 63] : '=';
    }
    return out;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) {
        return std::nullopt;
    }
    const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    text.remove_suffix(padding);
    std::string out;
    out.reserve(text.size() / 4 * 3 + 3);
    uint32_t bits = 0;
    unsigned count = 0;
    for (const char c : text) {
        const int value = kValues[static_cast<uint8_t>(c)];
        if (value < 0) {
            return std::nullopt;
        }
        bits = bits << 6 | static_cast<uint32_t>(value);
        count += 6;
        if (count >= 8) {
            count -= 8;
            out += static_cast<char>(bits >> count & 0xff);
        }
    }
    // Spare bits would be a second spelling of the same bytes.
    const bool spare = (bits & ((1u << count) - 1)) != 0;
    return spare ? std::nullopt : std::optional(std::move(out));
}

}  // namespace ads::admin
