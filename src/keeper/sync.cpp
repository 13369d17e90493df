#include "keeper/sync.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/spool.hpp"

namespace ads {

size_t SpoolSync::sync() {
    std::map<std::string, uint64_t> synced;
    std::string wrong;
    size_t count = 0;
    bool any_new = false;
    for (const auto& path : spool_segments(folder_)) {
        const std::string closed = closed_path(path);
        const auto known = synced_.find(closed);
        const uint64_t had = known == synced_.end() ? 0 : known->second;
        // It may have been closed or removed just now.
        Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        if (!fd) {
            fd = Fd(::open(closed.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        }
        struct stat info;
        if (!fd || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
            continue;
        }
        const auto size = static_cast<uint64_t>(info.st_size);
        if (size != had) {
            if (fdatasync(fd.get()) != 0) {
                wrong = "cannot sync \"" + path + "\": " + std::strerror(errno);
                synced[closed] = had;
                continue;
            }
            count++;
            any_new = any_new || had == 0;
        }
        synced[closed] = size;
    }
    synced_ = std::move(synced);
    if (any_new) {
        const Fd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!folder || fsync(folder.get()) != 0) {
            wrong = "cannot sync \"" + folder_ + "\": " + std::strerror(errno);
        }
    }
    if (wrong != told_) {
        say_(wrong.empty() ? LogLevel::notice : LogLevel::error,
             wrong.empty() ? "the spool is synced again" : wrong);
        told_ = wrong;
    }
    return count;
}

}  // namespace ads
