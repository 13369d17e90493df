// The lines of a list: without what follows a `#`, and without blanks around.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace ads {

// Calls line(text), or line(text, comment), for each line with something before its
// comment, until it returns an error; returns the error with its line, or an empty string.
template <class Line>
std::string each_line(std::string_view text, Line line) {
    constexpr std::string_view kBlanks = " \t\r";
    for (size_t number = 1; !text.empty(); number++) {
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view one = text.substr(0, end);
        std::string_view comment;
        text.remove_prefix(std::min(end + 1, text.size()));
        for (size_t at = one.find('#'); at != one.npos; at = one.find('#', at + 1)) {
            if (at == 0 || kBlanks.find(one[at - 1]) != kBlanks.npos) {
                comment = one.substr(at + 1);
                one = one.substr(0, at);
                break;
            }
        }
        for (std::string_view* part : {&one, &comment}) {
            part->remove_prefix(std::min(part->find_first_not_of(kBlanks), part->size()));
            *part = part->substr(0, part->find_last_not_of(kBlanks) + 1);
        }
        if (one.empty()) {
            continue;
        }
        std::string wrong;
        if constexpr (std::is_invocable_v<Line, std::string_view, std::string_view>) {
            wrong = line(one, comment);
        } else {
            wrong = line(one);
        }
        if (!wrong.empty()) {
            return "line " + std::to_string(number) + ": " + wrong;
        }
    }
    return {};
}

// A line as a message shows it.
inline std::string quoted_line(std::string_view text) {
    std::string out = "\"";
    for (const char c : text.substr(0, 64)) {
        out += c < ' ' || c == 0x7f ? '?' : c;
    }
    return out + (text.size() > 64 ? "…\"" : "\"");
}

}  // namespace ads
