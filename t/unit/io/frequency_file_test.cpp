#include "io/frequency_file.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace ads;
namespace fs = std::filesystem;

constexpr uint32_t kNow = 1'794'787'200;
constexpr uint64_t kBytes = 1 << 20;

class FrequencyFileTest : public testing::Test {
protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "frequency-XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        root_ = name;
        folder_ = (root_ / "state").string();
    }
    void TearDown() override { fs::remove_all(root_); }

    std::string path() const { return folder_ + "/frequency"; }

    bool open(FrequencyFile& file, uint64_t bytes = kBytes) {
        error_.clear();
        notice_.clear();
        return file.open(folder_, bytes, error_, notice_);
    }

    static bool take(const FrequencyFile& file, uint64_t session, uint32_t count = 3) {
        const std::array limits{FrequencyLimit{CapUnit::lifetime, count, 0}};
        const std::array subjects{FrequencySubject{CapLevel::ad_group, 12, limits}};
        return file.frequency().take(session, subjects, kNow);
    }

    size_t set_aside() const {
        size_t n = 0;
        for (const auto& item : fs::directory_iterator(folder_)) {
            n += item.path().filename().string().starts_with("frequency.bad-") ? 1 : 0;
        }
        return n;
    }

    void expect_set_aside(const char* why) {
        FrequencyFile file;
        ASSERT_TRUE(open(file)) << error_;
        EXPECT_NE(notice_.find(why), std::string::npos) << notice_;
        EXPECT_NE(notice_.find("start anew"), std::string::npos) << notice_;
        EXPECT_EQ(set_aside(), 1u);
        EXPECT_TRUE(take(file, 1));
        FrequencyFile again;
        ASSERT_TRUE(open(again)) << error_;
        EXPECT_EQ(notice_, "");
    }

    fs::path root_;
    std::string folder_;
    std::string error_;
    std::string notice_;
};

TEST_F(FrequencyFileTest, IsMadeWithAllItsSpace) {
    FrequencyFile file;
    ASSERT_TRUE(open(file)) << error_;
    EXPECT_EQ(notice_, "");
    EXPECT_TRUE(file.frequency());
    struct stat info;
    ASSERT_EQ(stat(path().c_str(), &info), 0);
    EXPECT_EQ(static_cast<size_t>(info.st_size), Frequency::size(kBytes));
    EXPECT_GE(static_cast<size_t>(info.st_blocks) * 512, Frequency::size(kBytes));
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_FALSE(fs::exists(path() + ".new"));
}

