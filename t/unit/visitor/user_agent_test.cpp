#include "core/visitor/user_agent.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace ads;

struct Case {
    Device device;
    const char* agent;
};

#define WEBKIT "AppleWebKit/537.36 (KHTML, like Gecko) "
#define IOS "AppleWebKit/605.1.15 (KHTML, like Gecko) "

constexpr Case kAgents[] = {
    // desktop
    {Device::desktop,
     "Mozilla/5.0 (Windows NT 10.0; Win64; x64) " WEBKIT "Chrome/126.0.0.0 Safari/537.36"},
    {Device::desktop, "Mozilla/5.0 (Windows NT 10.0; Win64; x64) " WEBKIT
                      "Chrome/126.0.0.0 Safari/537.36 Edg/126.0.2592.68"},
    {Device::desktop,
     "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:127.0) Gecko/20100101 "
     "Firefox/127.0"},
    {Device::desktop, "Mozilla/5.0 (Windows NT 6.1; WOW64; Trident/7.0; rv:11.0) like Gecko"},
    {Device::desktop,
     "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) " IOS "Version/17.5 Safari/605.1.15"},
    {Device::desktop,
     "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:127.0) Gecko/20100101 "
     "Firefox/127.0"},
    {Device::desktop, "Mozilla/5.0 (X11; Linux x86_64) " WEBKIT "Chrome/125.0.0.0 Safari/537.36"},
    {Device::desktop,
     "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:126.0) Gecko/20100101 "
     "Firefox/126.0"},
    {Device::desktop,
     "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) " WEBKIT "Chrome/126.0.0.0 Safari/537.36"},
    {Device::desktop, "Mozilla/5.0 (X11; FreeBSD amd64; rv:115.0) Gecko/20100101 Firefox/115.0"},
    {Device::desktop, "Mozilla/5.0 (Windows NT 10.0; Win64; x64) " WEBKIT
                      "Chrome/124.0.0.0 Safari/537.36 OPR/110.0.0.0"},
    {Device::desktop, "Mozilla/5.0 (Windows NT 10.0; WOW64) " WEBKIT
                      "Chrome/118.0.5993.159 YaBrowser/23.11.0.2470 Safari/537.36"},
    {Device::desktop, "Links (2.29; Linux 6.1 x86_64; GNU C 12.2; text)"},
    // mobile
    {Device::mobile, "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) " IOS
                     "Version/17.5 Mobile/15E148 Safari/604.1"},
    {Device::mobile, "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) " IOS
                     "CriOS/126.0.6478.54 Mobile/15E148 Safari/604.1"},
    {Device::mobile, "Mozilla/5.0 (iPod touch; CPU iPhone OS 12_5_7 like Mac OS X) " IOS
                     "Version/12.1.2 Mobile/15E148 Safari/604.1"},
    {Device::mobile,
     "Mozilla/5.0 (Linux; Android 10; K) " WEBKIT "Chrome/126.0.0.0 Mobile Safari/537.36"},
    {Device::mobile, "Mozilla/5.0 (Linux; Android 14; Pixel 8) " WEBKIT
                     "Chrome/125.0.6422.165 Mobile Safari/537.36"},
    {Device::mobile, "Mozilla/5.0 (Linux; Android 13; SM-S911B) " WEBKIT
                     "SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36"},
    {Device::mobile, "Mozilla/5.0 (Android 14; Mobile; rv:127.0) Gecko/127.0 Firefox/127.0"},
    {Device::mobile,
     "Opera/9.80 (Android; Opera Mini/36.2/191.291; U; en) Presto/2.12.423 "
     "Version/12.16"},
    {Device::mobile,
     "Opera/9.80 (J2ME/MIDP; Opera Mini/9.80 (S60; SymbOS; Opera Mobi/23.348; U; "
     "en) Presto/2.5.25 Version/10.54"},
    {Device::mobile, "Mozilla/5.0 (Windows Phone 10.0; Android 6.0.1; Microsoft; Lumia 950) " WEBKIT
                     "Chrome/52.0.2743.116 Mobile Safari/537.36 Edge/15.15254"},
    {Device::mobile,
     "Mozilla/5.0 (BB10; Touch) AppleWebKit/537.10+ (KHTML, like Gecko) "
     "Version/10.0.9.2372 Mobile Safari/537.10+"},
    {Device::mobile, "BlackBerry9700/5.0.0.862 Profile/MIDP-2.1 Configuration/CLDC-1.1"},
    {Device::mobile,
     "Mozilla/5.0 (Mobile; Nokia 8110 4G; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5"},
    {Device::mobile,
     "Mozilla/5.0 (Linux; U; Android 2.3.6; en-us; Nexus S Build/GRK39F) "
     "AppleWebKit/533.1 (KHTML, like Gecko) Version/4.0 Mobile Safari/533.1"},
    {Device::mobile, "MOZILLA/5.0 (IPHONE; CPU IPHONE OS 17_5 LIKE MAC OS X)"},
    // tablet
    {Device::tablet, "Mozilla/5.0 (iPad; CPU OS 12_5_7 like Mac OS X) " IOS
                     "Version/12.1.2 Mobile/15E148 Safari/604.1"},
    {Device::tablet,
     "Mozilla/5.0 (Linux; Android 13; SM-X700) " WEBKIT "Chrome/126.0.0.0 Safari/537.36"},
    {Device::tablet,
     "Mozilla/5.0 (Linux; Android 12; Lenovo TB-J606F) " WEBKIT "Chrome/114.0.0.0 Safari/537.36"},
    {Device::tablet, "Mozilla/5.0 (Android 13; Tablet; rv:127.0) Gecko/127.0 Firefox/127.0"},
    {Device::tablet, "Mozilla/5.0 (Linux; Android 9; KFMAWI) " WEBKIT
                     "Silk/118.2.4 like Chrome/118.0.5993.155 Safari/537.36"},
    {Device::tablet,
     "Mozilla/5.0 (Linux; U; Android 4.0.3; en-us; KFTT Build/IML74K) "
     "AppleWebKit/535.19 (KHTML, like Gecko) Silk/3.13 Safari/535.19"},
    {Device::tablet,
     "Mozilla/5.0 (X11; U; Linux armv7l like Android; en-us) AppleWebKit/531.2+ "
     "(KHTML, like Gecko) Version/5.0 Safari/533.2+ Kindle/3.0+"},
    {Device::tablet,
     "Mozilla/5.0 (PlayBook; U; RIM Tablet OS 2.1.0; en-US) AppleWebKit/536.2+ "
     "(KHTML, like Gecko) Version/7.2.1.0 Safari/536.2+"},
    {Device::tablet,
     "Mozilla/5.0 (Windows NT 6.3; ARM; Trident/7.0; Touch; Tablet PC 2.0) like "
     "Gecko"},
    // tv
    {Device::tv, "Mozilla/5.0 (Web0S; Linux/SmartTV) " WEBKIT
                 "Chrome/94.0.4606.128 Safari/537.36 WebAppManager"},
    {Device::tv,
     "Mozilla/5.0 (SMART-TV; LINUX; Tizen 7.0) " WEBKIT "94.0.4606.31/7.0 TV Safari/537.36"},
    {Device::tv, "Mozilla/5.0 (Linux; Android 9; BRAVIA 4K UR2 Build/PTT1.190515.001.S104) " WEBKIT
                 "Chrome/109.0.5414.117 Safari/537.36"},
    {Device::tv, "Mozilla/5.0 (Linux; Android 11; SHIELD Android TV Build/RQ1A.210105.003) " WEBKIT
                 "Chrome/102.0.5005.125 Safari/537.36"},
    {Device::tv, "Mozilla/5.0 (Linux; Android 12.0; Build/STTL.240206.002) " WEBKIT
                 "Chrome/114.0.0.0 Safari/537.36 CrKey/1.56.500000 DeviceType/AndroidTV"},
    {Device::tv, "Mozilla/5.0 (Linux; Android 5.1.1; AFTT Build/LVY48F) " WEBKIT
                 "Silk/64.2.4 like Chrome/64.0.3282.137 Mobile Safari/537.36"},
    {Device::tv, "Roku/DVP-12.5 (12.5.0.4178-88)"},
    {Device::tv, "AppleTV11,1/11.1"},
    {Device::tv, "AppleCoreMedia/1.0.0.21L580 (Apple TV; U; CPU OS 17_5_1 like Mac OS X; en_us)"},
    {Device::tv,
     "Mozilla/5.0 (Linux; NetCast; U) AppleWebKit/537.31 (KHTML, like Gecko) "
     "Chrome/38.0.2125.122 Safari/537.31 SmartTV/7.0"},
    {Device::tv, "HbbTV/1.2.1 (; Panasonic; VIERA 2013; 3.672; 4101-0003 0002-0000;)"},
    {Device::tv,
     "Mozilla/5.0 (X11; U; Linux i686; en-US) AppleWebKit/533.4 (KHTML, like Gecko) "
     "Chrome/5.0.375.127 Large Screen Safari/533.4 GoogleTV/162671"},
    // bot
    {Device::bot, "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"},
    {Device::bot, "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) " WEBKIT
                  "Chrome/126.0.6478.61 Mobile Safari/537.36 (compatible; Googlebot/2.1; "
                  "+http://www.google.com/bot.html)"},
    {Device::bot, "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"},
    {Device::bot, "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch)"},
    {Device::bot, "DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)"},
    {Device::bot,
     "Mozilla/5.0 (compatible; Baiduspider/2.0; "
     "+http://www.baidu.com/search/spider.html)"},
    {Device::bot, "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)"},
    {Device::bot, "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)"},
    {Device::bot, "Twitterbot/1.0"},
    {Device::bot, "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://l.example)"},
    {Device::bot, "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)"},
    {Device::bot, "Mediapartners-Google"},
    {Device::bot,
     "Mozilla/5.0 (X11; Linux x86_64) " WEBKIT "HeadlessChrome/125.0.0.0 Safari/537.36"},
    {Device::bot, "Mozilla/5.0 (Linux; Android 11; moto g power (2022)) " WEBKIT
                  "Chrome/119.0.0.0 Mobile Safari/537.36 Chrome-Lighthouse"},
    {Device::bot, "curl/8.5.0"},
    {Device::bot, "Wget/1.21.4"},
    {Device::bot, "python-requests/2.31.0"},
    {Device::bot, "Go-http-client/1.1"},
    {Device::bot, "Java/17.0.9"},
    {Device::bot, "okhttp/4.12.0"},
    {Device::bot, "libwww-perl/6.76"},
    {Device::bot, "Scrapy/2.11.1 (+https://scrapy.org)"},
    {Device::bot, "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)"},
    {Device::bot, "Pingdom.com_bot_version_1.4_(http://www.pingdom.com/)"},
    {Device::bot, "Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/a.bot)"},
};

