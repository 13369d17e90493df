// Files: an owned descriptor, and whole files read at once.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

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
    int release() noexcept { return std::exchange(fd_, -1); }
    void reset() noexcept {
        if (fd_ >= 0) {
            close(std::exchange(fd_, -1));
        }
    }

private:
    int fd_ = -1;
};

// The identity of a file: if any of it changes, the file must be read again.
struct FileMark {
    uint64_t inode = 0;
    int64_t size = 0;
    int64_t mtime_ns = 0;
    bool operator==(const FileMark&) const = default;
};

// Reads the whole file into `text`; returns 0 or errno. `mark` is of the file that was read.
int read_file(const char* path, std::string& text, FileMark* mark = nullptr);

// The same for a regular file of at most 1 GiB: a device or a pipe could be read without end.
int read_regular_file(const char* path, std::string& text, FileMark* mark = nullptr);
// The meaning of its error.
const char* read_error(int error) noexcept;

// The same for a file in a folder of the worker user, if the reader may be root: a link is not
// followed (ELOOP), and anything but a regular file is refused without waiting (EINVAL).
int read_own_file(const std::string& path, std::string& text);

// Opens FOLDER/NAME without following links in NAME, which may have several folders. FOLDER itself
// may be a link.
Fd open_inside(const std::string& folder, std::string_view name, int flags, mode_t mode = 0);

// Writes as much as possible; returns the number of bytes written.
size_t write_all(int fd, std::string_view data) noexcept;

inline constexpr uid_t kSameUser = static_cast<uid_t>(-1);

// Replaces a file atomically by one with this text; returns 0 or errno. A link is replaced, not
// followed. The file belongs to `owner`.
int replace_file(const std::string& path, std::string_view text, uid_t owner = kSameUser);

// The present mark of the file; all zero if it cannot be accessed.
FileMark mark_of(const char* path) noexcept;

}  // namespace ads
