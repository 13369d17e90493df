#include "cli/common/table.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace ads::cli {

namespace {

constexpr size_t kUsualWidth = 80;
constexpr size_t kLeastWidth = 40;
constexpr size_t kGreatestWidth = 160;  // longer lines are hard to follow

// Whether the reader's locale is one of UTF-8.
bool wide_characters() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        const char* value = std::getenv(name);
        if (value != nullptr && *value != '\0') {
            const std::string_view locale(value);
            return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
        }
    }
    return false;
}

bool continues(char c) noexcept {
    return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

}  // namespace

size_t terminal_width() {
    winsize size{};
    size_t width = 0;
    if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        width = size.ws_col;
    }
    if (const char* columns = std::getenv("COLUMNS"); width == 0 && columns != nullptr) {
        width = std::strtoul(columns, nullptr, 10);
    }
    return width == 0 ? kUsualWidth : std::clamp(width, kLeastWidth, kGreatestWidth);
}

size_t columns(std::string_view text) {
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string fitted(std::string_view text, size_t width) {
    if (columns(text) <= width) {
        return std::string(text);
    }
    const std::string_view dots = wide_characters() ? "…" : "...";
    const size_t room = width - std::min(width, columns(dots));
    size_t end = 0;
    for (size_t n = 0; end < text.size(); end++) {
        if (!continues(text[end]) && n++ == room) {
            break;
        }
    }
    return std::string(text.substr(0, end)) + std::string(dots);
}

std::string padded(std::string_view text, size_t width) {
    std::string shown = fitted(text, width);
    shown.append(width - std::min(width, columns(shown)), ' ');
    return shown;
}

std::string bar(double fraction, size_t width) {
    constexpr auto kEighths =
        std::to_array<std::string_view>({"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"});
    if (!(fraction > 0)) {
        return {};
    }
    const bool fine = wide_characters();
    const size_t steps = fine ? 8 : 1;
    const double exact = std::min(fraction, 1.0) * static_cast<double>(width * steps);
    size_t left = std::max<size_t>(1, static_cast<size_t>(std::lround(exact)));
    std::string text;
    for (; left > 0; left -= std::min(left, steps)) {
        text += fine ? kEighths[std::min(left, steps)] : std::string_view("#");
    }
    return text;
}

std::string wrapped(std::string_view text, size_t indent, size_t width) {
    std::string lines;
    const size_t room = width - std::min(width - 1, indent);
    size_t used = 0;
    while (!text.empty()) {
        const size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const size_t size = columns(word);
        if (used > 0 && used + 1 + size > room) {
            lines += '\n';
            used = 0;
        }
        lines += used == 0 ? std::string(indent, ' ') : std::string(1, ' ');
        lines += word;
        used += size + (used == 0 ? 0 : 1);
    }
    return lines + '\n';
}

}  // namespace ads::cli