// Products of one kind, to be put into the frame of its user agents: with
// those above at least forty of each kind.
constexpr const char* kPhones[] = {
    "SM-G991B",       "SM-A546E",    "SM-A155F",    "SM-S928U",
    "SM-F946B",       "Pixel 6a",    "Pixel 7 Pro", "Pixel 9",
    "Redmi Note 12",  "M2101K6G",    "23021RAA2Y",  "2201117TG",
    "CPH2387",        "CPH2525",     "V2111",       "V2206",
    "RMX3686",        "moto g84 5G", "XT2201-1",    "Nokia G42 5G",
    "ASUS_AI2302",    "XQ-DQ54",     "LE2113",      "ONEPLUS A6013",
    "HUAWEI P30",     "VOG-L29",     "JNY-LX1",     "TECNO KI7",
    "Infinix X6833B", "itel S665L",  "FP4",         "A065",
    "SO-53C",         "KYV48",       "LM-G710",     "HTC Desire 22 pro"};
constexpr const char* kTablets[] = {"SM-T870",
                                    "SM-X810",
                                    "SM-P613",
                                    "SM-T225",
                                    "SM-X200",
                                    "SM-T510",
                                    "SM-X910",
                                    "Pixel Tablet",
                                    "Lenovo TB310FU",
                                    "TB-X606F",
                                    "TB128FU",
                                    "TB350FU",
                                    "YT-K606F",
                                    "Lenovo YT3-850F",
                                    "MediaPad M5 Lite",
                                    "BAH3-W09",
                                    "AGS3-W09",
                                    "SCMR-W09",
                                    "Xiaomi Pad 6",
                                    "21051182G",
                                    "Redmi Pad SE",
                                    "OPD2102A",
                                    "RMP2102",
                                    "Nokia T20",
                                    "moto tab g70",
                                    "A9 Teclast T40",
                                    "Nexus 7",
                                    "Nexus 10",
                                    "ALLDOCUBE iPlay 50",
                                    "KFTRWI",
                                    "KFSUWI",
                                    "8094X"};
