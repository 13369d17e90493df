#include "core/visitor/bot_list.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "core/base/prefetch.hpp"
#include "io/list_file.hpp"
#include "temp_folder.hpp"

namespace {

using namespace ads;

BotList list_of(std::string_view text) {
    std::string error;
    auto list = BotList::parse(text, error);
    EXPECT_TRUE(list) << error;
    return list ? *list : BotList();
}

std::string fault_of(std::string_view text) {
    std::string error;
    EXPECT_FALSE(BotList::parse(text, error));
    return error;
}

TEST(BotList, FindsTextsAnywhereInAnyCase) {
    const BotList list = list_of(
        "# a comment\n"
        "\n"
        "Headless\r\n"
        "  curl/   # the command\n"
        "c#bot\n"
        "got (https");
    EXPECT_EQ(list.size(), 4u);
    EXPECT_TRUE(list.names_bot("curl/7.88"));
    EXPECT_TRUE(list.names_bot("Mozilla/5.0 CURL/"));
    EXPECT_TRUE(list.names_bot("Mozilla/5.0 HeadlessChrome/126"));
    EXPECT_TRUE(list.names_bot("My-C#Bot"));
    EXPECT_TRUE(list.names_bot("got (https://github.com)"));
    EXPECT_TRUE(list.names_bot("")) << "nobody in particular";
    EXPECT_FALSE(list.names_bot("Mozilla/5.0 (X11; Linux) Firefox/127.0"));
    EXPECT_FALSE(list.names_bot("curl"));
    EXPECT_FALSE(list.names_bot("headles s"));
    EXPECT_FALSE(list.names_bot(std::string_view("\0\xff", 2)));
}

TEST(BotList, WithoutEntries) {
    for (const auto* text : {"", "\n\n", "# nothing", "!cubot"}) {
        const BotList list = list_of(text);
        EXPECT_EQ(list.size(), 0u);
        EXPECT_FALSE(list.names_bot("anything"));
        EXPECT_TRUE(list.names_bot(""));
    }
    EXPECT_FALSE(BotList().names_bot("anything"));
}

TEST(BotList, Exceptions) {
    const BotList list = list_of("bot\n!cubot\n!about bots");
    EXPECT_FALSE(list.names_bot("Mozilla/5.0 (Linux; CUBOT X18)"));
    EXPECT_FALSE(list.names_bot("cubotcubot"));
    EXPECT_FALSE(list.names_bot("all about bots"));
    EXPECT_TRUE(list.names_bot("cubot Googlebot"));
    EXPECT_TRUE(list.names_bot("bot cubot"));
    EXPECT_TRUE(list.names_bot("ubot"));
}

TEST(BotList, OneTextIsTheEndOfAnother) {
    const BotList list = list_of("abcdex\nbcd\ncde f");
    EXPECT_TRUE(list.names_bot("xabcdz"));
    EXPECT_TRUE(list.names_bot("abcdex"));
    EXPECT_TRUE(list.names_bot("acde f"));
    EXPECT_FALSE(list.names_bot("abccde"));
}

TEST(BotList, Faults) {
    EXPECT_EQ(fault_of("good\nab\n"), "line 2: \"ab\" must have 3 to 128 characters");
    EXPECT_EQ(fault_of("!ab"), "line 1: \"!ab\" must have 3 to 128 characters");
    EXPECT_EQ(fault_of("\n\n" + std::string(129, 'x')),
              "line 3: \"" + std::string(64, 'x') + "…\" must have 3 to 128 characters");
    EXPECT_EQ(fault_of("a\tb\x01"), "line 1: \"a?b?\" must consist of printable ASCII characters");
    EXPECT_NE(fault_of("b\xc3\xb6t"), "");
    EXPECT_NE(fault_of(std::string("nul\0nul", 7)), "");
    EXPECT_EQ(fault_of(std::string(BotList::kMaxFile + 1, '\n')), "it is larger than 64 kB");
}

// What is found is what a search for each text finds.
TEST(BotList, AgreesWithASearchForEach) {
    std::mt19937 random(20261116);
    const auto word = [&](size_t most, std::string_view letters) {
        std::string out(random() % most + 3, ' ');
        for (char& c : out) {
            c = letters[random() % letters.size()];
        }
        return out;
    };
    for (int round = 0; round < 300; round++) {
        std::string text;
        std::vector<std::string> words;
        for (size_t i = random() % 40; i > 0; i--) {
            words.push_back(word(5, "abcd"));
            text += words.back() + "\n";
        }
        const BotList list = list_of(text);
        for (int i = 0; i < 200; i++) {
            const std::string agent = word(20, "abcdeABCD\x80");
            std::string small = agent;
            for (char& c : small) {
                c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c;
            }
            const bool found = std::any_of(words.begin(), words.end(), [&](const auto& one) {
                return small.find(one) != small.npos;
            });
            ASSERT_EQ(list.names_bot(agent), found) << agent << "\n" << text;
        }
    }
}

TEST(BotList, AnyBytesAsAListAndAsAnAgent) {
    std::mt19937 random(7);
    size_t good = 0;
    for (int i = 0; i < 5000; i++) {
        std::string text(random() % 200, ' ');
        for (char& c : text) {
            c = static_cast<char>(i % 2 == 0 ? random() : " \n#!abcXYZ/"[random() % 11]);
        }
        std::string error;
        const auto list = BotList::parse(text, error);
        EXPECT_EQ(list.has_value(), error.empty());
        good += list ? 1 : 0;
        list_of("bot").names_bot(text);
    }
    EXPECT_GT(good, 10u);
    EXPECT_FALSE(list_of("bot").names_bot(std::string(100'000, 'x')));
    EXPECT_FALSE(list_of("bot").names_bot(std::string(BotList::kLooked, 'x') + "bot"));
    EXPECT_TRUE(list_of("bot").names_bot(std::string(BotList::kLooked - 3, 'x') + "bot"));
}

TEST(BotList, TheOneThatWeShip) {
    std::stringstream text;
    text << std::ifstream("conf/bots.txt").rdbuf();
    ASSERT_FALSE(text.str().empty()) << "run from the root of the repository";
    const BotList list = list_of(text.str());
    EXPECT_GT(list.size(), 150u);
    for (const auto* agent : {
             "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
             "Chrome/126.0.0.0 Safari/537.36 Edg/126.0.2592.68",
             "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like "
             "Gecko) Version/17.5 Safari/605.1.15",
             "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, "
             "like Gecko) Mobile/15E148 [FBAN/FBIOS;FBAV/470.0;FBDV/iPhone14,5]",
             "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, "
             "like Gecko) Mobile/15E148 [Pinterest/iOS]",
             "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) "
             "Chrome/126.0.0.0 Mobile Safari/537.36 Instagram 338.0 Android",
             "Mozilla/5.0 (Linux; Android 9; CUBOT_X18_Plus) AppleWebKit/537.36 (KHTML, like "
             "Gecko) Chrome/120.0.0.0 Mobile Safari/537.36",
             "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:126.0) Gecko/20100101 Firefox/126.0",
             "Mozilla/5.0 (SMART-TV; Linux; Tizen 6.0) AppleWebKit/537.36 (KHTML, like Gecko) "
             "SamsungBrowser/3.0 Chrome/69.0.3497.106 TV Safari/537.36",
             "Opera/9.80 (Android; Opera Mini/36.2.2254/119.132; U; id) Presto/2.12.423",
             "Mozilla/5.0 (Linux; Android 13; SM-S901B) AppleWebKit/537.36 (KHTML, like Gecko) "
             "SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36",
             "Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
             "Gecko) DuckDuckGo/7 Safari/605.1.15",
         }) {
        EXPECT_FALSE(list.names_bot(agent)) << agent;
    }
    for (const auto* agent : {
             "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
             "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
             "HeadlessChrome/126.0.0.0 Safari/537.36",
             "curl/7.88.1",
             "Wget/1.21.3",
             "python-requests/2.31.0",
             "Go-http-client/2.0",
             "Mozilla/5.0 (Linux; Android 11; moto g power) Chrome/119 Mobile Safari/537.36 "
             "Chrome-Lighthouse",
             "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
             "WhatsApp/2.23.20.0",
             "kube-probe/1.27",
             "Java/17.0.2",
         }) {
        EXPECT_TRUE(list.names_bot(agent)) << agent;
    }
}

TEST(BotCache, SaysWhatTheListSays) {
    BotList list = list_of("bot");
    BotCache cache;
    EXPECT_TRUE(cache.find(list, 0, "bot")) << "a hash of 0 is a hash";
    EXPECT_TRUE(cache.find(list, 5, "bot"));
    EXPECT_FALSE(cache.find(list, 5 + 1024, "me"));
    EXPECT_TRUE(cache.find(list, 5, "bot"));
    list = list_of("other");
    EXPECT_TRUE(cache.find(list, 5, "bot")) << "as it was";
    cache.clear();
    EXPECT_FALSE(cache.find(list, 5, "bot"));
}

TEST(ListFile, FollowsItsFileAndKeepsTheLastGoodOne) {
    const TempFolder folder;
    const std::string path = folder.file("bots");
    ListFile<BotList> file(path);
    std::string error;
    EXPECT_FALSE(file.read(error));
    EXPECT_EQ(error, "cannot read it: No such file or directory");
    EXPECT_FALSE(file.changed()) << "it is still not there";

    TempFolder::write(path, "one\n");
    EXPECT_TRUE(file.changed());
    EXPECT_TRUE(file.read(error)) << error;
    EXPECT_FALSE(file.changed());
    EXPECT_EQ(file.version(), 1u);
    EXPECT_TRUE(file.list().names_bot("one"));

    TempFolder::write(path, "two\nx\n");
    EXPECT_TRUE(file.changed());
    EXPECT_FALSE(file.read(error));
    EXPECT_FALSE(file.changed()) << "looked at once";
    EXPECT_TRUE(file.list().names_bot("one"));
    EXPECT_EQ(file.version(), 1u);

    std::filesystem::remove(path);
    EXPECT_TRUE(file.changed());
    EXPECT_FALSE(file.read(error));
    EXPECT_FALSE(file.changed());
    EXPECT_TRUE(file.list().names_bot("one"));

    TempFolder::write(path, "three\n");
    EXPECT_TRUE(file.read(error)) << error;
    EXPECT_FALSE(file.list().names_bot("one"));
    EXPECT_EQ(file.version(), 2u);
}

TEST(Prefetch, Headers) {
    EXPECT_TRUE(says_prefetch("sec-purpose", "prefetch"));
    EXPECT_TRUE(says_prefetch("sec-purpose", "prefetch;prerender"));
    EXPECT_TRUE(says_prefetch("sec-purpose", "Prefetch; anonymous-client-ip"));
    EXPECT_TRUE(says_prefetch("sec-purpose", " prefetch, x"));
    EXPECT_TRUE(says_prefetch("purpose", "prefetch"));
    EXPECT_TRUE(says_prefetch("x-moz", "prefetch"));
    EXPECT_TRUE(says_prefetch("x-purpose", "preview"));
    EXPECT_TRUE(says_prefetch("x-purpose", "PREFETCH"));
    EXPECT_FALSE(says_prefetch("sec-purpose", ""));
    EXPECT_FALSE(says_prefetch("sec-purpose", "prefetched"));
    EXPECT_FALSE(says_prefetch("sec-purpose", "navigate;prefetch"));
    EXPECT_FALSE(says_prefetch("sec-purpose", "pre"));
    EXPECT_FALSE(says_prefetch("x-moz", "preview"));
    EXPECT_FALSE(says_prefetch("Sec-Purpose", "prefetch")) << "names come in small letters";
    EXPECT_FALSE(says_prefetch("x-other", "prefetch"));
}

}  // namespace