TEST_F(FrequencyFileTest, OutlivesItsProcesses) {
    const pid_t child = fork();
    if (child == 0) {
        FrequencyFile file;
        const bool good = open(file) && take(file, 7) && take(file, 7);
        _exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    FrequencyFile file;
    ASSERT_TRUE(open(file)) << error_;
    EXPECT_TRUE(take(file, 7));
    EXPECT_FALSE(take(file, 7));
    EXPECT_TRUE(take(file, 8));
}

TEST_F(FrequencyFileTest, IsSharedByAllWhoHaveItOpen) {
    FrequencyFile one;
    FrequencyFile other;
    ASSERT_TRUE(open(one)) << error_;
    ASSERT_TRUE(open(other)) << error_;
    EXPECT_TRUE(take(one, 7, 2));
    EXPECT_TRUE(take(other, 7, 2));
    EXPECT_FALSE(take(one, 7, 2));
    EXPECT_FALSE(take(other, 7, 2));
}

TEST_F(FrequencyFileTest, KeepsItsSizeAndSaysSo) {
    {
        FrequencyFile file;
        ASSERT_TRUE(open(file)) << error_;
        EXPECT_TRUE(take(file, 7, 1));
    }
    FrequencyFile file;
    ASSERT_TRUE(open(file, kBytes * 2)) << error_;
    EXPECT_NE(notice_.find("keeps its 1048576 bytes"), std::string::npos) << notice_;
    EXPECT_FALSE(take(file, 7, 1));
    EXPECT_EQ(fs::file_size(path()), Frequency::size(kBytes));
    EXPECT_EQ(set_aside(), 0u);
}

TEST_F(FrequencyFileTest, OfAnotherProgramIsSetAside) {
    fs::create_directory(folder_);
    std::ofstream(path()) << std::string(100'000, 'x');
    expect_set_aside("another version, or by another program");
}

TEST_F(FrequencyFileTest, AnEmptyOneIsSetAside) {
    fs::create_directory(folder_);
    std::ofstream(path()).flush();
    expect_set_aside("too short");
}

TEST_F(FrequencyFileTest, OneCutShortIsSetAside) {
    {
        FrequencyFile file;
        ASSERT_TRUE(open(file)) << error_;
    }
    fs::resize_file(path(), Frequency::size(kBytes) - 1);
    expect_set_aside("shorter than its head says");
}

TEST_F(FrequencyFileTest, OneWithADamagedHeadIsSetAside) {
    {
        FrequencyFile file;
        ASSERT_TRUE(open(file)) << error_;
    }
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offsetof(FrequencyHead, bytes));
    file << std::string(8, '\xff');
    file.close();
    expect_set_aside("shorter than its head says");
}

TEST_F(FrequencyFileTest, ADraftOfADeadProcessIsNoHindrance) {
    fs::create_directory(folder_);
    std::ofstream(path() + ".new") << "half";
    FrequencyFile file;
    ASSERT_TRUE(open(file)) << error_;
    EXPECT_TRUE(take(file, 1));
    EXPECT_FALSE(fs::exists(path() + ".new"));
}

TEST_F(FrequencyFileTest, SaysWhatIsWrong) {
    std::ofstream(folder_) << "a file where the folder should be";
    FrequencyFile file;
    EXPECT_FALSE(open(file));
    EXPECT_NE(error_.find(path()), std::string::npos) << error_;
    EXPECT_FALSE(file.frequency());
    fs::remove(folder_);
    EXPECT_FALSE(open(file, uint64_t{1} << 60));
    EXPECT_NE(error_.find("cannot reserve"), std::string::npos) << error_;
    EXPECT_FALSE(fs::exists(path() + ".new"));
    EXPECT_FALSE(fs::exists(path()));
}

// ---- processes that share a table ----

constexpr int kProcesses = 8;

bool long_mode() {
    return std::getenv("ADS_TEST_LONG") != nullptr;
}

FrequencyLimit rolling(uint32_t count, uint32_t now = kNow) {
    return FrequencyLimit::at(CapUnit::rolling, count, 60, 0, now);
}

class Memory {
public:
    Memory()
        : size_(Frequency::size(0)),
          memory_(static_cast<std::byte*>(
              mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
        clear();
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { munmap(memory_, size_); }

    void clear() {
        std::memset(static_cast<void*>(memory_), 0, size_);
        Frequency::format({memory_, size_}, 0);
        table = Frequency::attach(memory_);
    }
    bool take(uint64_t session, uint32_t count, uint32_t now = kNow) {
        const std::array limits{rolling(count, now)};
        const std::array subjects{FrequencySubject{CapLevel::ad_group, 12, limits}};
        return table.take(session, subjects, now);
    }
    std::vector<std::byte> copy() const { return {memory_, memory_ + size_}; }

    // How often a take succeeds until it does not.
    uint32_t drain(uint64_t session, uint32_t count, uint32_t now = kNow) {
        uint32_t n = 0;
        while (n < 5000 && take(session, count, now)) {
            n++;
        }
        return n;
    }

private:
    size_t size_;
    std::byte* memory_;

public:
    Frequency table;
};

// What processes of one test tell each other.
struct Shared {
    std::atomic<uint32_t> served;
    std::atomic<uint32_t> ready;
    std::atomic<uint32_t> round;
};

class SharedPage {
public:
    SharedPage()
        : shared_(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared{}) {}
    ~SharedPage() { munmap(static_cast<void*>(shared_), sizeof(Shared)); }
    Shared* operator->() const { return shared_; }

private:
    Shared* shared_;
};

template <class Work>
pid_t start(Work work) {
    const pid_t child = fork();
    if (child == 0) {
        work();
        _exit(0);
    }
    return child;
}

TEST(LedgerFrequencyProcesses, TogetherTakeWhatIsThere) {
    const uint32_t rounds = long_mode() ? 20'000 : 2'000;
    Memory memory;
    SharedPage shared;
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; i++) {
        children.push_back(start([&] {
            for (uint32_t round = 1; round <= rounds; round++) {
                while (shared->round != round) {
                    sched_yield();
                }
                for (int k = 0; k < 5; k++) {
                    shared->served += memory.take(5, 3) ? 1 : 0;
                }
                shared->ready++;
            }
        }));
    }
    uint32_t wrong = 0;
    for (uint32_t round = 1; round <= rounds; round++) {
        memory.clear();
        shared->served = 0;
        shared->ready = 0;
        shared->round = round;
        while (shared->ready != kProcesses) {
            sched_yield();
        }
        wrong += shared->served == 3 ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0u);
    for (const pid_t child : children) {
        int status = 1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
}

// A process says what it has served after its take: one that is killed between
// the two has served nothing.
TEST(LedgerFrequencyProcesses, TheKilledNeverAddOne) {
    const int rounds = long_mode() ? 2'000 : 60;
    Memory memory;
    SharedPage shared;
    std::mt19937_64 random(3);
    for (int round = 0; round < rounds; round++) {
        memory.clear();
        shared->served = 0;
        std::array<pid_t, 4> children;
        for (auto& child : children) {
            child = start([&] {
                for (int k = 0; k < 400; k++) {
                    shared->served += memory.take(5, 500) ? 1 : 0;
                }
            });
        }
        for (const pid_t child : children) {
            usleep(random() % 1000);
            kill(child, SIGKILL);
            waitpid(child, nullptr, 0);
        }
        const uint32_t total = shared->served + memory.drain(5, 500, kNow + 10);
        EXPECT_LE(total, 500u);
        EXPECT_GE(total + children.size(), 500u) << "one for each that was killed";
    }
}

// A child that stops when it is about to take, and then goes on one instruction
// at a time.
class Stepped {
public:
    Stepped(Memory& memory, SharedPage& shared, uint32_t count)
        : child_(start([&] {
              if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
                  _exit(9);
              }
              raise(SIGSTOP);
              shared->served += memory.take(5, count) ? 1 : 0;
              shared->ready = 1;
          })) {
        int status = 0;
        waitpid(child_, &status, 0);
        traced_ = WIFSTOPPED(status);
    }
    bool traced() const { return traced_; }

    void step(uint32_t instructions) const {
        int status = 0;
        for (uint32_t i = 0; i < instructions; i++) {
            if (ptrace(PTRACE_SINGLESTEP, child_, nullptr, nullptr) != 0 ||
                waitpid(child_, &status, 0) != child_ || !WIFSTOPPED(status)) {
                return;
            }
        }
    }
    void finish() const {
        ptrace(PTRACE_CONT, child_, nullptr, nullptr);
        waitpid(child_, nullptr, 0);
    }
    void kill_it() const {
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }

private:
    pid_t child_;
    bool traced_ = false;
};

// A table as `begin` makes it, and a child that is about to take from it.
class Scene {
public:
    using Begin = std::function<void(Memory&)>;

    Scene(uint32_t count, Begin begin) : count_(count), begin_(std::move(begin)) {}

    // Runs `meanwhile` with the child standing at each of its instructions; in
    // the short form, before and after each that changed the table.
    template <class Meanwhile>
    void at_each_instruction(Meanwhile meanwhile) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
        GTEST_SKIP() << "an instrumented take has too many instructions";
#endif
        const std::vector<uint32_t> all = stops();
        if (all.empty()) {
            GTEST_SKIP() << "no ptrace here";
        }
        for (const uint32_t n : all) {
            SCOPED_TRACE(testing::Message() << "after " << n << " instructions");
            const Stepped child = stage();
            child.step(n);
            meanwhile(memory, child);
            if (testing::Test::HasFailure()) {
                return;
            }
        }
    }

    Memory memory;
    SharedPage shared;

private:
    Stepped stage() {
        memory.clear();
        shared->served = 0;
        shared->ready = 0;
        begin_(memory);
        return Stepped(memory, shared, count_);
    }

    std::vector<uint32_t> stops() {
        std::vector<uint32_t> stops{0};
        const Stepped child = stage();
        std::vector<std::byte> before = memory.copy();
        uint32_t n = 0;
        while (child.traced() && shared->ready == 0) {
            child.step(1);
            n++;
            if (std::vector<std::byte> after = memory.copy(); after != before) {
                stops.insert(stops.end(), {n - 1, n});
                before = std::move(after);
            } else if (long_mode()) {
                stops.push_back(n);
            }
        }
        child.kill_it();
        return child.traced() ? stops : std::vector<uint32_t>{};
    }

    uint32_t count_;
    Begin begin_;
};

TEST(LedgerFrequencyProcesses, KilledAtAnyInstruction) {
    // In an empty bucket; in a ring with two; where another is thrown out for it.
    for (const uint32_t kind : {0u, 1u, 2u}) {
        SCOPED_TRACE(kind);
        Scene scene(3, [&](Memory& memory) {
            if (kind == 1) {
                memory.drain(5, 2);
            }
            for (uint64_t s = 10; kind == 2 && s < 10 + FrequencyBucket::kEntries; s++) {
                memory.take(s, 1, kNow - 5);
            }
        });
        scene.at_each_instruction([&](Memory& memory, const Stepped& child) {
            child.kill_it();
            uint32_t total = memory.drain(5, 3) + (kind == 1 ? 2 : 0);
            EXPECT_TRUE(total >= 2 || kind == 2)
                << "where there is room, nobody waits for the dead";
            total += memory.drain(5, 3, kNow + 3);
            EXPECT_LE(total + scene.shared->served, 3u);
            EXPECT_GE(total, 2u);
        });
    }
}

// The others do all they can while it sleeps; then it goes on where it was.
TEST(LedgerFrequencyProcesses, AsleepAtAnyInstruction) {
    for (const uint32_t later : {0u, 10u}) {      // within the time of a claim, and after it
        for (const uint32_t first : {0u, 12u}) {  // serves long ago
            SCOPED_TRACE(testing::Message() << later << " s, " << first << " before");
            Scene scene(12, [&](Memory& memory) {
                for (uint32_t i = 0; i < first; i++) {
                    memory.take(5, 12, kNow - 1000 + i);
                }
            });
            scene.at_each_instruction([&](Memory& memory, const Stepped& child) {
                const uint32_t now = kNow + later;
                uint32_t total = 0;
                for (int i = 0; i < 5; i++) {
                    total += memory.take(5, 12, now) ? 1 : 0;
                }
                // Others come into the bucket, up to what it holds.
                std::array<uint32_t, FrequencyBucket::kEntries - 1> others{};
                for (uint64_t s = 0; s < others.size(); s++) {
                    others[s] = memory.drain(10 + s, 1, now);
                    EXPECT_TRUE(others[s] == 1 || later == 0);
                }
                child.finish();
                total += memory.drain(5, 12, now);
                EXPECT_EQ(total + scene.shared->served, 12u);
                EXPECT_EQ(memory.table.evicted(), 0u);
                for (uint64_t s = 0; s < others.size(); s++) {
                    EXPECT_EQ(others[s] + memory.drain(10 + s, 1, now), 1u);
                }
            });
        }
    }
}

}  // namespace