constexpr const char* kTvs[] = {
    "Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/538.2 (KHTML, like Gecko) Large Screen",
    "Mozilla/5.0 (webOS.TV-2022; Linux/SmartTV) Chrome/87.0.4280.88 Safari/537.36",
    "Mozilla/5.0 (SMART-TV; Linux; Tizen 2.4.0) AppleWebkit/538.1 SamsungBrowser/1.1 TV Safari",
    "Mozilla/5.0 (SMART-TV; LINUX; Tizen 5.5) Version/5.5 TV Safari/537.36",
    "Mozilla/5.0 (Linux; Tizen 6.5; SmartTV) SamsungBrowser/3.2 TV Safari/537.36",
    "Mozilla/5.0 (Linux; Android 10; BRAVIA VU2 Build/QTG3) Chrome/102.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Linux; Android 8.0.0; BRAVIA 4K GB ATV3) Chrome/79.0.3945.79 Safari/537.36",
    "Mozilla/5.0 (Linux; Android 9; Philips Android TV 2020) Chrome/90.0.4430.210 Safari/537.36",
    "Mozilla/5.0 (Linux; Android 11; TCL Android TV RT51) Chrome/92.0.4515.166 Safari/537.36",
    "Mozilla/5.0 (Linux; Android 12; Google TV Streamer) Chrome/124.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Linux; Android 12; Chromecast) Chrome/114.0 Safari/537.36 CrKey/1.56.500000",
    "Mozilla/5.0 (X11; Linux armv7l) Chrome/90.0.4430.225 Safari/537.36 CrKey/1.54.250320",
    "Mozilla/5.0 (Fuchsia) Chrome/110.0.0.0 Safari/537.36 CrKey/1.56.500000",
    "Mozilla/5.0 (X11; U; Linux: i686; en-US) Chrome/11.0.696.77 GoogleTV/000000",
    "Mozilla/5.0 (Linux; GoogleTV 3.2; NSZ-GS7/GX70 Build/MASTER) Safari/534.24",
    "Roku/DVP-9.10 (519.10E04111A)",
    "Roku4640X/DVP-7.70 (297.70E04154A)",
    "Mozilla/5.0 (compatible; Roku/DVP-11.5; Ultra)",
    "AppleTV5,3/9.1.1",
    "AppleTV6,2/11.1",
    "AppleTV14,1/17.4",
    "Podcasts/1600 CFNetwork/1408 (AppleTV11,1; tvOS 16.5)",
    "AppleCoreMedia/1.0.0.20K71 (Apple TV; U; CPU OS 16_1 like Mac OS X; de_de)",
    "Mozilla/5.0 (Linux; NetCast; U) Chrome/33.0.1750.149 SmartTV/6.0",
    "Mozilla/5.0 (DirectFB; U; Linux mips; en) LG Browser/4.0.10(+mouse; LG; NetCast 2.0)",
    "Opera/9.80 (Linux armv7l; HbbTV/1.2.1 (; Philips; 40HFL5008; 1.66;) ) Presto/2.12.407",
    "Mozilla/5.0 (Linux armv7l) HbbTV/1.4.1 (+DRM; Hisense; 55U7; V0000.01) Chrome/69.0",
    "HbbTV/1.1.1 (;;;;;) Maple;2011",
    "Mozilla/5.0 (Linux; U; HbbTV/1.5.1; Vestel; MB180) Safari/537.36 OPR/46.0",
    "Mozilla/5.0 (FreeBSD; U; Viera; en) AppleWebKit/537.11 Viera/3.0.0 Safari/537.11",
    "Mozilla/5.0 (Linux; Android 5.1; AFTT Build/LMY47O) Chrome/59.0.3071.125 Safari/537.36",
};
constexpr const char* kBots[] = {
    "AdsBot-Google (+http://www.google.com/adsbot.html)",
    "Googlebot-Image/1.0",
    "Googlebot-Video/1.0",
    "Storebot-Google/1.0",
    "msnbot/2.0b",
    "adidxbot/2.0",
    "BingPreview bot",
    "Applebot/0.1",
    "Amazonbot/0.1",
    "GPTBot/1.2",
    "ChatGPT-User/1.0; +https://openai.com/bot",
    "OAI-SearchBot/1.0",
    "ClaudeBot/1.0",
    "PerplexityBot/1.0",
    "CCBot/2.0",
    "Bytespider",
    "PetalBot",
    "SemrushBot/7~bl",
    "MJ12bot/v1.4.8",
    "DotBot/1.2",
    "rogerbot/1.2",
    "BLEXBot/1.0",
    "SeznamBot/4.0",
    "Sogou web spider/4.0",
    "YisouSpider",
    "360Spider",
    "Exabot/3.0",
    "coccocbot-web/1.0",
    "Mail.RU_Bot/2.1",
    "Pinterestbot/1.0",
    "Slackbot-LinkExpanding 1.0",
    "Discordbot/2.0",
    "TelegramBot (like TwitterBot)",
    "redditbot/1.0",
    "Screaming Frog spider",
    "W3C_Validator crawl",
    "commoncrawl/1.0",
    "heritrix crawler",
    "HeadlessChrome/90.0",
    "facebookexternalhit/1.1",
    "curl/7.88.1",
    "Wget/1.20.3 (linux-gnu)",
    "python-httpx/0.27.0",
    "Java/1.8.0_392",
    "okhttp/3.14.9",
    "checkly monitor",
    "Datadog/Synthetics monitoring",
};

