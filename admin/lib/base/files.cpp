#include "lib/base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/file.hpp"
#include "lib/base/failure.hpp"

namespace ads::admin {

namespace {

constexpr mode_t kPrivate = 0600;

[[noreturn]] void fail(std::string_view doing, const std::string& path, int error) {
    throw Failure(Exit::failed,
                  fmt::format("cannot {} {}: {}.", doing, shown_name(path), std::strerror(error)));
}

std::string read_all_of_stdin() {
    std::string text;
    char buffer[65536];
    while (const size_t size = read_stdin(buffer, sizeof buffer)) {
        text.append(buffer, size);
    }
    return text;
}

bool write_whole(int fd, std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t size = write(fd, text.data(), text.size());
        if (size < 0 && errno != EINTR) {
            return false;
        }
        text.remove_prefix(size < 0 ? 0 : static_cast<size_t>(size));
    }
    return true;
}

// Creates the file; what was written of it is removed if that fails.
void create(const std::string& path, std::string_view text, mode_t mode) {
    const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) {
        fail("create", path, errno);
    }
    if (fchmod(fd.get(), mode) != 0 || !write_whole(fd.get(), text) || fsync(fd.get()) != 0) {
        const int error = errno;
        unlink(path.c_str());
        fail("write", path, error);
    }
}

// The file as a whole, under its name only when it is complete.
void exchange(const std::string& path, std::string_view text, mode_t mode) {
    const std::string fresh = fmt::format("{}.new.{}", path, getpid());
    create(fresh, text, mode);
    if (rename(fresh.c_str(), path.c_str()) != 0) {
        const int error = errno;
        unlink(fresh.c_str());
        fail("replace", path, error);
    }
}

}  // namespace

size_t read_stdin(char* to, size_t size) {
    for (;;) {
        const ssize_t got = read(STDIN_FILENO, to, size);
        if (got >= 0) {
            return static_cast<size_t>(got);
        }
        if (errno != EINTR) {
            fail("read", std::string(kStdin), errno);
        }
    }
}

std::string read_input(const std::string& path) {
    if (path == kStdin) {
        return read_all_of_stdin();
    }
    std::string text;
    if (const int error = read_file(path.c_str(), text); error != 0) {
        fail("read", path, error);
    }
    return text;
}

std::string shown_name(const std::string& path) {
    return path == kStdin ? "standard input" : path;
}

void write_private(const std::string& path, std::string_view text, bool replace) {
    if (!replace) {
        struct stat info;
        if (lstat(path.c_str(), &info) == 0) {
            throw Failure(Exit::failed,
                          fmt::format("{} exists and was not changed: choose another name, or "
                                      "replace it with --force.",
                                      path));
        }
        create(path, text, kPrivate);
        return;
    }
    exchange(path, text, kPrivate);
}

void write_atomically(const std::string& path, std::string_view text, mode_t mode) {
    struct stat info;
    if (mode == 0 && stat(path.c_str(), &info) == 0) {
        mode = info.st_mode & 0777;
    } else if (mode == 0) {
        const mode_t mask = umask(0);
        umask(mask);
        mode = 0666 & ~mask;
    }
    exchange(path, text, mode);
}

}  // namespace ads::admin
