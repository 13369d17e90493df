// Rows and columns for people. On a terminal they fit its width: wide columns of text give way
// first, then those columns are left out that are the least important, and a line is cut at last.
#pragma once

#include <string>
#include <vector>

namespace ads::cli {

class Grid {
public:
    explicit Grid(std::vector<std::string> heads) : heads_(std::move(heads)) {}

    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    // The last line, printed as the heads are.
    void foot(std::vector<std::string> row) { foot_ = std::move(row); }
    // The columns to leave out where there is no room for all, by their heads, the first one first.
    void spare(std::vector<std::string> heads) { spare_ = std::move(heads); }
    bool empty() const noexcept { return rows_.empty(); }
    // Each line indented by `indent` columns.
    void print(size_t indent = 0) const;
    // The same, as a terminal of that width shows it; 0: as wide as it is.
    std::string text(size_t indent, size_t width, bool bold) const;

private:
    struct Column {
        size_t at = 0;  // among the heads
        size_t width = 0;
        bool number = false;
    };
    static size_t total(const std::vector<Column>& columns);
    static void narrow(std::vector<Column>& columns, size_t room, size_t least);
    void fit(std::vector<Column>& columns, size_t room) const;

    std::vector<std::string> heads_;
    std::vector<std::vector<std::string>> rows_;
    std::vector<std::string> foot_;
    std::vector<std::string> spare_;
};

}  // namespace ads::cli