void expect_all(std::span<const char* const> list, std::string_view device,
                const std::string& before = "", const std::string& after = "") {
    for (const char* product : list) {
        EXPECT_EQ(name_of(device_of(before + product + after)), device) << product;
    }
}

TEST(UserAgent, ByTheProduct) {
    expect_all(kPhones, "mobile", "Mozilla/5.0 (Linux; Android 13; ",
               ") " WEBKIT "Chrome/126.0.0.0 Mobile Safari/537.36");
    expect_all(kTablets, "tablet", "Mozilla/5.0 (Linux; Android 13; ",
               ") " WEBKIT "Chrome/126.0.0.0 Safari/537.36");
    expect_all(kTvs, "tv");
    expect_all(kBots, "bot");
    expect_all(kBots, "bot", "Mozilla/5.0 (compatible; ", "; +https://example.com/)");
    expect_all(kBots, "bot", "Mozilla/5.0 (iPhone; Mobile) Safari/604.1 (compatible; ", ")");
    for (const std::string system :
         {"Windows NT 10.0; Win64; x64", "Windows NT 6.1; WOW64", "Windows NT 6.3; ARM64",
          "Macintosh; Intel Mac OS X 10_15_7", "Macintosh; Intel Mac OS X 14_5",
          "X11; Linux x86_64", "X11; Fedora; Linux x86_64", "X11; CrOS aarch64 15786.48.2",
          "X11; OpenBSD amd64"}) {
        for (const char* browser :
             {"Chrome/126.0.0.0 Safari/537.36", "Chrome/109.0.0.0 Safari/537.36 Edg/109.0.1518.78",
              "Version/17.4 Safari/605.1.15", "Chrome/124.0.0.0 Safari/537.36 Vivaldi/6.7",
              "Chrome/120.0.0.0 Safari/537.36 OPR/106.0.0.0"}) {
            const std::string agent = "Mozilla/5.0 (" + system + ") " WEBKIT + browser;
            EXPECT_EQ(name_of(device_of(agent)), "desktop") << agent;
        }
    }
}

