#include "io/shipper.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/ingest.hpp"
#include "io/process.hpp"

namespace ads {

namespace {

constexpr size_t kCloseAt = 1 << 20;         // an own segment that large is closed once shipped
constexpr Millis kIdle = 1000;               // and any, if idle for this long
constexpr Millis kFirstPause = 200;          // after a failure, doubled up to
constexpr Millis kLongestPause = 10'000;     //
constexpr Millis kStuckPause = 2000;         // before a stuck segment is tried again
constexpr Millis kHousekeeping = 3'600'000;  // partitions are looked after so often,
constexpr Millis kPartitionRetry = 60'000;   // or sooner if an event finds none
constexpr char kPartitions[] = "SELECT count(*) FROM ads.ensure_partitions()";

}  // namespace

bool Quarantine::add(const SegmentFile& from, std::string_view record, const Event& event,
                     std::string_view why) {
    if (!append(base_of(from) + ".seg", record, segment_head(event.time, event.node))) {
        return false;
    }
    char id[kUuidChars];
    write_uuid(event_id(event), id);
    append(base_of(from) + ".txt", std::string(id, sizeof id) + " " + std::string(why) + "\n", "");
    return true;
}

bool Quarantine::add_damaged(const SegmentFile& from) {
    std::string bytes;
    return from.read_damaged(bytes) && append(base_of(from) + ".damaged", bytes, "");
}

// Not the segment's own name: it may be moved back while that one is still there.
std::string Quarantine::base_of(const SegmentFile& from) const {
    const std::string closed = closed_path(from.path());
    const size_t slash = closed.rfind('/') + 1;
    return folder_ + "/from-" + closed.substr(slash, closed.rfind('.') - slash);
}

// All of it, on the disk, or nothing.
bool Quarantine::append(const std::string& path, std::string_view bytes, std::string_view head) {
    mkdir(folder_.c_str(), 0750);
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
    struct stat info;
    if (!fd || fstat(fd.get(), &info) != 0) {
        return false;
    }
    const std::string all = (info.st_size == 0 ? std::string(head) : "") + std::string(bytes);
    if (write_all(fd.get(), all) == all.size() && fdatasync(fd.get()) == 0) {
        return true;
    }
    const int error = errno;
    if (ftruncate(fd.get(), info.st_size) != 0) {
        return false;
    }
    errno = error;
    return false;
}

Shipper::Shipper(ShipperConf conf, Part part, State state, const Alarm& alarm, Say say)
    : conf_(std::move(conf)),
      part_(part),
      state_(state),
      alarm_(alarm),
      say_(std::move(say)),
      pg_(alarm),
      rng_(this_process() ^ static_cast<uint64_t>(wall_clock()) ^ part.number),
      quarantine_(conf_.folder + "/quarantine"),
      limit_(conf_.batch) {}

void Shipper::step_and_pause() {
    const Step done = step();
    if (done == Step::failed) {
        pause_ = pause_ == 0 ? kFirstPause : std::min(pause_ * 2, kLongestPause);
        alarm_.pause(pause_ / 2 + static_cast<Millis>(rng_.below(pause_ / 2 + 1)));
    } else if (done == Step::idle) {
        alarm_.pause(conf_.interval);
    }
}

void Shipper::rest() noexcept {
    pg_.close();
    followed_.clear();
    error_.clear();
    found_at_ = 0;
}

std::string Shipper::error() const {
    if (!error_.empty()) {
        return error_;
    }
    for (const auto& [writer, one] : followed_) {
        if (!one.stuck.empty()) {
            return one.stuck;
        }
    }
    return {};
}

Shipper::Step Shipper::step() {
    if (found_at_ == 0 || monotonic() - found_at_ >= conf_.interval) {
        find();
    }
    if (followed_.empty()) {
        return Step::idle;
    }
    if (!ready()) {
        return Step::failed;
    }
    Step result = Step::idle;
    for (auto at = followed_.begin(); at != followed_.end();) {
        Followed& one = at->second;
        Step step = Step::idle;
        if (monotonic() >= one.retry) {
            step = ship(one);
        }
        if (step == Step::failed) {
            return step;
        }
        if (step == Step::stuck) {
            one.retry = monotonic() + kStuckPause;
        }
        if (step == Step::worked) {
            result = step;
        }
        if (one.file) {
            ++at;
        } else {
            at = followed_.erase(at);  // shipped and removed
            found_at_ = 0;
        }
    }
    return result;
}

// The first segment of each writer: they are shipped in the order in which they were written. Those
// without a writer are taken one after the other.
void Shipper::find() {
    found_at_ = monotonic();
    std::map<ProcessId, std::pair<std::string, SegmentName>> first;
    for (const auto& path : spool_segments(conf_.folder)) {
        const SegmentName name = segment_name(path);
        const uint32_t place = state_.place_of(name.writer);
        const bool writes = place != State::kNoSlot;
        if ((writes ? place : mix13(name.writer)) % part_.of != part_.number) {
            continue;
        }
        // Open segments of others, and those of living processes, are left alone.
        if (!writes && (name.open || (name.writer != 0 && process_alive(name.writer)))) {
            continue;
        }
        const ProcessId key = writes ? name.writer : 0;
        if (followed_.contains(key)) {
            continue;
        }
        auto& found = first[key];
        if (found.first.empty() || (writes && name.sequence < found.second.sequence)) {
            found = {path, name};
        }
    }
    for (const auto& [key, segment] : first) {
        const auto& [path, name] = segment;
        Followed one;
        // It may have been closed just now.
        if (!one.file.open(path, name) && !one.file.open(closed_path(path), name)) {
            continue;
        }
        if (key == 0 && (!one.file.lock() || access(path.c_str(), F_OK) != 0)) {
            continue;
        }
        one.written_at = monotonic();
        followed_.emplace(key, std::move(one));
    }
}

bool Shipper::ready() {
    if (!pg_.connected()) {
        if (alarm_.stopped() || !pg_.connect(conf_.conninfo)) {
            return fail();
        }
        kept_at_ = 0;
    }
    return (kept_at_ != 0 && monotonic() - kept_at_ < kHousekeeping) || keep_partitions();
}

bool Shipper::keep_partitions() {
    kept_at_ = monotonic();
    return pg_.query(kPartitions, conf_.timeout) != nullptr || fail();
}

// Tells once what is wrong. A server that is read-only, shuts down or has no schema yet may be
// another one next time.
bool Shipper::fail() {
    if (!alarm_.stopped() && error_ != pg_.error()) {
        error_ = pg_.error();
        say_(LogLevel::error, "PostgreSQL: " + error_ + "; events are kept in the spool");
    }
    pg_.close();
    return false;
}

void Shipper::clear_error() {
    pause_ = 0;
    if (!error_.empty()) {
        error_.clear();
        say_(LogLevel::notice, "events are shipped to PostgreSQL again");
    }
}

// Whether nothing more comes to the segment, and all of its events are counted, so that it may go.
bool Shipper::is_complete(const Followed& one) const noexcept {
    const uint32_t place = state_.place_of(one.file.name().writer);
    return place == State::kNoSlot ? access(closed_path(one.file.path()).c_str(), F_OK) == 0
                                   : one.file.name().sequence < state_.counted_below(place);
}

Shipper::Step Shipper::ship(Followed& one) {
    // Asked before reading: what is complete has no more to come.
    const bool complete = is_complete(one);
    if (one.file.read(limit_, events_) == SegmentFile::End::unreadable) {
        return stuck(one, Trouble::reading, one.file.path(), "cannot read");
    }
    unstuck(one, Trouble::reading);
    if (events_.empty()) {
        return finish(one, complete);
    }
    const StateHead& head = state_.head();
    const uint32_t recorder = head.fleet.mode.load() != FleetMode::none ? head.node : 0;
    const PgResult result = pg_.query(recorder != 0 ? kIngestInFleet : kIngest,
                                      ingest_params(events_, recorder), conf_.timeout);
    if (result == nullptr) {
        return pg_.bad_data() ? refuse(one) : (fail(), Step::failed);
    }
    const auto number = [&](int column) {
        return PQntuples(result.get()) == 1
                   ? std::strtoull(PQgetvalue(result.get(), 0, column), nullptr, 10)
                   : 0;
    };
    state_.add(Total::shipped, number(0));
    state_.add(Total::repeated, number(1));
    clear_error();
    const bool full = events_.size() == limit_;
    one.file.consume();
    limit_ = std::min<size_t>(conf_.batch, limit_ * 2);
    one.written_at = monotonic();
    return full || complete ? Step::worked : Step::idle;
}

// Something in the batch is not to be had. Halves find what it is.
Shipper::Step Shipper::refuse(Followed& one) {
    if (pg_.sqlstate() == "23514" && monotonic() - kept_at_ > kPartitionRetry) {
        return keep_partitions() ? Step::worked : Step::failed;
    }
    if (events_.size() > 1) {
        limit_ = events_.size() / 2;
        return Step::worked;
    }
    const std::string why = std::string(pg_.sqlstate()) + " " + pg_.error();
    if (!quarantine_.add(one.file, one.file.first_record(), events_[0], why)) {
        return stuck(one, Trouble::quarantine, quarantine_.folder(), "cannot write");
    }
    char id[kUuidChars];
    write_uuid(event_id(events_[0]), id);
    say_(LogLevel::error, "event " + std::string(id, sizeof id) + " is in \"" +
                              quarantine_.folder() + "\": PostgreSQL: " + why);
    unstuck(one, Trouble::quarantine);
    state_.add(Total::quarantined);
    one.file.consume();
    clear_error();
    return Step::worked;
}

// A local disk error stops this segment only.
Shipper::Step Shipper::stuck(Followed& one, Trouble trouble, const std::string& path,
                             const char* what) {
    const std::string text = std::string(what) + " \"" + path + "\": " + std::strerror(errno);
    if (one.stuck != text) {
        one.stuck = text;
        one.trouble = trouble;
        say_(LogLevel::error, text);
    }
    return Step::stuck;
}

// The error that stopped it has cleared.
void Shipper::unstuck(Followed& one, Trouble trouble) {
    if (!one.stuck.empty() && one.trouble == trouble) {
        one.stuck.clear();
        say_(LogLevel::notice, "segment \"" + one.file.path() + "\" is shipped again");
    }
}

// Nothing more to ship in it, at least for now.
Shipper::Step Shipper::finish(Followed& one, bool complete) {
    SegmentFile& file = one.file;
    if (!complete) {
        const bool any = file.consumed() > kSegmentHead;
        if (any && (file.consumed() >= kCloseAt || monotonic() - one.written_at >= kIdle)) {
            state_.ask_to_close(file.name().writer, file.name().sequence);
        }
        return Step::idle;
    }
    // A record that is torn was cut when the segment was closed.
    file.end();
    if (const uint64_t bytes = file.damaged_bytes(); bytes > 0) {
        if (!quarantine_.add_damaged(file)) {
            return stuck(one, Trouble::quarantine, quarantine_.folder(), "cannot write");
        }
        unstuck(one, Trouble::quarantine);
        state_.add_damage(file.damaged_records(), bytes);
        say_(LogLevel::error, "segment \"" + file.path() +
                                  "\" is damaged: " + std::to_string(file.damaged_records()) +
                                  " records (" + std::to_string(bytes) +
                                  " bytes) cannot be read and are kept in \"" +
                                  quarantine_.folder() + "\"; its other events are shipped");
    }
    file.remove();
    return Step::worked;
}

}  // namespace ads
