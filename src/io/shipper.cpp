#include "io/shipper.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/ingest.hpp"
#include "io/process.hpp"

namespace ads {

namespace {

constexpr size_t kCloseAt = 1 << 20;         // an own segment that large is closed once shipped
constexpr Millis kIdle = 1000;               // and any, if nothing has come for so long
constexpr Millis kFirstPause = 200;          // after a failure, doubled up to
constexpr Millis kLongestPause = 10'000;     //
constexpr Millis kStuckPause = 2000;         // before a stuck segment is tried again
constexpr Millis kHousekeeping = 3'600'000;  // partitions are looked after so often,
constexpr Millis kPartitionRetry = 60'000;   // or sooner if an event finds none
constexpr char kPartitions[] = "SELECT count(*) FROM ads.ensure_partitions()";

Millis wall_clock() noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<Millis>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// What PostgreSQL will never take: the records as they are, in a segment that
// may be sent again by moving it back, and beside it why.
class Quarantine {
public:
    explicit Quarantine(std::string folder) : folder_(std::move(folder)) {}

    bool add(const SegmentFile& from, std::string_view record, const Event& event,
             std::string_view why) {
        if (!append(base_of(from) + ".seg", record, segment_head(event.time, event.node))) {
            return false;
        }
        char id[kUuidChars];
        write_uuid(event_id(event), id);
        append(base_of(from) + ".txt", std::string(id, sizeof id) + " " + std::string(why) + "\n",
               "");
        return true;
    }

    // The damaged bytes of a segment, one stretch after the other.
    bool add_damaged(const SegmentFile& from) {
        std::string bytes;
        return from.read_damaged(bytes) && append(base_of(from) + ".damaged", bytes, "");
    }

    const std::string& folder() const noexcept { return folder_; }

private:
    // Not the segment's own name: it may be moved back while that one is still there.
    std::string base_of(const SegmentFile& from) const {
        const std::string closed = closed_path(from.path());
        const size_t slash = closed.rfind('/') + 1;
        return folder_ + "/from-" + closed.substr(slash, closed.rfind('.') - slash);
    }

    // All of it, on the disk, or nothing.
    bool append(const std::string& path, std::string_view bytes, std::string_view head) {
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

    std::string folder_;
};

}  // namespace

class Shipper::Work {
public:
    Work(ShipperConf conf, State state, Who me)
        : conf_(std::move(conf)),
          state_(state),
          me_(me),
          pg_(alarm_),
          rng_(me ^ static_cast<uint64_t>(wall_clock())),
          quarantine_(conf_.folder + "/quarantine"),
          limit_(conf_.batch) {}

    void run() {
        setpriority(PRIO_PROCESS, 0, 5);  // of this thread: requests go first
        while (!alarm_.stopped()) {
            const Step step = work();
            if (step == Step::failed) {
                back_off();
            } else if (step == Step::idle) {
                alarm_.pause(conf_.interval);
            }
        }
        pg_.close();
        finished.store(true, std::memory_order_release);
    }

    // After the thread has ended and the spool is closed.
    void remove_shipped() noexcept {
        if (own_ && own_.done()) {
            own_.remove();
        }
    }

    void stop() noexcept { alarm_.stop(); }
    bool hangs() const noexcept { return pg_.connecting(); }

    std::vector<ShipperMessage> take_messages() {
        const std::lock_guard lock(mutex_);
        return std::exchange(messages_, {});
    }
    std::string error() const {
        const std::lock_guard lock(mutex_);
        return !error_.empty()            ? error_
               : !own_stuck_.text.empty() ? own_stuck_.text
                                          : left_stuck_.text;
    }

    std::atomic<bool> finished{false};
    std::atomic<uint32_t> settled{0};
    std::atomic<uint32_t> wants_closed{kNoSegment};

private:
    enum class Step : uint8_t {
        idle,    // nothing there
        worked,  // there may be more
        failed,  // nothing goes: try later
        stuck,   // this segment does not: try later
    };

    enum class Trouble : uint8_t { reading, quarantine };
    struct Stuck {
        std::string text;  // empty: it is not
        Trouble trouble = Trouble::reading;
    };

    void say(ShipperMessage::Level level, std::string text) {
        const std::lock_guard lock(mutex_);
        if (messages_.size() < 100) {
            messages_.push_back({level, std::move(text)});
        }
    }

