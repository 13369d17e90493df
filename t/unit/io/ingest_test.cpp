// Events as PostgreSQL's binary arrays, read back by hand.
#include "io/ingest.hpp"

#include <gtest/gtest.h>

#include "io/spool.hpp"

namespace {

using namespace ads;

// The elements of an array, after its head was checked.
std::vector<std::string> elements(const std::string& value, Oid element) {
    size_t at = 0;
    const auto number = [&] {
        uint32_t n = 0;
        for (int i = 0; i < 4; i++) {
            n = n << 8 | static_cast<uint8_t>(value.at(at++));
        }
        return n;
    };
    EXPECT_EQ(number(), 1u) << "dimensions";
    EXPECT_EQ(number(), 0u) << "nulls";
    EXPECT_EQ(number(), element);
    const uint32_t count = number();
    EXPECT_EQ(number(), 1u) << "first index";
    std::vector<std::string> all;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t size = number();
        all.push_back(value.substr(at, size));
        at += size;
    }
    EXPECT_EQ(at, value.size()) << "nothing follows";
    return all;
}

int64_t integer(const std::string& bytes) {
    uint64_t n = 0;
    for (const char c : bytes) {
        n = n << 8 | static_cast<uint8_t>(c);
    }
    return static_cast<int64_t>(n);
}

TEST(Ingest, EveryColumnInItsPlace) {
    Event a;
    a.type = EventType::click;
    a.time = 1'789'997'600'123;
    a.issued = 1'789'997'500'000;
    a.serve = 0xfedc'ba98'7654'3210;
    a.campaign = 4'294'967'295;
    a.ad_group = 12;
    a.creative = 31;
    a.experiment = 3;
    a.price = 250'000;
    a.node = 77;
    a.device = 1;
    a.invalid = Invalid::late;
    a.consent = true;
    a.placement = "home-top";
    a.country = "DE";
    a.session = "abc";
    a.user = "u";
    a.metadata = R"({"a":1})";
    const Event b;
    const std::vector<Event> events = {a, b};
    const PgParams params = ingest_params(events);

    ASSERT_EQ(params.values.size(), 19u);
    ASSERT_EQ(params.types.size(), 19u);
    const auto numbers = [&](size_t column, Oid element, size_t size) {
        std::vector<int64_t> all;
        for (const auto& bytes : elements(params.values[column], element)) {
            EXPECT_EQ(bytes.size(), size);
            all.push_back(integer(bytes));
        }
        return all;
    };
    using Numbers = std::vector<int64_t>;
    using Texts = std::vector<std::string>;
    const EventId id = event_id(a);
    EXPECT_EQ(elements(params.values[0], 2950)[0],
              std::string(reinterpret_cast<const char*>(id.bytes.data()), 16));
    EXPECT_EQ(numbers(1, 21, 2), (Numbers{3, 0}));
    EXPECT_EQ(numbers(2, 20, 8), (Numbers{1'789'997'600'123, 0}));
    EXPECT_EQ(numbers(3, 20, 8), (Numbers{1'789'997'500'000, 0}));
    EXPECT_EQ(numbers(4, 20, 8)[0], static_cast<int64_t>(a.serve));
    EXPECT_EQ(numbers(5, 20, 8)[0], 4'294'967'295);
    EXPECT_EQ(numbers(6, 20, 8)[0], 12);
    EXPECT_EQ(numbers(7, 20, 8)[0], 31);
    EXPECT_EQ(numbers(8, 20, 8), (Numbers{3, 0}));
    EXPECT_EQ(numbers(9, 20, 8)[0], 250'000);
    EXPECT_EQ(numbers(10, 20, 8)[0], 77);
    EXPECT_EQ(numbers(11, 21, 2), (Numbers{1, 255}));
    EXPECT_EQ(numbers(12, 21, 2), (Numbers{2, 0}));
    EXPECT_EQ(numbers(13, 16, 1), (Numbers{1, 0}));
    EXPECT_EQ(elements(params.values[14], 25), (Texts{"home-top", ""}));
    EXPECT_EQ(elements(params.values[15], 25), (Texts{"DE", ""}));
    EXPECT_EQ(elements(params.values[16], 25), (Texts{"abc", "anonymous"}));
    EXPECT_EQ(elements(params.values[17], 25), (Texts{"u", ""}));
    EXPECT_EQ(elements(params.values[18], 25), (Texts{R"({"a":1})", "{}"}));
}

TEST(Ingest, ATextMayHoldAnything) {
    Event event;
    const std::string odd("a\0\xff\n", 4);
    event.session = odd;
    EXPECT_EQ(elements(ingest_params({&event, 1}).values[16], 25)[0], odd);
}

TEST(Conninfo, IsCheckedBeforeItIsUsed) {
    std::string error;
    EXPECT_TRUE(check_conninfo("host=/tmp dbname=ads", error));
    EXPECT_TRUE(check_conninfo("postgresql://edge@db.example.com/ads?sslmode=verify-full", error));
    EXPECT_FALSE(check_conninfo("hots=/tmp", error));
    EXPECT_NE(error.find("hots"), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
}

TEST(SegmentNames, TellTheirWriter) {
    const auto name = segment_name("/spool/1789997600123-0000004d-4711-1f-3.open");
    EXPECT_EQ(pid_of(name.writer), 4711u);
    EXPECT_EQ(name.writer >> 32, 0x1fu);
    EXPECT_EQ(name.sequence, 3u);
    EXPECT_TRUE(name.open);
    EXPECT_EQ(segment_name("/spool/1789997600123-0000004d-4711-1f-3.seg").open, false);
    EXPECT_EQ(segment_name("/spool/copied-by-hand.seg").writer, ProcessId{0});
    EXPECT_EQ(closed_path("/a.b/c-1.open"), "/a.b/c-1.seg");
    EXPECT_EQ(closed_path("/a.b/c-1.seg"), "/a.b/c-1.seg");
}

}  // namespace
