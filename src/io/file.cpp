#include "io/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

namespace ads {

namespace {

FileMark mark_from(const struct stat& info) noexcept {
    return {info.st_ino, info.st_size,
            int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

}  // namespace

int read_file(const char* path, std::string& text, FileMark* mark) {
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

FileMark mark_of(const char* path) noexcept {
    struct stat info;
    return stat(path, &info) == 0 ? mark_from(info) : FileMark{};
}

}  // namespace ads
