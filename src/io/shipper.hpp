// Brings events from the spool to PostgreSQL: those of living workers while they write, and what
// was left behind. It relies on the files alone. An event sent twice is stored once,
// so progress needs no record of its own: a segment is removed when all of it is committed, and
// after a crash it is sent again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/rng.hpp"
#include "io/pg.hpp"
#include "io/say.hpp"
#include "io/spool.hpp"
#include "ledger/state.hpp"

namespace ads {

struct ShipperConf {
    std::string conninfo;
    std::string folder;  // the spool
    uint32_t batch = 2000;
    Millis interval = 200;    // between two looks at a spool that was empty
    Millis timeout = 30'000;  // of one batch
};

// What PostgreSQL will never take: the records as they are, in a segment that may be sent again by
// moving it back, and beside it why.
class Quarantine {
public:
    explicit Quarantine(std::string folder) : folder_(std::move(folder)) {}

    // False: it cannot be written; errno tells why.
    bool add(const SegmentFile& from, std::string_view record, const Event& event,
             std::string_view why);
    // The damaged bytes of a segment, one stretch after the other.
    bool add_damaged(const SegmentFile& from);

    const std::string& folder() const noexcept { return folder_; }

private:
    std::string base_of(const SegmentFile& from) const;
    bool append(const std::string& path, std::string_view bytes, std::string_view head);

    std::string folder_;
};

// For one thread.
class Shipper {
public:
    // One of several that share the writers among them.
    struct Part {
        uint32_t number = 0;
        uint32_t of = 1;
    };
    enum class Step : uint8_t {
        idle,    // nothing there
        worked,  // there may be more
        failed,  // nothing goes: try later
        stuck,   // a segment does not: try later
    };

    Shipper(ShipperConf conf, Part part, State state, const Alarm& alarm, Say say);

    // One batch of the first segment of each writer.
    Step step();
    // step(), then waits until the next one is worthwhile.
    void work();

    // Lets go of the connection and of all segments.
    void rest() noexcept;

    bool connecting() const noexcept { return pg_.connecting(); }

    // Why nothing is shipped at the moment; empty without an error.
    std::string error() const;

private:
    enum class Trouble : uint8_t { reading, quarantine };
    struct Followed {
        SegmentFile file;
        std::string stuck;  // the error that stops it; empty: none
        Trouble trouble = Trouble::reading;
        Millis retry = 0;       // when it is tried again
        Millis written_at = 0;  // when it last had something
    };

    void find();
    bool ready();
    bool keep_partitions();
    bool fail();
    void works();
    bool is_complete(const Followed& one) const noexcept;
    Step ship(Followed& one);
    Step refuse(Followed& one);
    Step stuck(Followed& one, Trouble trouble, const std::string& path, const char* what);
    void unstuck(Followed& one, Trouble trouble);
    Step finish(Followed& one, bool complete);

    const ShipperConf conf_;
    const Part part_;
    State state_;
    const Alarm& alarm_;
    const Say say_;
    Pg pg_;
    Rng rng_;
    Quarantine quarantine_;
    std::map<ProcessId, Followed> followed_;  // by writer; 0: what was left behind, one at a time
    size_t limit_;                            // of the next batch
    std::vector<Event> events_;
    Millis kept_at_ = 0;  // when partitions were looked after
    Millis found_at_ = 0;
    Millis pause_ = 0;
    std::string error_;  // of the connection
};

}  // namespace ads
