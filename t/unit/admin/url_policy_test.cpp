#include "lib/base/url_policy.hpp"

#include <gtest/gtest.h>

namespace ads {
namespace {

IpAddress ip(std::string_view text) {
    const auto address = parse_ip(text);
    EXPECT_TRUE(address) << text;
    return address.value_or(IpAddress());
}

Resolver answering(std::vector<std::string> texts) {
    return [texts](const std::string&) {
        Answers answers;
        for (const auto& text : texts) {
            answers.addresses.push_back(ip(text));
        }
        return answers;
    };
}

const Resolver kPublic = answering({"93.184.215.14"});

bool allowed(std::string_view url, const Resolver& resolver = kPublic) {
    const PixelCheck check = check_pixel_url(url, resolver);
    EXPECT_EQ(check.allowed(), !check.addresses.empty()) << url;
    return check.allowed();
}

TEST(IpAddress, HasOneSpelling) {
    const char* good[][2] = {{"0.0.0.0", "0.0.0.0"},
                             {"255.255.255.255", "255.255.255.255"},
                             {"::", "::"},
                             {"::1", "::1"},
                             {"1::", "1::"},
                             {"2001:DB8::1", "2001:db8::1"},
                             {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
                             {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
                             {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
                             {"::ffff:1.2.3.4", "::ffff:102:304"},
                             {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
                             {"0001::00ff", "1::ff"}};
    for (const auto& [text, shown] : good) {
        EXPECT_EQ(ip_text(ip(text)), shown) << text;
        EXPECT_EQ(ip(ip_text(ip(text))), ip(text)) << text;
    }
    for (const char* text : {"",
                             ".",
                             "1",
                             "1.2.3",
                             "1.2.3.4.5",
                             "1.2.3.256",
                             "01.2.3.4",
                             "1.2.3.04",
                             "0x1.2.3.4",
                             "1.2.3.4 ",
                             " 1.2.3.4",
                             "+1.2.3.4",
                             "1..3.4",
                             "1.2.3.",
                             "2130706433",
                             "a.b.c.d",
                             ":",
                             ":::",
                             "1:",
                             ":1",
                             "1::2::3",
                             "1:2:3:4:5:6:7",
                             "1:2:3:4:5:6:7:8:9",
                             "1:2:3:4:5:6:7:8::",
                             "1::2:3:4:5:6:7:8",
                             "12345::",
                             "g::",
                             "1.2.3.4::",
                             "::1.2.3",
                             "::1.2.3.4:5",
                             "::1.2.3.256",
                             "1:2:3:4:5:6:7:1.2.3.4",
                             "fe80::1%eth0",
                             "[::1]",
                             "-1::",
                             "0x1::",
                             "::ffff:01.2.3.4"}) {
        EXPECT_FALSE(parse_ip(text)) << text;
    }
}

TEST(IpAddress, SpecialUse) {
    // First and last of each range, and the neighbours on both sides.
    const char* ranges[][4] = {
        {nullptr, "0.0.0.0", "0.255.255.255", "1.0.0.0"},
        {"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
        {"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
        {"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
        {"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
        {"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
        {"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"},
        {"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"},
        {"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
        {"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"},
        {"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"},
        {"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"},
        {"223.255.255.255", "224.0.0.0", "239.255.255.255", nullptr},
        {nullptr, "240.0.0.0", "255.255.255.255", nullptr},
        {nullptr, "192.88.99.0", "192.88.99.255", "192.88.100.0"},
        {nullptr, "::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::"},
        {"2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
         "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::"},
        {"2001:db7:ffff::", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"},
        {"2001:ffff::", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::"},
        {"3ffe:ffff::", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"},
        {"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
         "4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", nullptr},
    };
    for (const auto& [before, first, last, after] : ranges) {
        EXPECT_TRUE(before == nullptr || special_use(ip(before)) == nullptr) << before;
        EXPECT_NE(special_use(ip(first)), nullptr) << first;
        EXPECT_NE(special_use(ip(last)), nullptr) << last;
        EXPECT_TRUE(after == nullptr || special_use(ip(after)) == nullptr) << after;
    }
    for (const char* text :
         {"::1", "::ffff:8.8.8.8", "::8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b:1::8.8.8.8",
          "2002:808:808::1", "2001::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
          "100::1", "5f00::1", "168.63.129.16", "169.254.169.254", "255.255.255.255"}) {
        EXPECT_NE(special_use(ip(text)), nullptr) << text;
    }
}

TEST(UrlPolicy, Allows) {
    for (const char* url : {"https://pixel.example.com",
                            "https://pixel.example.com/",
                            "HTTPS://PIXEL.example.com/p",
                            "https://pixel.example.com:443/p?x=1&y=%20#f",
                            "https://pixel.example.com?x",
                            "https://pixel.example.com#x",
                            "https://10.example.com/",
                            "https://127.0.0.1.example.com/",
                            "https://xn--bcher-kva.example/",
                            "https://a_b.example.com/",
                            "https://8.8.8.8/",
                            "https://8.8.8.8:443/",
                            "https://[2606:4700:4700::1111]/",
                            "https://[2606:4700::1]:443/x",
                            "https://localhost.example.com/",
                            "https://internal.example.com/",
                            "https://0x7f.example.com/",
                            "https://a.example/p?u=http://10.0.0.1/",
                            "https://a.example/@x",
                            "https://a.example/x:80",
                            "https://a.example/p?r={cachebuster}",
                            "https://a.example/\xc3\xa9",
                            "https://1e100.net/"}) {
        EXPECT_TRUE(allowed(url)) << url << ": " << check_pixel_url(url, kPublic).fault;
    }
}

TEST(UrlPolicy, BlocksBeforeAsking) {
    const Resolver never = [](const std::string& host) {
        ADD_FAILURE() << "asked for " << host;
        return Answers();
    };
    const std::vector<std::string> urls = {
        "",
        "x",
        "http://a.example/",
        "ftp://a.example/",
        "https:a.example",
        "https:/a.example",
        "https:///a.example/",
        "https://",
        "https:///",
        "https://?x",
        "https://#x",
        "//a.example/",
        " https://a.example/",
        "https://a.example/ ",
        "https://a.example/\n",
        "https://a.exa\tmple/",
        "https://a.example/\x01",
        "https://a.example/\x7f",
        std::string("https://a.example/\0x", 20),
        "https://a.example\\@b.example/",
        "https:\\\\a.example",
        "https://a.example/\xff",
        "https://a.example/\xe2\x80\xae",
        "https://a.example:80/",
        "https://a.example:8443/",
        "https://a.example:/",
        "https://a.example:0443/",
        "https://a.example:443x/",
        "https://a.example:443:443/",
        "https://a.example:-1/",
        "https://u@a.example/",
        "https://u:p@a.example/",
        "https://@a.example/",
        "https://a.example@10.0.0.1/",
        "https://a.example%2f/",
        "https://%61.example/",
        "https://b\xc3\xbc"
        "cher.example/",
        "https://a\xe3\x80\x82"
        "example/",
        "https://\xef\xbd\x81.example/",
        "https://\xe2\x91\xa0.1.1.1/",
        // addresses in other spellings
        "https://127.1/",
        "https://127.0.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.0.0.1/",
        "https://0177.0.0.1/",
        "https://127.0.0.01/",
        "https://1.1.1/",
        "https://1.1.1.1.1/",
        "https://8.8.8.08/",
        "https://256.1.1.1/",
        "https://1.1.1.256/",
        "https://0x8.8.8.8/",
        "https://8.8.8.0x8/",
        "https://0X8.8.8.8/",
        "https://0/",
        "https://0x/",
        "https://a.0x/",
        "https://a.1/",
        "https://a.0x7f/",
        "https://a.123/",
        "https://8.8.8.8./",
        // addresses that are not public
        "https://127.0.0.1/",
        "https://10.0.0.1/",
        "https://192.168.1.1/",
        "https://172.16.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://0.0.0.0/",
        "https://100.64.0.1/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://[::1]/",
        "https://[::]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:8.8.8.8]/",
        "https://[::ffff:808:808]/",
        "https://[64:ff9b::8.8.8.8]/",
        "https://[2002:7f00:1::]/",
        "https://[2001::1]/",
        "https://[2001:db8::1]/",
        "https://[3fff::1]/",
        "https://[fe80::1]/",
        "https://[fc00::1]/",
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[::1",
        "https://[]/",
        "https://[8.8.8.8]/",
        "https://[a.example]/",
        "https://[v1.x]/",
        "https://[2606:4700::1]x/",
        "https://[2606:4700::1]]/",
        "https://[[2606:4700::1]]/",
        "https://2606:4700::1/",
        "https://[2606:4700::1]:80/",
        "https://x[2606:4700::1]/",
        // names
        "https://localhost/",
        "https://LOCALHOST/",
        "https://localhost./",
        "https://a.localhost/",
        "https://redis/",
        "https://printer.local/",
        "https://a.internal/",
        "https://A.INTERNAL/",
        "https://metadata.google.internal/",
        "https://a.internal./",
        "https://a.lan/",
        "https://a.home/",
        "https://a.home.arpa/",
        "https://a.corp/",
        "https://a.intranet/",
        "https://a.private/",
        "https://a.test/",
        "https://a.invalid/",
        "https://a.onion/",
        "https://1.0.0.127.in-addr.arpa/",
        "https://a.localdomain/",
        "https://a.example.com./",
        "https://.example.com/",
        "https://a..example.com/",
        "https://-a.example.com/",
        "https://a-.example.com/",
        "https://a!b.example.com/",
        "https://a,b.example.com/",
        "https://a;b.example.com/",
        "https://a'b.example.com/",
        "https://*.example.com/",
        "https://$(x).example.com/",
        "https://{click_id}.example.com/",
        "https://./",
        "https://../",
        "https://" + std::string(64, 'a') + ".example.com/",
        "https://" + std::string(250, 'a') + ".example.com/",
        "https://a.example/" + std::string(2040, 'x'),
    };
    for (const auto& url : urls) {
        EXPECT_FALSE(allowed(url, never)) << url;
        EXPECT_FALSE(check_pixel_url(url, never).fault.empty());
    }
}

TEST(UrlPolicy, EveryAnswerMustBePublic) {
    const char* url = "https://pixel.example.com/p";
    EXPECT_TRUE(allowed(url, answering({"1.1.1.1", "2606:4700::1"})));
    EXPECT_FALSE(allowed(url, answering({})));
    for (const char* bad : {"127.0.0.1", "10.0.0.1", "::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1",
                            "2002:101:101::", "fe80::1", "169.254.169.254"}) {
        EXPECT_FALSE(allowed(url, answering({bad}))) << bad;
        EXPECT_FALSE(allowed(url, answering({"1.1.1.1", bad}))) << bad;
        EXPECT_FALSE(allowed(url, answering({bad, "1.1.1.1"}))) << bad;
    }
    const Resolver broken = [](const std::string&) { return Answers{{ip("1.1.1.1")}, "broken"}; };
    EXPECT_EQ(check_pixel_url(url, broken).fault, "broken");
}

TEST(UrlPolicy, AsksOnceAndGivesWhatToDial) {
    int asked = 0;
    const Resolver count = [&](const std::string& host) {
        EXPECT_EQ(host, "pixel.example.com");
        asked++;
        return Answers{{ip("1.1.1.1"), ip("1.0.0.1")}, {}};
    };
    const PixelCheck check = check_pixel_url("https://Pixel.Example.com?a=/b#c", count);
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(check.url.host, "pixel.example.com");
    EXPECT_EQ(check.url.target, "/?a=/b");
    EXPECT_EQ(check.addresses, (std::vector<IpAddress>{ip("1.1.1.1"), ip("1.0.0.1")}));
    EXPECT_EQ(check_pixel_url("https://8.8.8.8/x", count).addresses,
              (std::vector<IpAddress>{ip("8.8.8.8")}));
    EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace ads
