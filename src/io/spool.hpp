// The spool: events are written to disk before their responses are sent. A worker writes its own
// segments; a segment is `NAME.open` while its worker lives and holds its lock, `NAME.seg`
// afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/event/event.hpp"
#include "io/file.hpp"
#include "io/segment.hpp"
#include "ledger/process_id.hpp"

namespace ads {

int64_t monotonic_ns() noexcept;

// The outcome of the records of one flush.
struct Flushed {
    uint32_t written = 0;  // the number written, from the first
    uint32_t dropped = 0;  // the rest
    int error = 0;         // errno, if any was dropped
    int64_t took_ns = 0;   // the system calls, for which the event loop waited
};

class Spool {
public:
    // `segment` is the size at which a new segment is begun. `clock` measures how long a flush
    // takes.
    using Clock = int64_t (*)() noexcept;
    void configure(std::string folder, size_t segment, ProcessId me, uint32_t node,
                   Clock clock = monotonic_ns);

    // Each flush waits until what it has written is on the disk.
    void sync_always() noexcept { sync_always_ = true; }

    // Adds a record to the buffer; false if it is full: flush first.
    bool append(const Event& event) noexcept;
    bool has_room() const noexcept { return buffer_.size() - used_ >= 64 * kMaxRecord; }
    uint32_t pending() const noexcept { return static_cast<uint32_t>(ends_.size()); }

    // Writes all buffered records by one system call. A record that could not be written completely
    // is cut off the file.
    Flushed flush(Millis now) noexcept;

    // Ends the segment: no more is written to it.
    void close() noexcept;

    // The sequence of the open segment, or of the next: lower ones are closed.
    uint32_t sequence() const noexcept { return fd_ ? sequence_ - 1 : sequence_; }

private:
    bool open_segment(Millis now) noexcept;
    Flushed write(Millis now) noexcept;

    Clock clock_ = nullptr;
    std::string folder_;
    std::string path_;
    size_t segment_ = 0;
    bool sync_always_ = false;
    ProcessId me_ = 0;
    uint32_t node_ = 0;
    uint32_t sequence_ = 0;
    Fd fd_;
    size_t size_ = 0;  // of the open segment
    std::vector<char> buffer_;
    size_t used_ = 0;
    std::vector<uint32_t> ends_;  // of each record in the buffer
};

// The contents of the folder.
struct SpoolUse {
    uint64_t segments = 0;
    uint64_t bytes = 0;
};
SpoolUse spool_use(const std::string& folder) noexcept;

// The segments of a folder, oldest first.
std::vector<std::string> spool_segments(const std::string& folder);

// The head of a segment file.
std::string segment_head(Millis now, uint32_t node);

// Closes segments of dead workers: cuts an incomplete record off the end and renames the file; with
// `of`, only those of that worker. Calls `see` for each intact event.
struct DamagedSegment {
    std::string path;  // as it is closed
    SegmentEnd end;
};
struct Adopted {
    uint32_t segments = 0;
    uint64_t cut = 0;  // bytes
    std::vector<DamagedSegment> damaged;
};
Adopted adopt_segments(const std::string& folder, ProcessId of, void* context,
                       void (*see)(void* context, const Event& event));

}  // namespace ads
