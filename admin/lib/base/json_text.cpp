#include "lib/base/json_text.hpp"

#include <jansson.h>

#include <algorithm>
#include <array>

#include "lib/base/json.hpp"

namespace ads::admin {

namespace {

constexpr std::string_view kBlank = " \t\r\n";
constexpr size_t kIndent = 2;

size_t after_blank(std::string_view json, size_t at) {
    return std::min(json.find_first_not_of(kBlank, at), json.size());
}

size_t after_string(std::string_view json, size_t at) {
    for (at++; at < json.size() && json[at] != '"'; at++) {
        at += json[at] == '\\' ? 1 : 0;
    }
    return std::min(at + 1, json.size());
}

bool opens(char c) noexcept {
    return c == '{' || c == '[';
}

bool closes(char c) noexcept {
    return c == '}' || c == ']';
}

// What a value has beside plain characters; asked of every byte of a document.
constexpr auto kMarks = [] {
    std::array<bool, 256> marks{};
    for (const unsigned char c : std::string_view("\"{}[]")) {
        marks[c] = true;
    }
    return marks;
}();

size_t after_plain(std::string_view json, size_t at) {
    while (at < json.size() && !kMarks[static_cast<unsigned char>(json[at])]) {
        at++;
    }
    return at;
}

size_t after_value(std::string_view json, size_t at) {
    size_t depth = 0;
    while (at < json.size()) {
        if (json[at] == '"') {
            at = after_string(json, at);
        } else if (opens(json[at])) {
            depth++;
            at++;
        } else if (closes(json[at])) {
            depth--;
            at++;
        } else if (depth > 0) {
            at = after_plain(json, at);
        } else {
            return std::min(json.find_first_of(",]} \t\r\n", at), json.size());
        }
        if (depth == 0) {
            return at;
        }
    }
    return at;
}

// Escapes in a key are rare, but allowed.
bool same_key(std::string_view written, std::string_view key) {
    if (written.find('\\') == written.npos) {
        return written == key;
    }
    const std::string text = '"' + std::string(written) + '"';
    const Json json(json_loadb(text.data(), text.size(), JSON_DECODE_ANY, nullptr));
    return json != nullptr && json_string_value(json.get()) == key;
}

// Until `visit` returns false.
template <class F>
void each_part(std::string_view json, F visit) {
    size_t at = after_blank(json, 0);
    if (at == json.size() || !opens(json[at])) {
        return;
    }
    const bool object = json[at] == '{';
    for (at = after_blank(json, at + 1); at < json.size() && !closes(json[at]);) {
        std::string_view key;
        if (object) {
            const size_t end = after_string(json, at);
            key = json.substr(at + 1, end - at - 2);
            at = after_blank(json, after_blank(json, end) + 1);  // past the colon
        }
        const size_t end = after_value(json, at);
        if (!visit(key, json.substr(at, end - at))) {
            return;
        }
        at = after_blank(json, end);
        if (at < json.size() && json[at] == ',') {
            at = after_blank(json, at + 1);
        }
    }
}

}  // namespace

std::vector<Part> parts_of(std::string_view json) {
    std::vector<Part> parts;
    each_part(json, [&](std::string_view key, std::string_view value) {
        parts.emplace_back(key, value);
        return true;
    });
    return parts;
}

std::string_view member_of(std::string_view object, std::string_view key) {
    std::string_view found;
    each_part(object, [&](std::string_view name, std::string_view value) {
        const bool same = same_key(name, key);
        found = same ? value : found;
        return !same;
    });
    return found;
}

std::string indented(std::string_view json) {
    std::string text;
    text.reserve(json.size() * 2);
    size_t depth = 0;
    const auto line = [&] {
        text += '\n';
        text.append(depth * kIndent, ' ');
    };
    for (size_t at = after_blank(json, 0); at < json.size(); at = after_blank(json, at)) {
        const char c = json[at];
        if (opens(c)) {
            const size_t next = after_blank(json, at + 1);
            text += c;
            if (next < json.size() && closes(json[next])) {
                text += json[next];
                at = next + 1;
                continue;
            }
            depth++;
            line();
            at++;
        } else if (closes(c)) {
            depth--;
            line();
            text += c;
            at++;
        } else if (c == ',' || c == ':') {
            text += c;
            c == ',' ? line() : text.push_back(' ');
            at++;
        } else {
            const size_t end = c == '"'
                                   ? after_string(json, at)
                                   : std::min(json.find_first_of(",:]} \t\r\n", at), json.size());
            text += json.substr(at, end - at);
            at = end;
        }
    }
    return text + '\n';
}

}  // namespace ads::admin
