#include "io/segment.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace ads {

namespace {

constexpr std::string_view kOpen = ".open";
constexpr std::string_view kClosed = ".seg";
constexpr size_t kChunk = 512 << 10;  // read at once
constexpr timespec kLookAgain{0, 30'000'000};

bool only_zeros(std::string_view text) noexcept {
    return text.find_first_not_of('\0') == text.npos;
}

// The first intact record from `at` on, byte by byte.
size_t find_record(std::string_view text, size_t at) noexcept {
    for (; at + kMinRecord <= text.size(); at++) {
        Event event;
        size_t used = 0;
        if (read_record(text.substr(at), event, used) == Read::ok) {
            return at;
        }
    }
    return text.npos;
}

}  // namespace

// Two fields of a record tell its size. Where they agree and another record begins behind it,
// nothing inside it is taken for a record, whatever its strings say. Else one of them may be
// damaged, and to believe it could skip intact records: each byte is tried. (No request can make
// a string that looks like a record, which has zero bytes in its length.)
Piece next_piece(std::string_view text, Event& event) noexcept {
    using enum Piece::Kind;
    size_t used = 0;
    if (read_record(text, event, used) == Read::ok) {
        return {record, used};
    }
    const size_t size = agreed_size(text);
    if (size != 0 &&
        (size == text.size() || (size < text.size() && agreed_size(text.substr(size)) != 0))) {
        return {damaged, size};
    }
    if (const size_t next = find_record(text, 1); next != text.npos) {
        return {damaged, next};
    }
    const bool cut = size > text.size() || text.size() < kMinRecord;
    return {cut || only_zeros(text) ? torn : unreadable, text.size()};
}

Piece first_piece(std::string_view text) noexcept {
    using enum Piece::Kind;
    if (text.size() >= kSegmentHead && text.starts_with(kSegmentMagic)) {
        return {record, kSegmentHead};
    }
    if (const size_t next = find_record(text, 0); next != text.npos) {
        return {damaged, next};
    }
    const bool cut = text.size() < kSegmentHead &&
                     kSegmentMagic.starts_with(text.substr(0, kSegmentMagic.size()));
    return {cut || only_zeros(text) ? torn : unreadable, text.size()};
}

SegmentName segment_name(std::string_view path) noexcept {
    const std::string name(path.substr(path.rfind('/') + 1));
    unsigned pid = 0;
    unsigned started = 0;
    unsigned sequence = 0;
    if (std::sscanf(name.c_str(), "%*13d-%*8x-%u-%x-%u", &pid, &started, &sequence) != 3) {
        return {};
    }
    return {ProcessId{started} << 32 | pid, sequence, name.ends_with(kOpen)};
}

std::string closed_path(std::string_view path) {
    return std::string(path.substr(0, path.rfind('.'))) + std::string(kClosed);
}

bool SegmentFile::open(std::string path, const SegmentName& name) {
    *this = {};
    fd_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    path_ = std::move(path);
    name_ = name;
    return static_cast<bool>(fd_);
}

bool SegmentFile::lock() const noexcept {
    return flock(fd_.get(), LOCK_EX | LOCK_NB) == 0;
}

SegmentFile::End SegmentFile::read(size_t most, std::vector<Event>& events) {
    for (;;) {
        parse(most, events);
        if (!events.empty()) {
            return End::none;
        }
        if (stopped_ == Piece::Kind::damaged) {
            if (!look_again()) {
                return End::unreadable;
            }
            continue;
        }
        // A torn or unreadable record may continue in the file.
        const size_t had = data_.size() - (offset_ - base_);
        const ssize_t more = refill();  // moves what events point to
        if (more < 0) {
            return End::unreadable;
        }
        if (more == 0) {
            return End::reached;
        }
        // A record that begins in these bytes would have ended in them.
        if (stopped_ == Piece::Kind::unreadable && had > kMaxRecord) {
            skip({{offset_, had - kMaxRecord}, 0});
            head_ = true;
        }
    }
}

// `record` if the head was read, else the obstacle.
Piece::Kind SegmentFile::read_head() {
    const Piece piece = head_ ? Piece{Piece::Kind::record, 0} : first_piece(data_);
    if (piece.kind == Piece::Kind::damaged && looked_at_twice(0, piece.size)) {
        skip({{0, piece.size}, 1});
        head_ = true;
        return Piece::Kind::record;
    }
    if (piece.kind == Piece::Kind::record) {
        offset_ += piece.size;
        head_ = true;
    }
    return piece.kind;
}

