// The threads that talk to PostgreSQL, beside an event loop that goes on meanwhile. What they
// send is tested on a real server (t/05*.t); this is for ThreadSanitizer.
#include "io/shipper.hpp"

#include <poll.h>

#include <memory>

#include "io/catalog_feed.hpp"
#include "io/process.hpp"
#include "io/spool.hpp"
#include "shm_memory.hpp"
#include "temp_folder.hpp"

namespace {

using namespace ads;

constexpr Seconds kNow = 1'794'830'400;  // 2026-11-16T12:00:00Z
constexpr uint32_t kSlots = 4;
constexpr char kNoServer[] = "host=/nonexistent dbname=ads";

// Calls f as an event loop does, until it returns true.
template <class F>
bool becomes_true(F f) {
    for (int i = 0; i < 60'000; i++) {
        if (f()) {
            return true;
        }
        poll(nullptr, 0, 1);
    }
    return false;
}

class ThreadsTest : public testing::Test {
protected:
    ThreadsTest() : zone_memory_(Zone::kSmallest), state_memory_(State::size(64, kSlots)) {
        Zone::format(zone_memory_.span());
        State::format(state_memory_.span(), 64, kSlots, 1);
        target_.zone = Zone::attach(zone_memory_.data());
        target_.state = State::attach(state_memory_.data());
    }

    TempFolder folder_;
    shm_test::Memory zone_memory_;
    shm_test::Memory state_memory_;
    Target target_;
};

TEST_F(ThreadsTest, TheShipperFailsBesideALoopThatWrites) {
    Spool spool;
    spool.configure(folder_.path(), 4096, this_process(), 1);
    Shipper shipper({.conninfo = kNoServer, .folder = folder_.path(), .interval = 1}, target_.state,
                    this_process());
    ASSERT_TRUE(shipper.start());
    uint64_t serve = 0;
    size_t messages = 0;
    const auto turn = [&] {
        spool.append({.type = EventType::impression,
                      .time = kNow * 1000,
                      .issued = kNow * 1000,
                      .serve = ++serve});
        spool.flush(kNow * 1000);
        if (shipper.wants_closed() == spool.sequence()) {
            spool.close();
        }
        shipper.settled(spool.sequence());
        messages += shipper.messages().size();
        return serve > 200 && messages > 0 && !shipper.error().empty();
    };
    EXPECT_TRUE(becomes_true(turn));
    shipper.stop();
    spool.close();
    uint64_t found = 0;
    for (const std::string& path : spool_segments(folder_.path())) {
        each_event(TempFolder::read(path), [&](const Event&) { found++; });
    }
    EXPECT_EQ(found, serve) << "nothing is removed that was not stored";
}

TEST_F(ThreadsTest, TheFeedFailsBesideALoopThatPolls) {
    CatalogFeed feed({.conninfo = kNoServer, .poll = 1000, .saved = folder_.file("saved")}, target_,
                     this_process(), std::make_shared<Turns>());
    Seconds now = kNow;
    EXPECT_TRUE(becomes_true(
        [&] { return feed.poll(now++, target_.zone.term()).outcome == Edit::unread; }));
    feed.rest();
    feed.poll(now, target_.zone.term());
    feed.stop();
    EXPECT_EQ(target_.zone.generation(), 0u);
}

}  // namespace
