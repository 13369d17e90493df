// Fields of bits in base64url text, as IAB's consent strings have them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ads {

inline constexpr auto kBase64UrlValues = [] {
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::array<int8_t, 256> table{};
    table.fill(-1);
    for (size_t i = 0; i < kAlphabet.size(); i++) {
        table[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
    }
    return table;
}();

// Whether the text consists of base64url and these separators only.
inline bool base64url_text(std::string_view text, std::string_view separators) noexcept {
    return std::all_of(text.begin(), text.end(), [&](char c) {
        return kBase64UrlValues[static_cast<unsigned char>(c)] >= 0 ||
               separators.find(c) != std::string_view::npos;
    });
}

// Encoders pad to whole bytes, or to whole groups of three.
inline constexpr size_t kMostSpareBits = 23;

// A segment of valid characters. Reading beyond its end returns zeros and sets an error.
class Base64Bits {
public:
    explicit Base64Bits(std::string_view text) noexcept : text_(text) {}

    uint64_t take(size_t count) noexcept {
        uint64_t value = 0;
        while (count > 0) {
            const size_t left = 6 - at_ % 6;
            const size_t now = std::min(left, count);
            value = value << now | (character() >> (left - now) & ((1u << now) - 1));
            at_ += now;
            count -= now;
        }
        return value;
    }

    void skip(size_t count) noexcept { at_ += count; }
    bool at(size_t offset) const noexcept { return Base64Bits(text_, at_ + offset).take(1) != 0; }
    bool over() const noexcept { return at_ > size(); }

    // Only the zeros that pad the last character, byte or group remain.
    bool ends(size_t most_spare = kMostSpareBits) noexcept {
        if (over() || size() - at_ > most_spare) {
            return false;
        }
        bool zeros = true;
        while (at_ < size()) {
            zeros = take(std::min(size() - at_, size_t{6})) == 0 && zeros;
        }
        return zeros;
    }

private:
    Base64Bits(std::string_view text, size_t at) noexcept : text_(text), at_(at) {}

    size_t size() const noexcept { return text_.size() * 6; }
    unsigned character() const noexcept {
        const size_t i = at_ / 6;
        return i < text_.size()
                   ? static_cast<unsigned>(kBase64UrlValues[static_cast<unsigned char>(text_[i])])
                   : 0;
    }

    std::string_view text_;
    size_t at_ = 0;
};

}  // namespace ads
