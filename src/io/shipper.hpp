// Brings a worker's events from the spool to PostgreSQL, in a thread of its
// own: a request never waits for it, nor does it for a name or a handshake. It
// knows only what stands in the files. Whatever is sent twice is stored once,
// so progress needs no record of its own: a segment is removed when all of it
// is committed, and after a crash it is sent again.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "core/rng.hpp"
#include "io/pg.hpp"
#include "io/spool.hpp"
#include "shm/state.hpp"

namespace ads {

struct ShipperConf {
    std::string conninfo;
    std::string folder;  // the spool
    uint32_t batch = 2000;
    Millis interval = 200;    // between two looks at a spool that was empty
    Millis timeout = 30'000;  // of one batch
};

// A line for the log.
struct ShipperMessage {
    enum class Level : uint8_t { notice, error } level;
    std::string text;
};

class Shipper {
public:
    Shipper(ShipperConf conf, State state, Who me);
    ~Shipper() { stop(); }
    Shipper(const Shipper&) = delete;

    bool start();

    // Ends the thread. Events that are not committed stay in the spool.
    void stop() noexcept;

    // What the event loop tells: own segments with a lower sequence are closed
    // and their events counted, so that they may go.
    void settled(uint32_t sequence) noexcept;

    // The own segment that should be closed because all of it is shipped.
    static constexpr uint32_t kNoSegment = 0xffff'ffff;
    uint32_t wants_closed() const noexcept;

    // What is to be logged since the last call.
    std::vector<ShipperMessage> messages();

    // Why nothing is shipped at the moment; empty if all is well.
    std::string error() const;

private:
    class Work;
    std::shared_ptr<Work> work_;
    Thread thread_;
};

}  // namespace ads
