#include "core/catalog/parts.hpp"

#include <algorithm>

namespace ads::catalog {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

size_t after_space(std::string_view text, size_t at) {
    const size_t found = text.find_first_not_of(kSpace, at);
    return found == std::string_view::npos ? text.size() : found;
}

char char_at(std::string_view text, size_t at) {
    return at < text.size() ? text[at] : '\0';
}

// `at` is that of the opening quote.
size_t after_string(std::string_view text, size_t at) {
    for (size_t end = at + 1;; end++) {
        end = text.find('"', end);
        if (end == std::string_view::npos) {
            return text.size();
        }
        // A quote behind an odd number of backslashes is part of the string.
        size_t before = end;
        while (text[before - 1] == '\\') {
            before--;
        }
        if ((end - before) % 2 == 0) {
            return end + 1;
        }
    }
}

// The end of a value, or of a list's items: the first comma or closing bracket that is
// not inside something.
size_t end_of_value(std::string_view text, size_t at) {
    size_t depth = 0;
    while (at < text.size()) {
        switch (text[at]) {
            case '"':
                at = after_string(text, at);
                continue;
            case '[':
            case '{':
                depth++;
                break;
            case ']':
            case '}':
                if (depth == 0) {
                    return at;
                }
                depth--;
                break;
            case ',':
                if (depth == 0) {
                    return at;
                }
                break;
            default:
                break;
        }
        at++;
    }
    return at;
}

// The items of a list, each with the white space around it. `at` is behind the bracket, and then at
// the one that closes the list.
std::vector<std::string_view> take_items(std::string_view text, size_t& at) {
    std::vector<std::string_view> items;
    const size_t first = after_space(text, at);
    if (first == text.size() || text[first] == ']') {
        at = first;
        return items;
    }
    for (;; at++) {
        const size_t end = end_of_value(text, at);
        items.push_back(text.substr(at, end - at));
        at = end;
        if (char_at(text, at) != ',') {
            return items;
        }
    }
}

}  // namespace

std::optional<Cut> cut_list(std::string_view text, std::string_view key) {
    size_t at = after_space(text, 0);
    if (char_at(text, at) != '{') {
        return std::nullopt;
    }
    do {
        const size_t name = after_space(text, at + 1);
        if (char_at(text, name) != '"') {
            return std::nullopt;
        }
        const size_t name_end = after_string(text, name);
        at = after_space(text, name_end);
        if (char_at(text, at) != ':') {
            return std::nullopt;
        }
        at = after_space(text, at + 1);
        if (text.substr(name + 1, name_end - name - 2) == key && char_at(text, at) == '[') {
            const size_t begin = ++at;
            Cut cut;
            cut.items = take_items(text, at);
            cut.rest = text.substr(0, begin);
            cut.rest += text.substr(at);
            return cut;
        }
        at = end_of_value(text, at);
    } while (char_at(text, at) == ',');
    return std::nullopt;
}

}  // namespace ads::catalog
