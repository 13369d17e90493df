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

// A file's identity: any change of it means that the file must be read again.
struct FileMark {
    uint64_t inode = 0;
    int64_t size = 0;
    int64_t mtime_ns = 0;
    bool operator==(const FileMark&) const = default;
};

// The whole file in `text`; 0, or errno. `mark` is of the very file read.
int read_file(const char* path, std::string& text, FileMark* mark = nullptr);

// The same of a regular file of at most 1 GiB: a device or a pipe could be read without end.
int read_regular_file(const char* path, std::string& text, FileMark* mark = nullptr);
// What its error means.
const char* read_error(int error) noexcept;

// The same for a file in a folder of the worker user, where root may be the reader: a link is
// not followed (ELOOP), and what is no regular file is not waited for (EINVAL).
int read_own_file(const std::string& path, std::string& text);

// Opens FOLDER/NAME without following a link in its place. NAME may lead through folders, in
// none of which a link is followed; FOLDER itself may be one.
Fd open_inside(const std::string& folder, std::string_view name, int flags, mode_t mode = 0);

// Writes all of it, or as much as goes; the bytes written.
size_t write_all(int fd, std::string_view data) noexcept;

inline constexpr uid_t kSameUser = static_cast<uid_t>(-1);

// Puts a file of this text in the place of another, the whole text or nothing; 0, or errno.
// A link is replaced, not followed. The file belongs to `owner`.
int replace_file(const std::string& path, std::string_view text, uid_t owner = kSameUser);

// The mark of the file as it is now; all zero if it cannot be seen.
FileMark mark_of(const char* path) noexcept;

}  // namespace ads
