// The lines of a list: without what follows a `#`, and without blanks around.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace ads {

// Calls line(text) for each line with something in it, until that says what is
// wrong; returns a sentence that names the line, or nothing.
template <class Line>
std::string each_line(std::string_view text, Line line) {
    constexpr std::string_view kBlanks = " \t\r";
    for (size_t number = 1; !text.empty(); number++) {
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view one = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        for (size_t at = one.find('#'); at != one.npos; at = one.find('#', at + 1)) {
            if (at == 0 || kBlanks.find(one[at - 1]) != kBlanks.npos) {
                one = one.substr(0, at);
                break;
            }
        }
        const size_t first = std::min(one.find_first_not_of(kBlanks), one.size());
        one.remove_prefix(first);
        one = one.substr(0, one.find_last_not_of(kBlanks) + 1);
        if (one.empty()) {
            continue;
        }
        if (const std::string wrong = line(one); !wrong.empty()) {
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
