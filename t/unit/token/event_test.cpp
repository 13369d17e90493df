#include "core/event/event.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"

namespace {

using namespace ads;

Event sample() {
    return {.type = EventType::click,
            .invalid = Invalid::late,
            .device = static_cast<uint8_t>(Device::tablet),
            .consent = true,
            .time = 1'794'787'205'000,
            .issued = 1'794'787'200'123,
            .serve = 0xf123456789abcdef,
            .campaign = 7,
            .ad_group = 12,
            .creative = 31,
            .experiment = 3,
            .price = 250'000,
            .node = 0xdeadbeef,
            .placement = "home-top",
            .country = "US",
            .session = "s-1",
            .user = "u-\xc3\xa9",
            .metadata = R"({"a":1})"};
}

void expect_same(const Event& a, const Event& b) {
    EXPECT_EQ(a.type, b.type);
    EXPECT_EQ(a.invalid, b.invalid);
    EXPECT_EQ(a.device, b.device);
    EXPECT_EQ(a.consent, b.consent);
    EXPECT_EQ(a.time, b.time);
    EXPECT_EQ(a.issued, b.issued);
    EXPECT_EQ(a.serve, b.serve);
    EXPECT_EQ(a.campaign, b.campaign);
    EXPECT_EQ(a.ad_group, b.ad_group);
    EXPECT_EQ(a.creative, b.creative);
    EXPECT_EQ(a.experiment, b.experiment);
    EXPECT_EQ(a.price, b.price);
    EXPECT_EQ(a.node, b.node);
    EXPECT_EQ(a.placement, b.placement);
    EXPECT_EQ(a.country, b.country);
    EXPECT_EQ(a.session, b.session);
    EXPECT_EQ(a.user, b.user);
    EXPECT_EQ(a.metadata, b.metadata);
}

std::string record_of(const Event& event) {
    std::string text(kMaxRecord, '\0');
    text.resize(write_record(event, text));
    return text;
}

void expect_round_trip(const Event& event) {
    const std::string text = record_of(event);
    ASSERT_GT(text.size(), kFrameHead);
    ASSERT_LE(text.size(), kMaxRecord);
    Event read;
    size_t used = 0;
    ASSERT_EQ(read_record(text, read, used), Read::ok);
    EXPECT_EQ(used, text.size());
    expect_same(read, event);
}

TEST(Event, RecordsComeBack) {
    expect_round_trip(sample());
    expect_round_trip(Event());
    Event event = sample();
    event.time = event.issued = INT64_MIN;
    event.price = INT64_MIN;
    expect_round_trip(event);
    event.time = event.issued = event.price = INT64_MAX;
    event.serve = ~uint64_t{0};
    event.campaign = event.ad_group = event.creative = event.experiment = event.node = ~Id{0};
    event.device = 0xff;
    expect_round_trip(event);
    event = sample();
    event.placement = event.country = event.session = event.user = event.metadata = {};
    expect_round_trip(event);
    for (size_t type = 0; type < kCount<EventType>; type++) {
        for (size_t invalid = 0; invalid < kCount<Invalid>; invalid++) {
            event.type = static_cast<EventType>(type);
            event.invalid = static_cast<Invalid>(invalid);
            event.consent = !event.consent;
            expect_round_trip(event);
        }
    }
}

TEST(Event, DefaultsAreThoseOfNoConsent) {
    EXPECT_EQ(Event().session, "anonymous");
    EXPECT_EQ(Event().user, "");
    EXPECT_EQ(Event().metadata, "{}");
}

TEST(Event, StringsOfEveryByteAndTheGreatestLength) {
    std::string all;
    for (int i = 0; i < 255; i++) {
        all += static_cast<char>(i);
    }
    std::string metadata;
    while (metadata.size() < 4096) {
        metadata += static_cast<char>(metadata.size() * 7);
    }
    Event event = sample();
    event.placement = event.country = event.session = event.user = all;
    event.metadata = metadata;
    expect_round_trip(event);
}

TEST(Event, LongerStringsAreCut) {
    const std::string longer(256, 'x');
    const std::string huge(100'000, 'y');
    Event event = sample();
    event.placement = longer;
    event.country = huge;
    event.session = longer;
    event.user = huge;
    event.metadata = huge;  // half an object is none
    const std::string text = record_of(event);
    Event read;
    size_t used = 0;
    ASSERT_EQ(read_record(text, read, used), Read::ok);
    event.placement = event.session = std::string_view(longer).substr(0, 255);
    event.country = event.user = std::string_view(huge).substr(0, 255);
    event.metadata = "{}";
    expect_same(read, event);
}

TEST(Event, NothingIsWrittenWithoutRoom) {
    const std::string whole = record_of(sample());
    std::string text(whole.size(), '\0');
    EXPECT_EQ(write_record(sample(), text), whole.size());
    EXPECT_EQ(text, whole);
    for (size_t size = 0; size < whole.size(); size++) {
        std::string room(size, '\x55');
        EXPECT_EQ(write_record(sample(), room), 0u);
        EXPECT_EQ(room, std::string(size, '\x55'));
    }
}

TEST(Event, TornAtEveryByte) {
    const std::string whole = record_of(sample());
    for (size_t size = 0; size < whole.size(); size++) {
        Event event;
        size_t used = 0;
        EXPECT_EQ(read_record(std::string_view(whole).substr(0, size), event, used), Read::short_)
            << size;
    }
}

TEST(Event, EverySingleBitFlipIsDetected) {
    const std::string whole = record_of(sample());
    const std::string more = whole + whole + whole;  // a longer length finds bytes to read
    for (size_t bit = 0; bit < 8 * whole.size(); bit++) {
        std::string flipped = more;
        flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
        Event event;
        size_t used = 0;
        EXPECT_NE(read_record(flipped, event, used), Read::ok) << "bit " << bit;
        const std::string_view alone = std::string_view(flipped).substr(0, whole.size());
        EXPECT_NE(read_record(alone, event, used), Read::ok) << "bit " << bit;
        if (bit / 8 >= 4) {
            EXPECT_EQ(read_record(alone, event, used), Read::damaged) << "bit " << bit;
        }
    }
}

// Bytes whose crc is right, but that no writer of this version makes.
TEST(Event, WellFramedNonsenseIsDamaged) {
    const std::string whole = record_of(sample());
    const auto with = [&](size_t at, uint8_t value) {
        std::string text = whole;
        text[kFrameHead + at] = static_cast<char>(value);
        store(text.data() + 4, static_cast<uint32_t>(crc32(
                                   0, reinterpret_cast<const Bytef*>(text.data() + kFrameHead),
                                   static_cast<uInt>(text.size() - kFrameHead))));
        Event event;
        size_t used = 0;
        return read_record(text, event, used);
    };
    EXPECT_EQ(with(0, 1), Read::ok);
    EXPECT_EQ(with(0, 2), Read::damaged);  // another version
    EXPECT_EQ(with(1, kCount<EventType> + 1), Read::damaged);
    EXPECT_EQ(with(2, kCount<Invalid>), Read::damaged);
    for (const size_t length_at : {5, 6, 7, 8, 9, 10}) {
        EXPECT_EQ(with(length_at, 200), Read::damaged) << length_at;
        EXPECT_EQ(with(length_at, 1), Read::damaged) << length_at;
    }
}

TEST(Event, LengthsOutOfRangeAreDamaged) {
    for (const uint32_t length : {0u, 1u, 63u, 8185u, 65536u, 0x7fffffffu, 0xffffffffu}) {
        std::string text(2 * kMaxRecord, '\0');
        store(text.data(), length);
        Event event;
        size_t used = 0;
        EXPECT_EQ(read_record(text, event, used), Read::damaged) << length;
    }
}

TEST(Event, RecordsFollowEachOther) {
    std::string text;
    std::vector<std::string> sessions;
    for (int i = 0; i < 50; i++) {
        sessions.push_back(std::string(static_cast<size_t>(i * 5), 's'));
    }
    for (const std::string& session : sessions) {
        Event event = sample();
        event.session = session;
        text += record_of(event);
    }
    size_t at = 0;
    for (const std::string& session : sessions) {
        Event event;
        size_t used = 0;
        ASSERT_EQ(read_record(std::string_view(text).substr(at), event, used), Read::ok);
        EXPECT_EQ(event.session, session);
        at += used;
    }
    EXPECT_EQ(at, text.size());
}

// The spool outlives the program: these bytes must be read for ever.
TEST(Event, GoldenRecord) {
    const std::string text = record_of(sample());
    std::string hex(text.size() * 2, '\0');
    for (size_t i = 0; i < text.size(); i++) {
        std::snprintf(hex.data() + 2 * i, 3, "%02x", static_cast<uint8_t>(text[i]));
    }
    EXPECT_EQ(hex,
              "58000000d7cad271010302020108020304070000885fa7e1a10100007b4ca7e1"
              "a1010000efcdab89674523f1070000000c0000001f0000000300000090d00300"
              "00000000efbeadde686f6d652d746f705553732d31752dc3a97b2261223a317d");
}

std::string uuid(Millis issued, uint64_t serve, EventType type) {
    std::string text(kUuidChars, '\0');
    write_uuid(event_id(issued, serve, type), text.data());
    return text;
}

TEST(EventId, GoldenValues) {
    EXPECT_EQ(uuid(1'794'787'200'123, 0xf123456789abcdef, EventType::click),
              "01a1e1a7-4c7b-703f-8123-456789abcdef");
    EXPECT_EQ(uuid(0, 0, EventType::serve), "00000000-0000-7000-8000-000000000000");
    EXPECT_EQ(uuid((Millis{1} << 48) - 1, ~uint64_t{0}, EventType::conversion),
              "ffffffff-ffff-704f-8fff-ffffffffffff");
}

TEST(EventId, OfAnEventIsThatOfItsServe) {
    Event event = sample();
    const EventId id = event_id(event);
    event.time += 1000;
    event.session = "other";
    event.price = 0;
    event.node = 1;
    EXPECT_EQ(event_id(event), id);
    EXPECT_EQ(id, event_id(event.issued, event.serve, event.type));
    event.type = EventType::viewable;
    EXPECT_NE(event_id(event), id);
}

TEST(EventId, IsAUuidOfVersionSeven) {
    std::mt19937_64 random(3);
    for (int i = 0; i < 10'000; i++) {
        const auto issued = static_cast<Millis>(random() >> 16);
        const EventId id =
            event_id(issued, random(), static_cast<EventType>(random() % kCount<EventType>));
        ASSERT_EQ(id.bytes[6] >> 4, 7);
        ASSERT_EQ(id.bytes[8] >> 6, 2);
        Millis read = 0;
        for (int k = 0; k < 6; k++) {
            read = read << 8 | id.bytes[static_cast<size_t>(k)];
        }
        ASSERT_EQ(read, issued) << "sorts by the moment of the serve";
    }
}

TEST(EventId, NoTwoFactsShareOne) {
    std::mt19937_64 random(4);
    std::set<EventId> seen;
    size_t facts = 0;
    for (int i = 0; i < 20'000; i++) {
        const auto issued = static_cast<Millis>(random() >> 16);
        const uint64_t serve = random();
        for (size_t type = 0; type < kCount<EventType>; type++) {
            seen.insert(event_id(issued, serve, static_cast<EventType>(type)));
            facts++;
        }
    }
    EXPECT_EQ(seen.size(), facts);
    // Near ones: every single bit of the serve id and of the time matters.
    seen.clear();
    for (int bit = 0; bit < 64; bit++) {
        seen.insert(event_id(5, uint64_t{1} << bit, EventType::click));
    }
    for (int bit = 0; bit < 48; bit++) {
        seen.insert(event_id(Millis{1} << bit, 5, EventType::click));
    }
    EXPECT_EQ(seen.size(), 112u);
}

// Whatever the strings are, the record stays whole and as long as it was.
TEST(Event, APersonIsErased) {
    std::mt19937_64 random(5);
    for (int i = 0; i < 2000; i++) {
        const auto text = [&](size_t most) { return std::string(random() % (most + 1), 'x'); };
        const std::string session = text(40), user = text(40), placement = text(9), more = text(60);
        Event event;
        event.consent = true;
        event.serve = random();
        event.price = 7;
        event.placement = placement;
        event.session = session;
        event.user = user;
        event.metadata = more;
        std::vector<char> record(kMaxRecord);
        const size_t size = write_record(event, record);
        ASSERT_GT(size, 0u);
        erase_person({record.data(), size});
        Event read;
        size_t used = 0;
        ASSERT_EQ(read_record({record.data(), size}, read, used), Read::ok);
        EXPECT_EQ(used, size);
        EXPECT_FALSE(read.consent);
        EXPECT_EQ(read.user, "");
        EXPECT_EQ(read.serve, event.serve);
        EXPECT_EQ(read.price, 7);
        EXPECT_EQ(read.placement, placement);
        EXPECT_EQ((std::string(read.session) + std::string(read.metadata)).find('x'),
                  std::string::npos);
        if (session.size() + user.size() + more.size() >= 11) {
            EXPECT_EQ(read.session, kAnonymous);
            EXPECT_TRUE(read.metadata.starts_with("{}"));
            EXPECT_EQ(read.metadata.find_first_not_of(' ', 2), std::string_view::npos);
        }
    }
}

}  // namespace
