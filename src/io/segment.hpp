// Reads spool segments. A damaged byte costs the record around it, never its neighbours:
// reading goes on at the next intact record. A record is intact if its checksum is right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/event/event.hpp"
#include "io/file.hpp"
#include "ledger/process_id.hpp"

namespace ads {

// The result of looking for a record.
struct Piece {
    enum class Kind : uint8_t {
        record,
        damaged,     // a damaged record, or bytes up to the next intact one
        torn,        // the text ends inside the record, or only zeros are left
        unreadable,  // the text has no intact record any more
    };
    Kind kind = Kind::torn;
    size_t size = 0;
};
Piece next_piece(std::string_view text, Event& event) noexcept;

// The same where the head of the segment should begin. A head has the kind `record`; one that
// is damaged ends at the first intact record.
Piece first_piece(std::string_view text) noexcept;

// How a segment was read.
struct SegmentEnd {
    size_t total = 0;              // bytes of the file
    size_t torn = 0;               // bytes at the end: a record that was not written whole
    uint64_t damaged_records = 0;  // at least
    uint64_t damaged_bytes = 0;
    bool foreign = false;  // no head and no record: not a segment at all
};

// Calls record(event, offset, size) for each intact record of an event and damaged(offset, size)
// for each stretch between them. Offsets are those of `segment`.
template <class Record, class Damaged>
SegmentEnd each_piece(std::string_view segment, Record record, Damaged damaged) {
    SegmentEnd end{.total = segment.size()};
    Event event;
    Piece piece = first_piece(segment);
    end.foreign = piece.kind == Piece::Kind::unreadable;
    for (size_t at = 0;;) {
        if (piece.kind == Piece::Kind::torn) {
            end.torn = piece.size;
        } else if (piece.kind != Piece::Kind::record && piece.size > 0) {
            damaged(at, piece.size);
            end.damaged_records++;
            end.damaged_bytes += piece.size;
        }
        at += piece.size;
        if (at == segment.size()) {
            return end;
        }
        piece = next_piece(segment.substr(at), event);
        if (piece.kind == Piece::Kind::record && event.type != kSummary) {
            record(event, at, piece.size);
        }
    }
}

// Calls f(event) for each intact event.
template <class F>
SegmentEnd each_event(std::string_view segment, F f) {
    return each_piece(
        segment, [&](const Event& event, size_t, size_t) { f(event); }, [](size_t, size_t) {});
}

// The parts of a segment's name.
struct SegmentName {
    ProcessId writer = 0;  // 0: not a valid name
    uint32_t sequence = 0;
    bool open = false;
};
SegmentName segment_name(std::string_view path) noexcept;

// The path of a segment once it is closed.
std::string closed_path(std::string_view path);

// Reads a segment from its start, while its worker may still write.
class SegmentFile {
public:
    enum class End : uint8_t { none, reached, unreadable };

    struct Range {
        size_t offset = 0;
        size_t size = 0;
    };

    bool open(std::string path, const SegmentName& name);

    explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
    const SegmentName& name() const noexcept { return name_; }
    const std::string& path() const noexcept { return path_; }

    // Bytes that need not be read again.
    size_t consumed() const noexcept { return offset_; }

    // Locks the segment for shipping; false if another process has it.
    bool lock() const noexcept;

    // The next events and summaries, at most `most`. They point into this segment until it is read
    // or consumed again. `unreadable`: the disk fails; errno tells why.
    End read(size_t most, std::vector<Event>& events);

    // The record of the event that the last read returned first.
    std::string_view first_record() const noexcept {
        return std::string_view(data_).substr(records_[0].offset - base_, records_[0].size);
    }

    // Marks the events of the last read as processed.
    void consume();

    // At the end of a closed segment: the rest is damaged, unless nothing was written
    // there.
    void end();

    // The damage skipped so far.
    const std::vector<Range>& damaged() const noexcept { return damaged_; }
    uint64_t damaged_records() const noexcept { return damaged_records_; }
    uint64_t damaged_bytes() const noexcept;
    // Reads these bytes; false if the disk fails.
    bool read_damaged(std::string& bytes) const;

    // Whether all that is in the file was consumed, and none of it was damaged.
    bool done() const noexcept;

    // Its current path.
    void remove() noexcept;

private:
    struct Damage {
        Range range;
        uint32_t records = 0;
    };

    Piece::Kind read_head();
    void parse(size_t most, std::vector<Event>& events);
    bool looked_at_twice(size_t at, size_t size) const noexcept;
    bool look_again();
    void skip(const Damage& damage);
    ssize_t refill();

    Fd fd_;
    std::string path_;
    SegmentName name_;
    std::string data_;             // from base_ of the file on
    std::string seen_;             // the same bytes as they were some time ago, or empty
    size_t base_ = 0;              // of the file
    size_t offset_ = 0;            // what is before it is consumed
    bool head_ = false;            // the head is
    std::vector<Range> records_;   // of the last read
    std::vector<Damage> between_;  // what was passed over in the last read
    Piece::Kind stopped_ = Piece::Kind::record;  // at what the last parse ended
    std::vector<Range> damaged_;
    uint64_t damaged_records_ = 0;
};

}  // namespace ads
