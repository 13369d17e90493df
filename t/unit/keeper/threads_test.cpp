// The keeper's threads beside a worker that goes on meanwhile. What they send is tested on a real
// server (t/05*.t); this is for ThreadSanitizer.
#include <poll.h>

#include "io/process.hpp"
#include "io/spool.hpp"
#include "keeper/keeper.hpp"
#include "ledger_memory.hpp"
#include "temp_folder.hpp"

namespace {

using namespace ads;

constexpr Seconds kNow = 1'794'830'400;  // 2026-11-16T12:00:00Z
constexpr uint32_t kSlots = 4;
constexpr char kNoServer[] = "host=/nonexistent dbname=ads";
constexpr char kCatalog[] =
    R"({"placements": [{"id": "p"}], "campaigns": [{"id": 1, "ad_groups": [{"id": 12}]}]})";

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
        conf_.target.zone = Zone::attach(zone_memory_.data());
        conf_.target.state = State::attach(state_memory_.data());
        conf_.now = wall_clock;
        conf_.spool = folder_.path();
        conf_.catalog = folder_.file("catalog.json");
    }

    bool tells(Keeper& keeper, std::string_view text) {
        for (const auto& line : keeper.log()) {
            found_ = found_ || line.text.find(text) != std::string::npos;
        }
        return found_;
    }

    TempFolder folder_;
    ledger_test::Memory zone_memory_;
    ledger_test::Memory state_memory_;
    KeeperConf conf_;
    bool found_ = false;
};

TEST_F(ThreadsTest, ACatalogIsPublishedAndPaced) {
    TempFolder::write(conf_.catalog, kCatalog);
    Keeper keeper(conf_);
    ASSERT_TRUE(keeper.start());
    KeeperWords& words = conf_.target.state.head().keeper;
    EXPECT_TRUE(becomes_true([&] { return conf_.target.zone.generation() == 1; }));
    const uint32_t number = ring(words);
    EXPECT_TRUE(becomes_true([&] { return words.answered.load() == number; }));
    EXPECT_EQ(words.pid(), static_cast<uint32_t>(getpid()));
    keeper.stop();
    EXPECT_EQ(words.pid(), 0u) << "another one need not wait";
}

TEST_F(ThreadsTest, ItShipsNothingBesideAWorkerThatWrites) {
    TempFolder::write(conf_.catalog, kCatalog);
    conf_.ship = ShipperConf{.conninfo = kNoServer, .folder = folder_.path(), .interval = 1};
    conf_.connections = 2;
    State state = conf_.target.state;
    const uint32_t place = state.enter(this_process());
    Spool spool;
    spool.configure(folder_.path(), 4096, this_process(), 1);
    Keeper keeper(conf_);
    ASSERT_TRUE(keeper.start());
    uint64_t serve = 0;
    const auto turn = [&] {
        spool.append({.type = EventType::impression,
                      .time = kNow * 1000,
                      .issued = kNow * 1000,
                      .serve = ++serve});
        spool.flush(kNow * 1000);
        if (state.is_asked_to_close(place, spool.sequence())) {
            spool.close();
        }
        state.set_counted_below(place, spool.sequence());
        return tells(keeper, "PostgreSQL: ") && serve > 200;
    };
    EXPECT_TRUE(becomes_true(turn));
    keeper.stop();
    spool.close();
    uint64_t found = 0;
    for (const std::string& path : spool_segments(folder_.path())) {
        each_event(TempFolder::read(path), [&](const Event&) { found++; });
    }
    EXPECT_EQ(found, serve) << "nothing is removed that was not stored";
}

TEST_F(ThreadsTest, AFeedWithoutAServerTellsIt) {
    conf_.feed = FeedConf{.conninfo = kNoServer, .poll = 1000, .saved = folder_.file("saved")};
    Keeper keeper(conf_);
    ASSERT_TRUE(keeper.start());
    EXPECT_TRUE(becomes_true([&] { return tells(keeper, "catalog \"postgres\": PostgreSQL: "); }));
    keeper.stop();
    EXPECT_EQ(conf_.target.zone.generation(), 0u);
}

}  // namespace
