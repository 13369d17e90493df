#include "io/spool.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/base/bytes.hpp"
#include "io/process.hpp"

namespace ads {

namespace {

constexpr size_t kBuffer = 1 << 20;
constexpr std::string_view kOpen = ".open";
constexpr std::string_view kClosed = ".seg";

struct CloseDir {
    void operator()(DIR* dir) const noexcept { closedir(dir); }
};

template <class F>
void each_file(const std::string& folder, F f) {
    const std::unique_ptr<DIR, CloseDir> dir(opendir(folder.c_str()));
    while (dir != nullptr) {
        const dirent* entry = readdir(dir.get());
        if (entry == nullptr) {
            return;
        }
        const std::string_view name(entry->d_name);
        if (name.ends_with(kOpen) || name.ends_with(kClosed)) {
            f(name);
        }
    }
}

// TIME-NODE-PID-START-SEQUENCE: sorts by time, and names its writer.
std::string make_name(Millis now, uint32_t node, ProcessId me, uint32_t sequence) {
    char name[96];
    std::snprintf(name, sizeof name, "%013lld-%08x-%u-%x-%u", static_cast<long long>(now), node,
                  pid_of(me), static_cast<unsigned>(me >> 32), sequence);
    return name;
}

void close_name(const std::string& path) noexcept {
    rename(path.c_str(), closed_path(path).c_str());
}

}  // namespace

std::string segment_head(Millis now, uint32_t node) {
    char head[kSegmentHead] = {};
    std::memcpy(head, kSegmentMagic.data(), kSegmentMagic.size());
    store(head + 8, static_cast<int64_t>(now));
    store(head + 16, node);
    return {head, sizeof head};
}

int64_t monotonic_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void Spool::configure(std::string folder, size_t segment, ProcessId me, uint32_t node,
                      Clock clock) {
    clock_ = clock;
    folder_ = std::move(folder);
    segment_ = segment;
    me_ = me;
    node_ = node;
    buffer_.resize(kBuffer);
    ends_.reserve(1024);
}

bool Spool::append(const Event& event) noexcept {
    const size_t size = write_record(event, std::span(buffer_).subspan(used_));
    if (size == 0) {
        return false;
    }
    used_ += size;
    ends_.push_back(static_cast<uint32_t>(used_));
    return true;
}

bool Spool::open_segment(Millis now) noexcept {
    path_ = folder_ + "/" + make_name(now, node_, me_, sequence_++) + std::string(kOpen);
    fd_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0640));
    if (!fd_) {
        return false;
    }
    flock(fd_.get(), LOCK_EX | LOCK_NB);
    const std::string head = segment_head(now, node_);
    if (write_all(fd_.get(), head) != head.size()) {
        const int error = errno;
        unlink(path_.c_str());
        fd_.reset();
        errno = error;
        return false;
    }
    size_ = head.size();
    return true;
}

Flushed Spool::flush(Millis now) noexcept {
    if (ends_.empty()) {
        return {};
    }
    const int64_t begin = clock_();
    Flushed result = write(now);
    result.took_ns = clock_() - begin;
    return result;
}

Flushed Spool::write(Millis now) noexcept {
    Flushed result;
    size_t done = 0;
    struct stat info;
    if (fd_ && (fstat(fd_.get(), &info) != 0 || info.st_nlink == 0)) {
        fd_.reset();  // the file was removed: its content would never be read
    }
    errno = 0;
    if (fd_ || open_segment(now)) {
        done = write_all(fd_.get(), {buffer_.data(), used_});
    }
    if (done < used_) {
        result.error = errno;
    }
    const size_t written = done;
    if (sync_always_ && done > 0 && fdatasync(fd_.get()) != 0) {
        result.error = errno;
        done = 0;  // it is unknown how much is on the disk
    }
    const auto whole = std::upper_bound(ends_.begin(), ends_.end(), done) - ends_.begin();
    const size_t kept = whole == 0 ? 0 : ends_[static_cast<size_t>(whole) - 1];
    result.written = static_cast<uint32_t>(whole);
    result.dropped = pending() - result.written;
    size_ += kept;
    if (fd_ && written > kept && ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) {
        // A torn record stays in the middle: nothing may follow it in this file.
        close();
    }
    if (fd_ && size_ >= segment_) {
        close();
    }
    ends_.clear();
    used_ = 0;
    return result;
}

void Spool::close() noexcept {
    if (fd_) {
        close_name(path_);
        fd_.reset();
    }
    size_ = 0;
}

SpoolUse spool_use(const std::string& folder) noexcept {
    SpoolUse use;
    each_file(folder, [&](std::string_view name) {
        struct stat info;
        if (stat((folder + "/" + std::string(name)).c_str(), &info) == 0) {
            use.segments++;
            use.bytes += static_cast<uint64_t>(info.st_size);
        }
    });
    return use;
}

std::vector<std::string> spool_segments(const std::string& folder) {
    std::vector<std::string> paths;
    each_file(folder,
              [&](std::string_view name) { paths.push_back(folder + "/" + std::string(name)); });
    std::sort(paths.begin(), paths.end());
    return paths;
}

Adopted adopt_segments(const std::string& folder, ProcessId of, void* context,
                       void (*see)(void* context, const Event& event)) {
    Adopted adopted;
    std::string last_closed;
    for (const auto& path : spool_segments(folder)) {
        const ProcessId writer = segment_name(path).writer;
        if (of != 0 && writer != of) {
            continue;
        }
        if (!path.ends_with(kOpen)) {
            last_closed = path;
            continue;
        }
        if (process_alive(writer)) {
            continue;
        }
        const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        std::string text;
        const bool ours = fd && flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
        // Another may be closing it: its events are wanted all the same.
        if ((!ours && of == 0) || (read_file(path.c_str(), text) != 0 &&
                                   read_file(closed_path(path).c_str(), text) != 0)) {
            continue;
        }
        const SegmentEnd end = each_event(text, [&](const Event& event) { see(context, event); });
        if (!ours) {
            continue;
        }
        if (end.torn > 0 && ftruncate(fd.get(), static_cast<off_t>(end.total - end.torn)) == 0) {
            adopted.cut += end.torn;
        }
        close_name(path);
        adopted.segments++;
        if (end.damaged_bytes > 0) {
            adopted.damaged.push_back({closed_path(path), end});
        }
    }
    // A worker may die between ending a segment and counting its last events.
    std::string text;
    if (of != 0 && !last_closed.empty() && read_file(last_closed.c_str(), text) == 0) {
        each_event(text, [&](const Event& event) { see(context, event); });
    }
    return adopted;
}

}  // namespace ads
