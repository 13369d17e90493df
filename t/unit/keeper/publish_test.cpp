// Publishing a catalog, and editing it live.
#include "keeper/publish.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "io/process.hpp"
#include "ledger_memory.hpp"
#include "temp_folder.hpp"

namespace {

using namespace ads;

using Outcome = Edit;

constexpr Seconds kNow = 1'794'830'400;  // 2026-11-16T12:00:00Z

std::string catalog_of(const std::vector<Id>& groups) {
    std::string list;
    for (const Id id : groups) {
        list +=
            (list.empty() ? "" : ", ") + (R"({"id": )" + std::to_string(id)) +
            R"(, "creatives": [{"id": )" + std::to_string(id + 1000) +
            R"(, "type": "native", "content": {"t": "x"}, "click_url": "https://a.example/"}]})";
    }
    return R"({"placements": [{"id": "p"}], "campaigns": [{"id": 1, "ad_groups": [)" + list +
           "]}]}";
}

class PublishTest : public testing::Test {
protected:
    PublishTest()
        : zone_memory_(Zone::kSmallest),
          state_memory_(State::size(64, kSlots)),
          path_(folder_.file("catalog.json")) {
        Zone::format(zone_memory_.span());
        State::format(state_memory_.span(), 64, kSlots, 1);
        target_.zone = Zone::attach(zone_memory_.data());
        target_.state = State::attach(state_memory_.data());
        term_ = target_.zone.next_term();
    }

    // Each save has a time of its own, however fast they follow each other.
    void save(const std::string& text) {
        TempFolder::write(path_, text);
        touch();
    }
    void touch() {
        const timespec times[2] = {{1000 + ++saves_, 0}, {1000 + saves_, 0}};
        ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
    }

    CatalogFile& editor() {
        if (editor_ == nullptr) {
            CatalogContext context;
            context.now = [this] { return now_; };
            context.term = [this] { return term_; };
            editor_ = std::make_unique<CatalogFile>(path_, target_, this_process(), alarm_,
                                                    std::move(context));
        }
        return *editor_;
    }

    EditReport outcome(Seconds now = kNow) {
        now_ = now;
        return editor().look();
    }

    std::string zone_error() {
        std::string text(2000, '\0');
        text.resize(target_.zone.error(text));
        return text;
    }

    Publish publish(const std::string& json, uint32_t* without = nullptr) {
        const auto compiled = catalog::compile(json, kNow);
        EXPECT_TRUE(compiled.ok());
        uint32_t unused = 0;
        return publish_image(target_, compiled.bytes, this_process(), target_.zone.term(), kNow,
                             without == nullptr ? unused : *without);
    }

    Image image() {
        if (pin_ == kNone) {
            pin_ = target_.zone.enter(this_process(), process_alive);
        }
        uint64_t generation = 0;
        return target_.zone.pin(pin_, generation);
    }

