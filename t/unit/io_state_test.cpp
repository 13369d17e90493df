#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

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
        state.dedupe().settle(entry, 0);
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

}  // namespace
