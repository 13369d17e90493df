#include "cli/common/grid.hpp"

#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "cli/common/output.hpp"
#include "cli/common/table.hpp"

namespace ads::cli {

namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeastText = 12;   // a column of text is not made narrower to keep a spare one,
constexpr size_t kLeastColumn = 6;  // nor than this at all

bool is_number(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789.,+-%") == text.npos;
}

}  // namespace

size_t Grid::total(const std::vector<Column>& columns) {
    return std::accumulate(columns.begin(), columns.end(), kGap * (columns.size() - 1),
                           [](size_t sum, const Column& c) { return sum + c.width; });
}

// Takes from the widest column of text until all fit.
void Grid::narrow(std::vector<Column>& columns, size_t room, size_t least) {
    for (size_t over = total(columns); over > room; over--) {
        Column* widest = nullptr;
        for (auto& column : columns) {
            if (!column.number && column.width > least &&
                (widest == nullptr || column.width > widest->width)) {
                widest = &column;
            }
        }
        if (widest == nullptr) {
            return;
        }
        widest->width--;
    }
}

void Grid::fit(std::vector<Column>& columns, size_t room) const {
    std::vector<Column> fitting = columns;
    narrow(fitting, room, kLeastText);
    for (size_t i = 0; i < spare_.size() && total(fitting) > room; i++) {
        std::erase_if(columns, [&](const Column& c) { return heads_[c.at] == spare_[i]; });
        fitting = columns;
        narrow(fitting, room, kLeastText);
    }
    narrow(fitting, room, kLeastColumn);
    columns = std::move(fitting);
}

std::string Grid::text(size_t indent, size_t width, bool bold) const {
    std::vector<Column> shown;
    for (size_t i = 0; i < heads_.size(); i++) {
        Column column{i, columns(heads_[i]), !rows_.empty()};
        for (const auto& row : rows_) {
            column.width = std::max(column.width, columns(row[i]));
            column.number = column.number && (row[i].empty() || is_number(row[i]));
        }
        column.width = std::max(column.width, foot_.empty() ? 0 : columns(foot_[i]));
        shown.push_back(column);
    }
    if (width > 0) {
        fit(shown, width - std::min(width - 1, indent));
    }
    std::string lines;
    const auto add_line = [&](const std::vector<std::string>& cells, bool strong) {
        std::string line(indent, ' ');
        for (const auto& column : shown) {
            const std::string cell = fitted(cells[column.at], column.width);
            const std::string gap(column.width - std::min(column.width, columns(cell)), ' ');
            const bool right = column.number && (&cells != &foot_ || is_number(cell));
            line += right ? gap + cell : cell + gap;
            line.append(&column == &shown.back() ? 0 : kGap, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        line = width > 0 ? fitted(line, width) : line;
        lines += (strong && bold ? painted(STDOUT_FILENO, Colour::bold, line) : line) + '\n';
    };
    add_line(heads_, true);
    for (const auto& row : rows_) {
        add_line(row, false);
    }
    if (!foot_.empty()) {
        add_line(foot_, true);
    }
    return lines;
}

void Grid::print(size_t indent) const {
    out().put(text(indent, isatty(STDOUT_FILENO) == 1 ? terminal_width() : 0, true));
}

}  // namespace ads::cli
