#include "grid.hpp"

#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "output.hpp"
#include "table.hpp"

namespace ads::cli {

namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeastColumn = 6;

bool is_number(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789.,-") == text.npos;
}

// Takes from the widest column of text until all fit.
void narrow(std::vector<size_t>& widths, const std::vector<bool>& numbers, size_t room) {
    size_t total = std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
    while (total > room) {
        size_t widest = widths.size();
        for (size_t i = 0; i < widths.size(); i++) {
            if (!numbers[i] && widths[i] > kLeastColumn &&
                (widest == widths.size() || widths[i] > widths[widest])) {
                widest = i;
            }
        }
        if (widest == widths.size()) {
            return;
        }
        widths[widest]--;
        total--;
    }
}

}  // namespace

void Grid::print(size_t indent) const {
    std::vector<size_t> widths;
    std::vector<bool> right;
    for (size_t i = 0; i < heads_.size(); i++) {
        size_t width = columns(heads_[i]);
        bool numbers = !rows_.empty();
        for (const auto& row : rows_) {
            width = std::max(width, columns(row[i]));
            numbers = numbers && (row[i].empty() || is_number(row[i]));
        }
        widths.push_back(width);
        right.push_back(numbers);
    }
    const bool terminal = isatty(STDOUT_FILENO) == 1;
    if (terminal) {
        narrow(widths, right, terminal_width() - indent);
    }
    const auto line = [&](const std::vector<std::string>& cells, bool head) {
        std::string text(indent, ' ');
        for (size_t i = 0; i < cells.size(); i++) {
            const std::string shown = fitted(cells[i], widths[i]);
            const std::string gap(widths[i] - std::min(widths[i], columns(shown)), ' ');
            text += right[i] ? gap + shown : shown + gap;
            text.append(i + 1 < cells.size() ? kGap : 0, ' ');
        }
        text.erase(text.find_last_not_of(' ') + 1);
        text = terminal ? fitted(text, terminal_width()) : text;
        out().put((head ? painted(STDOUT_FILENO, Colour::bold, text) : text) + '\n');
    };
    line(heads_, true);
    for (const auto& row : rows_) {
        line(row, false);
    }
}

}  // namespace ads::cli
