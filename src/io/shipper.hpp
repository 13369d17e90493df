// Ships events from the spool to PostgreSQL: those of living workers while they write, and segments
// that were left behind. It needs only the files. An event sent twice is stored once, so no
// progress is recorded: a segment is removed when all of it is committed, and after a crash it is
// sent again.
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
    Millis interval = 200;    // between two checks of an empty spool
    Millis timeout = 30'000;  // of one batch
};

// Keeps what PostgreSQL refuses permanently: the records in a segment that can be sent again by
// moving it back, and the errors in a file beside it.
class Quarantine {
public:
    explicit Quarantine(std::string folder) : folder_(std::move(folder)) {}

    // False: it cannot be written; errno tells why.
    bool add(const SegmentFile& from, std::string_view record, const Event& event,
             std::string_view why);
    // Copies the damaged bytes of a segment, one range after another.
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
    // One of several shippers; writers are divided among them.
    struct Part {
        uint32_t number = 0;
        uint32_t of = 1;
    };
    enum class Step : uint8_t {
        idle,    // nothing there
        worked,  // there may be more
        failed,  // the connection failed: try later
        stuck,   // a segment failed: try later
    };

    Shipper(ShipperConf conf, Part part, State state, const Alarm& alarm, Say say);

    // Ships one batch of the first segment of each writer.
    Step step();
    // step(), then waits until the next one is worthwhile.
    void step_and_pause();

    // Closes the connection and all segments.
    void rest() noexcept;

    bool connecting() const noexcept { return pg_.connecting(); }

    // Why nothing is shipped at the moment; empty: no error.
    std::string error() const;

private:
    enum class Trouble : uint8_t { reading, quarantine };
    struct Followed {
        SegmentFile file;
        std::string stuck;  // the error that stops it; empty: none
        Trouble trouble = Trouble::reading;
        Millis retry = 0;       // when it is tried again
        Millis written_at = 0;  // when it last had events
    };

    void find();
    bool ready();
    bool keep_partitions();
    bool fail();
    void clear_error();
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
    std::map<ProcessId, Followed> followed_;  // by writer; 0: segments left behind, one at a time
    size_t limit_;                            // of the next batch
    std::vector<Event> events_;
    Millis kept_at_ = 0;  // when partitions were last maintained
    Millis found_at_ = 0;
    Millis pause_ = 0;
    std::string error_;  // of the connection
};

}  // namespace ads
