#include "cli/common/lines.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/common/output.hpp"
#include "lib/base/files.hpp"

namespace ads::cli {

namespace {

[[noreturn]] void fail_to_read(const std::string& path, int error) {
    throw Failure(Exit::failed,
                  fmt::format("cannot read {}: {}.", shown_name(path), std::strerror(error)));
}

}  // namespace

Lines::Lines(const std::string& path)
    : path_(path), fd_(path == kStdin ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) {
        fail_to_read(path, errno);
    }
}

Lines::~Lines() {
    if (fd_ != STDIN_FILENO) {
        close(fd_);
    }
}

bool Lines::read_more() {
    out().flush();
    buffer_.erase(0, begin_);
    seen_ -= begin_;
    begin_ = 0;
    char block[65536];
    ssize_t size = 0;
    do {
        size = read(fd_, block, sizeof block);
    } while (size < 0 && errno == EINTR);
    if (size < 0) {
        fail_to_read(path_, errno);
    }
    buffer_.append(block, static_cast<size_t>(size));
    return size > 0;
}

bool Lines::next(std::string_view& line) {
    while (!ended_) {
        const size_t end = buffer_.find('\n', seen_);
        if (end != buffer_.npos) {
            line = std::string_view(buffer_).substr(begin_, std::min(end - begin_, kMost));
            begin_ = seen_ = end + 1;
            if (line.ends_with('\r')) {
                line.remove_suffix(1);
            }
            return true;
        }
        if (buffer_.size() - begin_ > 2 * kMost) {  // the middle of an endless line
            buffer_.resize(begin_ + kMost);
        }
        seen_ = buffer_.size();
        ended_ = !read_more();
    }
    line = std::string_view(buffer_).substr(begin_, kMost);
    begin_ = buffer_.size();
    return !line.empty();
}

std::string_view take_field(std::string_view& rest, bool& found) {
    const size_t tab = rest.find('\t');
    found = tab != rest.npos;
    const std::string_view field = rest.substr(0, tab);
    rest.remove_prefix(found ? tab + 1 : rest.size());
    return field;
}

}  // namespace ads::cli
