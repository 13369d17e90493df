// Files: an owned descriptor, and whole files read at once.
#pragma once

#include <unistd.h>

#include <string>
#include <utility>

#include "core/catalog/pace.hpp"

namespace ads {

class Fd {
public:
    Fd() noexcept = default;
    explicit Fd(int fd) noexcept : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Fd() { reset(); }

    explicit operator bool() const noexcept { return fd_ >= 0; }
    int get() const noexcept { return fd_; }
    void reset() noexcept {
        if (fd_ >= 0) {
            close(std::exchange(fd_, -1));
        }
    }

private:
    int fd_ = -1;
};

// A file's identity: any change of it means that the file must be read again.
struct FileMark {
    uint64_t inode = 0;
    int64_t size = 0;
    int64_t mtime_ns = 0;
    bool operator==(const FileMark&) const = default;
};

// The whole file in `text`; 0, or errno. `mark` is of the very file read. With a pace it takes
// its time, but always ends.
int read_file(const char* path, std::string& text, FileMark* mark = nullptr,
              catalog::Pace* pace = nullptr);

// The same of a regular file of at most 1 GiB: a device or a pipe could be read without end.
int read_regular_file(const char* path, std::string& text, FileMark* mark = nullptr,
                      catalog::Pace* pace = nullptr);
// What its error means.
const char* read_error(int error) noexcept;

// Writes all of it, or as much as goes; the bytes written.
size_t write_all(int fd, std::string_view data) noexcept;

// Puts a file of this text in the place of another, the whole text or nothing; 0, or
// errno.
int replace_file(const std::string& path, std::string_view text);

// The mark of the file as it is now; all zero if it cannot be seen.
FileMark mark_of(const char* path) noexcept;

}  // namespace ads
