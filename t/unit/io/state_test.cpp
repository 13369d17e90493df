#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "io/process.hpp"
#include "io/state_file.hpp"
#include "temp_folder.hpp"

namespace {

using namespace ads;

constexpr size_t kDedupe = 1 << 16;
constexpr Seconds kNow = 1'794'787'200;

class StateFileTest : public testing::Test {
protected:
    std::unique_ptr<StateFile> open(const std::string& expected_notice = "",
                                    size_t dedupe = kDedupe) {
        auto file = std::make_unique<StateFile>();
        std::string error;
        std::string notice;
        EXPECT_TRUE(file->open(state_folder(), dedupe, error, notice)) << error;
        if (expected_notice.empty()) {
            EXPECT_EQ(notice, "");
        } else {
            EXPECT_NE(notice.find(expected_notice), std::string::npos) << notice;
        }
        return file;
    }

    std::string state_folder() const { return folder_.file("state"); }
    std::string path() const { return state_folder() + "/state"; }

    std::vector<std::string> names() const {
        std::vector<std::string> list;
        for (const auto& entry : std::filesystem::directory_iterator(state_folder())) {
            list.push_back(entry.path().filename().string());
        }
        std::sort(list.begin(), list.end());
        return list;
    }

    TempFolder folder_;
};

uint32_t slot_of(State state, SlotKey id) {
    uint32_t slot = 0;
    EXPECT_EQ(state.assign_slots({&id, 1}, {&slot, 1}, kNow), 0u);
    return slot;
}

TEST_F(StateFileTest, IsMadeWithItsFolder) {
    const auto file = open();
    EXPECT_EQ(names(), std::vector<std::string>{"state"}) << "no draft is left";
    EXPECT_NE(file->state().head().node, 0u);
    EXPECT_EQ(file->state().head().dedupe_entries, kDedupe / sizeof(DedupeEntry));
    EXPECT_GE(file->state().slots(), 1000u);
    struct stat info;
    ASSERT_EQ(stat(path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_GE(info.st_blocks * 512, info.st_size) << "a full disk must not hit a mapped write";
}

// On the same machine the processes that a copy names are alive, and use the original.
TEST_F(StateFileTest, ACopyIsNotInUseByTheProcessesOfTheOriginal) {
    const auto original = open();
    EXPECT_FALSE(original->in_use());
    original->settle();
    EXPECT_EQ(original->state().enter(this_process()), 0u);
    EXPECT_TRUE(original->in_use());
    EXPECT_TRUE(open()->in_use()) << "for each that opens it";

    const std::string kept = folder_.file("original");
    std::filesystem::rename(state_folder(), kept);
    std::filesystem::copy(kept, state_folder());
    const auto copy = open();
    EXPECT_FALSE(copy->in_use());
    copy->settle();
    ProcessId dead = 0;
    EXPECT_EQ(copy->state().find_dead(1, process_alive, dead), 0u) << "what it left is recovered";
    EXPECT_EQ(pid_of(dead), static_cast<uint32_t>(getpid()));
    EXPECT_EQ(copy->state().enter(this_process()), 1u);
    EXPECT_TRUE(copy->in_use());
    EXPECT_TRUE(original->in_use());
}

TEST_F(StateFileTest, KeepsEverything) {
    uint32_t node = 0;
    uint32_t slot = 0;
    {
        const auto file = open();
        State state = file->state();
        node = state.head().node;
        slot = slot_of(state, 12);
        EXPECT_TRUE(state.slot(slot).at(Counter::spend).count(320, 1234));
        state.add(Total::written, 5);
        uint32_t entry = 0;
        ASSERT_EQ(state.dedupe().claim(99, 1, 1000, 0, entry), Claim::fresh);
        state.dedupe().complete(entry, 0);
    }
    const auto file = open();
    State state = file->state();
    EXPECT_EQ(state.head().node, node) << "tokens name it";
    EXPECT_EQ(slot_of(state, 12), slot);
    EXPECT_EQ(state.slot(slot).at(Counter::spend).read(320), 1234u);
    EXPECT_EQ(state.total(Total::written), 5u);
    uint32_t entry = 0;
    EXPECT_EQ(state.dedupe().claim(99, 1, 1000, 1, entry), Claim::duplicate);
}

TEST_F(StateFileTest, IsSharedWhileOpen) {
    const auto one = open();
    const auto other = open();
    const uint32_t slot = slot_of(one->state(), 12);
    EXPECT_TRUE(one->state().slot(slot).at(Counter::clicks).count(320, 3));
    EXPECT_EQ(other->state().slot(slot).at(Counter::clicks).read(320), 3u);
}

TEST_F(StateFileTest, IsSharedBetweenProcesses) {
    const auto file = open();
    const uint32_t slot = slot_of(file->state(), 12);
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 1000; i++) {
            file->state().slot(slot).at(Counter::serves).take(320, 1, 1500);
        }
        _exit(0);
    }
    for (int i = 0; i < 1000; i++) {
        file->state().slot(slot).at(Counter::serves).take(320, 1, 1500);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_EQ(file->state().slot(slot).at(Counter::serves).read(320), 1500u);
}

TEST_F(StateFileTest, KeepsItsDedupeSizeAndSaysSo) {
    open();
    const auto file = open("keeps its", 4 * kDedupe);
    EXPECT_EQ(file->state().head().dedupe_entries, kDedupe / sizeof(DedupeEntry));
}

TEST_F(StateFileTest, AForeignFileIsSetAside) {
    std::filesystem::create_directory(state_folder());
    for (const std::string& text : {std::string(), std::string("hello"), std::string(100'000, 'x'),
                                    std::string(1'000'000, '\0')}) {
        SCOPED_TRACE(text.size());
        TempFolder::write(path(), text);
        const auto file = open("counting starts anew");
        EXPECT_EQ(file->state().total(Total::written), 0u);
        const auto all = names();
        ASSERT_EQ(all.size(), 2u);
        EXPECT_EQ(all[0], "state");
        EXPECT_EQ(all[1].rfind("state.bad-", 0), 0u);
        EXPECT_EQ(TempFolder::read(state_folder() + "/" + all[1]), text) << "as it was";
        for (const std::string& name : all) {
            std::filesystem::remove(state_folder() + "/" + name);
        }
    }
}

TEST_F(StateFileTest, ATruncatedOneIsSetAside) {
    open();
    const auto size = std::filesystem::file_size(path());
    std::filesystem::resize_file(path(), size - 1);
    open("its head is damaged");
    EXPECT_EQ(names().size(), 2u);
    EXPECT_EQ(std::filesystem::file_size(path()), size);
}

// A second time within the same second must not lose what was set aside first.
TEST_F(StateFileTest, WhatWasSetAsideIsNotOverwritten) {
    std::filesystem::create_directory(state_folder());
    for (int i = 1; i <= 3; i++) {
        TempFolder::write(path(), "damaged " + std::to_string(i));
        open("counting starts anew");
    }
    EXPECT_EQ(names().size(), 4u);
}

TEST_F(StateFileTest, AnOldDraftIsNoHindrance) {
    std::filesystem::create_directory(state_folder());
    TempFolder::write(path() + ".new", "half");
    open();
    EXPECT_EQ(names(), std::vector<std::string>{"state"});
}

TEST_F(StateFileTest, SaysWhyItCannot) {
    TempFolder::write(folder_.file("plain"), "x");
    StateFile file;
    std::string error;
    std::string notice;
    EXPECT_FALSE(file.open(folder_.file("plain") + "/state", kDedupe, error, notice));
    EXPECT_NE(error.find(folder_.file("plain")), std::string::npos) << error;
    EXPECT_NE(error.find("Not a directory"), std::string::npos) << error;
    error.clear();
    EXPECT_FALSE(file.open(folder_.file("a/b/c"), kDedupe, error, notice));
    EXPECT_NE(error.find("No such file"), std::string::npos) << error;
}

TEST_F(StateFileTest, GrowsWhileMapped) {
    const auto file = open();
    const auto other = open();  // an older process, mapped before
    const uint32_t before = file->state().slots();
    const uint32_t slot = slot_of(file->state(), 12);
    GroupSlot* const address = &file->state().slot(slot);
    ASSERT_TRUE(file->reserve(before));
    EXPECT_EQ(file->state().slots(), before) << "there was room";

    ASSERT_TRUE(file->reserve(before + 1));
    const uint32_t after = file->state().slots();
    EXPECT_GE(after, before + 1);
    EXPECT_EQ(&file->state().slot(slot), address);
    EXPECT_EQ(other->state().slots(), after);
    EXPECT_TRUE(file->state().slot(after - 1).at(Counter::serves).count(320, 4));
    EXPECT_EQ(other->state().slot(after - 1).at(Counter::serves).read(320), 4u);
    EXPECT_GE(std::filesystem::file_size(path()), State::size(kDedupe / 16, after));

    ASSERT_TRUE(other->reserve(100'000));
    EXPECT_GE(file->state().slots(), 100'000u);
    EXPECT_EQ(open()->state().slots(), file->state().slots()) << "and is read again so";
}

TEST_F(StateFileTest, DoesNotGrowBeyondItsMapping) {
    const auto file = open();
    const uint32_t before = file->state().slots();
    EXPECT_FALSE(file->reserve(1u << 22));
    EXPECT_EQ(file->state().slots(), before);
}

// Without memory to map it, a good file is an error, not a bad file.
TEST_F(StateFileTest, AGoodFileIsNotSetAsideForLackOfMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer needs the memory";
#endif
    open();
    const pid_t child = fork();
    if (child == 0) {
        StateFile file;
        std::string error(1000, ' ');
        std::string notice(1000, ' ');
        const rlimit none{0, RLIM_INFINITY};
        if (setrlimit(RLIMIT_AS, &none) != 0) {
            _exit(3);
        }
        _exit(file.open(state_folder(), kDedupe, error, notice) ? 2 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    EXPECT_EQ(names(), std::vector<std::string>{"state"});
}

// ---- the layout before this one ----

// Writes a state as the version before did, by its offsets.
class OldState {
public:
    static constexpr size_t kWorkers = 4096;
    static constexpr size_t kCurves = kWorkers + 540'672;
    static constexpr size_t kTossed = kCurves + 86'016;
    static constexpr size_t kDedupe = kTossed + 16'384;
    static constexpr size_t kEntries = 4096;
    static constexpr size_t kSlots = kDedupe + 16 * kEntries;
    static constexpr uint32_t kSlotCount = 8;

    OldState() : bytes_(kSlots + 256 * kSlotCount) {
        put<uint64_t>(0, 0x3530'6574'6174'7361);
        put<uint32_t>(8, 0xabcd);
        put<uint32_t>(12, 256);
        put<uint64_t>(16, 111);
        put<uint64_t>(24, 222);
        put<uint64_t>(32, kDedupe);
        put<uint64_t>(40, kEntries);
        put<uint64_t>(48, kSlots);
        put<uint32_t>(56, kSlotCount);
        put<uint64_t>(72, 33);                      // evicted
        put<uint64_t>(384 + 64 * 2, 44);            // invalid
        put<uint64_t>(384 + 64 * 8, 55);            // quarantined
        put<uint64_t>(960 + 8 * (31 * 5 + 4), 66);  // the last of the events
    }

    template <class T>
    void put(size_t at, T value) {
        std::memcpy(bytes_.data() + at, &value, sizeof value);
    }
    void slot(uint32_t index, uint32_t id, SlotKind kind) {
        put<uint32_t>(kSlots + 256 * index, id);
        put<uint16_t>(kSlots + 256 * index + 4, 20'773);
        put<uint8_t>(kSlots + 256 * index + 6, static_cast<uint8_t>(kind));
    }
    void word(uint32_t index, size_t number, uint64_t value) {
        put<uint64_t>(kSlots + 256 * index + 8 * number, value);
    }
    static uint64_t day(uint64_t day, uint64_t used) { return day << 52 | used; }

    std::string text() const { return {bytes_.data(), bytes_.size()}; }

private:
    std::vector<char> bytes_;
};

class OldStateTest : public StateFileTest {
protected:
    OldStateTest() {
        old_.slot(0, 12, SlotKind::group);
        old_.word(0, 1, OldState::day(320, 5));     // serves, even day
        old_.word(0, 12, OldState::day(321, 777));  // spend, odd day
        old_.word(0, 13, OldState::day(320, 9));    // refused by status
        old_.word(0, 29, OldState::day(320, 3));    // by the cap
        old_.word(0, 30, OldState::day(320, 2));    // anonymous
        old_.slot(1, 7, SlotKind::budget);
        old_.word(1, 1, OldState::day(320, 1000));
        old_.word(1, 3, 5000);  // lifetime
        // 40 units of the serves of 12:00:00 to 12:00:07, of day 320.
        old_.word(1, 4 + 5400 % 16, (uint64_t{320 % 8} << 17 | 5400) << 44 | 40);
        old_.word(1, 20, OldState::day(320, 900));  // confirmed
        old_.word(1, 22, OldState::day(320, 60));   // expired
        old_.word(1, 24, OldState::day(320, 8));    // tosses
        old_.word(1, 25, OldState::day(320, 80));   // offered
        old_.slot(2, 7, pace_of(Strategy::adaptive));
        old_.put<double>(OldState::kSlots + 512 + 8 + 16, 4200.0);  // used before today
        old_.put<uint64_t>(OldState::kDedupe + 16 * 5, 0x1234);
        old_.put<uint64_t>(OldState::kDedupe + 16 * 5 + 8, 0x5678);
        old_.put<uint64_t>(OldState::kWorkers + 2112 * 3, 0x99'0000'0001);  // a dead worker
        old_.put<uint32_t>(OldState::kWorkers + 2112 * 3 + 8, 1);
        old_.put<uint32_t>(OldState::kCurves + 1280, 0xfeed);
        old_.put<uint64_t>(OldState::kCurves + 1280 + 8, 88);
        old_.put<float>(OldState::kCurves + 1280 + 16, 2.5f);
        std::filesystem::create_directory(state_folder());
        std::ofstream(path(), std::ios::binary) << old_.text();
    }

    OldState old_;
};

TEST_F(OldStateTest, IsConverted) {
    const auto file = open("was converted");
    EXPECT_FALSE(file->fresh()) << "it knows what was before";
    EXPECT_EQ(names(), std::vector<std::string>{"state"});
    State state = file->state();
    EXPECT_EQ(state.head().node, 0xabcdu);
    EXPECT_EQ(state.head().session_key.k0, 111u);
    EXPECT_EQ(state.head().session_key.k1, 222u);
    EXPECT_EQ(state.head().dedupe.evicted, 33u);
    EXPECT_EQ(state.total(Total::invalid), 44u);
    EXPECT_EQ(state.total(Total::quarantined), 55u);
    EXPECT_EQ(state.events(static_cast<Invalid>(31), EventType::conversion), 66u);
    ASSERT_EQ(state.slots(), OldState::kSlotCount);

    const std::array<SlotKey, 3> keys{SlotKey{12, SlotKind::group}, SlotKey{7, SlotKind::budget},
                                      SlotKey{7, pace_of(Strategy::adaptive)}};
    std::array<uint32_t, 3> slots{};
    state.find_slots(keys, slots);
    EXPECT_EQ(slots, (std::array<uint32_t, 3>{0, 1, 2}));
    const GroupSlot& group = state.slot(0);
    EXPECT_EQ(group.head.last_seen, 20'773);
    EXPECT_EQ(group.at(Counter::serves).read(320), 5u);
    EXPECT_EQ(group.at(Counter::spend).read(321), 777u);
    EXPECT_EQ(DayCount(group.refusals[refusal_index(Reason::status)]).used(), 9u);
    EXPECT_EQ(DayCount(group.refusals[refusal_index(Reason::cap)]).used(), 3u);
    EXPECT_EQ(DayCount(group.refusals[refusal_index(Reason::cap)]).day(), 320u);
    EXPECT_EQ(group.anonymous.read(320), 2u);

    WallSlot& wall = state.wall(1);
    const auto times = pacing::BucketTimes::of(320, 0, 120);
    const Millis noon = 43'200'000;
    EXPECT_EQ(wall.used.read(320), 1000u);
    EXPECT_EQ(wall.lifetime, 5000u);
    EXPECT_EQ(wall.in_flight(times), 40u);
    EXPECT_EQ(wall.confirmed.read(320), 900u);
    EXPECT_EQ(wall.expired.read(320), 60u);
    EXPECT_EQ(DayCount(wall.tosses).used(), 8u);
    EXPECT_EQ(DayCount(wall.offered).used(), 80u);
    EXPECT_EQ(wall.unreserve(times, noon + 7999, 10), 10u) << "a pixel finds its reservation";
    wall.expire(times, noon + 127'999);
    EXPECT_EQ(wall.in_flight(times), 30u);
    wall.expire(times, noon + 128'000);
    EXPECT_EQ(wall.in_flight(times), 0u);
    EXPECT_EQ(wall.used.read(320), 970u);

    EXPECT_EQ(state.pace(2).state.before, 4200.0);
    EXPECT_EQ(state.dedupe().workers()[3].process, 0x99'0000'0001u);
    EXPECT_EQ(state.dedupe().workers()[3].pending_count, 1u);
    const auto* entries = reinterpret_cast<const DedupeEntry*>(
        reinterpret_cast<const std::byte*>(&state.head()) + state.head().dedupe_offset);
    EXPECT_EQ(entries[5].control, 0x1234u);
    EXPECT_EQ(entries[5].key, 0x5678u);
    EXPECT_EQ(state.curves()[1].placement, 0xfeedu);
    EXPECT_EQ(state.curves()[1].requests, 88u);
    EXPECT_EQ(state.curves()[1].curve.bins[0], 2.5f);
    EXPECT_TRUE(file->reserve(100)) << "it grows like any other";
}

TEST_F(OldStateTest, IsLeftAloneWhileAnOlderNginxRuns) {
    int ready[2];
    int end[2];
    ASSERT_EQ(pipe(ready), 0);
    ASSERT_EQ(pipe(end), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(end[1]);
        const int fd = ::open(path().c_str(), O_RDWR);
        if (mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) {
            _exit(1);
        }
        char byte = 'x';
        _exit(write(ready[1], &byte, 1) == 1 && read(end[0], &byte, 1) == 0 ? 0 : 1);
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    StateFile file;
    std::string error;
    std::string notice;
    EXPECT_FALSE(file.open(state_folder(), kDedupe, error, notice));
    EXPECT_NE(error.find("in use by process " + std::to_string(child)), std::string::npos) << error;
    EXPECT_NE(error.find("restart nginx instead of upgrading"), std::string::npos) << error;
    for (const int fd : {ready[0], ready[1], end[0], end[1]}) {
        close(fd);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    open("was converted");
}

TEST_F(OldStateTest, ADamagedOneIsSetAside) {
    old_.put<uint64_t>(48, OldState::kSlots + 8);
    std::ofstream(path(), std::ios::binary) << old_.text();
    EXPECT_TRUE(open("cannot be used")->fresh());
}

}  // namespace
