#include "io/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "io/file.hpp"

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

ProcessId this_process() noexcept {
    const auto pid = static_cast<uint32_t>(getpid());
    bool dead = false;
    return ProcessId{start_time(pid, dead)} << 32 | pid;
}

std::string boot_id() {
    std::string id;
    if (read_file("/proc/sys/kernel/random/boot_id", id) != 0) {
        return "-";
    }
    while (!id.empty() && id.back() == '\n') {
        id.pop_back();
    }
    return id;
}

bool process_alive(ProcessId process) noexcept {
    const uint32_t pid = pid_of(process);
    if (pid == 0 || (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)) {
        return false;
    }
    bool dead = false;
    const uint32_t started = start_time(pid, dead);
    const auto expected = static_cast<uint32_t>(process >> 32);
    return !dead && (expected == 0 || started == 0 || started == expected);
}

void end_process(ProcessId process) noexcept {
    const auto pid = static_cast<pid_t>(pid_of(process));
    if (pid == 0 || pid == getpid() || pid == getppid()) {
        return;
    }
    // Checks after opening the descriptor apply to the process that it names.
    const Fd descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (descriptor && process_alive(process)) {
        syscall(SYS_pidfd_send_signal, descriptor.get(), SIGKILL, nullptr, 0);
    }
}

uint32_t other_process_with(int fd) noexcept {
    struct stat info;
    DIR* const processes = fstat(fd, &info) == 0 ? opendir("/proc") : nullptr;
    if (processes == nullptr) {
        return 0;
    }
    char device[32];
    char inode[32];
    char path[4096];
    std::snprintf(device, sizeof device, " %02x:%02x ", major(info.st_dev), minor(info.st_dev));
    std::snprintf(inode, sizeof inode, " %llu ", static_cast<unsigned long long>(info.st_ino));
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t size = readlink(link.c_str(), path, sizeof path);
    const std::string_view name(path, size > 0 ? static_cast<size_t>(size) : 0);
    // ADDRESSES RIGHTS OFFSET DEVICE INODE PATH. Some file systems have another device here,
    // some containers another path.
    const auto is_it = [&](std::string_view line) {
        return line.find(inode) != line.npos &&
               (line.find(device) != line.npos || (!name.empty() && line.ends_with(name)));
    };
    uint32_t found = 0;
    while (const dirent* entry = found == 0 ? readdir(processes) : nullptr) {
        const auto pid = static_cast<uint32_t>(std::strtoul(entry->d_name, nullptr, 10));
        std::string maps;
        if (pid == 0 || pid == static_cast<uint32_t>(getpid()) ||
            read_file(("/proc/" + std::to_string(pid) + "/maps").c_str(), maps) != 0) {
            continue;
        }
        for (std::string_view left = maps; !left.empty() && found == 0;) {
            const size_t end = std::min(left.find('\n'), left.size());
            found = is_it(left.substr(0, end)) ? pid : 0;
            left.remove_prefix(std::min(end + 1, left.size()));
        }
    }
    closedir(processes);
    return found;
}

}  // namespace ads