    // One batch of our own segments and one of a segment that was left behind.
    Step work() {
        if (!own_) {
            find_own();
        }
        if (!left_) {
            find_left();
        }
        if (!own_ && !left_) {
            return Step::idle;
        }
        if (!ready()) {
            return Step::failed;
        }
        Step result = Step::idle;
        for (SegmentFile* segment : {&own_, &left_}) {
            Millis& retry = segment == &own_ ? own_retry_ : left_retry_;
            if (!*segment || monotonic() < retry) {
                continue;
            }
            const Step step = ship(*segment);
            if (step == Step::failed) {
                return step;
            }
            if (step == Step::stuck) {
                retry = monotonic() + kStuckPause;
            }
            result = step == Step::worked ? step : result;
        }
        return result;
    }

    bool ready() {
        if (!pg_.connected()) {
            if (alarm_.stopped() || !pg_.connect(conf_.conninfo)) {
                return fail();
            }
            kept_at_ = 0;
        }
        return (kept_at_ != 0 && monotonic() - kept_at_ < kHousekeeping) || keep_partitions();
    }

    bool keep_partitions() {
        kept_at_ = monotonic();
        return pg_.query(kPartitions, conf_.timeout) != nullptr || fail();
    }

    // Tells once what is wrong. A server that is read-only, shuts down or has
    // no schema yet may be another one next time.
    bool fail() {
        const std::lock_guard lock(mutex_);
        if (!alarm_.stopped() && error_ != pg_.error()) {
            error_ = pg_.error();
            messages_.push_back({ShipperMessage::Level::error,
                                 "PostgreSQL: " + error_ + "; events stay in the spool"});
        }
        pg_.close();
        return false;
    }

    void works() {
        pause_ = kFirstPause;
        const std::lock_guard lock(mutex_);
        if (!error_.empty()) {
            error_.clear();
            messages_.push_back({ShipperMessage::Level::notice, "events go to PostgreSQL again"});
        }
    }

    void back_off() {
        alarm_.pause(pause_ / 2 + static_cast<Millis>(rng_.below(pause_ / 2 + 1)));
        pause_ = std::min(pause_ * 2, kLongestPause);
    }

    // Our segments in the order in which they were written.
    void find_own() {
        std::string first;
        SegmentName name;
        for (const auto& path : spool_segments(conf_.folder)) {
            const SegmentName found = segment_name(path);
            if (found.writer == me_ && (first.empty() || found.sequence < name.sequence)) {
                first = path;
                name = found;
            }
        }
        if (!first.empty() && !own_.open(first, name)) {
            own_.open(closed_path(first), name);  // it was closed just now
        }
        written_at_ = monotonic();
    }

    // A segment of a worker that is gone, and whose claims are settled.
    void find_left() {
        for (const auto& path : spool_segments(conf_.folder)) {
            const SegmentName name = segment_name(path);
            if (name.open || name.writer == me_ || state_.has_place(name.writer) ||
                (name.writer != 0 && process_alive(name.writer))) {
                continue;
            }
            if (left_.open(path, name) && left_.lock() && access(path.c_str(), F_OK) == 0) {
                return;
            }
            left_ = {};
        }
    }

    Step ship(SegmentFile& segment) {
        // Asked before reading: what is closed has no more to come.
        const bool closed = &segment != &own_ || segment.name().sequence < settled.load();
        if (segment.read(limit_, events_) == SegmentFile::End::unreadable) {
            return stuck(segment, Trouble::reading, segment.path(), "cannot be read");
        }
        unstuck(segment, Trouble::reading);
        if (events_.empty()) {
            return finish(segment, closed);
        }
        const PgResult result = pg_.query(kIngest, ingest_params(events_), conf_.timeout);
        if (result == nullptr) {
            return pg_.bad_data() ? refuse(segment) : (fail(), Step::failed);
        }
        const auto number = [&](int column) {
            return PQntuples(result.get()) == 1
                       ? std::strtoull(PQgetvalue(result.get(), 0, column), nullptr, 10)
                       : 0;
        };
        state_.add(Total::shipped, number(0));
        state_.add(Total::repeated, number(1));
        works();
        const bool full = events_.size() == limit_;
        segment.consume();
        limit_ = std::min<size_t>(conf_.batch, limit_ * 2);
        written_at_ = monotonic();
        return full || closed ? Step::worked : Step::idle;
    }