void SegmentFile::parse(size_t most, std::vector<Event>& events) {
    events.clear();
    records_.clear();
    between_.clear();
    stopped_ = read_head();
    size_t at = offset_;
    while (stopped_ == Piece::Kind::record && events.size() < most) {
        Event event;
        const Piece piece = next_piece(std::string_view(data_).substr(at - base_), event);
        if (piece.kind == Piece::Kind::record) {
            records_.push_back({at, piece.size});
            events.push_back(event);
        } else if (piece.kind != Piece::Kind::damaged || !looked_at_twice(at, piece.size)) {
            stopped_ = piece.kind;
            break;
        } else if (events.empty()) {
            skip({{at, piece.size}, 1});
        } else {
            between_.push_back({{at, piece.size}, 1});
        }
        at += piece.size;
    }
}

// Somebody may be erased from the segment while it is read: such a record looks damaged for a
// moment.
bool SegmentFile::looked_at_twice(size_t at, size_t size) const noexcept {
    const size_t from = at - base_;
    return seen_.size() >= from + size && seen_.compare(from, size, data_, from, size) == 0;
}

bool SegmentFile::look_again() {
    seen_ = data_;
    nanosleep(&kLookAgain, nullptr);
    size_t size = 0;
    while (size < data_.size()) {
        const ssize_t n = pread(fd_.get(), data_.data() + size, data_.size() - size,
                                static_cast<off_t>(base_ + size));
        if (n <= 0) {
            if (n < 0 && errno == EINTR) {
                continue;
            }
            errno = n == 0 ? EIO : errno;  // segments do not shrink
            data_.resize(std::max(size, offset_ - base_));
            return false;
        }
        size += static_cast<size_t>(n);
    }
    return true;
}

void SegmentFile::skip(const Damage& damage) {
    const auto [offset, size] = damage.range;
    if (size == 0) {
        return;
    }
    if (!damaged_.empty() && damaged_.back().offset + damaged_.back().size == offset) {
        damaged_.back().size += size;
    } else {
        damaged_.push_back(damage.range);
    }
    damaged_records_ += damage.records;
    offset_ = offset + size;
}

// Reads on, and forgets what is consumed. The bytes read; -1 if the disk fails.
ssize_t SegmentFile::refill() {
    data_.erase(0, offset_ - base_);
    base_ = offset_;
    seen_.clear();
    const size_t had = data_.size();
    const size_t more = std::max(kChunk, had);  // a long tail of zeros is read in few steps
    data_.resize(had + more);
    ssize_t n = 0;
    do {
        n = pread(fd_.get(), data_.data() + had, more, static_cast<off_t>(base_ + had));
    } while (n < 0 && errno == EINTR);
    data_.resize(had + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    return n;
}

void SegmentFile::consume() {
    if (records_.empty()) {
        return;
    }
    const Range last = records_.back();
    for (const Damage& damage : between_) {
        if (damage.range.offset < last.offset) {
            skip(damage);
        }
    }
    offset_ = last.offset + last.size;
    records_.clear();
    between_.clear();
}

void SegmentFile::end() {
    const std::string_view rest = std::string_view(data_).substr(offset_ - base_);
    const bool torn_head = !head_ && first_piece(rest).kind == Piece::Kind::torn;
    if (!torn_head && !only_zeros(rest)) {
        skip({{offset_, rest.size()}, 1});
    }
}

uint64_t SegmentFile::damaged_bytes() const noexcept {
    uint64_t sum = 0;
    for (const Range& range : damaged_) {
        sum += range.size;
    }
    return sum;
}

bool SegmentFile::read_damaged(std::string& bytes) const {
    for (const auto& [offset, size] : damaged_) {
        const size_t had = bytes.size();
        bytes.resize(had + size);
        size_t done = 0;
        while (done < size) {
            const ssize_t n = pread(fd_.get(), bytes.data() + had + done, size - done,
                                    static_cast<off_t>(offset + done));
            if (n <= 0) {
                if (n < 0 && errno == EINTR) {
                    continue;
                }
                errno = n == 0 ? EIO : errno;
                return false;
            }
            done += static_cast<size_t>(n);
        }
    }
    return true;
}

bool SegmentFile::done() const noexcept {
    struct stat info;
    return fstat(fd_.get(), &info) == 0 && static_cast<size_t>(info.st_size) == offset_ &&
           damaged_.empty();
}

void SegmentFile::remove() noexcept {
    unlink(closed_path(path_).c_str());
    unlink(path_.c_str());
    *this = {};
}

}  // namespace ads
