#include "io/redis/resp.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ads;
using namespace std::string_literals;
using Result = RespReader::Result;

TEST(Resp, WritesCommands) {
    std::string out;
    append_command(out, std::array<std::string_view, 3>{"SET", "k", std::string_view("\0\r\n", 3)});
    EXPECT_EQ(out, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\n\0\r\n\r\n"s);
}

TEST(Resp, ReadsEachType) {
    RespReader reader(1000, 10);
    ASSERT_TRUE(reader.feed("*6\r\n:-5\r\n$3\r\nabc\r\n+OK\r\n-ERR no\r\n$-1\r\n*1\r\n:7\r\n"));
    ASSERT_EQ(reader.next(), Result::reply);
    const auto nodes = reader.nodes();
    ASSERT_EQ(nodes.size(), 8u);
    EXPECT_EQ(nodes[0].type, RespType::array);
    EXPECT_EQ(nodes[0].integer, 6);
    EXPECT_EQ(nodes[1].integer, -5);
    EXPECT_EQ(reader.text(nodes[2]), "abc");
    EXPECT_EQ(nodes[3].type, RespType::status);
    EXPECT_EQ(nodes[4].type, RespType::error);
    EXPECT_EQ(reader.text(nodes[4]), "ERR no");
    EXPECT_EQ(nodes[5].type, RespType::nil);
    EXPECT_EQ(nodes[6].integer, 1);
    EXPECT_EQ(nodes[7].integer, 7);
    EXPECT_EQ(reader.next(), Result::more);
}

TEST(Resp, ReadsByteByByte) {
    RespReader reader(1000, 10);
    const std::string_view text = "*2\r\n$4\r\na\r\nb\r\n:12\r\n+next\r\n";
    size_t replies = 0;
    for (const char c : text) {
        ASSERT_TRUE(reader.feed({&c, 1}));
        const Result result = reader.next();
        ASSERT_NE(result, Result::broken);
        if (result == Result::reply && ++replies == 1) {
            ASSERT_EQ(reader.nodes().size(), 3u);
            EXPECT_EQ(reader.text(reader.nodes()[1]), "a\r\nb");
            EXPECT_EQ(reader.nodes()[2].integer, 12);
        }
    }
    EXPECT_EQ(replies, 2u);
    EXPECT_EQ(reader.text(reader.root()), "next");
}

TEST(Resp, RefusesWhatIsTooLarge) {
    const auto breaks = [](std::string_view text) {
        RespReader reader(100, 5);
        return !reader.feed(text) || reader.next() == Result::broken;
    };
    EXPECT_TRUE(breaks(std::string(101, 'x')));
    EXPECT_TRUE(breaks("*6\r\n"));
    EXPECT_TRUE(breaks("*2147483647\r\n"));
    EXPECT_TRUE(breaks("*2\r\n*2\r\n:1\r\n:1\r\n*2\r\n:1\r\n"));
    EXPECT_TRUE(breaks("hello\r\n"));
    EXPECT_FALSE(breaks("$536870912\r\n"));  // only what comes is kept

    RespReader reader(100, 5);
    ASSERT_TRUE(reader.feed("$536870912\r\n"));
    EXPECT_EQ(reader.next(), Result::more);
    EXPECT_TRUE(reader.feed(std::string(80, 'x')));
    EXPECT_FALSE(reader.feed(std::string(80, 'x')));
    EXPECT_EQ(reader.next(), Result::broken);
}

}  // namespace