    // Something in the batch is not to be had. Halves find what it is.
    Step refuse(SegmentFile& segment) {
        if (pg_.sqlstate() == "23514" && monotonic() - kept_at_ > kPartitionRetry) {
            return keep_partitions() ? Step::worked : Step::failed;
        }
        if (events_.size() > 1) {
            limit_ = events_.size() / 2;
            return Step::worked;
        }
        const std::string why = std::string(pg_.sqlstate()) + " " + pg_.error();
        if (!quarantine_.add(segment, segment.first_record(), events_[0], why)) {
            return stuck(segment, Trouble::quarantine, quarantine_.folder(), "cannot be written");
        }
        char id[kUuidChars];
        write_uuid(event_id(events_[0]), id);
        say(ShipperMessage::Level::error, "event " + std::string(id, sizeof id) + " is in \"" +
                                              quarantine_.folder() + "\": PostgreSQL: " + why);
        unstuck(segment, Trouble::quarantine);
        state_.add(Total::quarantined);
        segment.consume();
        works();
        return Step::worked;
    }

    // A segment cannot go on because of our own disk; others may.
    Step stuck(const SegmentFile& segment, Trouble trouble, const std::string& path,
               const char* what) {
        const std::string text = "\"" + path + "\" " + what + ": " + std::strerror(errno);
        Stuck& state = &segment == &own_ ? own_stuck_ : left_stuck_;
        const std::lock_guard lock(mutex_);
        if (state.text != text) {
            state = {text, trouble};
            messages_.push_back({ShipperMessage::Level::error, text});
        }
        return Step::stuck;
    }

    // What kept it from going on is over.
    void unstuck(const SegmentFile& segment, Trouble trouble) {
        Stuck& state = &segment == &own_ ? own_stuck_ : left_stuck_;
        const std::lock_guard lock(mutex_);
        if (!state.text.empty() && state.trouble == trouble) {
            state.text.clear();
            messages_.push_back(
                {ShipperMessage::Level::notice, "segment \"" + segment.path() + "\" goes on"});
        }
    }

    // Nothing more to ship in it, at least for now.
    Step finish(SegmentFile& segment, bool closed) {
        if (!closed) {
            const bool any = segment.consumed() > kSegmentHead;
            if (any && (segment.consumed() >= kCloseAt || monotonic() - written_at_ >= kIdle)) {
                wants_closed.store(segment.name().sequence, std::memory_order_release);
            }
            return Step::idle;
        }
        // A record that is torn was cut when the segment was closed.
        segment.end();
        if (const uint64_t bytes = segment.damaged_bytes(); bytes > 0) {
            if (!quarantine_.add_damaged(segment)) {
                return stuck(segment, Trouble::quarantine, quarantine_.folder(),
                             "cannot be written");
            }
            unstuck(segment, Trouble::quarantine);
            state_.add_damage(segment.damaged_records(), bytes);
            say(ShipperMessage::Level::error,
                "segment \"" + segment.path() +
                    "\" is damaged: " + std::to_string(segment.damaged_records()) + " records (" +
                    std::to_string(bytes) + " bytes) cannot be read and are kept in \"" +
                    quarantine_.folder() + "\"; its other events are shipped");
        }
        segment.remove();
        return Step::worked;
    }

    const ShipperConf conf_;
    State state_;
    const Who me_;
    Alarm alarm_;
    Pg pg_;
    Rng rng_;
    Quarantine quarantine_;
    SegmentFile own_;
    SegmentFile left_;  // of a worker that is gone
    size_t limit_;      // of the next batch
    std::vector<Event> events_;
    Millis kept_at_ = 0;     // when partitions were looked after
    Millis written_at_ = 0;  // when own_ last had something
    Millis pause_ = kFirstPause;
    Millis own_retry_ = 0;  // a segment that is stuck waits until then
    Millis left_retry_ = 0;

    mutable std::mutex mutex_;
    std::string error_;  // of the connection
    Stuck own_stuck_;    // of our disk
    Stuck left_stuck_;
    std::vector<ShipperMessage> messages_;
};

Shipper::Shipper(ShipperConf conf, State state, Who me)
    : work_(std::make_shared<Work>(std::move(conf), state, me)) {}

bool Shipper::start() {
    return thread_.start(work_);
}

void Shipper::stop() noexcept {
    if (!thread_.running()) {
        return;
    }
    work_->stop();
    if (thread_.end(*work_)) {
        work_->remove_shipped();
    }
}

void Shipper::settled(uint32_t sequence) noexcept {
    work_->settled.store(sequence, std::memory_order_release);
}

uint32_t Shipper::wants_closed() const noexcept {
    return work_->wants_closed.load(std::memory_order_acquire);
}

std::vector<ShipperMessage> Shipper::messages() {
    return work_->take_messages();
}

std::string Shipper::error() const {
    return work_->error();
}

}  // namespace ads
