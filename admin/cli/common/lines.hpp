// Line-by-line input and output, for programs that keep the command running.
#pragma once

#include <string>
#include <string_view>

namespace ads::cli {

// Reads lines of a file or of standard input ("-"), without their line feeds. Pending output is
// written before it waits for more input.
class Lines {
public:
    explicit Lines(const std::string& path);
    ~Lines();
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;

    // Returns false at the end. The line is valid until the next call; a line longer than kMost
    // bytes is truncated.
    bool next(std::string_view& line);

    static constexpr size_t kMost = 1 << 20;

private:
    bool read_more();

    std::string path_;
    int fd_;
    std::string buffer_;
    size_t begin_ = 0;  // of what is not returned yet
    size_t seen_ = 0;   // no line feed before this
    bool ended_ = false;
};

// Returns the text before the first tab, and sets `rest` to the text after it; `found` tells
// whether there is a tab.
std::string_view take_field(std::string_view& rest, bool& found);

}  // namespace ads::cli
