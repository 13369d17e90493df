#include "core/base/origin.hpp"

#include <gtest/gtest.h>

#include <string>

namespace ads {
namespace {

TEST(Origin, Hosts) {
    for (const auto* good : {"a", "news.example.com", "News.Example.com.", "a_b.example:1",
                             "192.0.2.1:65535", "[2001:db8::1]", "[::ffff:192.0.2.1]:8443"}) {
        EXPECT_TRUE(valid_host(good)) << good;
    }
    for (const auto* bad :
         {"",     ".",       ".a",     ":80",    "a:",           "a:0", "a:65536", "a:8 0",
          "a:+1", "a:80:80", "a b",    "a/b",    "a\"b",         "a<b", "a'b",     "a@b",
          "a\\b", "a%b",     "a?b",    "a#b",    "\xc3\xa4",     "[",   "[]",      "[::1",
          "::1",  "[::1]a",  "[::1]:", "[g::1]", "[::1%25eth0]", "a\n"}) {
        EXPECT_FALSE(valid_host(bad)) << bad;
    }
    EXPECT_TRUE(valid_host(std::string(255, 'a')));
    EXPECT_FALSE(valid_host(std::string(256, 'a')));
}

TEST(Origin, Origins) {
    EXPECT_TRUE(valid_origin("https://news.example.com"));
    EXPECT_TRUE(valid_origin("http://[::1]:8080"));
    for (const auto* bad : {"", "news.example.com", "//news.example.com", "https://", "HTTPS://a",
                            "javascript://a", "https://a/", "https://u@a", "ftp://a"}) {
        EXPECT_FALSE(valid_origin(bad)) << bad;
    }
}

}  // namespace
}  // namespace ads