TEST(UserAgent, ByTheTable) {
    size_t of[kCount<Device>] = {};
    for (const auto& [device, agent] : kAgents) {
        EXPECT_EQ(name_of(device_of(agent)), name_of(device)) << agent;
        of[static_cast<size_t>(device)]++;
    }
    for (const size_t count : of) {
        EXPECT_GE(count, 9u);
    }
}

// Those who are easily taken for something else.
TEST(UserAgent, ABrowserThatUsesALibrary) {
    EXPECT_EQ(name_of(device_of("Lynx/2.9.0dev.10 libwww-FM/2.14 SSL-MM/1.4.1")), "desktop");
}

TEST(UserAgent, PhonesWhoseMakerSoundsLikeABot) {
    for (const char* agent : {"Mozilla/5.0 (Linux; Android 9; CUBOT_X18_Plus) " WEBKIT
                              "Chrome/97.0.4692.98 Mobile Safari/537.36",
                              "Mozilla/5.0 (Linux; Android 11; CUBOT KINGKONG 5 PRO) " WEBKIT
                              "Chrome/124.0.0.0 Mobile Safari/537.36",
                              "Mozilla/5.0 (Linux; Android 8.1.0; Cubot_J3 Build/O11019) " WEBKIT
                              "Chrome/70.0.3538.110 Mobile Safari/537.36"}) {
        EXPECT_EQ(name_of(device_of(agent)), "mobile") << agent;
    }
}

