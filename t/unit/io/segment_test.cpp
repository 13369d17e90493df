// Segments with damage in them: every intact record is read, and nothing else.
#include "io/segment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "core/base/bytes.hpp"
#include "io/spool.hpp"
#include "temp_folder.hpp"

namespace {

using namespace ads;

constexpr Millis kNow = 1'794'787'200'123;

bool long_form() {
    return std::getenv("ADS_TEST_LONG") != nullptr;
}

std::string record_of(const Event& event) {
    std::string text(kMaxRecord, '\0');
    text.resize(write_record(event, text));
    return text;
}

// A segment of records of various sizes, among them such that a flipped bit of the length leads
// to the end of another record.
struct Sample {
    std::string text = segment_head(kNow, 7);
    std::vector<size_t> begins;  // and the end of the last

    explicit Sample(size_t records, std::mt19937_64& random) {
        for (size_t i = 0; i < records; i++) {
            const std::string session(random() % 4 == 0 ? 56 - 9 : random() % 256, 's');
            const std::string metadata =
                random() % 50 == 0 ? "{\"a\":\"" + std::string(random() % 4000, 'b') + "\"}" : "{}";
            begins.push_back(text.size());
            text += record_of({.type = EventType::impression,
                               .time = kNow,
                               .issued = kNow,
                               .serve = i + 1,
                               .placement = "home-top",
                               .country = "DE",
                               .session = session,
                               .metadata = metadata});
        }
        begins.push_back(text.size());
    }

