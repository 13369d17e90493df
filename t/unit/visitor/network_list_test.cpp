#include "core/visitor/network_list.hpp"

#include <gtest/gtest.h>

#include <random>

namespace {

using namespace ads;

NetworkList list_of(std::string_view text) {
    std::string error;
    auto list = NetworkList::parse(text, error);
    EXPECT_TRUE(list) << error;
    return list ? *list : NetworkList();
}

bool has(const NetworkList& list, std::string_view address) {
    const auto ip = parse_ip(address);
    EXPECT_TRUE(ip) << address;
    return ip && list.contains(*ip);
}

TEST(NetworkList, Edges) {
    const NetworkList list = list_of(
        "# ours\n"
        "192.0.2.0/24\n"
        "198.51.100.7  # one\n"
        "10.128.0.0/9\r\n"
        "203.0.113.128/31\n"
        "2001:db8::/33\n"
        "2001:db8:ffff::1\n");
    EXPECT_EQ(list.size(), 6u);
    for (const auto* in :
         {"192.0.2.0", "192.0.2.255", "198.51.100.7", "10.128.0.0", "10.255.255.255",
          "203.0.113.128", "203.0.113.129", "2001:db8::", "2001:db8:7fff:ffff:ffff:ffff:ffff:ffff",
          "2001:db8:ffff::1", "::ffff:192.0.2.9"}) {
        EXPECT_TRUE(has(list, in)) << in;
    }
    for (const auto* out :
         {"192.0.1.255", "192.0.3.0", "198.51.100.6", "198.51.100.8", "10.127.255.255", "11.0.0.0",
          "203.0.113.127", "203.0.113.130", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
          "2001:db8:8000::", "2001:db8:ffff::", "2001:db8:ffff::2", "::ffff:192.0.3.9",
          "::192.0.2.9", "0.0.0.0", "255.255.255.255", "::"}) {
        EXPECT_FALSE(has(list, out)) << out;
    }
}

TEST(NetworkList, EverythingAndNothing) {
    EXPECT_FALSE(has(NetworkList(), "192.0.2.1"));
    EXPECT_FALSE(has(list_of(""), "::1"));
    const NetworkList v4 = list_of("0.0.0.0/0");
    EXPECT_TRUE(has(v4, "0.0.0.0") && has(v4, "255.255.255.255") && has(v4, "::ffff:1.2.3.4"));
    EXPECT_FALSE(has(v4, "::1"));
    const NetworkList v6 = list_of("::/0");
    EXPECT_TRUE(has(v6, "::") && has(v6, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
    EXPECT_FALSE(has(v6, "1.2.3.4"));
    EXPECT_FALSE(has(v6, "::ffff:1.2.3.4")) << "that is IPv4";
    EXPECT_TRUE(has(list_of("255.255.255.255"), "255.255.255.255"));
    EXPECT_TRUE(has(list_of("0.0.0.0/32"), "0.0.0.0"));
    EXPECT_TRUE(has(list_of("::ffff:192.0.2.0/120"), "192.0.2.77"));
    EXPECT_TRUE(has(list_of("192.0.2.77/24"), "192.0.2.1")) << "bits behind the prefix";
}

TEST(NetworkList, Faults) {
    for (const auto* line :
         {"192.0.2.0/33", "192.0.2.0/", "192.0.2.0/-1", "192.0.2.0/08", "192.0.2.0/8x",
          "192.0.2.0/ 8", "192.0.2", "192.0.2.256", "192.0.02.1", "2001:db8::/129", "2001:db8:/32",
          "example.com", "10.0.0.0-10.0.0.9", "/8", "fe80::1%eth0", "[::1]"}) {
        std::string error;
        EXPECT_FALSE(NetworkList::parse(std::string("10.0.0.0/8\n") + line, error)) << line;
        EXPECT_EQ(error, "line 2: \"" + std::string(line) +
                             "\" must be a network such as 192.0.2.0/24 or 2001:db8::/32");
    }
    std::string error;
    EXPECT_FALSE(NetworkList::parse(std::string(NetworkList::kMaxFile + 1, '\n'), error));
    EXPECT_EQ(error, "it is larger than 4 MB");
}

struct Naive {
    IpAddress address;
    unsigned bits;

    bool contains(const IpAddress& other) const {
        if (address.v6 != other.v6) {
            return false;
        }
        for (unsigned i = 0; i < bits; i++) {
            const unsigned shift = 7 - i % 8;
            if (((address.bytes[i / 8] ^ other.bytes[i / 8]) >> shift & 1) != 0) {
                return false;
            }
        }
        return true;
    }
};

// Of few bits, so that networks overlap and addresses are near their edges.
TEST(NetworkList, AgreesWithBitByBit) {
    std::mt19937 random(42);
    const auto address = [&](bool v6) {
        IpAddress ip;
        ip.v6 = v6;
        const size_t size = v6 ? 16 : 4;
        for (size_t i = 0; i < size; i++) {
            constexpr uint8_t kBytes[] = {0, 0, 1, 0x7f, 0x80, 0xff, 0xff};
            ip.bytes[i] = kBytes[random() % std::size(kBytes)];
        }
        ip.bytes[0] = v6 ? 0x20 : ip.bytes[0];  // none of IPv4 in disguise
        return ip;
    };
    for (int round = 0; round < 300; round++) {
        std::vector<Naive> naive;
        std::string text;
        for (size_t i = random() % 30; i > 0; i--) {
            const IpAddress ip = address(random() % 2 == 0);
            const unsigned most = ip.v6 ? 128 : 32;
            const unsigned bits = random() % 4 == 0 ? random() % (most + 1) : most - random() % 12;
            naive.push_back({ip, bits});
            text += ip_text(ip) + "/" + std::to_string(bits) + "\n";
        }
        const NetworkList list = list_of(text);
        for (int i = 0; i < 300; i++) {
            IpAddress ip = address(i % 2 == 0);
            if (!naive.empty() && i % 3 == 0) {
                ip = naive[random() % naive.size()].address;
                ip.bytes[ip.v6 ? 15 : 3] = static_cast<uint8_t>(random());
            }
            const bool in = std::any_of(naive.begin(), naive.end(),
                                        [&](const Naive& one) { return one.contains(ip); });
            ASSERT_EQ(list.contains(ip), in) << ip_text(ip) << "\n" << text;
        }
    }
}

TEST(NetworkList, AnyBytes) {
    std::mt19937 random(9);
    for (int i = 0; i < 20'000; i++) {
        std::string text(random() % 60, ' ');
        for (char& c : text) {
            c = static_cast<char>(i % 2 == 0 ? random() : "0123456789abcdef:./\n# "[random() % 22]);
        }
        std::string error;
        const bool good = NetworkList::parse(text, error).has_value();
        EXPECT_EQ(good, error.empty());
    }
}

}  // namespace
