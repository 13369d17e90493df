// Rows and columns for people. On a terminal they fit its width: wide columns
// give way, those of numbers do not, and a line is cut at last.
#pragma once

#include <string>
#include <vector>

namespace ads::cli {

class Grid {
public:
    explicit Grid(std::vector<std::string> heads) : heads_(std::move(heads)) {}

    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    bool empty() const noexcept { return rows_.empty(); }
    // Each line indented by so many columns.
    void print(size_t indent = 0) const;

private:
    std::vector<std::string> heads_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace ads::cli