    static constexpr uint32_t kSlots = 4;
    TempFolder folder_;
    ledger_test::Memory zone_memory_;
    ledger_test::Memory state_memory_;
    std::string path_;
    Target target_;
    std::unique_ptr<CatalogFile> editor_;
    uint32_t pin_ = kNone;
    long saves_ = 0;
    Term term_ = 0;
    Seconds now_ = kNow;
    Alarm alarm_;
};

TEST_F(PublishTest, GroupsGetTheirSlots) {
    uint32_t without = 99;
    ASSERT_EQ(publish(catalog_of({12, 13}), &without), Publish::done);
    EXPECT_EQ(without, 0u);
    const Image first = image();
    const uint32_t slot = first.group_slots()[first.find_group(13)].counters;
    ASSERT_LT(slot, kSlots);
    EXPECT_EQ(target_.state.slot(slot).head.id.load(), 13u);
    EXPECT_NE(first.group_slots()[first.find_group(12)].counters, slot);

    ASSERT_EQ(publish(catalog_of({14, 13}), &without), Publish::done);
    const Image second = image();
    EXPECT_EQ(second.group_slots()[second.find_group(13)].counters, slot) << "as before";
}

TEST_F(PublishTest, MoreGroupsThanSlots) {
    uint32_t without = 0;
    ASSERT_EQ(publish(catalog_of({1, 2, 3, 4, 5, 6}), &without), Publish::done);
    EXPECT_EQ(without, 2u);
    int none = 0;
    for (uint32_t i = 0; i < 6; i++) {
        none += image().group_slots()[i].counters == kNone;
    }
    EXPECT_EQ(none, 2);
}

TEST_F(PublishTest, TheStateFileGrowsWithTheCatalog) {
    StateFile file;
    std::string error;
    std::string notice;
    ASSERT_TRUE(file.open(folder_.file("state"), 1 << 12, error, notice)) << error;
    target_.state = file.state();
    target_.file = &file;
    const uint32_t before = file.state().slots();
    std::vector<Id> ids;
    for (Id id = 1; id <= before + 10; id++) {
        ids.push_back(id);
    }
    ledger_test::Memory large(64 << 20);
    Zone::format(large.span());
    target_.zone = Zone::attach(large.data());
    uint32_t without = 99;
    ASSERT_EQ(publish(catalog_of(ids), &without), Publish::done);
    EXPECT_EQ(without, 0u);
    EXPECT_GT(file.state().slots(), before);
}

TEST_F(PublishTest, DescribesEveryError) {
    const auto compiled = catalog::compile(R"({"campaigns": [{"id": 0}, {"name": 3}]})", kNow);
    ASSERT_FALSE(compiled.ok());
    const std::string text = describe(compiled);
    EXPECT_NE(text.find("$.campaigns[0].id: "), std::string::npos) << text;
    EXPECT_NE(text.find("\n$.campaigns[1]"), std::string::npos) << text;
    catalog::Compiled many;
    many.errors.push_back({"$", "bad"});
    many.more_errors = 17;
    EXPECT_NE(describe(many).find("17 more"), std::string::npos);
}

TEST_F(PublishTest, TheFirstIsPublished) {
    save(catalog_of({12}));
    const auto report = outcome();
    EXPECT_EQ(report.outcome, Outcome::published);
    EXPECT_EQ(report.generation, 1u);
    EXPECT_NE(image().find_group(12), kNone);
}

TEST_F(PublishTest, WhatTheMasterPublishedIsUnchanged) {
    save(catalog_of({12}));
    ASSERT_EQ(publish(catalog_of({12})), Publish::done);
    EXPECT_EQ(outcome().outcome, Outcome::unchanged);
    EXPECT_EQ(target_.zone.generation(), 1u);
    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(outcome(kNow).outcome, Outcome::none) << "and not read again";
    }
    touch();
    EXPECT_EQ(outcome().outcome, Outcome::unchanged);
    EXPECT_EQ(target_.zone.generation(), 1u);
}

TEST_F(PublishTest, EditsArePublishedRefusedAndMended) {
    save(catalog_of({12}));
    ASSERT_EQ(outcome().outcome, Outcome::published);
    save(catalog_of({12, 13}));
    auto report = outcome();
    EXPECT_EQ(report.outcome, Outcome::published);
    EXPECT_EQ(report.generation, 2u);

    save(R"({"campaigns": [{"id": "x"}]})");
    report = outcome();
    EXPECT_EQ(report.outcome, Outcome::refused);
    EXPECT_NE(report.text.find("$.campaigns[0].id: "), std::string::npos) << report.text;
    EXPECT_EQ(zone_error(), report.text);
    EXPECT_EQ(target_.zone.generation(), 2u) << "the last good one serves on";
    EXPECT_NE(image().find_group(13), kNone);

    save(catalog_of({12, 13}));
    EXPECT_EQ(outcome().outcome, Outcome::unchanged);
    EXPECT_EQ(zone_error(), "");

    save("{");
    EXPECT_EQ(outcome().outcome, Outcome::refused);
    EXPECT_NE(zone_error(), "");
    save(catalog_of({14}));
    EXPECT_EQ(outcome().outcome, Outcome::published);
    EXPECT_EQ(zone_error(), "");
    EXPECT_EQ(image().find_group(13), kNone);
}

