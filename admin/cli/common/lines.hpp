// Lines in, lines out: for programs that keep the command running.
#pragma once

#include <string>
#include <string_view>

namespace ads::cli {

// Lines of a file or of standard input ("-"), without their ends. What was put
// out so far is written before it waits for more.
class Lines {
public:
    explicit Lines(const std::string& path);
    ~Lines();
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;

    // False at the end. The line is valid until the next call; of one that is
    // over kMost bytes the rest is missing.
    bool next(std::string_view& line);

    static constexpr size_t kMost = 1 << 20;

private:
    bool read_more();

    std::string path_;
    int fd_;
    std::string buffer_;
    size_t begin_ = 0;  // of what was not handed out yet
    size_t seen_ = 0;   // no line feed before this
    bool ended_ = false;
};

// What stands before the first tab; the rest has what follows it, and `found`
// says whether there is one.
std::string_view take_field(std::string_view& rest, bool& found);

}  // namespace ads::cli
