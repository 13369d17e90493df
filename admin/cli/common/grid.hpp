// Rows and columns for people. On a terminal they fit its width: wide text columns are narrowed
// first, then the least important columns are omitted, and finally lines are truncated.
#pragma once

#include <string>
#include <vector>

namespace ads::cli {

class Grid {
public:
    explicit Grid(std::vector<std::string> heads) : heads_(std::move(heads)) {}

    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    // The last line, printed like the heads.
    void foot(std::vector<std::string> row) { foot_ = std::move(row); }
    // The heads of the columns to omit if the width does not suffice, in this order.
    void spare(std::vector<std::string> heads) { spare_ = std::move(heads); }
    bool empty() const noexcept { return rows_.empty(); }
    // Each line indented by `indent` columns.
    void print(size_t indent = 0) const;
    // The same for a terminal of this width; 0: unlimited.
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