TEST_F(PublishTest, AFileThatIsGone) {
    save(catalog_of({12}));
    ASSERT_EQ(outcome().outcome, Outcome::published);
    std::filesystem::remove(path_);
    const auto report = outcome();
    EXPECT_EQ(report.outcome, Outcome::unread);
    EXPECT_NE(report.text.find(path_), std::string::npos);
    EXPECT_NE(report.text.find("No such file"), std::string::npos);
    const auto unreadable = [&] {
        std::string text(2000, '\0');
        text.resize(target_.zone.head().unreadable.get(text));
        return text;
    };
    EXPECT_EQ(unreadable(), report.text);
    EXPECT_EQ(zone_error(), "") << "nothing was refused";
    EXPECT_EQ(outcome(kNow).outcome, Outcome::none) << "said once";
    save(catalog_of({12}));
    EXPECT_EQ(outcome().outcome, Outcome::unchanged);
    EXPECT_EQ(unreadable(), "");
}

// What cannot be read for a moment is read again, though the file has not changed.
TEST_F(PublishTest, AReadErrorThatPasses) {
    save(catalog_of({12}));
    ASSERT_EQ(outcome().outcome, Outcome::published);
    save(catalog_of({12, 13}));
    rlimit files{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    const rlimit none{0, files.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const auto report = outcome();
    for (int i = 0; i < 100; i++) {
        EXPECT_EQ(outcome(kNow).outcome, Outcome::none) << "said once";
    }
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    EXPECT_EQ(report.outcome, Outcome::unread);
    EXPECT_NE(report.text.find("Too many open files"), std::string::npos) << report.text;
    EXPECT_EQ(outcome().outcome, Outcome::published);
}

// The openings are known for some days only: a new day compiles anew.
TEST_F(PublishTest, ANewDayIsANewImage) {
    save(catalog_of({12}));
    ASSERT_EQ(outcome().outcome, Outcome::published);
    EXPECT_EQ(outcome(kNow + 3600).outcome, Outcome::none);
    const auto report = outcome(kNow + 86'400);
    EXPECT_EQ(report.outcome, Outcome::published);
    EXPECT_EQ(report.generation, 2u);
    EXPECT_EQ(image().head().compiled_at, kNow + 86'400);
}

TEST_F(PublishTest, TooLargeSaysWhatWouldDo) {
    ledger_test::Memory small(Zone::kSmallest);
    Zone::format(small.span());
    target_.zone = Zone::attach(small.data());
    term_ = target_.zone.next_term();
    std::vector<Id> ids;
    for (Id id = 1; id < 5000; id++) {
        ids.push_back(id);
    }
    save(catalog_of(ids));
    const auto report = outcome();
    EXPECT_EQ(report.outcome, Outcome::refused);
    EXPECT_EQ(zone_error(), report.text);
    const size_t at = report.text.find("ads_zone to at least ");
    ASSERT_NE(at, std::string::npos) << report.text;
    const size_t advised = std::stoul(report.text.substr(at + 21)) << 20;
    EXPECT_GE(Zone::capacity(advised), catalog::compile(catalog_of(ids), kNow).bytes.size());
}

TEST_F(PublishTest, AReaderThatLagsIsWaitedFor) {
    save(catalog_of({12}));
    ASSERT_EQ(outcome().outcome, Outcome::published);
    image();
    save(catalog_of({13}));
    ASSERT_EQ(outcome().outcome, Outcome::published);
    save(catalog_of({14, 15}));
    EXPECT_EQ(outcome().outcome, Outcome::waits) << "we still read the first";
    EXPECT_EQ(target_.zone.head().waits_for.load(), this_process());
    EXPECT_EQ(target_.zone.generation(), 2u);
    EXPECT_EQ(image().find_group(14), kNone);
    EXPECT_EQ(outcome().outcome, Outcome::published) << "without another edit";
    EXPECT_NE(image().find_group(14), kNone);
}

TEST_F(PublishTest, AnotherConfigurationHasTakenOver) {
    save(catalog_of({12}));
    ASSERT_EQ(outcome().outcome, Outcome::published);
    const Term taken = target_.zone.next_term();
    save(catalog_of({13}));
    EXPECT_EQ(outcome().outcome, Outcome::outdated);
    EXPECT_EQ(target_.zone.generation(), 1u);
    EXPECT_NE(image().find_group(12), kNone);
    term_ = taken;
    EXPECT_EQ(outcome().outcome, Outcome::published) << "it is read again, without another edit";
    EXPECT_NE(image().find_group(13), kNone);
}

// A keeper is stopped when it has read the document, another one takes over and publishes an
// edit, and the first one goes on.
TEST_F(PublishTest, ALateCompileDoesNotOverwriteANewerCatalog) {
    Zone zone = target_.zone;
    CatalogPublisher first(target_, this_process(), alarm_);
    CatalogPublisher second(target_, this_process(), alarm_);
    const Term first_term = zone.next_term();
    const Term second_term = zone.next_term();
    ASSERT_EQ(second.publish(catalog_of({2}), second_term, kNow).outcome, Outcome::published);
    EXPECT_EQ(first.publish(catalog_of({1}), first_term, kNow).outcome, Outcome::outdated);
    EXPECT_NE(image().find_group(2), kNone) << "the newer catalog is served";
    EXPECT_EQ(image().find_group(1), kNone);
    EXPECT_EQ(zone.generation(), 1u);
}

// Memory that a forked process shares.
std::span<std::byte> shared_memory(size_t size) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return {static_cast<std::byte*>(memory), size};
}

// Runs f in another process, until that has stopped itself.
template <class F>
pid_t stopped_process(F f) {
    const pid_t pid = fork();
    if (pid == 0) {
        f();
        _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, WUNTRACED), pid);
    EXPECT_TRUE(WIFSTOPPED(status));
    return pid;
}

int ended_by(pid_t pid) {
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

// A keeper is stopped with the half of the zone before it, while it fills that. Its successor
// publishes, and it does not go on.
TEST_F(PublishTest, APublisherStoppedInTheMiddleIsEnded) {
    const auto memory = shared_memory(Zone::kSmallest);
    Zone::format(memory);
    target_.zone = Zone::attach(memory.data());
    const Term late = target_.zone.next_term();
    const auto old = catalog::compile(catalog_of({1}), kNow);
    const pid_t pid = stopped_process([&] {
        target_.zone.publish(old.bytes, this_process(), late, kNow, process_alive,
                             [](char*) { return raise(SIGSTOP) == 0; });
    });
    CatalogPublisher publisher(target_, this_process(), alarm_);
    const Term term = target_.zone.next_term();
    Edit outcome = Edit::waits;
    for (int i = 0; i < 60 && outcome == Edit::waits; i++) {
        outcome = publisher.publish(catalog_of({2}), term, kNow).outcome;
    }
    EXPECT_EQ(outcome, Edit::published);
    EXPECT_EQ(ended_by(pid), SIGKILL);
    EXPECT_NE(image().find_group(2), kNone);
}

// During a binary upgrade the keeper of the other master was stopped while it gave out slots: the
// zone is not held meanwhile, and the status names who is in the way.
TEST_F(PublishTest, AKeeperStoppedWithTheStateFileIsWaitedFor) {
    StateFile file;
    std::string error;
    std::string notice;
    ASSERT_TRUE(file.open(folder_.file("state"), 1 << 12, error, notice)) << error;
    target_.state = file.state();
    target_.file = &file;
    const pid_t pid = stopped_process([&] {
        file.lock();
        raise(SIGSTOP);
    });
    EXPECT_EQ(publish(catalog_of({1})), Publish::busy);
    EXPECT_EQ(target_.zone.head().waits_for.load(), static_cast<ProcessId>(pid));
    EXPECT_EQ(target_.zone.head().publisher.load(), 0u);
    kill(pid, SIGCONT);
    EXPECT_EQ(ended_by(pid), 0);
    EXPECT_EQ(publish(catalog_of({1})), Publish::done);
}

TEST_F(PublishTest, ADocumentThatKilledTwoKeepersIsRefused) {
    const std::string text = catalog_of({12});
    KeeperLife& life = target_.zone.head().keeper;
    life.suspect.store(catalog::document_hash(text, kNow));
    life.killed.store(2);
    save(text);
    EXPECT_EQ(outcome().outcome, Outcome::refused);
    EXPECT_NE(zone_error(), "");
    save(catalog_of({12, 13}));
    EXPECT_EQ(outcome().outcome, Outcome::published);
    EXPECT_EQ(zone_error(), "");
    EXPECT_EQ(life.compiling.load(), 0u);
}

// ---- ad groups come and go ----

class Churn {
public:
    explicit Churn(uint32_t groups) {
        while (ids_.size() < groups) {
            ids_.push_back(++last_);
        }
    }

    // A tenth of the groups is replaced by new ones.
    void next_day() {
        for (size_t i = day_++ % 10; i < ids_.size(); i += 10) {
            ids_[i] = ++last_;
        }
    }

    const std::vector<Id>& ids() const { return ids_; }

private:
    std::vector<Id> ids_;
    Id last_ = 0;
    size_t day_ = 0;
};

// Those that are gone keep their slots for some days: there must be room for both.
TEST(IoChurn, NewAdGroupsHaveCountersOnEachOfTenDays) {
    TempFolder folder;
    StateFile file;
    std::string error;
    std::string notice;
    ASSERT_TRUE(file.open(folder.file("state"), 1 << 16, error, notice)) << error;
    ledger_test::Memory zone_memory(16 << 20);
    Zone::format(zone_memory.span());
    const Target target{Zone::attach(zone_memory.data()), file.state(), &file};
    const uint32_t pin = Zone(target.zone).enter(this_process(), process_alive);
    Churn churn(1300);
    for (int day = 0; day < 10; day++, churn.next_day()) {
        std::string list;
        for (const Id id : churn.ids()) {
            list += (list.empty() ? "" : ", ") + (R"({"id": )" + std::to_string(id)) +
                    R"(, "pacing": {"daily_impression_cap": 10}, "creatives": [{"id": )" +
                    std::to_string(id + 1'000'000) +
                    R"(, "type": "native", "content": {"t": "x"},)"
                    R"( "click_url": "https://a.example/"}]})";
        }
        const auto compiled = catalog::compile(
            R"({"placements": [{"id": "p"}], "campaigns": [{"id": 1, "ad_groups": [)" + list +
                "]}]}",
            kNow + day * 86'400);
        ASSERT_TRUE(compiled.ok());
        uint32_t without = 0;
        ASSERT_EQ(publish_image(target, compiled.bytes, this_process(), target.zone.term(),
                                kNow + day * 86'400, without),
                  Publish::done);
        EXPECT_EQ(without, 0u) << "day " << day;
        uint64_t generation = 0;
        for (const auto& slots : Zone(target.zone).pin(pin, generation).group_slots()) {
            ASSERT_NE(slots.counters, kNone);
            ASSERT_NE(slots.impressions, kNone);
            ASSERT_NE(slots.impressions_pace, kNone);
        }
    }
}

TEST(IoChurn, TheFileGrowsByWhatIsKeptAndNoMore) {
    const bool longer = std::getenv("ADS_TEST_LONG") != nullptr;
    const uint32_t groups = longer ? 100'000 : 10'000;
    TempFolder folder;
    StateFile file;
    std::string error;
    std::string notice;
    ASSERT_TRUE(file.open(folder.file("state"), 1 << 16, error, notice)) << error;
    State state = file.state();
    Churn churn(groups);
    for (int day = 0; day < 10; day++, churn.next_day()) {
        std::vector<SlotKey> keys;
        for (const Id id : churn.ids()) {
            for (const auto kind :
                 {SlotKind::group, SlotKind::impressions, SlotKind::pace_impressions}) {
                keys.push_back({id, kind});
            }
        }
        std::vector<uint32_t> slots(keys.size());
        EXPECT_EQ(state.assign_slots(keys, slots, kNow + day * 86'400,
                                     [&](uint64_t wanted) { file.reserve(wanted); }),
                  0u)
            << "day " << day;
        std::sort(slots.begin(), slots.end());
        EXPECT_EQ(std::adjacent_find(slots.begin(), slots.end()), slots.end())
            << "no slot is given twice";
    }
    // Four days' worth of those that are gone, twice at most: it doubles when it grows.
    EXPECT_LE(file.state().slots(), 2 * (3 * groups + 4 * 3 * groups / 10));
}

}  // namespace
