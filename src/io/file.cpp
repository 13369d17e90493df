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

int read_all(int fd, const struct stat& info, std::string& text) {
    text.clear();
    text.reserve(static_cast<size_t>(info.st_size) + 1);
    char buffer[65536];
    for (;;) {
        const ssize_t size = read(fd, buffer, sizeof buffer);
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

// The folder of a path and the name in it.
std::pair<std::string, std::string> split(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos
               ? std::pair(std::string("."), path)
               : std::pair(path.substr(0, slash + 1), path.substr(slash + 1));
}

Fd open_folder(int at, const char* path, int flags) noexcept {
    return Fd(openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC | flags));
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
    return read_all(fd.get(), info, text);
}

int read_own_file(const std::string& path, std::string& text) {
    const auto [folder, name] = split(path);
    const Fd fd = open_inside(folder, name, O_RDONLY | O_NONBLOCK);
    struct stat info;
    if (!fd || fstat(fd.get(), &info) != 0) {
        return errno;
    }
    return S_ISREG(info.st_mode) ? read_all(fd.get(), info, text) : EINVAL;
}

Fd open_inside(const std::string& folder, std::string_view name, int flags, mode_t mode) {
    Fd at = open_folder(AT_FDCWD, folder.c_str(), 0);
    for (size_t slash; at && (slash = name.find('/')) != name.npos;) {
        at = open_folder(at.get(), std::string(name.substr(0, slash)).c_str(), O_NOFOLLOW);
        name.remove_prefix(slash + 1);
    }
    return at ? Fd(openat(at.get(), std::string(name).c_str(), flags | O_NOFOLLOW | O_CLOEXEC,
                          mode))
              : Fd();
}

int read_regular_file(const char* path, std::string& text, FileMark* mark) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return errno;
    }
    if (!S_ISREG(info.st_mode)) {
        return S_ISDIR(info.st_mode) ? EISDIR : ENODEV;
    }
    return info.st_size > kLargestFile ? EFBIG : read_file(path, text, mark);
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

int replace_file(const std::string& path, std::string_view text, uid_t owner) {
    const auto [folder, name] = split(path);
    const Fd at = open_folder(AT_FDCWD, folder.c_str(), 0);
    if (!at) {
        return errno;
    }
    const std::string draft = name + ".new";
    unlinkat(at.get(), draft.c_str(), 0);
    const Fd fd(openat(at.get(), draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
    if (!fd) {
        return errno;
    }
    errno = 0;
    if (write_all(fd.get(), text) != text.size() ||
        fchown(fd.get(), owner, static_cast<gid_t>(-1)) != 0 || fdatasync(fd.get()) != 0 ||
        renameat(at.get(), draft.c_str(), at.get(), name.c_str()) != 0) {
        return errno == 0 ? EIO : errno;
    }
    return 0;
}

}  // namespace ads
