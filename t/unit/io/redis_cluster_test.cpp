#include "io/redis/cluster.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ads;

const RedisAddress kFrom{"10.0.0.9", 7000};

std::string text(std::string_view value) {
    return "$" + std::to_string(value.size()) + "\r\n" + std::string(value) + "\r\n";
}

// A server as Redis 6 tells of it.
std::string server(std::string_view host, int port) {
    return "*3\r\n" + text(host) + ":" + std::to_string(port) + "\r\n" + text("id");
}

std::string range(int first, int last, const std::string& servers, int count = 1) {
    return "*" + std::to_string(2 + count) + "\r\n:" + std::to_string(first) +
           "\r\n:" + std::to_string(last) + "\r\n" + servers;
}

bool read(RedisSlots& slots, const std::string& reply) {
    RespReader reader(256 << 10, 16'384);
    EXPECT_TRUE(reader.feed(reply));
    EXPECT_EQ(reader.next(), RespReader::Result::reply) << reply;
    return slots.read(reader, kFrom);
}

std::string server_of(const RedisSlots& slots, uint16_t slot) {
    const uint8_t server = slots.server(slot);
    return server == RedisSlots::kNone
               ? "none"
               : slots.address(server).ip + ":" + std::to_string(slots.address(server).port);
}

// The slots are what CLUSTER KEYSLOT of Redis 7.0 says.
TEST(RedisCluster, TellsTheSlotOfAKey) {
    EXPECT_EQ(redis_slot("123456789"), 0x31c3);
    EXPECT_EQ(redis_slot("foo"), 12182);
    EXPECT_EQ(redis_slot(""), 0);
    EXPECT_EQ(redis_slot("foo{bar}{zap}"), 5061);
    EXPECT_EQ(redis_slot("bar"), 5061);
    EXPECT_EQ(redis_slot("{user1000}.following"), 3443);
    EXPECT_EQ(redis_slot("foo{}{bar}"), 8363);
    EXPECT_EQ(redis_slot("foo{{bar}}zap"), 4015);
    EXPECT_EQ(redis_slot("{}"), 15257);
    EXPECT_EQ(redis_slot("a{b"), 13340);
    EXPECT_EQ(redis_slot("freq:{0123456789abcdef}"), 10405);
    EXPECT_EQ(redis_slot("rate:{0123456789abcdef}"), 10405);
}

TEST(RedisCluster, ReadsRedirects) {
    const auto moved = parse_redirect("MOVED 3999 127.0.0.1:6381");
    ASSERT_TRUE(moved);
    EXPECT_FALSE(moved->ask);
    EXPECT_EQ(moved->slot, 3999);
    EXPECT_EQ(moved->to, (RedisAddress{"127.0.0.1", 6381}));

    const auto ask = parse_redirect("ASK 16383 2001:db8::1:6381");
    ASSERT_TRUE(ask);
    EXPECT_TRUE(ask->ask);
    EXPECT_EQ(ask->slot, 16383);
    EXPECT_EQ(ask->to, (RedisAddress{"2001:db8::1", 6381}));

    const auto same = parse_redirect("MOVED 0 :6379");
    ASSERT_TRUE(same);
    EXPECT_EQ(same->to, (RedisAddress{"", 6379}));
}

TEST(RedisCluster, RefusesOtherRedirects) {
    for (const std::string_view bad : {"",
                                       "MOVED",
                                       "MOVED ",
                                       "ASK ",
                                       "MOVED 1",
                                       "MOVED 1 ",
                                       "MOVED 1 :",
                                       "MOVED 16384 127.0.0.1:1",
                                       "MOVED -1 127.0.0.1:1",
                                       "MOVED 1x 127.0.0.1:1",
                                       "MOVED 1 127.0.0.1:0",
                                       "MOVED 1 127.0.0.1:65536",
                                       "MOVED 1 127.0.0.1:",
                                       "MOVED 1 127.0.0.1",
                                       "MOVED 1 example.com:6379",
                                       "MOVED 1 ?:6379",
                                       "MOVED 4294967297 127.0.0.1:1",
                                       "MOVED  1 127.0.0.1:1",
                                       "MOVED 1:2",
                                       "ASKING 1 127.0.0.1:1",
                                       "TRYAGAIN Multiple keys",
                                       "ERR MOVED 1 127.0.0.1:1"}) {
        EXPECT_FALSE(parse_redirect(bad)) << bad;
    }
    EXPECT_FALSE(parse_redirect(std::string("MOVED 1 127.0.0.1\0:6379", 24)));
    EXPECT_FALSE(parse_redirect("MOVED 1 " + std::string(100'000, '1') + ":6379"));
}

TEST(RedisCluster, ReadsSlots) {
    RedisSlots slots;
    EXPECT_EQ(server_of(slots, 0), "none");
    // Redis 7: a fourth element of a server; its master is the first one.
    const std::string new_server = "*4\r\n" + text("10.0.0.2") + ":7001\r\n" + text("id") +
                                   "*2\r\n" + text("hostname") + text("two.example");
    ASSERT_TRUE(read(slots, "*3\r\n" + range(0, 5, server("10.0.0.1", 7000)) +
                                range(10, 16'383, new_server + server("10.0.0.3", 7002), 2) +
                                range(7, 7, server("10.0.0.1", 7000))));
    EXPECT_EQ(server_of(slots, 0), "10.0.0.1:7000");
    EXPECT_EQ(server_of(slots, 5), "10.0.0.1:7000");
    EXPECT_EQ(server_of(slots, 6), "none");
    EXPECT_EQ(server_of(slots, 7), "10.0.0.1:7000");
    EXPECT_EQ(server_of(slots, 10), "10.0.0.2:7001");
    EXPECT_EQ(server_of(slots, 16'383), "10.0.0.2:7001");
    EXPECT_EQ(slots.size(), 2u) << "replicas have no number";
}

TEST(RedisCluster, FindsAddressesOfServersThatHaveNames) {
    RedisSlots slots;
    ASSERT_TRUE(read(slots, "*5\r\n" + range(0, 0, server("", 7000)) +
                                range(1, 1, "*3\r\n$-1\r\n:7001\r\n" + text("id")) +
                                range(2, 2,
                                      "*4\r\n" + text("b.example") + ":7002\r\n" + text("id") +
                                          "*2\r\n" + text("ip") + text("10.0.0.2")) +
                                range(3, 3, server("c.example", 7003)) +
                                range(4, 4, server("2001:db8::4", 7004))));
    EXPECT_EQ(server_of(slots, 0), "10.0.0.9:7000");
    EXPECT_EQ(server_of(slots, 1), "10.0.0.9:7001");
    EXPECT_EQ(server_of(slots, 2), "10.0.0.2:7002");
    EXPECT_EQ(server_of(slots, 3), "none");
    EXPECT_EQ(server_of(slots, 4), "2001:db8::4:7004");
}

TEST(RedisCluster, KeepsTheNumbersOfServers) {
    RedisSlots slots;
    ASSERT_TRUE(read(
        slots, "*2\r\n" + range(0, 5, server("10.0.0.1", 1)) + range(6, 9, server("10.0.0.2", 1))));
    const uint8_t second = slots.server(6);
    ASSERT_TRUE(read(
        slots, "*2\r\n" + range(0, 5, server("10.0.0.3", 1)) + range(6, 8, server("10.0.0.2", 1))));
    EXPECT_EQ(slots.server(6), second);
    EXPECT_EQ(server_of(slots, 0), "10.0.0.3:1");
    EXPECT_EQ(server_of(slots, 9), "none");
    EXPECT_EQ(slots.size(), 2u) << "the number of the first one is used again";
}

TEST(RedisCluster, MovesASlot) {
    RedisSlots slots;
    ASSERT_TRUE(read(slots, "*1\r\n" + range(0, 16'383, server("10.0.0.1", 1))));
    EXPECT_EQ(slots.move(7, {"10.0.0.2", 1}), 1);
    EXPECT_EQ(server_of(slots, 6), "10.0.0.1:1");
    EXPECT_EQ(server_of(slots, 7), "10.0.0.2:1");
    EXPECT_EQ(slots.move(8, {"10.0.0.2", 1}), 1);
    for (uint16_t i = 2; i < RedisSlots::kMostServers; i++) {
        EXPECT_EQ(slots.move(i, {"10.0.0.3", i}), i);
    }
    EXPECT_EQ(slots.move(100, {"10.0.0.4", 1}), RedisSlots::kNone);
    EXPECT_EQ(server_of(slots, 100), "10.0.0.1:1") << "no room: nothing changes";
    EXPECT_EQ(slots.size(), RedisSlots::kMostServers);
}

TEST(RedisCluster, BoundsTheNumberOfServers) {
    RedisSlots slots;
    std::string reply = "*100\r\n";
    for (int i = 0; i < 100; i++) {
        reply += range(i, i, server("10.0.0.1", 7000 + i));
    }
    ASSERT_TRUE(read(slots, reply));
    EXPECT_EQ(slots.size(), RedisSlots::kMostServers);
    EXPECT_EQ(server_of(slots, 63), "10.0.0.1:7063");
    EXPECT_EQ(server_of(slots, 64), "none");
    // Others, and all of them in one reply: numbers are free again.
    std::string others = "*64\r\n";
    for (int i = 0; i < 64; i++) {
        others += range(i, i, server("10.0.0.2", 7000 + i));
    }
    ASSERT_TRUE(read(slots, others));
    EXPECT_EQ(slots.size(), RedisSlots::kMostServers);
    EXPECT_EQ(server_of(slots, 63), "10.0.0.2:7063");
}

TEST(RedisCluster, RefusesRepliesThatAreNotSlots) {
    RedisSlots slots;
    ASSERT_TRUE(read(slots, "*1\r\n" + range(0, 16'383, server("10.0.0.1", 1))));
    for (const std::string& bad : {
             std::string("*0\r\n"),
             std::string("*-1\r\n"),
             std::string("+OK\r\n"),
             std::string("-ERR This instance has cluster support disabled\r\n"),
             std::string(":3\r\n"),
             std::string("*1\r\n*0\r\n"),
             std::string("*1\r\n*2\r\n:0\r\n:1\r\n"),
             std::string("*1\r\n*3\r\n:0\r\n:1\r\n:2\r\n"),
             std::string("*1\r\n*3\r\n:0\r\n:1\r\n*0\r\n"),
             std::string("*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n+x\r\n"),
             "*1\r\n" + range(-1, 1, server("10.0.0.2", 1)),
             "*1\r\n" + range(0, 16'384, server("10.0.0.2", 1)),
             "*1\r\n" + range(5, 4, server("10.0.0.2", 1)),
             "*1\r\n" + range(0, 1, server("10.0.0.2", -1)),
             "*1\r\n" + range(0, 1, server("10.0.0.2", 65'536)),
             "*1\r\n" + range(0, 1, server("10.0.0.2", 0)),
             "*1\r\n" + range(0, 1, server("two.example", 1)),
             "*1\r\n" + range(0, 1, "*4\r\n" + text("10.0.0.2") + ":1\r\n" + text("id") + ":1\r\n"),
             "*2\r\n" + range(0, 1, server("10.0.0.2", 1)) + ":1\r\n",
         }) {
        EXPECT_FALSE(read(slots, bad)) << bad;
        EXPECT_EQ(server_of(slots, 0), "10.0.0.1:1") << bad;
    }
}

}  // namespace
