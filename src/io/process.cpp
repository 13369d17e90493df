#include "io/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace ads {

namespace {

// Field 22 of /proc/PID/stat, in clock ticks since boot; 0 if unknown. A
// zombie has left what it held, so it counts as gone: `dead` is set.
uint32_t start_time(uint32_t pid, bool& dead) noexcept {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    char text[1024];
    const ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0) {
        return 0;
    }
    text[size] = '\0';
    // The name may hold spaces and brackets; the fields go on after the last ')'.
    const char* at = std::strrchr(text, ')');
    if (at == nullptr) {
        return 0;
    }
    dead = at[1] == ' ' && (at[2] == 'Z' || at[2] == 'X');
    for (int field = 2; field < 22 && at != nullptr; field++) {
        at = std::strchr(at + 1, ' ');
    }
    uint64_t ticks = 0;
    if (at != nullptr) {
        std::from_chars(at + 1, text + size, ticks);
    }
    return static_cast<uint32_t>(ticks);
}

}  // namespace

Who this_process() noexcept {
    const auto pid = static_cast<uint32_t>(getpid());
    bool dead = false;
    return Who{start_time(pid, dead)} << 32 | pid;
}

bool process_alive(Who who) noexcept {
    const uint32_t pid = pid_of(who);
    if (pid == 0 || (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)) {
        return false;
    }
    bool dead = false;
    const uint32_t started = start_time(pid, dead);
    const auto expected = static_cast<uint32_t>(who >> 32);
    return !dead && (expected == 0 || started == 0 || started == expected);
}

}  // namespace ads
