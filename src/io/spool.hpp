// The spool: events on disk before their answers leave. A worker writes
// segments of its own; a segment is `NAME.open` while its worker lives and
// holds its lock, `NAME.seg` afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.hpp"
#include "io/file.hpp"
#include "shm/who.hpp"

namespace ads {

// What became of the records of one turn.
struct Flushed {
    uint32_t written = 0;  // the first so many of them
    uint32_t dropped = 0;  // the rest
    int error = 0;         // errno, if any was dropped
};

class Spool {
public:
    // `segment` is the size at which a new segment is begun.
    void configure(std::string folder, size_t segment, Who me, uint32_t node);

    // Puts a record into this turn's buffer; false if there is no room: flush first.
    bool append(const Event& event) noexcept;
    bool has_room() const noexcept { return buffer_.size() - used_ >= 64 * kMaxRecord; }
    uint32_t pending() const noexcept { return static_cast<uint32_t>(ends_.size()); }

    // One write for all records of the turn. What could not be written whole
    // is cut from the file.
    Flushed flush(Millis now) noexcept;

    // Ends the segment: no more is written to it.
    void close() noexcept;

    // The sequence of the open segment, or of the next: lower ones are closed.
    uint32_t sequence() const noexcept { return fd_ ? sequence_ - 1 : sequence_; }

private:
    bool open_segment(Millis now) noexcept;

    std::string folder_;
    std::string path_;
    size_t segment_ = 0;
    Who me_ = 0;
    uint32_t node_ = 0;
    uint32_t sequence_ = 0;
    Fd fd_;
    size_t size_ = 0;  // of the open segment
    std::vector<char> buffer_;
    size_t used_ = 0;
    std::vector<uint32_t> ends_;  // of each record in the buffer
};

// What stands in the folder.
struct SpoolUse {
    uint64_t segments = 0;
    uint64_t bytes = 0;
};
SpoolUse spool_use(const std::string& folder) noexcept;

// The segments of a folder, oldest first.
std::vector<std::string> spool_segments(const std::string& folder);

// What a segment's path tells.
struct SegmentName {
    Who writer = 0;  // 0: the name is none of ours
    uint32_t sequence = 0;
    bool open = false;
};
SegmentName segment_name(std::string_view path) noexcept;

// The path of a segment once it is closed.
std::string closed_path(std::string_view path);

// The head of a segment file.
std::string segment_head(Millis now, uint32_t node);

// How a segment ended.
struct SegmentEnd {
    size_t good = 0;   // bytes up to the end of the last whole record
    size_t total = 0;  // bytes of the file
    bool damaged = false;
    bool foreign = false;  // not a segment at all
};

// Calls f(event) for each whole record; stops at the first that is not.
template <class F>
SegmentEnd each_event(std::string_view segment, F f) {
    SegmentEnd end{0, segment.size(), false, false};
    if (segment.size() < kSegmentHead || !segment.starts_with(kSegmentMagic)) {
        end.foreign = !kSegmentMagic.starts_with(segment.substr(0, kSegmentMagic.size()));
        return end;
    }
    end.good = kSegmentHead;
    while (end.good < segment.size()) {
        Event event;
        size_t used = 0;
        const Read result = read_record(segment.substr(end.good), event, used);
        if (result != Read::ok) {
            // A crash of the machine may leave a tail of zeros: torn, not damaged.
            end.damaged = result == Read::damaged &&
                          segment.find_first_not_of('\0', end.good) != std::string_view::npos;
            break;
        }
        f(event);
        end.good += used;
    }
    return end;
}

// Closes segments whose worker is gone: cuts a torn tail and renames. With
// `of` only those of that worker. Each whole event is shown to `see`.
struct Adopted {
    uint32_t segments = 0;
    uint64_t cut = 0;                  // bytes
    std::vector<std::string> damaged;  // paths of the closed segments
};
Adopted adopt_segments(const std::string& folder, Who of, void* context,
                       void (*see)(void* context, const Event& event));

}  // namespace ads