    // The serves of the records that are the same in `other`.
    std::vector<uint64_t> intact_in(std::string_view other) const {
        std::vector<uint64_t> serves;
        for (size_t i = 0; i + 1 < begins.size(); i++) {
            const size_t size = begins[i + 1] - begins[i];
            if (std::string_view(text).substr(begins[i], size) == other.substr(begins[i], size)) {
                serves.push_back(i + 1);
            }
        }
        return serves;
    }
};

std::vector<uint64_t> read_all(std::string_view text, SegmentEnd* end = nullptr) {
    std::vector<uint64_t> serves;
    const SegmentEnd read = each_event(text, [&](const Event& e) { serves.push_back(e.serve); });
    if (end != nullptr) {
        *end = read;
    }
    return serves;
}

// The same by batches, as the shipper does.
std::vector<uint64_t> read_file_of(const std::string& text, size_t batch, SegmentFile& file) {
    TempFolder folder;
    const std::string path = folder.path() + "/x.seg";
    TempFolder::write(path, text);
    std::vector<uint64_t> serves;
    std::vector<Event> events;
    EXPECT_TRUE(file.open(path, {}));
    while (file.read(batch, events) == SegmentFile::End::none) {
        for (const Event& event : events) {
            serves.push_back(event.serve);
        }
        file.consume();
    }
    file.end();
    return serves;
}

void flip(std::string& text, uint64_t place) {
    text[place / 8 % text.size()] ^= static_cast<char>(1 << place % 8);
}

TEST(SegmentDamage, EveryIntactRecordIsReadOneFlip) {
    std::mt19937_64 random(1);
    const Sample sample(60, random);
    const int flips = 10'000;
    for (int i = 0; i < flips; i++) {
        std::string text = sample.text;
        flip(text, random());
        ASSERT_EQ(read_all(text), sample.intact_in(text)) << "flip " << i;
    }
}

TEST(SegmentDamage, EveryIntactRecordIsReadManyFlips) {
    for (uint64_t seed = 1; seed <= (long_form() ? 20 : 3); seed++) {
        std::mt19937_64 random(seed);
        const Sample sample(long_form() ? 50'000 : 12'000, random);
        std::string text = sample.text;
        for (int i = 0; i < (long_form() ? 10'000 : 2'000); i++) {
            flip(text, random());
        }
        const auto intact = sample.intact_in(text);
        ASSERT_LT(intact.size(), sample.begins.size() - 1);
        SegmentEnd end;
        ASSERT_EQ(read_all(text, &end), intact) << "seed " << seed;
        SegmentFile file;
        ASSERT_EQ(read_file_of(text, 2000, file), intact) << "seed " << seed;
        EXPECT_EQ(file.damaged_bytes(), end.damaged_bytes + end.torn);
        EXPECT_EQ(file.consumed(), text.size());
    }
}

// Lost, doubled, zeroed and foreign stretches.
TEST(SegmentDamage, EveryIntactRecordIsReadStretches) {
    std::mt19937_64 random(3);
    const Sample sample(80, random);
    for (int i = 0; i < (long_form() ? 10'000 : 1'000); i++) {
        std::string text = sample.text;
        const size_t from = random() % text.size();
        const size_t size = std::min<size_t>(random() % 3000, text.size() - from);
        for (size_t at = from; at < from + size; at++) {
            text[at] = i % 2 == 0 ? '\0' : static_cast<char>(random());
        }
        ASSERT_EQ(read_all(text), sample.intact_in(text)) << "stretch " << i;
    }
}

TEST(SegmentDamage, ALengthThatLeadsToAnotherRecordSkipsNone) {
    const auto record = [](uint64_t serve) {
        return record_of({.time = kNow, .issued = kNow, .serve = serve, .session = "x"});
    };
    std::string text = segment_head(kNow, 7) + record(1) + record(2) + record(3) + record(4);
    const size_t size = record(1).size();
    store(text.data() + kSegmentHead, static_cast<uint32_t>(3 * size - kFrameHead));
    SegmentEnd end;
    EXPECT_EQ(read_all(text, &end), (std::vector<uint64_t>{2, 3, 4}));
    EXPECT_EQ(end.damaged_bytes, size);
    EXPECT_EQ(end.damaged_records, 1u);
}

TEST(SegmentDamage, NothingInsideARecordIsTakenForOne) {
    const std::string inner = record_of({.time = kNow, .issued = kNow, .serve = 99});
    std::string outer = record_of({.time = kNow, .issued = kNow, .serve = 1, .metadata = inner});
    const std::string last = record_of({.time = kNow, .issued = kNow, .serve = 2});
    for (size_t at = kFrameHead + 12; at < outer.size(); at++) {
        std::string text = segment_head(kNow, 7) + outer + last;
        text[kSegmentHead + at] ^= 1;
        ASSERT_EQ(read_all(text), (std::vector<uint64_t>{2})) << at;
    }
}

TEST(SegmentDamage, ADamagedHeadCostsNoRecord) {
    std::mt19937_64 random(4);
    const Sample sample(5, random);
    const auto all = sample.intact_in(sample.text);
    for (size_t at = 0; at < kSegmentMagic.size(); at++) {
        std::string text = sample.text;
        text[at] ^= 1;
        SegmentEnd end;
        ASSERT_EQ(read_all(text, &end), all);
        ASSERT_FALSE(end.foreign);
        ASSERT_EQ(end.damaged_bytes, kSegmentHead);
        SegmentFile file;
        ASSERT_EQ(read_file_of(text, 3, file), all);
        ASSERT_EQ(file.damaged_bytes(), kSegmentHead);
    }
    SegmentEnd end;
    EXPECT_EQ(read_all(std::string_view(sample.text).substr(kSegmentHead), &end), all);
    EXPECT_EQ(end.damaged_bytes, 0u) << "a head that is missing";
    SegmentFile file;
    EXPECT_EQ(read_file_of(sample.text.substr(kSegmentHead), 3, file), all);
}

TEST(SegmentDamage, ATornTailIsNoDamage) {
    std::mt19937_64 random(5);
    const Sample sample(3, random);
    for (size_t size = sample.begins[2] + 1; size < sample.text.size(); size++) {
        SegmentEnd end;
        ASSERT_EQ(read_all(std::string_view(sample.text).substr(0, size), &end).size(), 2u);
        ASSERT_EQ(end.torn, size - sample.begins[2]);
        ASSERT_EQ(end.damaged_bytes, 0u);
    }
}

// Longer than what is read at once, in several kinds.
TEST(SegmentDamage, ALongDamagedStretch) {
    std::mt19937_64 random(6);
    const Sample sample(4000, random);
    for (const char fill : {'\0', 'x', '\1'}) {
        std::string text = sample.text;
        text.insert(sample.begins[2000], 3 << 20, fill);
        SegmentFile file;
        ASSERT_EQ(read_file_of(text, 500, file), sample.intact_in(sample.text));
        ASSERT_EQ(file.damaged_bytes(), size_t{3 << 20});
        std::string damaged;
        TempFolder folder;
        const std::string path = folder.path() + "/y.seg";
        TempFolder::write(path, sample.text + std::string(3 << 20, fill));
        std::vector<Event> events;
        ASSERT_TRUE(file.open(path, {}));
        while (file.read(500, events) == SegmentFile::End::none) {
            file.consume();
        }
        file.end();
        ASSERT_EQ(file.damaged_bytes(), fill == '\0' ? 0 : size_t{3 << 20}) << "at the end";
        ASSERT_TRUE(file.read_damaged(damaged));
        ASSERT_EQ(damaged.size(), file.damaged_bytes());
    }
}

// A worker writes on: what is torn is waited for, what is damaged is passed over as soon as a
// whole record follows.
TEST(SegmentDamage, AGrowingSegment) {
    std::mt19937_64 random(7);
    const Sample sample(6, random);
    TempFolder folder;
    const std::string path = folder.path() + "/x.open";
    std::string damaged = sample.text.substr(0, sample.begins[3]);
    store(damaged.data() + sample.begins[2], uint32_t{8000});
    TempFolder::write(path, damaged.substr(0, sample.begins[1] + 20));
    SegmentFile file;
    ASSERT_TRUE(file.open(path, {}));
    std::vector<Event> events;
    ASSERT_EQ(file.read(10, events), SegmentFile::End::none);
    ASSERT_EQ(events.size(), 1u);
    file.consume();
    ASSERT_EQ(file.read(10, events), SegmentFile::End::reached);
    TempFolder::append(path, damaged.substr(sample.begins[1] + 20));
    ASSERT_EQ(file.read(10, events), SegmentFile::End::none);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].serve, 2u);
    EXPECT_EQ(file.first_record(),
              std::string_view(sample.text).substr(sample.begins[1], file.first_record().size()));
    file.consume();
    ASSERT_EQ(file.read(10, events), SegmentFile::End::reached) << "more may come";
    EXPECT_EQ(file.damaged_bytes(), 0u);
    TempFolder::append(path, sample.text.substr(sample.begins[3], 50));
    ASSERT_EQ(file.read(10, events), SegmentFile::End::reached);
    TempFolder::append(path, sample.text.substr(sample.begins[3] + 50));
    ASSERT_EQ(file.read(10, events), SegmentFile::End::none);
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0].serve, 4u);
    file.consume();
    EXPECT_EQ(file.damaged_bytes(), sample.begins[3] - sample.begins[2]);
    EXPECT_FALSE(file.done()) << "damage has to be kept first";
}

TEST(Segment, SummariesAreSentButAreNoEvents) {
    std::mt19937_64 random(5);
    Sample sample(2, random);
    sample.text += record_of({.type = kSummary, .time = kNow, .metadata = R"({"top":{"":3}})"});
    sample.text += record_of({.type = EventType::click, .serve = 9});
    EXPECT_EQ(read_all(sample.text), (std::vector<uint64_t>{1, 2, 9}));
    TempFolder folder;
    const std::string path = folder.path() + "/x.seg";
    TempFolder::write(path, sample.text);
    SegmentFile file;
    ASSERT_TRUE(file.open(path, {}));
    std::vector<Event> events;
    ASSERT_EQ(file.read(10, events), SegmentFile::End::none);
    ASSERT_EQ(events.size(), 4u);
    EXPECT_EQ(events[2].type, kSummary);
    EXPECT_EQ(events[2].metadata, R"({"top":{"":3}})");
}

}  // namespace
