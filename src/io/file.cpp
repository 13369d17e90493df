#include "io/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace ads {

namespace {

constexpr off_t kLargestFile = off_t{1} << 30;

FileMark mark_from(const struct stat& info) noexcept {
    return {info.st_ino, info.st_size,
            int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

}  // namespace

int read_file(const char* path, std::string& text, FileMark* mark, catalog::Pace* pace) {
    const Fd fd(open(path, O_RDONLY | O_CLOEXEC));
    struct stat info;
    if (!fd || fstat(fd.get(), &info) != 0) {
        return errno;
    }
    if (S_ISDIR(info.st_mode)) {
        return EISDIR;
    }
    if (mark != nullptr) {
        *mark = mark_from(info);
    }
    text.clear();
    text.reserve(static_cast<size_t>(info.st_size) + 1);
    char buffer[65536];
    for (;;) {
        if (pace != nullptr) {
            pace->go_on();
        }
        const ssize_t size = read(fd.get(), buffer, sizeof buffer);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0) {
            return errno;
        }
        if (size == 0) {
            return 0;
        }
        text.append(buffer, static_cast<size_t>(size));
    }
}

int read_regular_file(const char* path, std::string& text, FileMark* mark, catalog::Pace* pace) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return errno;
    }
    if (!S_ISREG(info.st_mode)) {
        return S_ISDIR(info.st_mode) ? EISDIR : ENODEV;
    }
    return info.st_size > kLargestFile ? EFBIG : read_file(path, text, mark, pace);
}

const char* read_error(int error) noexcept {
    return error == ENODEV  ? "it is not a regular file"
           : error == EFBIG ? "it is larger than 1 GiB"
                            : std::strerror(error);
}

FileMark mark_of(const char* path) noexcept {
    struct stat info;
    return stat(path, &info) == 0 ? mark_from(info) : FileMark{};
}

size_t write_all(int fd, std::string_view data) noexcept {
    size_t done = 0;
    while (done < data.size()) {
        const ssize_t n = write(fd, data.data() + done, data.size() - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        done += static_cast<size_t>(n);
    }
    return done;
}

int replace_file(const std::string& path, std::string_view text) {
    const std::string fresh = path + ".new";
    const Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
    if (!fd || write_all(fd.get(), text) != text.size() || fdatasync(fd.get()) != 0 ||
        rename(fresh.c_str(), path.c_str()) != 0) {
        return errno == 0 ? EIO : errno;
    }
    return 0;
}

}  // namespace ads
