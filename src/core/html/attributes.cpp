#include "core/html/attributes.hpp"

#include <array>
#include <charconv>
#include <cstdint>

namespace ads::html {

namespace {

constexpr std::string_view kSpace = " \n\t\r\f";

struct Named {
    std::string_view name;
    char character;
};
constexpr auto kNamed = std::to_array<Named>({{"amp;", '&'},
                                              {"lt;", '<'},
                                              {"gt;", '>'},
                                              {"quot;", '"'},
                                              {"apos;", '\''},
                                              {"period;", '.'},
                                              {"lowbar;", '_'}});

size_t first_of(std::string_view text, std::string_view any, size_t from) noexcept {
    return std::min(text.find_first_of(any, from), text.size());
}

size_t skip_space(std::string_view text, size_t from) noexcept {
    return std::min(text.find_first_not_of(kSpace, from), text.size());
}

char* put_utf8(uint32_t c, char* to) noexcept {
    const auto tail = [&](unsigned shift) {
        *to++ = static_cast<char>(0x80 | (c >> shift & 0x3f));
    };
    if (c < 0x80) {
        *to++ = static_cast<char>(c);
    } else if (c < 0x800) {
        *to++ = static_cast<char>(0xc0 | c >> 6);
        tail(0);
    } else if (c < 0x10000) {
        *to++ = static_cast<char>(0xe0 | c >> 12);
        tail(6);
        tail(0);
    } else {
        *to++ = static_cast<char>(0xf0 | c >> 18);
        tail(12);
        tail(6);
        tail(0);
    }
    return to;
}

// The length of a reference "&#…"; 0: not a reference. Its expansion is never longer.
size_t number_at(std::string_view text, uint32_t& c) noexcept {
    const bool hex = text.size() > 2 && (text[2] | 32) == 'x';
    const char* digits = text.data() + (hex ? 3 : 2);
    const char* end = text.data() + text.size();
    const auto [behind, error] = std::from_chars(digits, end, c, hex ? 16 : 10);
    if (error == std::errc::invalid_argument || behind == digits) {
        return 0;
    }
    if (error != std::errc() || c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        c = 0xfffd;
    }
    return static_cast<size_t>(behind - text.data()) + (behind < end && *behind == ';' ? 1 : 0);
}

size_t reference_at(std::string_view text, uint32_t& c) noexcept {
    if (text.size() > 2 && text[1] == '#') {
        return number_at(text, c);
    }
    for (const auto& [name, character] : kNamed) {
        if (text.substr(1).starts_with(name)) {
            c = static_cast<unsigned char>(character);
            return 1 + name.size();
        }
    }
    return 0;
}

}  // namespace

bool same_name(std::string_view text, std::string_view lower) noexcept {
    if (text.size() != lower.size()) {
        return false;
    }
    for (size_t i = 0; i < text.size(); i++) {
        const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] | 32) : text[i];
        if (c != lower[i]) {
            return false;
        }
    }
    return true;
}

AttributeReader::AttributeReader(std::string_view tag) noexcept
    : tag_(tag), at_(first_of(tag, " \n\t\r\f/>", 1)) {}

bool AttributeReader::next(std::string_view& name, std::string_view& value) noexcept {
    at_ = std::min(tag_.find_first_not_of(" \n\t\r\f/", at_), tag_.size());
    if (at_ == tag_.size() || tag_[at_] == '>') {
        return false;
    }
    const size_t name_end = first_of(tag_, " \n\t\r\f/>=", at_ + 1);
    name = tag_.substr(at_, name_end - at_);
    value = {};
    at_ = skip_space(tag_, name_end);
    if (at_ < tag_.size() && tag_[at_] == '=') {
        at_ = skip_space(tag_, at_ + 1);
        const char quote = at_ < tag_.size() ? tag_[at_] : '>';
        if (quote == '"' || quote == '\'') {
            const size_t end = std::min(tag_.find(quote, at_ + 1), tag_.size());
            value = tag_.substr(at_ + 1, end - at_ - 1);
            at_ = std::min(end + 1, tag_.size());
        } else {
            const size_t end = first_of(tag_, " \n\t\r\f>", at_);
            value = tag_.substr(at_, end - at_);
            at_ = end;
        }
    }
    return true;
}

bool find_attribute(std::string_view tag, std::string_view name, std::string_view& value) noexcept {
    AttributeReader reader(tag);
    std::string_view found;
    std::string_view text;
    while (reader.next(found, text)) {
        if (same_name(found, name)) {
            value = text;
            return true;
        }
    }
    return false;
}

std::string_view decode(std::string_view value, std::span<char> to) noexcept {
    char* out = to.data();
    while (!value.empty() && static_cast<size_t>(out - to.data()) < to.size()) {
        uint32_t c = 0;
        const size_t length = value.front() == '&' ? reference_at(value, c) : 0;
        if (length == 0) {
            *out++ = value.front();
            value.remove_prefix(1);
        } else {
            out = put_utf8(c, out);
            value.remove_prefix(length);
        }
    }
    return {to.data(), static_cast<size_t>(out - to.data())};
}

}  // namespace ads::html
