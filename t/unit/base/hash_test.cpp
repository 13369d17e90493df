#include "core/base/hash.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace {

struct Vector {
    std::string_view text;
    uint32_t fnv32;
    uint64_t fnv64;
    uint64_t mixed;
    uint64_t bucket;
};

constexpr Vector kVectors[] = {
    {"", 0x811c9dc5, 0xcbf29ce484222325, 0xf52a15e9a9b5e89b, 9576},
    {"a", 0xe40c292c, 0xaf63dc4c8601ec8c, 0x02c0bdbf481420f8, 107},
    {"foobar", 0xbf9cf968, 0x85944171f73967e8, 0x404da9e3b74078c2, 2511},
    {"exp-42:user-1001", 0x6dfbeda3, 0x8285a77ec222cc63, 0x2ec71e31503a8622, 1827},
};

TEST(Hash, Vectors) {
    for (const Vector& v : kVectors) {
        SCOPED_TRACE(std::string(v.text));
        EXPECT_EQ(ads::fnv1a32(v.text), v.fnv32);
        EXPECT_EQ(ads::fnv1a64(v.text), v.fnv64);
        EXPECT_EQ(ads::mix13(v.fnv64), v.mixed);
        EXPECT_EQ(ads::bucket(v.mixed, 10000), v.bucket);
    }
}

TEST(Hash, IsKnownToTheCompiler) {
    static_assert(ads::fnv1a32("foobar") == 0xbf9cf968);
    static_assert(ads::bucket(ads::mix13(ads::fnv1a64("a")), 10000) == 107);
}

TEST(Hash, BytesAreUnsigned) {
    EXPECT_EQ(ads::fnv1a32("\xff"), (0x811c9dc5u ^ 0xffu) * 0x01000193u);
    EXPECT_EQ(ads::fnv1a64("\xff"), (0xcbf29ce484222325u ^ 0xffu) * 0x100000001b3u);
}

TEST(Hash, GoesOnWhereItStopped) {
    EXPECT_EQ(ads::fnv1a64("bar", ads::fnv1a64("foo")), ads::fnv1a64("foobar"));
}

TEST(Hash, BucketsReachBothEnds) {
    EXPECT_EQ(ads::bucket(0, 10000), 0u);
    EXPECT_EQ(ads::bucket(~uint64_t{0}, 10000), 9999u);
    EXPECT_EQ(ads::bucket(~uint64_t{0}, 1), 0u);
    EXPECT_EQ(ads::bucket(uint64_t{1} << 63, 2), 1u);
}

// Sessions that differ only in a counter must spread evenly, and two
// experiments must not agree on who is in the first half.
TEST(Hash, SpreadsAndSeparates) {
    constexpr int kSessions = 100000;
    std::array<int, 10> tenths{};
    int same = 0;
    for (int i = 0; i < kSessions; i++) {
        const std::string session = "user-" + std::to_string(i);
        const auto one = ads::bucket(ads::mix13(ads::fnv1a64("1:" + session)), 10000);
        const auto two = ads::bucket(ads::mix13(ads::fnv1a64("2:" + session)), 10000);
        tenths[one / 1000]++;
        same += (one < 5000) == (two < 5000);
    }
    for (const int count : tenths) {
        EXPECT_NEAR(count, kSessions / 10, 500);  // five standard deviations
    }
    EXPECT_NEAR(same, kSessions / 2, 800);
}

}  // namespace
