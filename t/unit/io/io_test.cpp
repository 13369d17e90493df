// The spool, files and processes.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <vector>

#include "io/file.hpp"
#include "io/process.hpp"
#include "io/spool.hpp"
#include "temp_folder.hpp"

namespace {

using namespace ads;

constexpr Millis kNow = 1'794'787'200'123;
constexpr ProcessId kNobody = ProcessId{77} << 32 | 0x7fff'0001;  // beyond any pid there can be
constexpr ProcessId kNobodyElse = ProcessId{77} << 32 | 0x7fff'0002;
constexpr uint32_t kNode = 0xdeadbeef;
constexpr size_t kLarge = 64 << 20;

Event event(uint64_t serve) {
    return {.type = EventType::impression, .time = kNow, .issued = kNow, .serve = serve};
}

size_t record_size() {
    std::string text(kMaxRecord, '\0');
    return write_record(event(1), text);
}

std::vector<uint64_t> serves_in(const std::string& path, SegmentEnd* end = nullptr) {
    std::vector<uint64_t> serves;
    const SegmentEnd read =
        each_event(TempFolder::read(path), [&](const Event& e) { serves.push_back(e.serve); });
    if (end != nullptr) {
        *end = read;
    } else {
        EXPECT_EQ(read.torn + read.damaged_bytes, 0u) << path;
    }
    return serves;
}

std::vector<uint64_t> serves_in_all(const std::string& folder) {
    std::vector<uint64_t> all;
    for (const std::string& path : spool_segments(folder)) {
        const auto serves = serves_in(path);
        all.insert(all.end(), serves.begin(), serves.end());
    }
    return all;
}

using Serves = std::vector<uint64_t>;

Serves range(uint64_t first, uint64_t last) {
    Serves list;
    for (uint64_t i = first; i <= last; i++) {
        list.push_back(i);
    }
    return list;
}

class SpoolTest : public testing::Test {
protected:
    void open(Spool& spool, size_t segment = kLarge, ProcessId process = kNobody) {
        spool.configure(folder_.path(), segment, process, kNode);
    }

    static void append(Spool& spool, uint64_t first, uint64_t last) {
        for (uint64_t i = first; i <= last; i++) {
            ASSERT_TRUE(spool.append(event(i)));
        }
    }

    std::string only_segment() {
        const auto segments = spool_segments(folder_.path());
        EXPECT_EQ(segments.size(), 1u);
        return segments.empty() ? "" : segments[0];
    }

    Adopted adopt(ProcessId of, Serves& seen) {
        return adopt_segments(folder_.path(), of, &seen, [](void* data, const Event& e) {
            static_cast<Serves*>(data)->push_back(e.serve);
        });
    }