TEST(UserAgent, EveryGenerationOfATvStick) {
    for (const char* model : {"AFTM", "AFTB", "AFTS", "AFTN", "AFTMM", "AFTKA", "AFTSSS", "AFTR"}) {
        const std::string agent = std::string("Mozilla/5.0 (Linux; Android 9; ") + model +
                                  " Build/PS7633) " WEBKIT
                                  "Silk/108.9.2 like Chrome/108.0.5359.220 Safari/537.36";
        EXPECT_EQ(name_of(device_of(agent)), "tv") << model;
    }
}

TEST(UserAgent, ProgramsThatAreNoBrowsers) {
    for (const char* agent :
         {"Python/3.11 aiohttp/3.9.5", "Python-urllib/3.11", "axios/1.7.2",
          "node-fetch/1.0 (+https://github.com/bitinn/node-fetch)", "PostmanRuntime/7.39.0",
          "Apache-HttpClient/4.5.14 (Java/17.0.9)", "ia_archiver",
          "Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)", "GoogleOther",
          "APIs-Google (+https://developers.google.com/webmasters/APIs-Google.html)",
          "Mozilla/5.0 (Unknown; Linux x86_64) AppleWebKit/538.1 (KHTML, like Gecko) "
          "PhantomJS/2.1.1 Safari/538.1"}) {
        EXPECT_EQ(name_of(device_of(agent)), "bot") << agent;
    }
}

TEST(UserAgent, OddOnes) {
    EXPECT_EQ(device_of(""), Device::desktop);
    EXPECT_EQ(device_of(" "), Device::desktop);
    EXPECT_EQ(device_of("-"), Device::desktop);
    EXPECT_EQ(device_of(std::string_view("\0\0\0", 3)), Device::desktop);
    EXPECT_EQ(device_of(std::string_view("\0iPhone\0", 8)), Device::mobile);
    EXPECT_EQ(device_of("\xff\xfe\x80iPad\xc3"), Device::tablet);
    EXPECT_EQ(device_of("iphon"), Device::desktop) << "a word cut off at the end";
    EXPECT_EQ(device_of("i"), Device::desktop);
    EXPECT_EQ(device_of("b\xc3\xb6t"), Device::desktop);
}

TEST(UserAgent, OfAnyLength) {
    const std::string blank(64 << 10, ' ');
    EXPECT_EQ(device_of(blank), Device::desktop);
    EXPECT_EQ(device_of(std::string(64 << 10, 'b')), Device::desktop);
    EXPECT_EQ(device_of("iPhone" + blank), Device::mobile);
    EXPECT_EQ(device_of(blank + "iPhone"), Device::desktop) << "the beginning decides";
    for (size_t at = 1000; at < 1040; at++) {
        const std::string text = blank.substr(0, at) + "iPhone" + blank;
        EXPECT_EQ(device_of(text), at + 6 <= 1024 ? Device::mobile : Device::desktop) << at;
    }
    std::string all;
    while (all.size() < 64 << 10) {
        all += "android mobile tablet tv ";
    }
    EXPECT_EQ(device_of(all), Device::tablet);
}

TEST(UserAgent, AnyBytesAreSomething) {
    std::mt19937 random(3);
    for (int i = 0; i < 20'000; i++) {
        std::string text(random() % 200, '\0');
        for (auto& c : text) {
            c = static_cast<char>(random());
        }
        ASSERT_LT(static_cast<size_t>(device_of(text)), kCount<Device>);
    }
}

TEST(UserAgent, TheCacheSaysTheSame) {
    DeviceCache cache;
    std::mt19937_64 random(4);
    std::vector<uint64_t> hashes;
    for (size_t i = 0; i < std::size(kAgents); i++) {
        // Every second one falls upon the entry of the one before.
        hashes.push_back(i % 2 == 0 ? random() : hashes.back() + 1024);
    }
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < std::size(kAgents); i++) {
            ASSERT_EQ(cache.find(hashes[i], kAgents[i].agent), device_of(kAgents[i].agent));
        }
    }
    EXPECT_EQ(cache.find(hashes.back(), "iPhone"), device_of(kAgents[hashes.size() - 1].agent))
        << "by the hash alone";
}

}  // namespace