    TempFolder folder_;
};

TEST_F(SpoolTest, NothingToWriteLeavesNoFile) {
    Spool spool;
    open(spool);
    const Flushed flushed = spool.flush(kNow);
    EXPECT_EQ(flushed.written, 0u);
    EXPECT_EQ(flushed.dropped, 0u);
    spool.close();
    EXPECT_TRUE(spool_segments(folder_.path()).empty());
}

TEST_F(SpoolTest, WritesWhatWasAppended) {
    Spool spool;
    open(spool);
    append(spool, 1, 100);
    EXPECT_EQ(spool.pending(), 100u);
    EXPECT_TRUE(spool_segments(folder_.path()).empty()) << "nothing before the flush";
    Flushed flushed = spool.flush(kNow);
    EXPECT_EQ(flushed.written, 100u);
    EXPECT_EQ(flushed.dropped, 0u);
    EXPECT_EQ(flushed.error, 0);
    EXPECT_EQ(spool.pending(), 0u);
    EXPECT_EQ(serves_in(only_segment()), range(1, 100));
    EXPECT_TRUE(only_segment().ends_with(".open"));

    append(spool, 101, 150);
    spool.flush(kNow + 1000);
    EXPECT_EQ(serves_in(only_segment()), range(1, 150)) << "one segment, in order";
    EXPECT_EQ(spool_use(folder_.path()).segments, 1u);
    EXPECT_EQ(spool_use(folder_.path()).bytes, kSegmentHead + 150 * record_size());

    spool.close();
    EXPECT_TRUE(only_segment().ends_with(".seg"));
    EXPECT_EQ(serves_in(only_segment()), range(1, 150));
}

TEST_F(SpoolTest, ANewSegmentAtItsSize) {
    Spool spool;
    open(spool, 1000);
    for (uint64_t i = 0; i < 20; i++) {
        append(spool, 10 * i + 1, 10 * i + 10);
        EXPECT_EQ(spool.flush(kNow + static_cast<Millis>(i)).written, 10u);
    }
    const auto segments = spool_segments(folder_.path());
    EXPECT_GT(segments.size(), 5u);
    for (const std::string& path : segments) {
        const size_t size = TempFolder::read(path).size();
        EXPECT_EQ(path.ends_with(".seg"), size >= 1000) << path;
        EXPECT_LT(size, 1000 + 10 * record_size()) << "not larger than one turn allows";
    }
    EXPECT_EQ(serves_in_all(folder_.path()), range(1, 200)) << "oldest first";
}

TEST_F(SpoolTest, SegmentsOfOneMillisecondHaveTheirOwnNames) {
    Spool spool;
    open(spool, 1);
    for (uint64_t i = 1; i <= 5; i++) {
        append(spool, i, i);
        EXPECT_EQ(spool.flush(kNow).written, 1u);
    }
    EXPECT_EQ(spool_segments(folder_.path()).size(), 5u);
    EXPECT_EQ(serves_in_all(folder_.path()), range(1, 5));
}

TEST_F(SpoolTest, TheBufferIsBounded) {
    Spool spool;
    open(spool);
    EXPECT_TRUE(spool.has_room());
    const std::string text(4096, 'x');
    Event big = event(1);
    big.metadata = text;
    uint32_t count = 0;
    uint32_t when_tight = 0;
    while (spool.append(big)) {
        count++;
        if (!spool.has_room() && when_tight == 0) {
            when_tight = count;
        }
        ASSERT_LT(count, 100'000u);
    }
    EXPECT_GT(when_tight, 0u);
    EXPECT_GE(count - when_tight, 63u) << "has_room() says no while there is some";
    EXPECT_EQ(spool.flush(kNow).written, count);
    EXPECT_TRUE(spool.append(big));
}

// What a file's size may be, for the length of a scope.
class FileLimit {
public:
    explicit FileLimit(rlim_t most) {
        signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{most, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

private:
    rlimit before_;
};

TEST_F(SpoolTest, AFullDiskDropsWholeRecordsAndSaysHowMany) {
    const size_t record = record_size();
    for (const size_t room : {size_t{0}, size_t{1}, record - 1, record, record + 1, 4 * record,
                              5 * record - 1, 9 * record + 7}) {
        SCOPED_TRACE(room);
        TempFolder folder;
        Spool spool;
        spool.configure(folder.path(), kLarge, kNobody, kNode);
        append(spool, 1, 3);
        ASSERT_EQ(spool.flush(kNow).written, 3u);
        append(spool, 4, 13);
        Flushed flushed;
        Flushed again;
        {
            const FileLimit limit(kSegmentHead + 3 * record + room);
            flushed = spool.flush(kNow);
            spool.append(event(50));
            again = spool.flush(kNow);
        }
        const auto fit = static_cast<uint32_t>(room / record);
        EXPECT_EQ(flushed.written, fit);
        EXPECT_EQ(flushed.dropped, 10 - fit);
        EXPECT_EQ(flushed.error, EFBIG);
        EXPECT_EQ(again.written, 0u);
        EXPECT_EQ(again.dropped, 1u);
        EXPECT_EQ(again.error, EFBIG);
        EXPECT_EQ(spool.pending(), 0u);
        EXPECT_EQ(serves_in_all(folder.path()), range(1, 3 + fit)) << "cut to whole records";

        spool.append(event(99));
        EXPECT_EQ(spool.flush(kNow).written, 1u) << "it goes on by itself";
        auto expected = range(1, 3 + fit);
        expected.push_back(99);
        EXPECT_EQ(serves_in_all(folder.path()), expected);
    }
}

TEST_F(SpoolTest, ADiskTooFullForEvenTheHead) {
    Spool spool;
    open(spool);
    append(spool, 1, 4);
    Flushed flushed;
    {
        const FileLimit limit(kSegmentHead - 1);
        flushed = spool.flush(kNow);
    }
    EXPECT_EQ(flushed.written, 0u);
    EXPECT_EQ(flushed.dropped, 4u);
    EXPECT_EQ(flushed.error, EFBIG);
    EXPECT_TRUE(spool_segments(folder_.path()).empty()) << "no half a head is left";
    append(spool, 5, 6);
    EXPECT_EQ(spool.flush(kNow).written, 2u);
    EXPECT_EQ(serves_in_all(folder_.path()), range(5, 6));
}

TEST_F(SpoolTest, AFolderThatIsNotThere) {
    const std::string missing = folder_.file("later");
    Spool spool;
    spool.configure(missing, kLarge, kNobody, kNode);
    append(spool, 1, 7);
    const Flushed flushed = spool.flush(kNow);
    EXPECT_EQ(flushed.written, 0u);
    EXPECT_EQ(flushed.dropped, 7u);
    EXPECT_EQ(flushed.error, ENOENT);
    EXPECT_EQ(spool_use(missing).segments, 0u);
    EXPECT_TRUE(spool_segments(missing).empty());
    std::filesystem::create_directory(missing);
    append(spool, 8, 9);
    EXPECT_EQ(spool.flush(kNow).written, 2u);
    EXPECT_EQ(serves_in_all(missing), range(8, 9));
}

TEST_F(SpoolTest, OtherFilesAreLeftAlone) {
    TempFolder::write(folder_.file("README"), "x");
    TempFolder::write(folder_.file("state.bad"), "x");
    EXPECT_EQ(spool_use(folder_.path()).segments, 0u);
    EXPECT_TRUE(spool_segments(folder_.path()).empty());
    Serves seen;
    EXPECT_EQ(adopt(0, seen).segments, 0u);
    EXPECT_TRUE(std::filesystem::exists(folder_.file("README")));
}

// A worker that is gone without a word: its file keeps the name of an open one.
void abandoned(const std::string& folder, ProcessId process, uint64_t first, uint64_t last,
               Millis now = kNow) {
    Spool spool;
    spool.configure(folder, kLarge, process, kNode);
    for (uint64_t i = first; i <= last; i++) {
        ASSERT_TRUE(spool.append(event(i)));
    }
    ASSERT_EQ(spool.flush(now).dropped, 0u);
}

TEST_F(SpoolTest, TheSegmentOfADeadWorkerIsClosed) {
    abandoned(folder_.path(), kNobody, 1, 5);
    ASSERT_TRUE(only_segment().ends_with(".open"));
    Serves seen;
    const Adopted adopted = adopt(0, seen);
    EXPECT_EQ(adopted.segments, 1u);
    EXPECT_EQ(adopted.cut, 0u);
    EXPECT_EQ(seen, range(1, 5));
    EXPECT_TRUE(only_segment().ends_with(".seg"));
    EXPECT_EQ(serves_in(only_segment()), range(1, 5));
    EXPECT_EQ(adopt(0, seen).segments, 0u) << "once";
}

TEST_F(SpoolTest, ATornTailIsCut) {
    std::string record(kMaxRecord, '\0');
    record.resize(write_record(event(9), record));
    for (size_t torn = 1; torn < record.size(); torn++) {
        TempFolder folder;
        abandoned(folder.path(), kNobody, 1, 2);
        TempFolder::append(spool_segments(folder.path()).at(0), record.substr(0, torn));
        Serves seen;
        const Adopted adopted = adopt_segments(
            folder.path(), kNobody, &seen,
            [](void* data, const Event& e) { static_cast<Serves*>(data)->push_back(e.serve); });
        ASSERT_EQ(adopted.segments, 1u);
        ASSERT_EQ(adopted.cut, torn);
        ASSERT_EQ(seen, range(1, 2));
        ASSERT_EQ(serves_in_all(folder.path()), range(1, 2));
    }
}

TEST_F(SpoolTest, ADamagedSegmentIsNotCut) {
    abandoned(folder_.path(), kNobody, 1, 5);
    const std::string path = only_segment();
    std::string text = TempFolder::read(path);
    text[kSegmentHead + 2 * record_size() + 30] ^= 4;
    TempFolder::write(path, text);
    Serves seen;
    const Adopted adopted = adopt(0, seen);
    EXPECT_EQ(adopted.cut, 0u);
    EXPECT_EQ(seen, (Serves{1, 2, 4, 5})) << "only the damaged one is lost";
    EXPECT_EQ(TempFolder::read(only_segment()), text) << "it is there to be looked at";
    ASSERT_EQ(adopted.damaged.size(), 1u);
    EXPECT_EQ(adopted.damaged[0].path, only_segment());
    EXPECT_EQ(adopted.damaged[0].end.damaged_records, 1u);
    EXPECT_EQ(adopted.damaged[0].end.damaged_bytes, record_size());
}

// A length that is damaged looks like a record that goes on behind the end of the file.
TEST_F(SpoolTest, ADamagedLengthIsNoTornTail) {
    abandoned(folder_.path(), kNobody, 1, 5);
    const std::string path = only_segment();
    std::string text = TempFolder::read(path);
    text[kSegmentHead + 2 * record_size() + 1] ^= 8;
    TempFolder::write(path, text);
    Serves seen;
    EXPECT_EQ(adopt(0, seen).cut, 0u);
    EXPECT_EQ(seen, (Serves{1, 2, 4, 5}));
    EXPECT_EQ(TempFolder::read(only_segment()), text);
}

TEST_F(SpoolTest, TheSegmentOfALivingWorkerStays) {
    abandoned(folder_.path(), this_process(), 1, 5);
    Serves seen;
    EXPECT_EQ(adopt(0, seen).segments, 0u);
    EXPECT_EQ(adopt(this_process(), seen).segments, 0u);
    EXPECT_TRUE(only_segment().ends_with(".open"));
    EXPECT_TRUE(seen.empty());
    // The same pid, started at another time, is another process.
    TempFolder folder;
    abandoned(folder.path(), this_process() ^ ProcessId{1} << 32, 1, 5);
    EXPECT_EQ(adopt_segments(folder.path(), 0, nullptr, [](void*, const Event&) {}).segments, 1u);
}

TEST_F(SpoolTest, WhoHoldsTheLockKeepsTheSegment) {
    Spool spool;
    open(spool);
    append(spool, 1, 5);
    spool.flush(kNow);
    Serves seen;
    EXPECT_EQ(adopt(0, seen).segments, 0u);
    EXPECT_TRUE(only_segment().ends_with(".open"));
}

TEST_F(SpoolTest, OnlyTheSegmentsOfTheOneAskedFor) {
    abandoned(folder_.path(), kNobody, 1, 5);
    abandoned(folder_.path(), kNobodyElse, 6, 9);
    Serves seen;
    EXPECT_EQ(adopt(kNobodyElse, seen).segments, 1u);
    EXPECT_EQ(seen, range(6, 9));
    EXPECT_EQ(adopt(0, seen).segments, 1u);
}

TEST_F(SpoolTest, TheLastClosedSegmentIsLookedAtToo) {
    {
        Spool spool;
        open(spool, 1);
        append(spool, 1, 2);
        spool.flush(kNow);
        append(spool, 3, 4);
        spool.flush(kNow + 1);  // it dies before it settles 3 and 4
    }
    Serves seen;
    EXPECT_EQ(adopt(kNobody, seen).segments, 0u);
    EXPECT_EQ(seen, range(3, 4));
}

TEST(Segment, ForeignAndShortFiles) {
    const auto end_of = [](const std::string& text) {
        return each_event(text, [](const Event&) {});
    };
    const std::string head = "adspool1" + std::string(24, '\0');
    EXPECT_FALSE(end_of("").foreign);
    EXPECT_FALSE(end_of("adspo").foreign) << "torn in its head";
    EXPECT_EQ(end_of("adspo").torn, 5u);
    EXPECT_EQ(end_of(head.substr(0, 31)).torn, 31u);
    EXPECT_EQ(end_of(head).torn, 0u);
    EXPECT_EQ(end_of(head).damaged_bytes, 0u);
    EXPECT_TRUE(end_of("adspool2" + head.substr(8)).foreign);
    EXPECT_TRUE(end_of(std::string(100, 'x')).foreign);
    EXPECT_EQ(end_of(std::string(100, 'x')).damaged_bytes, 100u);
    EXPECT_TRUE(end_of("x").foreign);
    EXPECT_EQ(end_of(head + std::string(200, '\0')).torn, 200u)
        << "a tail of zeros is torn: a crash of the machine leaves such";
    EXPECT_EQ(end_of(std::string(200, '\0')).torn, 200u);
    EXPECT_EQ(end_of(head + std::string(200, '\0') + "x").damaged_bytes, 201u)
        << "zeros are no record";
}

// A child that waits to be told to end.
class Child {
public:
    Child() {
        int said[2];
        EXPECT_EQ(pipe(said), 0);
        pid_ = fork();
        if (pid_ == 0) {
            const ProcessId me = this_process();
            const bool sent = write(said[1], &me, sizeof me) == sizeof me;
            pause();
            _exit(sent ? 0 : 1);
        }
        EXPECT_EQ(read(said[0], &process, sizeof process), static_cast<ssize_t>(sizeof process));
        close(said[0]);
        close(said[1]);
    }
    ~Child() {
        if (!reaped_) {
            kill_it();
            reap();
        }
    }
    void kill_it() { kill(pid_, SIGKILL); }
    void await_zombie() {
        siginfo_t info{};
        EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
    }
    void reap() {
        EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
        reaped_ = true;
    }

    ProcessId process = 0;

private:
    pid_t pid_ = 0;
    bool reaped_ = false;
};

TEST(Process, KnowsTheLivingAndTheDead) {
    const ProcessId me = this_process();
    EXPECT_EQ(pid_of(me), static_cast<uint32_t>(getpid()));
    EXPECT_NE(me >> 32, 0u);
    EXPECT_EQ(this_process(), me);
    EXPECT_TRUE(process_alive(me));
    EXPECT_TRUE(process_alive(pid_of(me))) << "without a start time";
    EXPECT_FALSE(process_alive(me ^ ProcessId{1} << 32)) << "another with the same pid";
    EXPECT_FALSE(process_alive(0));
    EXPECT_FALSE(process_alive(kNobody));
    EXPECT_TRUE(process_alive(1)) << "there is always one";

    Child child;
    EXPECT_NE(child.process, me);
    EXPECT_TRUE(process_alive(child.process));
    child.kill_it();
    child.await_zombie();
    EXPECT_FALSE(process_alive(child.process)) << "a zombie holds nothing";
    EXPECT_FALSE(process_alive(pid_of(child.process)));
    child.reap();
    EXPECT_FALSE(process_alive(child.process));
}

TEST(File, ReadsWhole) {
    TempFolder folder;
    std::string text;
    EXPECT_EQ(read_file(folder.file("none").c_str(), text), ENOENT);
    EXPECT_EQ(read_file(folder.path().c_str(), text), EISDIR);
    EXPECT_EQ(mark_of(folder.file("none").c_str()), FileMark());
    for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, size_t{200'001}}) {
        std::string written(size, '\0');
        for (size_t i = 0; i < size; i++) {
            written[i] = static_cast<char>(i * 31);
        }
        TempFolder::write(folder.file("f"), written);
        FileMark mark;
        text = "left over";
        EXPECT_EQ(read_file(folder.file("f").c_str(), text, &mark), 0);
        EXPECT_EQ(text, written);
        EXPECT_EQ(mark, mark_of(folder.file("f").c_str()));
        EXPECT_EQ(mark.size, static_cast<int64_t>(size));
    }
}

TEST(File, AMarkTellsAnyChange) {
    TempFolder folder;
    const std::string path = folder.file("f");
    TempFolder::write(path, "one");
    const auto set_time = [&](long ns) {
        const timespec times[2] = {{1000, 0}, {1000, ns}};
        ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    };
    set_time(1);
    const FileMark first = mark_of(path.c_str());
    set_time(2);
    const FileMark touched = mark_of(path.c_str());
    EXPECT_NE(touched, first) << "one nanosecond";
    TempFolder::append(path, "!");
    set_time(2);
    EXPECT_NE(mark_of(path.c_str()), touched) << "the size";
    TempFolder::write(folder.file("g"), "one!");
    const FileMark longer = mark_of(path.c_str());
    std::filesystem::rename(folder.file("g"), path);
    set_time(2);
    EXPECT_NE(mark_of(path.c_str()), longer) << "another file";
}

}  // namespace
